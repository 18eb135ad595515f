package retention_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
)

// recorded returns the sessions of a file of recorded conversations, which stand in DATA_DIR
// or beside the module.
func recorded(t *testing.T, name string) []chat.Session {
	t.Helper()
	dir := os.Getenv("DATA_DIR")
	if dir == "" {
		dir = "../../../../../shared/data"
	}
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("no %s in %s (DATA_DIR names another folder)", name, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []chat.Session
	for r := chat.NewReader(f); ; {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
}

var corpora = []string{"entire_cli.jsonl", "pi_mono.jsonl", "swe_agent.jsonl", "taubench_airline.jsonl", "aider_history.jsonl"}

// referencesHeading begins the references of an extract.
const referencesHeading = "## References\n"

func chars4(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }

// tally pools the scores of several sessions.
type tally struct {
	sessions, needs, strictNeeds, loose, keyed, strict int
	tokens, references                                 float64 // sums of shares
}

// scored is what tally adds for a text.
func scored(c *retention.Case, text string) retention.Score {
	return c.Score([]chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(text)}})
}

func (y *tally) add(c *retention.Case, s retention.Score, references int) {
	y.sessions++
	y.needs += len(c.Needs)
	y.strictNeeds += c.Strict
	y.loose += s.Loose
	y.keyed += s.Keyed
	y.strict += s.Strict
	y.tokens += s.Tokens / c.Tokens
	y.references += float64(references) / 4 / c.Tokens
}

func (y *tally) log(t *testing.T, what string) {
	t.Helper()
	if y.sessions == 0 {
		return
	}
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	t.Logf("%s: %d sessions, keyed %.1f %%, loose %.1f %%, strict %.1f %%, kept %.2f %%, references %.2f %%", what, y.sessions,
		percent(y.keyed, y.needs), percent(y.loose, y.needs), percent(y.strict, y.strictNeeds),
		100*y.tokens/float64(y.sessions), 100*y.references/float64(y.sessions))
}

// referencesOf returns how many characters of a summary are references.
func referencesOf(text string) int {
	n, in := 0, false
	for line := range strings.SplitAfterSeq(text, "\n") {
		if in = in || line == referencesHeading; in {
			n += utf8.RuneCountInString(line)
		}
	}
	return n
}

// References take at most 15 % of a text. Of the identifiers half are kept with their labels, where messages drawn at random keep
// a third; the weights were fitted on the odd sessions of the first corpus alone.
func TestRetentionOfRecordedConversations(t *testing.T) {
	t.Parallel()
	for _, name := range corpora {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			budgets := []float64{0.01, 0.02, 0.03, 0.05, 0.1}
			all, alone := map[float64]*tally{}, &tally{}
			halves := [2]tally{}
			for _, b := range budgets {
				all[b] = &tally{}
			}
			for i, s := range recorded(t, name) {
				c := retention.NewCase(s.Messages, 0.5)
				if c == nil {
					continue
				}
				d := extract.New(extract.Options{})
				for k := range c.Pre {
					d.Add(&c.Pre[k])
				}
				for _, b := range budgets {
					budget := int(b * c.Tokens)
					text := d.Text(budget)
					n := referencesOf(text)
					if chars4(text) > budget || 20*n > 3*utf8.RuneCountInString(text)+20 {
						t.Errorf("session %d: %d tokens, %d of them references, of %d", i, chars4(text), n/4, budget)
					}
					if b != 0.05 && !testing.Verbose() {
						continue // only logged
					}
					score := scored(c, text)
					all[b].add(c, score, n)
					if b == 0.05 {
						halves[i%2].add(c, score, n)
					}
				}
				if testing.Verbose() {
					text := d.References(int(0.03 * c.Tokens))
					alone.add(c, scored(c, text), utf8.RuneCountInString(text))
				}
			}
			for _, b := range budgets {
				all[b].log(t, name+" at most "+map[float64]string{0.01: "1 %", 0.02: "2 %", 0.03: "3 %", 0.05: "5 %", 0.1: "10 %"}[b])
			}
			alone.log(t, name+" references alone, at most 3 %")
			halves[0].log(t, name+" even sessions, at most 5 %")
			halves[1].log(t, name+" odd sessions, at most 5 %")
			if name != corpora[0] {
				return
			}
			for what, y := range map[string]*tally{"all": all[0.05], "even": &halves[0], "odd": &halves[1]} {
				if 2*y.keyed < y.needs || 100*y.loose < 58*y.needs {
					t.Errorf("%s: %d keyed and %d loose of %d", what, y.keyed, y.loose, y.needs)
				}
			}
		})
	}
}

// Ten compactions of each long session, each of the summary before alone, keep of the identifiers that an earlier one named and the
// newest tenth uses 97 of 100: a block of references has twenty lines. Workers read the original messages instead.
func TestChainsOfRecordedConversations(t *testing.T) {
	t.Parallel()
	kept, all := 0, 0
	for _, s := range recorded(t, corpora[0]) {
		const budget = 3000
		if total := retention.Total(s.Messages); total < 20*budget {
			continue
		}
		summary := ""
		for n := range 10 {
			d := extract.New(extract.Options{})
			d.AddPrevious(summary)
			tenth := s.Messages[n*len(s.Messages)/10 : (n+1)*len(s.Messages)/10]
			for k := range tenth {
				d.Add(&tenth[k])
			}
			next := d.Text(budget)
			if chars4(next) > budget {
				t.Errorf("%d tokens, at most %d allowed", chars4(next), budget)
			}
			for v := range usedBy(tenth) {
				if holdsWord(summary, v) {
					if all++; strings.Contains(next, v) {
						kept++
					}
				}
			}
			summary = next
		}
	}
	t.Logf("kept %d of %d", kept, all)
	if all == 0 || 100*kept < 97*all {
		t.Errorf("kept %d of %d references that were named before and are still used", kept, all)
	}
}

// usedBy returns the identifiers that the user or the assistant writes.
func usedBy(ms []chat.Message) map[string]bool {
	used := map[string]bool{}
	for i := range ms {
		if r := ms[i].Role; r == chat.RoleUser || r == chat.RoleAssistant {
			for _, id := range retention.IdentifiersIn(retention.Text(&ms[i])) {
				used[id] = true
			}
		}
	}
	return used
}

// holdsWord reports whether a summary names an identifier as one.
func holdsWord(summary, v string) bool {
	return slices.Contains(retention.IdentifiersIn(summary), v)
}
