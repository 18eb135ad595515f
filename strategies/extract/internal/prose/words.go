package prose

import (
	"iter"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
)

// ContainsWord reports whether s contains v with no letter or digit next to it.
func ContainsWord(s, v string) bool {
	if v == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(s[at:], v)
		if i < 0 {
			return false
		}
		i += at
		before, _ := charclass.Prev(s, i)
		after, _ := charclass.Next(s, i+len(v))
		if before&charclass.Word == 0 && after&charclass.Word == 0 {
			return true
		}
		at = i + 1
	}
}

// Words yields the words of a text, names of code with underscores as a whole.
func Words(s string) iter.Seq[string] {
	return strings.FieldsFuncSeq(s, func(r rune) bool { return r != '_' && !IsLetterOrDigit(r) })
}
