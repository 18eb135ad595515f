package identifier

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// AppendLabels appends to dst the words that label the text at byte at of s, in order and
// in lower case: the words of three or more ASCII letters before it on its line, at most
// within characters away, except stop words such as "the". A word that the limit cuts
// counts with its remaining letters. The words may share memory with s.
func AppendLabels(dst []string, s string, at, within int) []string {
	return appendLabels(dst, s, at, within, false)
}

// AppendWholeLabels is AppendLabels without words that are part of a code such as FQ8APE or of a longer word.
func AppendWholeLabels(dst []string, s string, at, within int) []string {
	return appendLabels(dst, s, at, within, true)
}

func appendLabels(dst []string, s string, at, within int, whole bool) []string {
	from := lineStart(s, at, within)
	line := s[from:at]
	if strings.Contains(line, kelvin) || strings.Contains(line, dottedI) {
		line = strings.NewReplacer(kelvin, "k", dottedI, "i\u0307").Replace(line)
	}
	for i := 0; i < len(line); i++ {
		start := i
		for i < len(line) && charclass.Alpha.Has(line[i]) {
			i++
		}
		if i-start < 3 || whole && (start > 0 && charclass.Digit.Has(line[start-1]) || i < len(line) && charclass.Digit.Has(line[i]) || isWithinWord(line, start, i) || start == 0 && isWithinWord(s[:at], from, at)) {
			continue
		}
		if w := strings.ToLower(line[start:i]); !IsStopWord(w) {
			dst = append(dst, w)
		}
	}
	return dst
}

// isWithinWord reports whether letters of the Latin script are next to the word s[start:end].
func isWithinWord(s string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:start])
	after, _ := utf8.DecodeRuneInString(s[end:])
	return unicode.Is(unicode.Latin, before) || unicode.Is(unicode.Latin, after)
}

// The Kelvin sign and the capital I with a dot have ASCII letters as lower case; the
// latter's combining dot ends a word.
const (
	kelvin  = "\u212a"
	dottedI = "\u0130"
)

// lineStart returns the start of the line that contains at, or the index within characters
// before at if that is later.
func lineStart(s string, at, within int) int {
	for ; within > 0 && at > 0 && s[at-1] != '\n'; within-- {
		size := 1
		if s[at-1] >= utf8.RuneSelf {
			_, size = utf8.DecodeLastRuneInString(s[:at])
		}
		at -= size
	}
	return at
}

// IsStopWord reports whether a word in lower case is too common to label anything.
func IsStopWord(w string) bool { return stopWords[w] }

// IsEmptyLabel reports whether a word in lower case that is no stop word says nothing of the identifier behind it: a function
// that formats, or a word that any sentence has.
func IsEmptyLabel(w string) bool { return emptyLabels[w] }

var (
	stopWords   = text.Set(`the and for with that this from are was not but you has have its into can will all any our out use get new`)
	emptyLabels = text.Set(`func errorf fatalf logf warnf debugf infof printf println sprintf fprintf omitempty def nil null none self void
		else elif been both yeah only then there when what which where why how also just here they your because instead still more than
		these those some other anything something let now see look back does did don would should could like them their being same such
		each may must too used before after via very thus yes who his her she had were etc
		one two three five six seven eight nine ten several many already again`)
)
