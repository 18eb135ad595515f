package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// twoThemes returns a session about billing and about search, turn by turn.
func twoThemes(turns int) (ms []*chat.Message) {
	for i := range turns {
		for _, theme := range []string{"billing", "search"} {
			file, id := fmt.Sprintf("internal/%s/step%d.go", theme, i), fmt.Sprint(theme, i)
			ms = append(ms, user(fmt.Sprintf("Now look after the %s in %s, as case %s%dX says.", theme, file, strings.ToUpper(theme[:3]), 5000+i)),
				calls("I look at it.", id, "read", "file_path", file),
				result(id, fmt.Sprintf("the %s of run %d is at %d", theme, 70000+i, 80000+100*i+len(theme))),
				assistant(fmt.Sprintf("The %s now works, as run %d shows; it had kept a stale value.", theme, 90000+i)))
		}
	}
	return append(ms, user("And what about the rest?"))
}

// A topic gets the larger share of both parts, and the rest is not left out.
func TestFocusGetsTheLargerShare(t *testing.T) {
	t.Parallel()
	ms := twoThemes(40)
	shares := func(text, theme string) (prose, references float64) {
		of := func(s string) float64 {
			on, all := 0, 0
			for line := range strings.Lines(s) {
				billing, search := strings.Contains(strings.ToLower(line), "bil"), strings.Contains(strings.ToLower(line), "sea")
				if billing != search {
					all += len(line)
					if billing == (theme == "billing") {
						on += len(line)
					}
				}
			}
			return float64(on) / float64(max(1, all))
		}
		before, block := Split(text)
		return of(before), of(block)
	}
	for _, theme := range []string{"billing", "search"} {
		for _, focus := range []string{theme, "what became of the " + strings.ToUpper(theme) + "?"} {
			d := digestOf(Options{Focus: focus}, ms...)
			text := d.Text(900)
			wantWellFormed(t, text, 900, nil)
			prose, references := shares(text, theme)
			if prose < 0.6 || prose > 0.97 {
				t.Errorf("%q has %.0f %% of the prose:\n%s", focus, 100*prose, text)
			}
			if references < 0.6 {
				t.Errorf("%q has %.0f %% of the references:\n%s", focus, 100*references, text)
			}
			if _, references := shares("\n"+d.References(300), theme); references < 0.6 {
				t.Errorf("%q has %.0f %% of the references alone:\n%s", focus, 100*references, d.References(300))
			}
		}
	}
	plain := digestOf(Options{}, ms...)
	if prose, _ := shares(plain.Text(900), "billing"); prose > 0.55 {
		t.Errorf("without a topic billing has %.0f %%", 100*prose)
	}
	if got := digestOf(Options{Focus: "zeppelins"}, ms...).Text(900); got != plain.Text(900) {
		t.Error("a topic that nobody spoke of changes the summary")
	}
}
