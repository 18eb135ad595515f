package agent

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// lastOf returns a strategy that keeps the newest n messages.
func lastOf(t *testing.T, n int) plan.Strategy {
	t.Helper()
	s, err := builtin.Registry().New("keep_last_n_messages", plan.Params{"n": n})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEngineKeepsSignedReasoningOnlyForModelsThatDoNotBindIt(t *testing.T) {
	t.Parallel()
	var talk []chat.Message
	for i := range 8 {
		talk = append(talk, sessiontest.User(fmt.Sprintf("question %d", i)), sessiontest.Sign(sessiontest.Says("answer"), i, i))
	}
	loop := append(slices.Clip(talk), sessiontest.User("look"), sessiontest.Sign(sessiontest.Calls("a"), 0, 99), sessiontest.Result("a", "x"))
	for _, c := range []struct {
		name     string
		free     bool
		messages []chat.Message
		changed  bool
		signed   int
	}{
		{"bound", false, talk, true, 0},
		{"free", true, talk, true, 2},
		{"bound in a tool loop", false, loop, false, 9},
		{"free in a tool loop", true, loop, true, 2},
	} {
		e, err := NewEngine(EngineOptions{
			FreeReasoning: c.free,
			New:           func(plan.Summarizer, builtin.Thresholds) (plan.Strategy, error) { return lastOf(t, 4), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		got, signed := compress(t, e, c.messages, CompressRequest{}), 0
		for _, m := range got.Messages {
			if meta := m.Meta(1); meta.Signed() {
				signed++
			}
		}
		if got.Compressed != c.changed || signed != c.signed || c.changed == (len(got.Messages) == len(c.messages)) {
			t.Errorf("%s: compressed %t to %d messages, %d with signed reasoning", c.name, got.Compressed, len(got.Messages), signed)
		}
	}
}
