package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
)

// rollingSummary keeps one summary of all but the newest messages. If the view begins with
// a summary, it is updated with the messages that followed.
type rollingSummary struct {
	threshold   int64
	keep        int64
	maxTokens   int64
	verbatim    bool
	maxVerbatim int64
	summarizer  plan.Summarizer
	// arguments is how the arguments of a call are shown to the summarizer.
	arguments func(raw string) string
}

func newSummarize(a *plan.Args) (plan.Strategy, error) {
	return &rollingSummary{
		threshold: a.Int(plan.Int{
			Name: "threshold", Required: true, Min: 0,
			Doc: "how many messages a view may have before it is summarized; system and developer messages do not count, the summary does",
		}),
		keep: a.Int(plan.Int{
			Name: "keep_last_n", Default: 4, Min: 0, Doc: "how many of the newest messages stay as they are; pinned ones come on top",
		}),
		maxTokens: a.Int(plan.Int{Name: "max_summary_tokens", Default: 500, Min: 1, Doc: "how long the summary may be, in tokens"}),
		verbatim:  a.Bool("preserve_user_messages", true, "quote what the user said word by word beside the summary"),
		maxVerbatim: a.Int(plan.Int{
			Name: "max_verbatim_chars", Default: 10_000, Min: 2,
			Doc: "how many characters of quotations there may be; the oldest go first",
		}),
		summarizer: a.Summarizer(),
		arguments:  strings.TrimSpace,
	}, nil
}

// Name implements plan.Strategy.
func (*rollingSummary) Name() string { return "summarize" }

// spoken returns the entries in the view but for instructions.
func (s *rollingSummary) spoken(t *plan.Transcript) []int {
	var out []int
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Included && !instructs(e) {
			out = append(out, i)
		}
	}
	if int64(len(out)) <= s.threshold {
		return nil
	}
	return out
}

// window keeps the newest of what is spoken, what is pinned, and instructions.
func (s *rollingSummary) window(t *plan.Transcript, spoken []int) *window {
	w := newWindow(t, s.Name())
	if n := int64(len(spoken)); n > 0 && s.keep > 0 {
		w.keepFrom(spoken[max(0, n-s.keep)])
	}
	w.keepPinned()
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Included && instructs(e) {
			w.states[i] = stateIn
		}
	}
	return w
}

// Reads implements plan.Reader: the first message, which may be a summary, everything
// that is to be summarized, calls that lose a result, and system messages that stand
// between what is kept.
func (s *rollingSummary) Reads(t *plan.Transcript) []chat.Seq {
	spoken := s.spoken(t)
	if spoken == nil {
		return nil
	}
	w := s.window(t, spoken)
	out := append(w.reads(), t.Entries[spoken[0]].Seq)
	for _, i := range spoken[1:] {
		if w.states[i] == stateOut {
			out = append(out, t.Entries[i].Seq)
		}
	}
	for i := range t.Entries {
		if e := &t.Entries[i]; i > spoken[0] && e.Included && instructs(e) {
			out = append(out, e.Seq)
		}
	}
	return out
}

// Plan implements plan.Strategy.
func (s *rollingSummary) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	spoken := s.spoken(t)
	if spoken == nil {
		return chat.Plan{}, nil
	}
	w := s.window(t, spoken)
	first, err := t.Read(spoken[0])
	if err != nil {
		return chat.Plan{}, err
	}
	var old summaryText
	var covers plan.SeqSet
	if e := &t.Entries[spoken[0]]; e.Role != chat.RoleTool && e.Calls == 0 && !e.Pinned && isSummaryText(first.Content.String()) {
		old = parseSummary(first.Content.String())
		w.states[spoken[0]] = stateCovered
		covers.Add(e.Seq)
	}
	var messages []*chat.Message
	var last chat.Seq // of what is summarized
	newest := 0       // the index of that
	for _, i := range spoken {
		if w.states[i] != stateOut {
			continue
		}
		m, err := t.Read(i)
		if err != nil {
			return chat.Plan{}, err
		}
		if !t.Entries[i].ReasoningOnly() {
			messages = append(messages, m)
		}
		if quote := userSaid(m); s.verbatim && quote != "" {
			old.quotes = append(old.quotes, quote)
		}
		if last > 0 {
			covers.Add(last)
		}
		last, newest = t.Entries[i].Seq, i
		w.states[i] = stateCovered
	}
	if len(messages) == 0 {
		return chat.Plan{}, nil
	}
	if err := w.dropOrphans(); err != nil {
		return chat.Plan{}, err
	}
	answer, err := ask(ctx, s.summarizer, plan.Task{
		Messages: messages, Previous: old.body, Followed: followed(t, newest), MaxTokens: int(s.maxTokens), Prompt: s.request,
	})
	if err != nil {
		return chat.Plan{}, err
	}
	old.body = answer
	old.trim(int(s.maxVerbatim))
	written := s.written(w, spoken, old.String(), covers, last)
	plan := w.plan()
	plan.Additions = append(written, plan.Additions...)
	return plan, nil
}

// userSaid returns the user's text in a message, without a summary that a program put in
// front of it or in its place.
func userSaid(m *chat.Message) string {
	if m.Role != chat.RoleUser {
		return ""
	}
	text := m.Content.String()
	if _, rest, ok := frame.Unwrap(text); ok {
		text = rest
	}
	return strings.TrimSpace(text)
}

// written returns what comes in the place of what covers and last name: the summary, and
// where a user message would follow it, a word of the assistant between the two. Both
// stand behind the system messages; those between what is kept are moved there, as
// far as the guard lets them go.
func (s *rollingSummary) written(w *window, spoken []int, text string, covers plan.SeqSet, last chat.Seq) []chat.Addition {
	entries := w.t.Entries
	kept := len(entries)
	for _, i := range spoken {
		if w.states[i] == stateIn || w.states[i] == stateRewritten {
			kept = i
			break
		}
	}
	position, behind := entries[spoken[0]].Position, false
	var out []chat.Addition
	add := func(m chat.Message, covers plan.SeqSet) {
		out = append(out, chat.Addition{Kind: chat.KindSummary, Reason: w.reason, Covers: covers.Ranges(), Message: m})
	}
	for i := spoken[0]; i < len(entries); i++ {
		e := &entries[i]
		switch {
		case !e.Included:
		case !instructs(e):
			if behind {
				position, behind = e.Position, false
			}
		case i < kept:
			behind = true
		case !e.Pinned:
			var one plan.SeqSet
			one.Add(e.Seq)
			w.states[i] = stateCovered
			m := *e.Message
			m.ID = ""
			add(m, one)
		}
	}
	if behind { // nothing follows the last system message
		position = entries[len(entries)-1].Position + 1
	}
	var only plan.SeqSet
	only.Add(last)
	answered := kept < len(entries) && entries[kept].Role == chat.RoleUser
	if !answered || len(covers.Sorted) == 0 {
		covers.Add(last)
	}
	add(chat.Message{Role: chat.RoleUser, Content: chat.TextContent(text)}, covers)
	if answered {
		add(chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(acknowledgment)}, only)
	}
	for k := range out {
		out[k].Position = position
	}
	return out
}

// request returns the prompt: a line for each message.
func (s *rollingSummary) request(previous string, messages []*chat.Message) (system, user string) {
	lines := make([]string, len(messages))
	for i, m := range messages {
		lines[i] = s.line(m)
	}
	return summarySystem, summaryRequest(previous, strings.Join(lines, "\n"))
}

// line returns one message as the summarizer reads it.
func (s *rollingSummary) line(m *chat.Message) string {
	var parts []string
	content := m.Content.String()
	if m.Role == chat.RoleTool {
		parts = append(parts, fmt.Sprintf("[Tool result for '%s': %s]", m.ToolCallID, text.Cut(content, maxResultChars, maxResultChars)))
	} else if content != "" || len(m.ToolCalls) == 0 {
		parts = append(parts, content)
	}
	for _, c := range m.ToolCalls {
		arguments := s.arguments(c.Arguments)
		if arguments == "" {
			arguments = "{}"
		}
		parts = append(parts, fmt.Sprintf("[Called tool '%s' with: %s]", c.Name, text.Head(arguments, maxArgumentChars)))
	}
	return fmt.Sprintf("[%s]: %s", m.Role, strings.Join(parts, " "))
}

// How much of a result and of a call's arguments the summarizer reads.
const (
	maxResultChars   = 500
	maxArgumentChars = 200
)

// Summarizer implements the interface that the guard knows summaries by.
func (s *rollingSummary) Summarizer() plan.Summarizer { return s.summarizer }
