package tokens

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

const (
	// maxRun is the maximum length in bytes of a run that is encoded as one piece. Up
	// to this length the quadratic merge of a run is as fast as ordinary text.
	maxRun = 1024
	// maxSegment is the length in bytes from which text is split where that does not
	// change the count: the encoder needs several times its input in memory.
	maxSegment = 16 << 10
)

// kind is a class of characters that the split patterns of the encodings distinguish.
type kind uint8

const (
	space kind = iota
	letter
	number
	mark
	symbol
)

// kindOf returns the kind of a character.
func kindOf(r rune) kind {
	if r < utf8.RuneSelf {
		return asciiKinds[r]
	}
	return unicodeKind(r)
}

var asciiKinds = func() (kinds [utf8.RuneSelf]kind) {
	for i := range kinds {
		kinds[i] = unicodeKind(rune(i))
	}
	return kinds
}()

func unicodeKind(r rune) kind {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return symbol
}

// segments returns the pieces of s to encode one by one. It splits a run of letters, of
// white space, or of neither that is longer than maxRun; marks belong to the preceding
// run. Elsewhere it splits only where both encodings do, once a segment has maxSegment
// bytes.
func segments(s string, maxRun, maxSegment int) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0  // start of the segment
		safe := 0   // last position in it where both encodings split
		run := 0    // start of the run
		was := mark // kind of the run; mark before the first
		before, prev := mark, rune(0)
		for i, r := range s {
			k := kindOf(r)
			if boundary(before, prev, k, r) {
				safe = i
			}
			if k != was && k != mark || was == mark {
				run, was = i, k
				if k == mark {
					was = symbol
				}
			}
			cut := 0
			switch {
			case k != number && i+utf8.RuneLen(r)-run > maxRun:
				cut, run = i, i
			case i-start >= maxSegment && safe > start:
				cut = safe
			}
			if cut > start {
				if !yield(s[start:cut]) {
					return
				}
				start = cut
			}
			before, prev = k, r
		}
		if start < len(s) {
			yield(s[start:])
		}
	}
}

// boundary reports whether both encodings end a piece between two characters in any
// context. Letters end before everything except letters, marks and the apostrophe of a
// contraction; numbers before everything except numbers; line breaks before everything
// except white space and the slash; other characters before white space that is not a
// line break.
func boundary(before kind, prev rune, k kind, r rune) bool {
	switch before {
	case letter:
		return k != letter && k != mark && r != '\''
	case number:
		return k != number
	case space:
		return lineBreak(prev) && k != space && r != '/'
	default:
		return prev != 0 && k == space && !lineBreak(r)
	}
}

func lineBreak(r rune) bool { return r == '\n' || r == '\r' }
