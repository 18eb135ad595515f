package summary

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/str"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// material is what one summary is made of, without secrets.
type input struct {
	task     plan.Task
	messages []*chat.Message
	previous string
	// focus and instruction are what somebody wants of the summary.
	focus, instruction string
	// limit is how many tokens the summary may have in all, prose what the model is
	// asked for, references what stands beside it.
	limit, prose, references int
	// cut is what the model is not shown, updates how often the previous summary was
	// brought up to date.
	cut     Trimmed
	updates int
	// spent is what the answers cost, in millionths, now or when they were bought.
	spent int64

	digest   *extract.Digest
	evidence *SourceIndex
	report   *Report
}

// gather masks the secrets in what is to be summarized and learns from it what the answer
// will be held against. Everything is masked before anything is cut, as half of a secret
// is not recognised.
func (w *Writer) gather(t plan.Task) (*input, error) {
	if err := Coverable(t.Messages, nil); err != nil { // a strategy wants what has to stay as it is
		return nil, &plan.Failure{Code: "system_message", Err: err}
	}
	t.Focus = firstOf(t.Focus, w.o.Focus, w.o.Settings.Focus)
	t.Instruction = firstOf(t.Instruction, w.o.Settings.Instruction)
	t, found := t.Redact()
	m := &input{
		task: t, focus: t.Focus, instruction: t.Instruction, evidence: NewSourceIndex(tokens.Chars4{}),
		messages: make([]*chat.Message, 0, len(t.Messages)),
		report:   &Report{RedactorVersion: redact.Version, Redacted: found, RedactedAnswer: redact.Found{}, Messages: len(t.Messages)},
	}
	m.previous = str.Trim(strings.Join(append([]string{t.Previous}, framed(t.Messages)...), "\n\n"))
	m.digest = extract.New(extract.Options{Focus: m.focus, Redacted: true})
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
		message = plain(message)
		m.messages = append(m.messages, message)
		m.report.CoveredTokens += sizeOf(message)
		m.digest.Add(message)
		m.evidence.Add(message)
	}
	if len(m.messages) == 0 { // a summary of summaries alone loses, and gains nothing
		return nil, &plan.Failure{Code: "nothing_new"}
	}
	w.budget(m)
	return m, nil
}

// budget sets what the summary may have.
func (w *Writer) budget(m *input) {
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

// proseWithin returns what a model is asked for that may answer so many tokens: callTokens are no
// more than that.
func (w *Writer) proseWithin(answer int) int {
	return max(1, int(float64(answer)/w.o.Settings.Size.Slack))
}

// custom reports whether somebody has said what the summary should be like.
func (m *input) custom() bool { return m.instruction != "" }

// plain returns a message without reasoning, which nobody said, and with text parts
// joined: itself, where nothing changes.
func plain(m *chat.Message) *chat.Message {
	joins := m.Content.Parts != nil && m.Content.Media() == 0
	if !joins && m.Reasoning == "" && m.ReasoningKey == "" {
		return m
	}
	out := *m
	out.Reasoning, out.ReasoningKey = "", ""
	if joins {
		out.Content = chat.TextContent(m.Content.String())
	}
	return &out
}

// framed returns the summaries that stand among the messages, of whoever wrote them.
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
	summary, rest, ok = frame.Unwrap(m.Content.String())
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

// roughly returns how many tokens a text has, rather too many.
func roughly(s string) int { return (len(s) + octetsPerToken - 1) / octetsPerToken }

// sizeOf returns a message as a prompt shows it.
func sizeOf(m *chat.Message) int {
	n := roughly(m.Content.String()) + 16 // and the line that says who speaks
	for _, c := range m.ToolCalls {
		n += roughly(c.Name) + roughly(c.Arguments) + 4
	}
	return n
}
