package text

import "testing"

// TestTextsWithoutNeededWordsAreNotMatched: a text is given to an expression if it has a word of each set of one
// alternative, in any case, and with what a match may have around it.
func TestTextsWithoutNeededWordsAreNotMatched(t *testing.T) {
	t.Parallel()
	for expr, texts := range map[string]map[string]bool{
		`(?i)\b(?:owner|editor)\s+(?:has\s+)?(?:release|publish)ed\b|\bship\s+it\b`: {
			"The Editor PUBLISHED it.": true, "the owner has released 4.1": true, "Ship it": true, "the owner left": false, "it was released": false, "\u017fhip it": true, "a ship": false, "": false,
		},
		`(?i)выпус(?:тил|кает)|Ausgabe|σήμερα`: {"Он ВЫПУСТИЛ её": true, "die AUSGABE 7": true, "ΣΉΜΕΡΑ": true, "a plain text": false},
		`(?i)risk`:                               {"RI\u017f\u212a": true, "rise": false},
		`(?:pre-?)?view(?:er)?[12]?`:             {"a preview": true, "viewer2": true, "a vie": false},
		`(?i)^\s*(?:draft)`:                      {"no word of it": true}, // it ends at once
		`\d+|item`:                               {"no digit": true},
		`(?:(?:red|blue)\s+){1,3}paint|[xyz]{2}`: {"red paint": true, "red": true}, // what a class stands for is not known
	} {
		p := Pattern(expr)()
		for s, want := range texts {
			if got := p.needs.mayMatch(s); got != want {
				t.Errorf("%s on %q: %t", expr, s, got)
			}
			if p.MatchString(s) != p.Regexp.MatchString(s) || len(p.FindAllStringIndex(s, -1)) != len(p.Regexp.FindAllStringIndex(s, -1)) {
				t.Errorf("%s on %q differs from regexp", expr, s)
			}
		}
	}
}
