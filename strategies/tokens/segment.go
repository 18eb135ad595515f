package tokens

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

const (
	// maxRun is the longest run, in bytes, that is encoded as one. At this length
	// the quadratic merge of a run is as fast as ordinary text.
	maxRun = 1024
	// maxSegment is how much is encoded in one go, where that can be cut without
	// changing a count: the encoder holds several times its input in memory.
	maxSegment = 16 << 10
)

// kind is what the split patterns of the encodings tell apart.
type kind uint8

const (
	space kind = iota
	letter
	number
	mark
	symbol
)

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		return asciiKinds[r]
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

var asciiKinds = func() (kinds [utf8.RuneSelf]kind) {
	for i := range kinds {
		switch r := rune(i); {
		case unicode.IsLetter(r):
			kinds[i] = letter
		case unicode.IsNumber(r):
			kinds[i] = number
		case unicode.IsSpace(r):
			kinds[i] = space
		default:
			kinds[i] = symbol
		}
	}
	return kinds
}()

// segments cuts s into pieces to be encoded one by one. It cuts a run of letters,
// of white space, or of neither, that is longer than maxRun; marks belong to the
// run before them. Everywhere else it cuts only where both encodings do, as soon
// as a segment has maxSegment bytes.
func segments(s string, maxRun, maxSegment int) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0  // of the segment
		safe := 0   // last place in it where both encodings cut
		run := 0    // start of the run
		was := mark // kind of the run; none yet
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

// boundary reports whether both encodings end a piece between two characters,
// whatever else stands around them. Letters end before everything but letters,
// marks and the apostrophe of a contraction; numbers before everything but
// numbers; the rest before white space that is no line break; line breaks before
// everything but white space and the slash.
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
