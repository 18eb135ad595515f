package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
)

// rollingSummary keeps one summary of all but the newest messages. If the view begins with
// a summary, it is updated with the messages that followed.
type rollingSummary struct {
	threshold   int64
	keep        int64
	maxTokens   int64
	verbatim    bool
	maxVerbatim int64
	summarizing
}

func newSummarize(a *plan.Args) (plan.Strategy, error) {
	return &rollingSummary{
		threshold: a.Int(plan.Int{
			Name: "threshold", Required: true, Min: 0,
			Doc: "how many messages a view may have without a summary; system and developer messages do not count, an earlier summary does",
		}),
		keep: a.Int(plan.Int{
			Name: "keep_last_n", Default: 4, Min: 0, Doc: "how many of the newest messages stay as they are, in addition to pinned ones",
		}),
		maxTokens: a.Int(plan.Int{Name: "max_summary_tokens", Default: 500, Min: 1, Doc: "maximum length of the summary in tokens"}),
		verbatim:  a.Bool("preserve_user_messages", true, "quote the summarized messages of the user after the summary"),
		maxVerbatim: a.Int(plan.Int{
			Name: "max_verbatim_chars", Default: 10_000, Min: 2,
			Doc: "maximum total length of the quotations in characters; the oldest are dropped first",
		}),
		summarizing: summarizing{a.Summarizer()},
	}, nil
}

func (*rollingSummary) Name() string { return "summarize" }

// conversation returns the entries in the view except instructions, or nil if there are no
// more than the threshold.
func (s *rollingSummary) conversation(t *plan.Transcript) []int {
	out := included(t, func(_ int, e *plan.Entry) bool { return !instructs(e) })
	if int64(len(out)) <= s.threshold {
		return nil
	}
	return out
}

// window keeps the newest messages of the conversation, pinned ones, and instructions.
func (s *rollingSummary) window(t *plan.Transcript) *window {
	w := newWindow(t, s.Name())
	w.keepFrom(newest(t, s.keep, func(e *plan.Entry) bool { return !instructs(e) }))
	w.keepPinned()
	for _, i := range included(t, func(_ int, e *plan.Entry) bool { return instructs(e) }) {
		w.states[i] = stateIn
	}
	return w
}

// Reads implements plan.Reader. It names the first message, which may be a summary, the
// messages to summarize, calls that lose a result, and instructions after the first
// message.
func (s *rollingSummary) Reads(t *plan.Transcript) []chat.Seq {
	conversation := s.conversation(t)
	if conversation == nil {
		return nil
	}
	first := conversation[0]
	w := s.window(t)
	return s.withPins(t, append(w.reads(), s.originals(t).seqs(included(t, func(i int, e *plan.Entry) bool {
		return i == first || i > first && (w.states[i] == stateOut || instructs(e))
	}))...))
}

func (s *rollingSummary) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	conversation := s.conversation(t)
	if conversation == nil {
		return chat.Plan{}, nil
	}
	w := s.window(t)
	first, err := t.Read(conversation[0])
	if err != nil {
		return chat.Plan{}, err
	}
	var old summaryText
	var covers plan.SeqSet
	if e := &t.Entries[conversation[0]]; !e.Pinned && s.isSummary(t, e, first.Content.String()) {
		old = parseSummary(first.Content.String())
		w.states[conversation[0]] = stateCovered
		covers.Add(e.Seq)
	}
	task := plan.Task{Previous: old.body, MaxTokens: int(s.maxTokens), Prompt: s.request}
	sources := s.originals(t)
	newest := -1 // the index of the newest summarized message
	var secrets redact.Secrets
	for _, i := range conversation {
		if w.states[i] != stateOut {
			continue
		}
		m, err := t.Read(i)
		if err != nil {
			return chat.Plan{}, err
		}
		if !t.Entries[i].ReasoningOnly() {
			if err := sources.add(&task, i); err != nil {
				return chat.Plan{}, err
			}
		}
		if quote := frame.SaidBy(m); s.verbatim && quote != "" {
			quote, _ = secrets.Redact(quote)
			old.quotes = append(old.quotes, s.quotable(quote))
		}
		if newest >= 0 {
			covers.Add(t.Entries[newest].Seq)
		}
		newest = i
		w.states[i] = stateCovered
	}
	if len(task.Messages) == 0 {
		return chat.Plan{}, nil
	}
	for i, quote := range old.quotes { // a later message may have shown that something is a secret
		old.quotes[i], _ = secrets.Redact(quote)
	}
	covered := included(t, func(i int, _ *plan.Entry) bool { return w.states[i] == stateCovered })
	if err := w.dropOrphans(); err != nil {
		return chat.Plan{}, err
	}
	task.Followed = followed(t, newest)
	write := func(answer string) chat.Message {
		old.body = answer
		return chat.Message{Role: chat.RoleUser, Content: chat.TextContent(old.String())}
	}
	task = counted(t, task, covered, write, acknowledged)
	s.quote(&old, task.Size)
	answer, err := s.ask(ctx, task)
	if err != nil {
		return chat.Plan{}, err
	}
	additions := s.additions(w, conversation, write(answer), covers, t.Entries[newest].Seq)
	plan := w.plan()
	plan.Additions = append(additions, plan.Additions...)
	return plan, nil
}

// isSummary reports whether a message is a summary of this strategy: one that is marked as a
// summary or, where summaries may not be marked, one that begins like it and, for a strict writer,
// has its note. Elsewhere a message that begins like a summary is one of the conversation.
func (s *rollingSummary) isSummary(t *plan.Transcript, e *plan.Entry, text string) bool {
	marked := isSummary(e) || t.Unmarked && (!s.strict() || strings.Contains(text, "\n\n"+noteMarker+"\n"))
	return marked && e.Role != chat.RoleTool && e.Calls == 0 && isSummaryText(text)
}

// quotable returns a message of the user as the summary quotes it: as summary.Clean returns it if the writer is strict
// or more than hidden characters is to be made plain, and as the user wrote it otherwise.
func (s *rollingSummary) quotable(quote string) string {
	clean := summary.Clean(quote)
	if !s.strict() && clean == text.WithoutHidden(quote) {
		return quote
	}
	return clean
}

// quote limits the quotations to their maximum length and, if the summarizer has bounds, to
// a quarter of the size of the summary.
func (s *rollingSummary) quote(text *summaryText, size func(summary string) chat.Tokens) {
	text.trim(int(s.maxVerbatim))
	b, ok := s.summarizer.(plan.Bounded)
	if !ok || size == nil {
		return
	}
	_, limit := b.Bounds(0)
	for n := s.maxVerbatim; limit > 0 && size("") > limit/4 && len(text.quotes) > 0; {
		if n /= 2; n < minQuote {
			text.quotes = nil
		}
		text.trim(int(n))
	}
}

// minQuote is the smallest number of characters of a useful quotation.
const minQuote = 20

// acknowledged separates a summary from a user message that follows it.
var acknowledged = chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(acknowledgment)}

// additions returns the summary of the messages in covers and last. If a user message
// follows it, an acknowledgment of the assistant is put between the two. Both follow the
// system messages; those among the kept messages are moved in front, as far as the guard
// allows.
func (s *rollingSummary) additions(w *window, conversation []int, summary chat.Message, covers plan.SeqSet, last chat.Seq) []chat.Addition {
	entries := w.t.Entries
	kept := len(entries)
	for _, i := range conversation {
		if w.states[i] == stateIn || w.states[i] == stateRewritten {
			kept = i
			break
		}
	}
	position, pending := entries[conversation[0]].Position, false // pending: after an instruction
	var out []chat.Addition
	add := func(m chat.Message, covers chat.Ranges) {
		out = append(out, chat.Addition{Kind: chat.KindSummary, Reason: w.reason, Covers: covers, Message: m})
	}
	for i := conversation[0]; i < len(entries); i++ {
		e := &entries[i]
		switch {
		case !e.Included:
		case !instructs(e):
			if pending {
				position, pending = e.Position, false
			}
		case i < kept:
			pending = true
		case !e.Pinned:
			w.states[i] = stateCovered
			m := *e.Message
			m.ID = ""
			add(m, chat.RangesOf(e.Seq))
		}
	}
	if pending { // no message follows the last instruction
		position = entries[len(entries)-1].Position + 1
	}
	answered := kept < len(entries) && entries[kept].Role == chat.RoleUser
	if !answered || len(covers.Sorted) == 0 {
		covers.Add(last)
	}
	add(summary, covers.Ranges())
	if answered {
		add(acknowledged, chat.RangesOf(last))
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

// line returns the line of a message in the prompt.
func (s *rollingSummary) line(m *chat.Message) string {
	var parts []string
	content := m.Content.String()
	if m.Role == chat.RoleTool {
		parts = append(parts, fmt.Sprintf("[Tool result for '%s': %s]", m.ToolCallID, text.Cut(content, maxResultChars, maxResultChars)))
	} else if content != "" || len(m.ToolCalls) == 0 {
		parts = append(parts, content)
	}
	for _, c := range m.ToolCalls {
		arguments := strings.TrimSpace(c.Arguments)
		if arguments == "" {
			arguments = "{}"
		}
		parts = append(parts, fmt.Sprintf("[Called tool '%s' with: %s]", c.Name, text.Head(arguments, maxArgumentChars)))
	}
	return fmt.Sprintf("[%s]: %s", m.Role, strings.Join(parts, " "))
}

// The maximum lengths of a result and of a call's arguments in the prompt.
const (
	maxResultChars   = 500
	maxArgumentChars = 200
)
