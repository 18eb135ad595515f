package extract

import (
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

var corpora = []string{"entire_cli.jsonl", "pi_mono.jsonl", "swe_agent.jsonl", "taubench_airline.jsonl", "aider_history.jsonl"}

func TestSummariesOfRecordedConversations(t *testing.T) {
	t.Parallel()
	for _, name := range corpora {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, s := range sessiontest.Recorded(t, name, 6) {
				d, again := New(Options{}), New(Options{})
				asks := []string{""}
				tokens := 0
				for k := range s.Messages {
					m := &s.Messages[k]
					d.Add(m)
					again.Add(m)
					if tokens += sizeOf(m); m.Role == chat.RoleUser || m.Role == chat.RoleTool && isRefusal(m.Content.String()) {
						clean, _ := redact.Redact(m.Content.String())
						said, command := request(clean)
						asks = append(asks, clean, said, command)
					}
				}
				budget := tokens / 20
				written := d.Text(budget)
				wantWellFormed(t, written, budget, asks)
				if again.Text(budget) != written {
					t.Errorf("session %d: another summary of the same messages", i)
				}
				if _, found := redact.Redact(written); found.Total() > 0 {
					t.Errorf("session %d: %d secrets", i, found.Total())
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// Ten compactions of each long session, each of the summary before and the messages since.
func TestChainsOfRecordedConversationsAreWellFormed(t *testing.T) {
	t.Parallel()
	chains := 0
	for _, s := range sessiontest.Recorded(t, corpora[0], 4) {
		const budget = 3000
		if totalOf(s.Messages) < 20*budget {
			continue
		}
		chains++
		summary := ""
		for n := range 10 {
			d := New(Options{})
			d.AddPrevious(summary)
			tenth := s.Messages[n*len(s.Messages)/10 : (n+1)*len(s.Messages)/10]
			for k := range tenth {
				d.Add(&tenth[k])
			}
			next := d.Text(budget)
			wantWellFormed(t, next, budget, nil)
			summary = next
		}
	}
	if chains == 0 {
		t.Error("no session is long enough")
	}
}

// sizeOf returns a quarter of the characters of a message and its calls.
func sizeOf(m *chat.Message) int {
	n := utf8.RuneCountInString(m.Content.String())
	for _, c := range m.ToolCalls {
		n += utf8.RuneCountInString(c.Name) + utf8.RuneCountInString(c.Arguments)
	}
	return n / 4
}

// totalOf returns the size of all messages.
func totalOf(ms []chat.Message) (n int) {
	for i := range ms {
		n += sizeOf(&ms[i])
	}
	return n
}
