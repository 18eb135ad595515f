package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// defaultSummaryPrompt is the default instruction of summarization.
const defaultSummaryPrompt = `You are given the older part of a conversation between a user and an assistant, one numbered message per line. It is about to be taken out of the assistant's context; your summary is all that stays of it.

Write down what the assistant needs to go on: what the user wants and has decided, facts, names, numbers and identifiers, what was done with which result, and what is still open. Leave out greetings, repetition and anything that was superseded. Add nothing that was not said, and do not answer or continue the conversation.

Reply with the summary alone, as plain and compact text in the language of the conversation.`

// summarization replaces the oldest messages with a summary once there are more than target
// + threshold. Only the text of the conversation is summarized, not tool calls and results.
type summarization struct {
	target, threshold int64
	// maxInput is the most tokens of a prompt, 0 for no limit.
	maxInput chat.Tokens
	// prompt is the instruction, custom the configured one.
	prompt, custom string
	summarizing
}

func newSummarization(a *plan.Args) (plan.Strategy, error) {
	s := &summarization{
		target: a.Int(plan.Int{
			Name: "target_count", Default: 4, Min: 1,
			Doc: "how many of the newest messages stay; groups stay whole, system messages and pinned groups do not count",
		}),
		threshold: a.Int(plan.Int{
			Name: "threshold", Default: 2, Min: 0,
			Doc: "how many messages above target_count a view may have without a summary",
		}),
		custom:      a.Text("prompt", "", "instruction for the summarizer; empty for the built-in one"),
		summarizing: summarizing{a.Summarizer()},
	}
	s.prompt = cmp.Or(s.custom, defaultSummaryPrompt)
	const input = "max_summary_input_tokens"
	s.maxInput = chat.Tokens(a.Int(plan.Int{
		Name: input, Default: 8000, Min: 1,
		Doc: "most tokens of the prompt, at four characters each: only the oldest groups that fit are summarized, the others by later runs; " +
			"in a policy, whose summaries are written in parts, there is no limit unless it is given",
	}))
	if s.strict() && !a.Given(input) {
		s.maxInput = 0
	}
	return s, nil
}

func (*summarization) Name() string { return "summarization" }

func (s *summarization) Reads(t *plan.Transcript) []chat.Seq {
	return s.withPins(t, s.originals(t).seqs(entriesOf(t, s.older(t)...)))
}

// Plan implements plan.Strategy. The summary takes the position of the first summarized
// group; excluded messages of a group are not summarized. Without a summary the plan is
// empty and the error wraps ErrNoSummary.
func (s *summarization) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	older := s.older(t)
	if len(older) == 0 {
		return chat.Plan{}, nil
	}
	older, task, err := s.task(t, older)
	if err != nil {
		return chat.Plan{}, err
	}
	entries := entriesOf(t, older...)
	task.Followed = followed(t, entries[len(entries)-1])
	role, position := s.role(t, entries), t.Entries[t.Groups()[older[0]].Start].Position
	a, err := s.replace(ctx, t, task, entries, func(text string) chat.Addition {
		return chat.Addition{
			Reason: "summarized", Position: position,
			Message: chat.Message{Role: role, Content: chat.TextContent(s.framed("", text))},
		}
	})
	if err != nil {
		return chat.Plan{}, err
	}
	return chat.Plan{Additions: []chat.Addition{a}}, nil
}

// task returns the groups whose messages fit into the prompt, and their task: the oldest ones,
// without those at the beginning that exceed the limit alone.
func (s *summarization) task(t *plan.Transcript, older []int) ([]int, plan.Task, error) {
	task := plan.Task{Prompt: s.lines, Instruction: s.custom}
	var groups []int
	used := max(1, tokens.Chars4{}.Text(s.prompt))
	sources := s.originals(t)
	for _, i := range older {
		longer := task
		for _, e := range entriesOf(t, i) {
			if err := sources.add(&longer, e); err != nil {
				return nil, task, err
			}
		}
		before := len(task.Messages)
		need := tokens.Chars4{}.Text(numbered(before, longer.Messages[before:]))
		if len(groups) > 0 {
			need += tokens.Chars4{}.Text("\n")
		}
		if s.maxInput > 0 && used+need > s.maxInput {
			if len(groups) == 0 {
				continue
			}
			break
		}
		used += need
		groups, task = append(groups, i), longer
	}
	if len(groups) == 0 {
		return nil, task, fmt.Errorf("%w: %w", plan.ErrNoSummary, &plan.Failure{Code: "input_too_large"})
	}
	return groups, task, nil
}

// role returns the role of the summary of entries: the assistant's, unless the summary is
// framed and the user's makes the roles alternate.
func (s *summarization) role(t *plan.Transcript, entries []int) chat.Role {
	if !s.strict() {
		return chat.RoleAssistant
	}
	var before, after chat.Role
	for i := range t.Entries {
		_, covered := slices.BinarySearch(entries, i)
		switch e := &t.Entries[i]; {
		case !e.Included || covered:
		case i < entries[0]:
			before = e.Role
		case after == "":
			after = e.Role
		}
	}
	if role, ok := frame.RoleBetween(before, after); ok {
		return role
	}
	return chat.RoleAssistant
}

// older returns the groups to summarize, oldest first.
func (s *summarization) older(t *plan.Transcript) []int {
	strict := s.strict() // strict summaries do not contain the instructions of developers
	groups := olderGroups(t, 0, func(g chat.Group) bool {
		return g.Kind != chat.GroupSystem && (!strict || !instructs(&t.Entries[g.Start]))
	})
	if int64(len(entriesOf(t, groups...)))-s.target <= s.threshold {
		return nil
	}
	for retained := int64(0); len(groups) > 0 && retained < s.target; groups = groups[:len(groups)-1] {
		n, _ := t.GroupTotals(groups[len(groups)-1])
		retained += int64(n)
	}
	return groups
}

// lines returns the prompt: a numbered line for each message.
func (s *summarization) lines(previous string, messages []*chat.Message) (system, user string) {
	if previous != "" { // the messages did not fit into one prompt
		user = fmt.Sprintf("What came before, as you summarized it:\n%s\n\n", previous)
	}
	return s.prompt, user + numbered(0, messages)
}

// numbered returns a line of the prompt for each message, with numbers after n.
func numbered(n int, messages []*chat.Message) string {
	lines := make([]string, len(messages))
	for k, m := range messages {
		lines[k] = fmt.Sprintf("%d. [%s] %s", n+k+1, m.Role, textOrKinds(m))
	}
	return strings.Join(lines, "\n")
}

// textOrKinds returns the texts of a message, separated by spaces, or the kinds of its
// contents if it has no text.
func textOrKinds(m *chat.Message) string {
	var texts, kinds []string
	if m.Reasoning != "" || m.ReasoningKey != "" {
		kinds = append(kinds, "text_reasoning")
	}
	switch {
	case m.Role == chat.RoleTool:
		kinds = append(kinds, "function_result")
	case m.Content.Parts != nil:
		for _, p := range m.Content.Parts {
			switch p.Type {
			case "text", "input_text", "output_text", "refusal", "":
				texts, kinds = append(texts, p.Text), append(kinds, "text")
			default:
				kinds = append(kinds, p.Type)
			}
		}
	case !m.Content.Null:
		texts, kinds = append(texts, m.Content.Text), append(kinds, "text")
	}
	if text := strings.Join(texts, " "); text != "" {
		return text
	}
	for range m.ToolCalls {
		kinds = append(kinds, "function_call")
	}
	return strings.Join(kinds, ", ")
}
