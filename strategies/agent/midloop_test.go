package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func shorts(ms []chat.Message) []string {
	var out []string
	for i := range ms {
		out = append(out, sessiontest.Briefly(&ms[i]))
	}
	return out
}

func TestMidLoop(t *testing.T) {
	t.Parallel()
	said := func(text string, m chat.Message) chat.Message { m.Content = chat.TextContent(text); return m }
	tests := map[string]struct {
		messages, compacted []chat.Message // compacted is the head after it was
		head, tail, joined  []string
	}{
		"nothing": {},
		"the batch that is not read yet stays": {
			messages:  []chat.Message{sessiontest.User("u"), sessiontest.Calls("a"), sessiontest.Result("a", "1"), sessiontest.Calls("b", "c"), sessiontest.Result("b", "2")},
			compacted: []chat.Message{sessiontest.User("u")},
			head:      []string{"user u", "assistant calls a", "tool(a) 1"},
			tail:      []string{"assistant calls b,c", "tool(b) 2"},
			joined:    []string{"user u", "assistant calls b,c", "tool(b) 2"},
		},
		"two assistant messages become one": {
			messages:  []chat.Message{sessiontest.User("u"), said("one", sessiontest.Calls("a")), sessiontest.Result("a", "1"), said("two", sessiontest.Calls("b")), sessiontest.Result("b", "2")},
			compacted: []chat.Message{sessiontest.User("u"), sessiontest.Says("one")},
			head:      []string{"user u", "assistant one calls a", "tool(a) 1"},
			tail:      []string{"assistant two calls b", "tool(b) 2"},
			joined:    []string{"user u", "assistant one\ntwo calls b", "tool(b) 2"},
		},
		"one of them without words": {
			messages:  []chat.Message{sessiontest.Says("one"), sessiontest.Calls("b")},
			compacted: []chat.Message{sessiontest.Says("one")},
			head:      []string{"assistant one"}, tail: []string{"assistant calls b"},
			joined: []string{"assistant one calls b"},
		},
		"without an assistant all is head": {
			messages:  []chat.Message{sessiontest.User("a"), sessiontest.User("b")},
			compacted: []chat.Message{sessiontest.User("b")},
			head:      []string{"user a", "user b"}, joined: []string{"user b"},
		},
		"without a head nothing can be compacted": {
			messages: []chat.Message{sessiontest.Calls("a"), sessiontest.Result("a", "1")},
			tail:     []string{"assistant calls a", "tool(a) 1"}, joined: []string{"assistant calls a", "tool(a) 1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := shorts(test.messages)
			head, tail := SplitMidLoop(test.messages)
			joined := JoinMidLoop(test.compacted, tail)
			for _, diff := range []string{
				cmp.Diff(test.head, shorts(head)), cmp.Diff(test.tail, shorts(tail)), cmp.Diff(test.joined, shorts(joined)),
				cmp.Diff(before, shorts(test.messages)),
			} {
				if diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Two messages that become one have one reasoning: the second's, whose results are
// still to be read, or the first's where the second has none.
func TestJoinMidLoopKeepsOneReasoning(t *testing.T) {
	t.Parallel()
	thinks := func(text, key string) chat.Message {
		m := sessiontest.Says("words")
		m.Reasoning, m.ReasoningKey = text, key
		return m
	}
	for name, test := range map[string]struct{ head, tail, want chat.Message }{
		"of both":         {thinks("a", "reasoning"), thinks("b", "reasoning_content"), thinks("b", "reasoning_content")},
		"of the head":     {thinks("a", "reasoning"), thinks("", ""), thinks("a", "reasoning")},
		"of the tail":     {thinks("", ""), thinks("b", "reasoning"), thinks("b", "reasoning")},
		"of none of them": {thinks("", ""), thinks("", ""), thinks("", "")},
	} {
		joined := JoinMidLoop([]chat.Message{test.head}, []chat.Message{test.tail})
		if len(joined) != 1 || joined[0].Reasoning != test.want.Reasoning || joined[0].ReasoningKey != test.want.ReasoningKey {
			t.Errorf("%s: got %+v", name, joined)
		}
	}
}
