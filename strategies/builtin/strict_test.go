package builtin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/summary"
)

// overheard is the writer of stored summaries, without a model; it remembers what it was
// asked.
type overheard struct {
	*summary.Writer
	tasks []plan.Task
}

// Write implements summarize.Writer.
func (o *overheard) Write(ctx context.Context, t plan.Task) (string, error) {
	o.tasks = append(o.tasks, t)
	return o.Writer.Write(ctx, t)
}

// asked returns all that the writer was given.
func (o *overheard) asked() string {
	var b strings.Builder
	for _, t := range o.tasks {
		b.WriteString(t.Previous + "\n")
		for _, m := range t.Messages {
			b.WriteString(m.Content.String() + "\n")
			for _, c := range m.ToolCalls {
				b.WriteString(c.Arguments + "\n")
			}
		}
	}
	return b.String()
}

// overhearing returns all strategies that have summaries written, each with a writer.
func overhearing(t *testing.T) map[string]func() (plan.Strategy, *overheard) {
	t.Helper()
	out := map[string]func() (plan.Strategy, *overheard){}
	for _, info := range strategiestest.Registry().Describe() {
		if !info.Summarizer {
			continue
		}
		params := plan.Params{}
		switch info.Name {
		case "handoff":
			params["tail_token_budget"], params["protect_last_n"] = 50, 3
		case "summarize":
			params["threshold"] = 4
		}
		out[info.Name] = func() (plan.Strategy, *overheard) {
			w := &overheard{Writer: summary.New(summary.Options{Settings: policy.DefaultSummary(), Window: 128_000})}
			r := builtin.Registry()
			r.Summarizer = w
			s, err := r.New(info.Name, params)
			if err != nil {
				t.Fatal(err)
			}
			return s, w
		}
	}
	if len(out) < 6 {
		t.Fatalf("only %d strategies have summaries written", len(out))
	}
	return out
}

// workday is turns with calls, after instructions.
func workday(turns int) []chat.Message {
	ms := []chat.Message{sessiontest.Text(chat.RoleSystem, "Be brief. RULE11111X")}
	for i := range turns {
		id := fmt.Sprint("c", i)
		ms = append(ms, sessiontest.Text(chat.RoleUser, fmt.Sprintf("Please see to TICKET%dX in src/part%d.go now.", 1000+i, i)),
			chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: id, Type: "function", Name: "read", Arguments: fmt.Sprintf(`{"path":"src/part%d.go"}`, i)}}},
			chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(strings.Repeat("func check() error { return nil }\n", 20) + fmt.Sprintf("the parcel is PARCEL%dZ", 7000+i))},
			sessiontest.Text(chat.RoleAssistant, fmt.Sprintf("TICKET%dX is fixed.", 1000+i)))
	}
	return ms
}

// Instructions and pinned messages are what no strategy has summarized, and what they say
// stays where it was. What is written is marked, whichever strategy wrote it.
func TestPinsReachNoWriter(t *testing.T) {
	t.Parallel()
	for name, with := range overhearing(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := append(workday(3), sessiontest.Text(chat.RoleDeveloper, "From now on keep to RULE44444X."))
			ms = append(ms, workday(12)[1:]...)
			c := strategies.NewConversation(strategies.Options{})
			pinned := []chat.Seq{}
			for i, m := range ms {
				if i == 5 || i == 7 || i == 12 { // a user message, a result, a reply
					m.Content = chat.TextContent(m.Content.String() + " PINNED22222X")
					pinned = append(pinned, chat.Seq(i+1))
				}
				c.Append(m)
			}
			if err := c.Pin(true, pinned...); err != nil {
				t.Fatal(err)
			}
			s, w := with()
			if _, err := c.Compact(t.Context(), pipeline.Pipeline{Steps: []plan.Strategy{s}}); err != nil {
				t.Fatal(err)
			}
			if asked := w.asked(); !strings.Contains(asked, "TICKET1003X") || strings.Contains(asked, "PINNED22222X") || strings.Contains(asked, "RULE") {
				t.Errorf("the writer was given\n%s", asked)
			}
			view, marked := "", 0
			for _, m := range c.View() {
				view += m.Content.String() + "\n"
				if _, _, ok := frame.Unwrap(m.Content.String()); ok {
					marked++
				}
			}
			if strings.Count(view, "PINNED22222X") != len(pinned) || strings.Count(view, "RULE11111X") != 1 || strings.Count(view, "RULE44444X") != 1 || marked != 1 {
				t.Errorf("%d summaries in\n%s", marked, view)
			}
		})
	}
}

// References are taken from tool results even if a strategy prunes them.
func TestWritersReadWhatToolsReturned(t *testing.T) {
	t.Parallel()
	for name, with := range overhearing(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, w := with()
			compact(t, strategiestest.Of(workday(12)), s)
			if !strings.Contains(w.asked(), "PARCEL7003Z") {
				t.Errorf("the writer was given\n%s", w.asked())
			}
		})
	}
}

// A writer reads the messages that a step before it replaced, with the calls of their
// results, and not what stands in for them.
func TestWritersReadWhatStandInsCover(t *testing.T) {
	t.Parallel()
	for name, with := range overhearing(t) {
		if name != "handoff" && name != "summarization" && name != "summarize" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand, err := builtin.Registry().New("tool_result", plan.Params{})
			if err != nil {
				t.Fatal(err)
			}
			s, w := with()
			c := strategies.NewConversation(strategies.Options{})
			c.Append(workday(40)...)
			if _, err := c.Compact(t.Context(), pipeline.Pipeline{Steps: []plan.Strategy{stand, s}}); err != nil {
				t.Fatal(err)
			}
			asked := w.asked()
			if !strings.Contains(asked, `{"path":"src/part3.go"}`) || !strings.Contains(asked, "PARCEL7003Z") || strings.Contains(asked, "[Tool results:") {
				t.Errorf("the writer was given\n%s", asked)
			}
		})
	}
}

// Summaries in the history, of older versions and of other programs, are brought up to
// date: the next summary stands in their place, and nothing in them becomes the user's.
func TestSummariesOfOthersAreReplaced(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"[CONTEXT SUMMARY]:", "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n", "[Conversation Summary]\n", "[Summary of the conversation so far]\n\n"} {
		for name, with := range overhearing(t) {
			if name == "preserve_user_messages" {
				continue // it keeps what has the user's role
			}
			t.Run(head+name, func(t *testing.T) {
				t.Parallel()
				ms := workday(12)
				ms = append([]chat.Message{ms[0], sessiontest.Text(chat.RoleUser, head+" They want OLDREF33333X repaired first.")}, ms[1:]...)
				c := strategies.NewConversation(strategies.Options{})
				c.Append(ms...)
				s, _ := with()
				if _, err := c.Compact(t.Context(), pipeline.Pipeline{Steps: []plan.Strategy{s}}); err != nil {
					t.Fatal(err)
				}
				summaries, said := 0, ""
				for _, m := range c.View() {
					text := m.Content.String()
					if body, _, ok := frame.Unwrap(text); ok {
						summaries++
						said = body
					}
				}
				if summaries != 1 || !strings.Contains(said, "OLDREF33333X") {
					t.Errorf("%d summaries, one says\n%s", summaries, said)
				}
				for line := range strings.Lines(said) {
					if strings.Contains(line, "OLDREF33333X") && (strings.HasPrefix(line, ">") || strings.Contains(line, "Asked:")) || strings.Contains(line, head) {
						t.Errorf("the user is said to have said %q", line)
					}
				}
				if strings.Contains(said, "[Verbatim User Messages]") && strings.Contains(said[strings.Index(said, "[Verbatim"):], "OLDREF33333X") {
					t.Errorf("the user is quoted with\n%s", said)
				}
			})
		}
	}
}

// A writer of stored summaries divides long input itself: summarization gives it everything,
// unless a limit is given.
func TestSummarizationOfAWriterHasNoLimitOfItsOwn(t *testing.T) {
	t.Parallel()
	var messages []chat.Message
	for range 10 {
		messages = append(messages, sessiontest.User(strings.Repeat("long ", 2000)), sessiontest.Says("yes"))
	}
	for limit, want := range map[int]int{0: 19, 9000: 6} {
		o := &overheard{Writer: summary.New(summary.Options{})}
		params := plan.Params{"target_count": 1, "threshold": 0}
		if limit > 0 {
			params["max_summary_input_tokens"] = limit
		}
		s, err := builtin.Registry().With(o).New("summarization", params)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := strategies.Compact(t.Context(), messages, s, strategies.Options{}); err != nil {
			t.Fatal(err)
		}
		if len(o.tasks) != 1 || len(o.tasks[0].Messages) != want {
			t.Errorf("limit %d: %d tasks, %d messages, want %d", limit, len(o.tasks), len(o.tasks[0].Messages), want)
		}
	}
}
