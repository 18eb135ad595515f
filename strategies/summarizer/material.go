package summarizer

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extractive"
	"github.com/sessionstore/compactor/strategies/internal/str"
	"github.com/sessionstore/compactor/strategies/summarize"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// material is what one summary is made of, without secrets.
type material struct {
	task     summarize.Task
	messages []*chat.Message
	previous string
	// focus and instruction are what somebody wants of the summary.
	focus, instruction string
	// limit is how many tokens the summary may have in all, prose what the model is
	// asked for, references what stands beside it.
	limit, prose, references int
	// cut is what the model is not shown, updates how often the previous summary was
	// brought up to date.
	cut     summarize.Trimmed
	updates int
	// spent is what the answers cost, in millionths, now or when they were bought.
	spent int64

	digest   *extractive.Digest
	evidence *summarize.Evidence
	report   *Report
}

// gather cleans what is to be summarized and learns from it what the answer will be held
// against. Everything is cleaned before anything is cut, so that no half of a secret is
// left.
func (w *Writer) gather(t summarize.Task) (*material, error) {
	if err := summarize.Coverable(t.Messages, nil); err != nil { // a strategy wants what has to stay as it is
		return nil, &summarize.Failure{Code: "system_message", Err: err}
	}
	m := &material{
		task: t, evidence: summarize.NewEvidence(tokens.Chars4{}),
		messages: make([]*chat.Message, 0, len(t.Messages)),
		report:   &Report{RedactorVersion: summarize.RedactorVersion, Redacted: summarize.Found{}, RedactedAnswer: summarize.Found{}, Messages: len(t.Messages)},
	}
	m.previous = m.clean(str.Trim(strings.Join(append([]string{t.Previous}, framed(t.Messages)...), "\n\n")))
	m.focus = m.clean(firstOf(t.Focus, w.o.Focus, w.o.Settings.Focus))
	m.digest = extractive.New(extractive.Options{Focus: m.focus})
	m.instruction = m.clean(firstOf(t.Instruction, w.o.Settings.Instruction))
	if m.previous != "" {
		m.report.Updates = true
		m.updates = updatesOf(m.previous) + 1
		m.digest.AddPrevious(m.previous)
		m.evidence.AddPrevious(m.previous)
		m.report.CoveredTokens += roughly(m.previous)
		m.previous = retold(m.previous)
	}
	for _, message := range t.Messages {
		if _, rest, ok := unframed(message); ok {
			if rest == "" {
				continue // it is part of the previous summary
			}
			said := *message
			said.Content = chat.TextContent(rest)
			message = &said
		}
		message = m.cleaned(message)
		m.messages = append(m.messages, message)
		m.report.CoveredTokens += sizeOf(message)
		m.digest.Add(message)
		m.evidence.Add(message)
	}
	if len(m.messages) == 0 { // a summary of summaries alone loses, and gains nothing
		return nil, &summarize.Failure{Code: "nothing_new"}
	}
	w.budget(m)
	return m, nil
}

// budget sets what the summary may have.
func (w *Writer) budget(m *material) {
	s := w.o.Settings
	m.limit = int(s.Size.Budget(chat.Tokens(m.report.CoveredTokens), chat.Tokens(w.o.Window)))
	switch t := m.task; {
	case t.Most > 0:
		m.limit = min(m.limit, t.Most)
	case t.Budget > 0:
		m.limit = t.Budget
	case t.MaxTokens > 0:
		m.limit = t.MaxTokens
	}
	m.prose, m.references = m.limit, int(float64(m.limit)*s.References)
	if t := m.task; t.Budget == 0 && t.MaxTokens > 0 { // a limit that somebody named holds for both together
		m.prose = w.proseWithin(m.limit - m.references)
	}
	m.report.Budget = m.limit
}

// proseWithin is what a model is asked for that may answer so many tokens: callTokens are no
// more than that.
func (w *Writer) proseWithin(answer int) int {
	return max(1, int(float64(answer)/w.o.Settings.Size.Slack))
}

// custom reports whether somebody has said what the summary should be like.
func (m *material) custom() bool { return m.instruction != "" }

// clean masks secrets and counts them.
func (m *material) clean(s string) string {
	s, found := summarize.Clean(s)
	m.report.Redacted.Add(found)
	return s
}

// cleaned is a message without secrets: itself, where it has none.
func (m *material) cleaned(in *chat.Message) *chat.Message {
	out := in
	change := func() *chat.Message {
		if out == in {
			c := *in
			out = &c
		}
		return out
	}
	text := in.Content.String()
	if c := m.clean(text); c != text || in.Content.Parts != nil && in.Content.Media() == 0 {
		change().Content = chat.TextContent(c)
	}
	if in.Reasoning != "" || in.ReasoningKey != "" { // nobody said it
		change().Reasoning = ""
		out.ReasoningKey = ""
	}
	for i, call := range in.ToolCalls {
		c := m.clean(call.Arguments)
		if c == call.Arguments {
			continue
		}
		if out == in || &out.ToolCalls[0] == &in.ToolCalls[0] {
			change().ToolCalls = append([]chat.ToolCall(nil), in.ToolCalls...)
		}
		out.ToolCalls[i].Arguments, out.ToolCalls[i].Raw = c, nil
	}
	return out
}

// framed are the summaries that stand among the messages, of whoever wrote them.
func framed(messages []*chat.Message) []string {
	var out []string
	for _, m := range messages {
		if body, _, ok := unframed(m); ok {
			out = append(out, body)
		}
	}
	return out
}

// unframed takes a message apart that begins with a summary: that, and what it says
// itself.
func unframed(m *chat.Message) (summary, rest string, ok bool) {
	if m.Role == chat.RoleTool || len(m.ToolCalls) > 0 {
		return "", "", false
	}
	summary, rest, ok = summarize.Unframe(m.Content.String())
	return summary, str.Trim(rest), ok
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if str.Trim(s) != "" {
			return s
		}
	}
	return ""
}

// octetsPerToken errs on the side of more tokens: what is planned by it fits.
const octetsPerToken = 3

// roughly is how many tokens a text has, rather too many.
func roughly(s string) int { return (len(s) + octetsPerToken - 1) / octetsPerToken }

// sizeOf is a message as a prompt shows it.
func sizeOf(m *chat.Message) int {
	n := roughly(m.Content.String()) + 16 // and the line that says who speaks
	for _, c := range m.ToolCalls {
		n += roughly(c.Name) + roughly(c.Arguments) + 4
	}
	return n
}
