package text

import (
	"fmt"
	"strings"
	"testing"
)

// TestPatternsMatchAsRegexp: an automaton matches the texts that package regexp matches, whatever the expression asserts
// of places and however the characters are written.
func TestPatternsMatchAsRegexp(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", "\n", "a", " ", "The Editor PUBLISHED it.", "the owner has released 4.1", "Ship it", "\u017fhip it", "a ship", "RI\u017f\u212a", "rise",
		"Он ВЫПУСТИЛ её", "die AUSGABE 7", "ΣΉΜΕΡΑ", "a preview", "viewer2", "red paint", "draft\n note: b", "\xff\xfe", "é\xc3", "日本", "aab", "a\nb", "a b\n\n", strings.Repeat("ab ", 300),
	}
	for _, expr := range []string{
		`(?i)\b(?:owner|editor)\s+(?:has\s+)?(?:release|publish)ed\b|\bship\s+it\b`, `(?i)выпус(?:тил|кает)|Ausgabe|σήμερα`, `(?i)risk`, `(?:pre-?)?view(?:er)?[12]?$`, `(?im)^\s*(?:(?-i:Draft)|note):\s`,
		`(?:(?:red|blue)\s+){1,3}paint|[xyz]{2}`, `^$`, `(?m)^$`, `\Aa|b\z`, `^a|^b|\bc`, `a\B`, `\B`, `\b\b`, `[^a-z\s]`, `.`, `(?s).$`, `\pL\PL`, `(a*)*b`, `[^\x00-\x{10FFFF}]`, `x|`, `(?:ab.{0,300}){2}c`, `a{0}^b`, `\x{FFFD}`,
	} {
		p := Pattern(expr)()
		for _, s := range texts {
			if got, want := p.MatchString(s), p.Regexp.MatchString(s); got != want {
				t.Errorf("%s on %q: %t", expr, s, got)
			}
			if len(p.FindAllStringIndex(s, -1)) != len(p.Regexp.FindAllStringIndex(s, -1)) || p.ReplaceAllString(s, "-") != p.Regexp.ReplaceAllString(s, "-") {
				t.Errorf("%s finds other places in %q", expr, s)
			}
		}
	}
}

// TestAutomataAreBounded: an automaton of which texts need ever more states leaves them to package regexp.
func TestAutomataAreBounded(t *testing.T) {
	t.Parallel()
	p := Pattern(`[ab]*a[ab]{12}c`)()
	for n := range 1 << 13 {
		s := strings.NewReplacer("0", "a", "1", "b").Replace(fmt.Sprintf("%014b", n))
		if got, want := p.MatchString(s+"c"), p.Regexp.MatchString(s+"c"); got != want {
			t.Fatalf("%s: %t", s, got)
		}
	}
	if len(p.automaton.states) > maxStates {
		t.Errorf("%d states", len(p.automaton.states))
	}
}

// TestNoRoomForAutomata: expressions match without automata when the tables of the others are full.
//
//nolint:paralleltest // no other test may make automata meanwhile
func TestNoRoomForAutomata(t *testing.T) {
	known := Pattern(`a+b`)()
	known.MatchString("ab")
	cells.Add(maxCells)
	defer cells.Add(-maxCells)
	for _, p := range []*Regexp{known, Pattern(`a+b`)()} {
		for s, want := range map[string]bool{"xaab": true, "xaa": false, "": false, "ab": true} {
			if got := p.MatchString(s); got != want {
				t.Errorf("%q: %t", s, got)
			}
		}
	}
}
