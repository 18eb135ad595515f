package builtin

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// TestSourcesAreBounded: what was dropped is told already and takes no memory, and no more is read
// than the bounds allow.
func TestSourcesAreBounded(t *testing.T) {
	t.Parallel()
	standIn := &chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("[Tool results: 3]")}
	earlier := &chat.Message{Role: chat.RoleUser, Content: chat.TextContent("an earlier summary")}
	for name, c := range map[string]struct {
		dropped, covered, size int
		want                   int // messages
		most                   int // that are read
	}{
		"few":            {3, 4, 10, 5, 10},
		"much dropped":   {40, 4, 1 << 20, 5, 90},
		"too much of it": {200, 4, 1 << 20, 0, 65},
		"too large":      {0, 300, 1 << 20, 0, 17},
	} {
		read := 0
		tr := plan.NewTranscript([]plan.Entry{
			{Meta: chat.Meta{Seq: 900, Kind: chat.KindSummary, Role: chat.RoleUser}, Message: earlier, Included: true},
			{Meta: chat.Meta{Seq: 901, Kind: chat.KindReplacement, Role: chat.RoleAssistant}, Message: standIn, Included: true},
		}, nil, nil)
		tr.Originals = func(_ context.Context, of []chat.Seq, _ int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
			n := c.dropped
			if len(of) > 0 {
				n += c.covered
			}
			return func(yield func(chat.Original, error) bool) {
				for i := range n {
					read++
					m := &chat.Message{ID: fmt.Sprint(i), Role: chat.RoleUser, Content: chat.TextContent(strings.Repeat("x", c.size))}
					if !yield(chat.Original{Message: m, Seq: chat.Seq(i + 1)}, nil) {
						return
					}
				}
			}, nil, nil
		}
		task := plan.Task{Messages: []*chat.Message{earlier, standIn}, Seqs: []chat.Seq{900, 901}, Kinds: []chat.Kind{chat.KindSummary, chat.KindReplacement}}
		task.Originals = func(context.Context, int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
			return nil, nil, nil
		}
		messages, kinds, seqs, err := sourcesOf(tr, task, []int{1})(t.Context())
		if err != nil || len(messages) != c.want || len(kinds) != c.want || len(seqs) != c.want || read > c.most {
			t.Errorf("%s: %d messages, %d kinds, %d read, %v", name, len(messages), len(kinds), read, err)
		}
		if len(messages) > 1 && (messages[0] != earlier || messages[1].ID != fmt.Sprint(c.dropped)) {
			t.Errorf("%s: %s and %s come first", name, messages[0].Content.Text[:5], messages[1].ID)
		}
	}
}
