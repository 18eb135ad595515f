package retention_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

var corpora = []string{"entire_cli.jsonl", "pi_mono.jsonl", "swe_agent.jsonl", "taubench_airline.jsonl", "aider_history.jsonl"}

// referencesHeading begins the references of an extract.
const referencesHeading = "## References\n"

func chars4(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }

// tally sums the scores of several sessions.
type tally struct{ needs, loose, keyed int }

func (y *tally) add(c *retention.Case, s retention.Score) {
	y.needs += len(c.Needs)
	y.loose += s.Loose
	y.keyed += s.Keyed
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
			var halves [2]tally
			for i, s := range sessiontest.Recorded(t, name, 4) {
				c := retention.NewCase(s.Messages, 0.5)
				if c == nil {
					continue
				}
				d := extract.New(extract.Options{})
				for k := range c.Pre {
					d.Add(&c.Pre[k])
				}
				for _, b := range []float64{0.01, 0.05, 0.1} {
					budget := int(b * c.Tokens)
					text := d.Text(budget)
					n := referencesOf(text)
					if chars4(text) > budget || 20*n > 3*utf8.RuneCountInString(text)+20 {
						t.Errorf("session %d: %d tokens, %d of them references, of %d", i, chars4(text), n/4, budget)
					}
					if b == 0.05 {
						halves[i%2].add(c, c.Score([]chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(text)}}))
					}
				}
			}
			t.Logf("at most 5 %%: %+v", halves)
			if name != corpora[0] {
				return
			}
			checked := []tally{{halves[0].needs + halves[1].needs, halves[0].loose + halves[1].loose, halves[0].keyed + halves[1].keyed}}
			if sessiontest.Long() {
				checked = halves[:]
			}
			for _, y := range checked {
				if 2*y.keyed < y.needs || 100*y.loose < 58*y.needs || y.needs == 0 {
					t.Errorf("%d keyed and %d loose of %d", y.keyed, y.loose, y.needs)
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
	for _, s := range sessiontest.Recorded(t, corpora[0], 4) {
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
			used := usedBy(tenth)
			for _, v := range retention.IdentifiersIn(summary) {
				if !used[v] {
					continue
				}
				delete(used, v) // counted
				if all++; strings.Contains(next, v) {
					kept++
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
