package summary

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

func draw(t *rapid.T) []*chat.Message {
	var out []*chat.Message
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aé漢 \n")), 0, 400, -1)
	for range rapid.IntRange(1, 12).Draw(t, "turns") {
		out = append(out, &chat.Message{Role: chat.RoleUser, Content: chat.TextContent(text.Draw(t, "ask"))})
		if rapid.Bool().Draw(t, "calls") {
			out = append(out,
				&chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: "1", Name: "read", Arguments: text.Draw(t, "arguments")}, {ID: "2", Name: "read"}}},
				&chat.Message{Role: chat.RoleTool, ToolCallID: "1", Content: chat.TextContent(text.Draw(t, "result"))},
				&chat.Message{Role: chat.RoleTool, ToolCallID: "2", Content: chat.TextContent("ok")})
		}
	}
	return out
}

// Parts hold every message once and in order, end between groups, and have room; only
// a group that is too long for any part is cut.
func TestParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		messages := draw(t)
		room := rapid.IntRange(60, 2000).Draw(t, "room")
		todo, next := messageGroups(messages), 0
		for len(todo) > 0 {
			part, rest, cut := nextPart(todo, room)
			if n := messagesTokens(part); n > room {
				t.Fatalf("a part of %d tokens in a room of %d", n, room)
			}
			for _, m := range part {
				was := messages[next]
				next++
				if m.Role != was.Role || m.ToolCallID != was.ToolCallID || len(m.ToolCalls) != len(was.ToolCalls) {
					t.Fatalf("message %d is another one", next)
				}
				if text := m.Content.String(); cut == 0 && text != was.Content.String() || !utf8.ValidString(text) {
					t.Fatalf("message %d reads %q, cut %d", next, text, cut)
				}
			}
			if next < len(messages) && messages[next].Role == chat.RoleTool {
				t.Fatalf("message %d is separated from its call", next+1)
			}
			todo = rest
		}
		if next != len(messages) {
			t.Fatalf("%d of %d messages", next, len(messages))
		}
	})
}

func TestShortenedKeepsBothEnds(t *testing.T) {
	t.Parallel()
	long := &chat.Message{Role: chat.RoleUser, Content: chat.TextContent("begin" + strings.Repeat("x", 9000) + "end")}
	got := shortened([]*chat.Message{long}, 100).messages[0].Content.Text
	if !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || len(got) > 300 || len(got) < 200 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if len(long.Content.Text) != 9008 {
		t.Error("the message itself was changed")
	}
}

// TestOutputsAreCutAsFarAsNeeded: none if one prompt has room for all messages, otherwise the
// oldest first.
func TestOutputsAreCutAsFarAsNeeded(t *testing.T) {
	t.Parallel()
	var ms []*chat.Message
	for i := range 4 {
		ms = append(ms, called(strconv.Itoa(i)), returned(strconv.Itoa(i), numbered(400)))
	}
	all := messagesTokens(ms)
	for _, step := range []policy.PreTrim{{Step: policy.TailLines}, {Step: policy.ClearOlderOutputs, Keep: 1}} {
		for window, want := range map[int]int{all: 0, all - 1: 1, all - messagesTokens(ms[:2]): 2, 1: 4 - step.Keep} {
			got, cuts := trimMessages([]policy.PreTrim{step}, ms, chat.Tokens(window), 0, time.Time{})
			for i := range 4 {
				if whole := got[2*i+1] == ms[2*i+1]; whole != (i >= want) {
					t.Errorf("%s to %d tokens: output %d whole: %v", step.Step, window, i, whole)
				}
			}
			if cuts[0].Outputs != want {
				t.Errorf("%s to %d tokens: %+v", step.Step, window, cuts[0])
			}
		}
	}
	// The writer does so with the model's window.
	for window, cut := range map[int]bool{64_000: false, 14_000: true} {
		_, calls := asks(t, &scripted{answer: answered, window: window}, policy.DefaultSummary(), plan.Task{Messages: session(12)})
		if len(calls) != 1 || strings.Contains(calls[0].User, "170 lines left out") != cut || !strings.Contains(calls[0].User, "line 1\n") {
			t.Errorf("window %d: %d calls\n%.3000s", window, len(calls), calls[0].User)
		}
	}
}

// TestPartsEndWithTheNewestMessages: of a session that is too long for all parts, the oldest
// messages are left out, those of the user, too.
func TestPartsEndWithTheNewestMessages(t *testing.T) {
	t.Parallel()
	ms := session(200)
	_, calls := asks(t, &scripted{answer: answered, window: 16_000}, policy.DefaultSummary(), plan.Task{Messages: ms})
	shown := ""
	for _, c := range calls {
		for part := range strings.SplitSeq(c.User, "\n\n") {
			if header, _, _ := strings.Cut(part, "\n"); !strings.Contains(header, " given") {
				shown += part
			}
		}
	}
	if len(calls) < 2 || !strings.Contains(shown, "Page 199 is fixed.") || !strings.Contains(shown, "git commit -m page-150") || strings.Contains(shown, "Page 0 is fixed.") {
		t.Errorf("%d calls, the last one\n%.3000s", len(calls), calls[len(calls)-1].User)
	}
}
