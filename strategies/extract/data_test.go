package extract

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/redact"
)

// recorded returns the sessions of a file of recorded conversations, which stand in DATA_DIR
// or beside the module.
func recorded(t *testing.T, name string) []chat.Session {
	t.Helper()
	dir := os.Getenv("DATA_DIR")
	if dir == "" {
		dir = "../../../shared/data"
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

func TestSummariesOfRecordedConversations(t *testing.T) {
	t.Parallel()
	for _, name := range corpora {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, s := range recorded(t, name) {
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
	for _, s := range recorded(t, corpora[0]) {
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
