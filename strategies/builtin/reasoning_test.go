package builtin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// thinker draws messages with signed reasoning.
type thinker struct{ n int }

func (x *thinker) draw(t *rapid.T, most int) []chat.Message {
	out := builtin.DrawMessages(t, most)
	for i := range out {
		if out[i].Role == chat.RoleAssistant && rapid.IntRange(0, 2).Draw(t, "signed") > 0 {
			x.n++
			out[i] = sessiontest.Sign(out[i], rapid.IntRange(0, sessiontest.SignedForms-1).Draw(t, "form"), x.n)
		}
	}
	return out
}

// bodies returns a view as JSON.
func bodies(view []chat.Message) []string {
	out := make([]string, len(view))
	for i, m := range view {
		out[i] = string(m.AppendJSON(nil))
	}
	return out
}

// openAt returns how many messages of the view an open tool loop with signed reasoning holds
// as they are: up to the last of them, which the model is to continue.
func openAt(view []chat.Message) int {
	start := 0
	for i, m := range view {
		if m.Role == chat.RoleUser {
			start = i + 1
		}
	}
	open, last := false, 0
	for i := start; i < len(view); i++ {
		m := view[i]
		switch {
		case m.Role == chat.RoleTool, m.Meta(1).ReasoningOnly():
		default:
			open = m.Role == chat.RoleAssistant && len(m.ToolCalls) > 0
		}
		if strings.Contains(string(m.AppendJSON(nil)), "signed-") {
			last = i + 1
		}
	}
	if !open {
		return 0
	}
	return last
}

// view returns the messages of the view, each as it was appended.
func view(c *strategies.Conversation) (out []chat.Message) {
	for _, r := range c.Records() {
		if r.Included {
			out = append(out, r.Message)
		}
	}
	return out
}

// A view shows signed reasoning only where everything before it is as it was when the
// reasoning was written, all of it, and never changes what precedes an open tool loop.
func TestAConversationHoldsSignedReasoningOnlyOnItsPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := strategies.NewConversation(strategies.Options{
			AllowGrowth: rapid.Bool().Draw(t, "allow growth"), MidLoop: rapid.IntRange(0, 3).Draw(t, "mid loop") == 3,
		})
		prefixes, x := sessiontest.Prefixes{}, &thinker{}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			now := view(c)
			said := x.draw(t, 6)
			prefixes.Written(now, said)
			c.Append(said...)

			before := view(c)
			was, err := prefixes.Valid(before)
			if err != nil {
				t.Fatalf("after an append: %v", err)
			}
			p := builtin.DrawPipeline(t, func() plan.Strategy { return drawn(t) })
			report, err := c.Compact(t.Context(), p)
			if err != nil {
				t.Fatalf("%v", err)
			}
			after := view(c)
			is, err := prefixes.Valid(after)
			if err != nil {
				t.Fatalf("after a compaction: %v\nbefore %s\nafter  %s", err, strings.Join(bodies(before), "\n  "), strings.Join(bodies(after), "\n  "))
			}
			same := 0
			for was, is := bodies(before), bodies(after); same < min(len(was), len(is)) && was[same] == is[same]; {
				same++
			}
			for id := range was {
				if !is[id] && strings.Contains(strings.Join(bodies(before[:same]), ""), id) {
					t.Fatalf("%s is gone, although nothing changed before it", id)
				}
			}
			open := openAt(before)
			// No provider takes an invalid view, so the loop could not end.
			broken := slices.ContainsFunc(report.Violations, func(v chat.Violation) bool { return v.Index < open })
			if same < open && !broken {
				t.Fatalf("message %d changed, and an open tool loop has signed reasoning in message %d\nbefore %s\nafter  %s",
					same, open-1, strings.Join(bodies(before), "\n  "), strings.Join(bodies(after), "\n  "))
			}
			messages, size := c.Size()
			var count chat.Tokens
			for i := range after {
				count += tokens.Chars4{}.Message(&after[i])
			}
			if messages != len(after) || size != count {
				t.Fatalf("the size is %d messages and %d tokens, the view has %d and %d", messages, size, len(after), count)
			}
			if got := report.After.IncludedTokens; got != count {
				t.Fatalf("the report says %d tokens, the view has %d", got, count)
			}
		}
	})
}

func drawn(t *rapid.T) plan.Strategy {
	if rapid.IntRange(0, 3).Draw(t, "hostile") == 3 {
		return builtin.Hostile(rapid.Uint64().Draw(t, "seed"))
	}
	return builtin.DrawStrategy(t)
}

func TestAModelThatDoesNotBindReasoningKeepsIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := &thinker{}
		said := x.draw(t, 10)
		s := drawn(t)
		free, err := strategies.Compact(t.Context(), said, s, strategies.Options{AllowGrowth: true, FreeReasoning: true})
		if err != nil {
			t.Fatalf("%v", err)
		}
		plain := slices.Clone(said)
		for i := range plain {
			plain[i] = unsigned(plain[i])
		}
		want, err := strategies.Compact(t.Context(), plain, s, strategies.Options{AllowGrowth: true})
		if err != nil {
			t.Fatalf("%v", err)
		}
		got := free.Messages
		if len(got) != len(want.Messages) {
			t.Fatalf("%d messages, with plain reasoning %d", len(got), len(want.Messages))
		}
		for i := range got {
			if a, b := unsigned(got[i]), want.Messages[i]; string(a.AppendJSON(nil)) != string(b.AppendJSON(nil)) {
				t.Fatalf("message %d is %s, with plain reasoning %s", i, a.AppendJSON(nil), b.AppendJSON(nil))
			}
		}
	})
}

// unsigned returns the message with its reasoning in a form of the same length that is not
// signed.
func unsigned(m chat.Message) chat.Message {
	raw := string(m.AppendJSON(nil))
	for _, r := range [][2]string{{`"signature"`, `"xignature"`}, {`"encrypted_content"`, `"encrypted_xontent"`}, {`"data"`, `"xata"`}} {
		raw = strings.ReplaceAll(raw, r[0], r[1])
	}
	var out chat.Message
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		panic(err)
	}
	return out
}

// No provider takes an invalid view, so a loop behind what is invalid could never end.
func TestAnInvalidViewBeforeAnOpenToolLoopIsRepaired(t *testing.T) {
	t.Parallel()
	thinks := sessiontest.Sign(sessiontest.Calls("c"), 0, 1)
	got, err := strategies.Compact(t.Context(), []chat.Message{
		sessiontest.User("hello"), sessiontest.Result("never", "found"), sessiontest.User("fix it"), thinks, sessiontest.Result("c", "package main"),
	}, sessiontest.Strategy(t, builtin.Registry(), "keep_last_n_messages", plan.Params{"n": 2}), strategies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != 5 || !strings.Contains(got.Messages[1].Content.String(), "found") || got.OpenLoop {
		t.Errorf("view %v, open loop %t, want the repair and nothing else", bodies(got.Messages), got.OpenLoop)
	}
	if rest := bodies(got.Messages[3:4]); !cmp.Equal(rest, bodies([]chat.Message{thinks.WithoutReasoning()})) {
		t.Errorf("the call is %v, want it without its reasoning", rest)
	}
}
