package strategies

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// exchanges returns turns of about size tokens in which files are looked at.
func exchanges(turns, size int) []chat.Message {
	const words = "it was fine. "
	var out []chat.Message
	n := size / int(counter.Text(words))
	for i := range turns {
		out = append(out,
			chat.Message{Role: chat.RoleUser, Content: chat.TextContent(fmt.Sprintf("/srv/app/config_%d.yaml? %s", i, strings.Repeat(words, 1+n/3)))},
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("host10.example.net. " + strings.Repeat(words, 1+n))})
	}
	return out
}

// counter counts the tokens of the views.
var counter = tokens.ForModel("gpt-4o")

// What a handoff keeps fits into the target with its summary: large messages of head and tail
// are summarized, and so is a long loop behind the last user message, which stays. Nothing is
// left to the fallback, which drops whole groups.
func TestAHandoffLeavesNothingToTheFallback(t *testing.T) {
	t.Parallel()
	say := func(role chat.Role, size int) chat.Message {
		return chat.Message{Role: role, Content: chat.TextContent("host10.example.net. " + strings.Repeat("it was fine. ", size/4))}
	}
	loop := func(n, size int) (out []chat.Message) {
		for i := range n {
			id := fmt.Sprint("call", i)
			result := say(chat.RoleTool, size)
			result.ToolCallID = id
			result.Content.Text += id // else prune_tool_results would see repetitions
			out = append(out, chat.Message{
				Role: chat.RoleAssistant, Content: chat.TextContent("I look."),
				ToolCalls: []chat.ToolCall{{ID: id, Type: "function", Name: "look", Arguments: `{"path":"/srv/app"}`}},
			}, result)
		}
		return out
	}
	system, user, assistant := say(chat.RoleSystem, 100), say(chat.RoleUser, 60), say(chat.RoleAssistant, 400)
	for name, messages := range map[string][]chat.Message{
		"large messages in the tail":                  append([]chat.Message{system, user, assistant, user, assistant}, exchanges(6, 800)...),
		"a long loop behind one message and the user": append([]chat.Message{system, user, assistant, say(chat.RoleAssistant, 300), user}, loop(20, 300)...),
		"a long loop behind the first message":        append([]chat.Message{user}, loop(20, 300)...),
		"large messages in the head":                  append([]chat.Message{system, say(chat.RoleUser, 2500), say(chat.RoleAssistant, 2500)}, exchanges(12, 150)...),
		"few messages":                                exchanges(4, 1200),
	} {
		for _, target := range []chat.Tokens{2000, 4000} {
			t.Run(fmt.Sprint(name, ", ", target), func(t *testing.T) {
				t.Parallel()
				p := policy.Default()
				p.WindowTokens, p.StartTokens, p.TargetTokens = 8192, target+500, target
				p.Pipeline = []policy.Step{{Strategy: "handoff"}}
				run, writers, err := Build(builtin.Registry(), p, p.Limits("", nil), summary.Options{})
				if err != nil {
					t.Fatal(err)
				}
				c, err := Compact(t.Context(), messages, run, Options{Counter: counter})
				if err != nil {
					t.Fatal(err)
				}
				if c.Before.IncludedTokens <= target {
					t.Fatalf("only %d tokens", c.Before.IncludedTokens)
				}
				summaries := 0
				for _, w := range c.Written {
					if w.Kind == chat.KindSummary {
						summaries++
					}
				}
				if got := c.After.IncludedTokens; got > target || len(c.Steps) != 1 || summaries != 1 {
					t.Errorf("%d tokens, %d summaries, %+v, %+v", got, summaries, c.Steps, writers[0].Provenance())
				}
				for _, x := range c.Excluded {
					if x.By == 0 {
						t.Errorf("message %d is neither in the view nor summarized", x.Seq)
					}
				}
				last := messages[len(messages)-1].Content.Text
				if got := c.Messages[len(c.Messages)-1].Content.Text; got != last {
					t.Errorf("the view ends with %.40q", got)
				}
			})
		}
	}
}

// A truncation or the fallback after a summary drops other messages first, although the
// summary is the oldest in the view.
func TestASummaryOutlastsTheTruncationAfterIt(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"truncation", "fallback"} {
		p := policy.Default()
		p.StartTokens, p.TargetTokens = 12_000, 6_000
		p.Pipeline[0] = policy.Step{Strategy: "summarization", Params: map[string]any{"target_count": 30}} // leaves much
		if last != "fallback" {
			p.Pipeline = append(p.Pipeline, policy.Step{Strategy: last})
		}
		limits := p.Limits("gpt-4o", tokens.Window)
		run, writers, err := Build(builtin.Registry(), p, limits, summary.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compact(t.Context(), exchanges(30, 550), run, Options{Counter: counter})
		if err != nil {
			t.Fatal(err)
		}
		ran := c.Steps
		if n := len(ran); n != 2 || !strings.HasSuffix(ran[n-1].Strategy, last) || !ran[n-1].Changed || writers[0].Provenance() == nil {
			t.Fatalf("%s: nothing was left to it: %+v", last, ran)
		}
		if got := c.After.IncludedTokens; got > limits.Target {
			t.Errorf("%s: %d tokens, target %d", last, got, limits.Target)
		}
		if first := c.Messages[0].Content.String() + c.Messages[1].Content.String(); !strings.Contains(first, "without a model") {
			t.Errorf("%s: the view begins with %.80q", last, first)
		}
	}
}

// citing is a model that rests what it says on the first message of the user in the prompt, and
// repeats the notes before.
type citing struct{ prompts []string }

func (*citing) Identity() string                   { return "citing" }
func (*citing) Usable(context.Context) llm.Profile { return llm.Profile{Name: "m", Window: 64_000} }

func (m *citing) Complete(_ context.Context, c llm.Call) (llm.Answer, error) {
	m.prompts = append(m.prompts, c.User)
	var number, wishes string
	for line := range strings.Lines(c.User) {
		if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[1], "m") && strings.HasPrefix(f[2], "user") && number == "" {
			number = f[1]
		}
		if strings.HasPrefix(line, "- Look at the file.") {
			wishes += line
		}
	}
	text := "## 2. Wishes and limits\n" + wishes + "- Look at the file. [" + number + "]\n- Delete it. [m2]\n## 4. State\nThe file was looked at, and it was fine. [" + number + ", m99999]"
	return llm.Answer{Text: text, Model: "m", FinishReason: "stop"}, nil
}

// The links of a summary name messages by the seqs that they have in the conversation, and the next
// summary has them still.
func TestLinksNameTheMessagesOfTheConversation(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"handoff", "summarization", "preserve_recent_turns", "summarize"} {
		p := policy.Default()
		p.StartTokens, p.TargetTokens, p.Fallback = 3000, 2900, false
		p.Pipeline = []policy.Step{{Strategy: name}}
		if name == "summarize" {
			p.Pipeline[0].Params = map[string]any{"threshold": 4, "max_summary_tokens": 2000}
		}
		m := &citing{}
		run, _, err := Build(builtin.Registry(), p, p.Limits("gpt-4o", tokens.Window), summary.Options{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		c := NewConversation(Options{Counter: counter})
		var links []chat.Seq
		for round := range 2 {
			c.Append(exchanges(12, 400)...)
			if _, err := c.Compact(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			links = nil
			for _, x := range c.View() {
				for _, l := range summary.Links(x.Content.String()) {
					links = append(links, l.Seqs...)
				}
			}
			if len(m.prompts) != round+1 || len(links) < round+1 {
				t.Fatalf("%s, round %d: %d prompts, links %v", name, round, len(m.prompts), links)
			}
		}
		records := map[chat.Seq]chat.Record{}
		for _, r := range c.Records() {
			records[r.Seq] = r
		}
		for _, q := range links {
			if r := records[q]; r.Message.Role != chat.RoleUser || r.Kind != chat.KindSource {
				t.Errorf("%s: a link to message %d", name, q)
			}
		}
		if first := links[0]; !strings.Contains(m.prompts[0], fmt.Sprintf(" m%d user", first)) || !strings.Contains(m.prompts[1], fmt.Sprintf("- Look at the file. [m%d]\n", first)) {
			t.Errorf("%s: the first link is %d of %v\n%.2000s", name, first, links, m.prompts[1])
		}
	}
}
