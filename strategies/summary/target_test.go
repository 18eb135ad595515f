package summary_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// verbose is a model that writes as much as it may, in one language.
type verbose struct {
	words string
	calls int
}

func (*verbose) Usable(context.Context) llm.Profile { return llm.Profile{Name: "m", Window: 128_000} }
func (*verbose) Identity() string                   { return "verbose" }

func (v *verbose) Complete(_ context.Context, c llm.Call) (llm.Answer, error) {
	v.calls++
	sections := summary.DefaultSections()
	write := func(n int) string {
		var b strings.Builder
		for i, s := range sections {
			repeat := n / len(sections)
			if i == 0 {
				repeat = n
			}
			fmt.Fprintf(&b, "## %s\n%d. %s\n", s.Title, i+1, v.words+strings.Repeat(v.words, repeat))
		}
		return b.String()
	}
	n := sort.Search(c.MaxTokens, func(n int) bool { return counter.Text(write(n+1)) > chat.Tokens(c.MaxTokens) })
	return llm.Answer{Text: write(n), Model: "m", FinishReason: "stop"}, nil
}

// counter counts the tokens of the model and of the views.
var counter = tokens.ForModel("gpt-4o")

// exchanges returns turns of about size tokens in which files are looked at.
func exchanges(turns, size int, words string) []chat.Message {
	var out []chat.Message
	n := size / int(counter.Text(words))
	for i := range turns {
		out = append(out,
			chat.Message{Role: chat.RoleUser, Content: chat.TextContent(fmt.Sprintf("/srv/app/config_%d.yaml? %s", i, strings.Repeat(words, 1+n/3)))},
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("host10.example.net. " + strings.Repeat(words, 1+n))})
	}
	return out
}

// A summary with its references and delimiters keeps to its share of the target in every
// window, and no answer of a model is bought and then rejected for its size.
func TestASummaryKeepsToItsShareOfTheTarget(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]map[string]any{
		"handoff": nil, "summarization": nil, "preserve_recent_turns": nil, "preserve_recent_fraction": nil,
		"preserve_user_messages": {"max_tokens": 200}, "summarize": {"threshold": 4, "max_summary_tokens": 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for language, words := range map[string]string{"English": "it was fine. ", "Chinese": "检查了配置文件没有问题。"} {
				messages := exchanges(12, 400, words)
				for _, window := range []chat.Tokens{5000, 200_000} {
					for _, target := range []chat.Tokens{300, 1000, 4000} {
						p := policy.Default()
						p.WindowTokens, p.StartTokens, p.TargetTokens = window, target+1, target
						p.Pipeline, p.Fallback = []policy.Step{{Strategy: name, Params: params}}, false
						what := fmt.Sprintf("window %d, target %d, %s", window, target, language)
						keepsToShare(t, what+", an extract", p, messages, nil)
						keepsToShare(t, what+", a model", p, messages, &verbose{words: words})
					}
				}
			}
		})
	}
}

// keepsToShare checks the summary that a policy makes of messages.
func keepsToShare(t *testing.T, what string, p policy.Policy, messages []chat.Message, model *verbose) {
	t.Helper()
	var o summary.Options
	if model != nil {
		o.Model = model
	}
	run, writers, err := strategies.Build(builtin.Registry(), p, p.Limits("", nil), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := strategies.Compact(t.Context(), messages, run, strategies.Options{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	size, code := chat.Tokens(0), c.Steps[0].NoSummary
	for _, x := range c.Written {
		if x.Kind == chat.KindSummary {
			size += x.Tokens
			if _, tail, ok := frame.Unwrap(x.Message.Content.String()); ok { // merged into a message that stays
				size -= counter.Text(tail)
			}
		}
	}
	if limit := p.Summary.Size.Limit(p.TargetTokens); size > limit {
		t.Errorf("%s: %d tokens, limit %d", what, size, limit)
	}
	if size == 0 && p.TargetTokens >= 1000 {
		t.Errorf("%s: no summary (%s)", what, code)
	}
	if model != nil && size == 0 && model.calls > 0 {
		t.Errorf("%s: %d answers were bought for nothing (%s, %v)", what, model.calls, code, writers[0].Provenance().Calls)
	}
}

// Where the messages are so few that no answer could be smaller, a model is not asked.
func TestAModelIsNotAskedWhereItCannotGain(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 5, 20, 60, 200, 400, 800, 2000} {
		model := &verbose{words: "it was fine. "}
		p := policy.Default()
		p.Pipeline = []policy.Step{{Strategy: "summarization", Params: map[string]any{"target_count": 2, "threshold": 0}}}
		run, writers, err := strategies.Build(builtin.Registry(), p, p.Limits("gpt-4o", tokens.Window), summary.Options{Model: model})
		if err != nil {
			t.Fatal(err)
		}
		run.Target, run.Fallback = 0, false
		c, err := strategies.Compact(t.Context(), append(exchanges(1, size, "it was fine. "), exchanges(1, 1, "Next. ")...), run, strategies.Options{Counter: counter})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(c.Written); got != model.calls || size < 100 && got > 0 || size > 1000 && got == 0 {
			t.Errorf("messages of %d tokens: %d requests, %d summaries, %+v", size, model.calls, got, writers[0].Provenance())
		}
	}
}
