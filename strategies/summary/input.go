package summary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
)

// input holds the redacted messages of one summary and the state of writing it.
type input struct {
	task     plan.Task
	messages []*chat.Message
	previous string
	// covered are the messages before any of them is trimmed.
	covered []*chat.Message
	// staying are the facts of the messages that stay in the view beside the summary, beside those
	// that each prompt has, users the tokens that the user's messages may take
	// which it does not show; more reports that other messages follow it.
	staying, beside []passage
	users           int
	more            bool
	// limit is the token limit of the whole summary, prose the budget of the model's
	// text, references that of the block of references after it.
	limit, prose, references int
	// most limits the tokens of the summary in the view, with everything around it. hopeless
	// reports that a model cannot write one within it.
	most     int
	hopeless bool
	// lastUser is the newest message of the user that is covered, request the one that a
	// model's summary quotes; "" for none.
	lastUser, request string
	lastSeq           chat.Seq // of lastUser
	// said is what the user said in everything that the summary stands for; unknown reports that
	// there was more, before it.
	said    userSaid
	unknown bool
	// seqs reports that the messages' numbers are their seqs, so that links to them can be stored.
	seqs bool
	// trimmed totals the content that was trimmed.
	trimmed Trim
	// numbered reports that the last answer says which messages it rests on.
	numbered bool
	// costMicros is the cost of all answers in millionths, stored ones included.
	costMicros int64

	digest  *extract.Digest
	sources *sourceIndex
	secrets redact.Secrets // of everything that is covered
	report  *Provenance
}

// newInput redacts the task and indexes its messages for the validation of answers.
// Everything is redacted before anything is cut, as half of a secret is not recognised.
func (w *Writer) newInput(ctx context.Context, t plan.Task) (*input, error) {
	if err := checkProtected(t.Messages); err != nil { // a strategy selected protected messages
		return nil, &plan.Failure{Code: "system_message", Err: err}
	}
	if w.o.Model != nil { // an extract is made from the originals
		if err := readSources(ctx, &t); err != nil {
			return nil, err
		}
	}
	t.Focus = cmp.Or(text.Trim(t.Focus), text.Trim(w.o.Focus), text.Trim(w.o.Settings.Focus))
	t.Instruction = cmp.Or(text.Trim(t.Instruction), text.Trim(w.o.Settings.Instruction))
	t.Messages = slices.Clone(t.Messages)
	for i, message := range t.Messages {
		t.Messages[i] = plainMessage(message)
	}
	t.Pinned = slices.Clone(t.Pinned)
	for i, message := range t.Pinned {
		t.Pinned[i] = plainMessage(message)
	}
	if t.Current != nil {
		t.Current = plainMessage(t.Current)
	}
	m := &input{sources: &sourceIndex{unchecked: w.o.Model == nil && w.o.Operator == nil}, messages: make([]*chat.Message, 0, len(t.Messages))}
	from, err := readOriginals(ctx, t, &m.secrets)
	if err != nil {
		return nil, err
	}
	t, found := t.Mask(&m.secrets)
	m.task = t
	m.seqs = knowsSeqs(t)
	m.report = &Provenance{RedactorVersion: redact.Version, Redacted: found, RedactedAnswer: redact.Found{}, Messages: len(t.Messages)}
	m.previous = text.Trim(strings.Join(append([]string{t.Previous}, storedSummaries(t)...), "\n\n"))
	m.digest = extract.New(extract.Options{
		Focus: t.Focus, Redacted: true, Acts: w.o.Settings.Tools.Acts, Looks: w.o.Settings.Tools.Looks,
		Failed: w.o.Settings.Tools.Failed, Succeeded: w.o.Settings.Tools.Succeeded,
	})
	if m.previous != "" {
		m.report.Updates = true
		if from.messages == nil {
			m.digest.AddPrevious(m.previous)
			m.unknown = true
		}
		if m.seqs {
			m.sources.addPrevious(m.previous)
			m.previous = withoutAuthors(m.previous)
		} else {
			m.previous = withoutTags(m.previous)
			m.sources.addPrevious(m.previous)
		}
		m.report.CoveredTokens += estimateTokens(m.previous)
		m.previous = withoutDerived(m.previous)
	}
	for i, message := range t.Messages {
		if _, rest, ok := splitStored(t, i); ok {
			if rest == "" {
				continue // part of the previous summary
			}
			said := *message
			said.Content = chat.TextContent(rest)
			message = &said
		}
		n := chat.Seq(len(m.messages) + 1)
		if m.seqs {
			n = t.Seqs[i]
		}
		shown := *message
		shown.ID, shown.Reasoning, shown.ReasoningKey = numberOf(n), "", ""
		if shown.Content.Parts != nil && shown.Content.Media() == 0 {
			shown.Content = chat.TextContent(shown.Content.String())
		}
		m.messages = append(m.messages, &shown)
		m.report.CoveredTokens += messageTokens(message)
		if from.messages == nil {
			m.digest.Add(&shown)
			m.said.add(&shown)
		}
		m.sources.add(n, &shown)
	}
	m.covered = m.messages
	if len(m.messages) == 0 { // a summary of summaries alone loses, and gains nothing
		return nil, &plan.Failure{Code: "nothing_new"}
	}
	if from.messages != nil {
		if err := m.addOriginals(ctx, from); err != nil {
			return nil, err
		}
	}
	if m.sources.last != "" {
		m.lastUser, m.lastSeq = m.sources.last, m.sources.lastSeq
	}
	m.addStaying(t)
	w.budget(m)
	return m, nil
}

// budget sets the token limits of the summary.
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
	switch t := m.task; {
	case t.Most > 0 || t.Budget == 0 && t.MaxTokens == 0:
		m.prose = int(s.Size.Model(chat.Tokens(m.limit)))
	case t.Budget == 0: // an explicit limit covers prose and references
		m.prose = w.proseWithin(m.limit - m.references)
	}
	if !m.custom() && !m.task.Followed {
		m.request = Clean(m.lastUser)
	}
	w.bound(m)
	m.report.Budget = m.limit
}

// minProse is the smallest budget for which a model is asked: with less, its sections hold
// little but their headings.
const minProse = 100

// bound lowers the budgets so that the summary, with its references, the request and
// everything around it, takes up less than the messages that it covers, and no more than its
// share of the target.
func (w *Writer) bound(m *input) {
	s := w.o.Settings
	m.most = math.MaxInt
	if _, limit := w.Bounds(0); limit > 0 {
		m.most = int(limit)
	}
	if m.task.Limit > 0 {
		m.most = min(m.most, int(m.task.Limit))
	}
	if m.most == math.MaxInt {
		return
	}
	room := max(0, m.most-m.size(""))
	m.limit = min(m.limit, room)
	least := w.answerTokens(minProse)
	if m.request != "" {
		room -= m.cutRequest(min(room/4, room-least))
	}
	// The prose goes before the references, which get what it leaves.
	prose := max(int(s.Size.Prose(chat.Tokens(room), s.References+spareShare)), min(minProse, w.proseWithin(room)))
	if prose < m.prose {
		m.hopeless = room < least*5/4 // the view may count more tokens than the model does
		m.prose = prose
	}
}

// cutRequest cuts the request until its quotation takes up at most so many tokens, or clears
// it, and returns the tokens.
func (m *input) cutRequest(most int) int {
	full := m.request
	for n := maxAsk; n > 0; n /= 2 {
		m.request = cutCenter(full, n)
		if size := m.size(insertRequest("", m.request, "")) - m.size(""); size <= most {
			return size
		}
	}
	m.request = ""
	return 0
}

// size returns the tokens of a summary in the view, with everything around it.
func (m *input) size(summary string) int {
	if m.task.Size == nil {
		return estimateTokens(summary)
	}
	return int(m.task.Size(summary))
}

// fits reports whether a summary takes up less than what it covers, and no more than its
// limit.
func (m *input) fits(summary string) bool {
	if m.task.Limit == 0 && estimateTokens(summary) >= m.report.CoveredTokens {
		return false
	}
	return m.size(summary) <= m.most
}

// fit returns the text that compose returns for a budget of at most n tokens and whose size is
// at most most, or else the text for no budget. Known secrets are masked in it.
func (m *input) fit(n, most int, compose func(budget int) string) string {
	write := func(budget int) string {
		text, _ := m.secrets.MaskKnown(compose(budget))
		return text
	}
	for n > 0 {
		text := write(n)
		size := m.size(text)
		if size <= most {
			return text
		}
		// A token of the budget may be several in the view.
		base := m.size(write(0))
		n = min(n-1-n/64, n*max(0, most-base)/max(1, size-base))
	}
	return write(0)
}

// block returns what stands after the model's text, in at most budget tokens.
func (m *input) block(budget int) string { return Clean(m.digest.Appendix(budget)) }

// proseWithin returns the prose budget for an output limit: answerTokens of it are at most
// answer.
func (w *Writer) proseWithin(answer int) int {
	return max(1, int(float64(answer)/(w.o.Settings.Size.Slack+spareShare)))
}

// numberOf returns the number of a message in prompts, which is its id there, "" if it has none.
func numberOf(n chat.Seq) string {
	if n <= 0 {
		return ""
	}
	return "m" + strconv.FormatInt(int64(n), 10)
}

// knowsSeqs reports whether each message of a task but for summaries has a seq of its own.
func knowsSeqs(t plan.Task) bool {
	if len(t.Seqs) != len(t.Messages) {
		return false
	}
	seen := make(map[chat.Seq]bool, len(t.Seqs))
	for i, q := range t.Seqs {
		if _, rest, ok := splitStored(t, i); ok && rest == "" {
			continue
		}
		if q <= 0 || seen[q] {
			return false
		}
		seen[q] = true
	}
	return true
}

// requestTag returns the tag of the message that holds the request, "" if it has no seq.
func (m *input) requestTag() string {
	if !m.seqs || m.lastSeq == 0 {
		return ""
	}
	return formatTag([]chat.Seq{m.lastSeq}, m.sources.authors)
}

// custom reports whether an instruction replaces the default sections.
func (m *input) custom() bool { return m.task.Instruction != "" }

// addTrimmed records messages and outputs that the model is not shown.
func (m *input) addTrimmed(cut Trim) {
	if cut == (Trim{Step: cut.Step}) {
		return
	}
	m.trimmed.add(cut)
	m.report.Trimmed = append(m.report.Trimmed, cut)
}

// ErrProtected reports a message that must not be summarized.
var ErrProtected = errors.New("never summarized")

// checkProtected returns an error that wraps ErrProtected and names the system and developer
// messages by index, nil if there are none.
func checkProtected(messages []*chat.Message) error {
	var errs []error
	for i, m := range messages {
		if m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper {
			errs = append(errs, fmt.Errorf("message %d is a %s message: %w", i, m.Role, ErrProtected))
		}
	}
	return errors.Join(errs...)
}

// plainMessage returns a message without hidden characters, or m itself if it has none.
func plainMessage(m *chat.Message) *chat.Message { return plan.MapTexts(m, text.WithoutHidden) }

// storedSummaries returns the bodies of all stored summaries among the messages of a task.
func storedSummaries(t plan.Task) []string {
	var out []string
	for i := range t.Messages {
		if body, _, ok := splitStored(t, i); ok {
			out = append(out, body)
		}
	}
	return out
}

// splitStored splits message i of a task into the stored summary that it begins with and the
// rest of the text. A message that begins like one and is known to be none is not trusted:
// what it quotes is neither the user's nor a summary's.
func splitStored(t plan.Task, i int) (summary, rest string, ok bool) {
	m := t.Messages[i]
	if m.Role == chat.RoleTool || len(m.ToolCalls) > 0 || t.Kinds != nil && t.Kinds[i] != chat.KindSummary {
		return "", "", false
	}
	summary, rest, ok = frame.Unwrap(m.Content.String())
	return summary, text.Trim(rest), ok
}

// bytesPerToken is lower than the usual four, so that estimates err on the high side.
const bytesPerToken = 3

// estimateTokens returns the estimated tokens of a text, rather too many.
func estimateTokens(s string) int { return (len(s) + bytesPerToken - 1) / bytesPerToken }

func tokensOf(s string) chat.Tokens { return chat.Tokens(estimateTokens(s)) }

// messageTokens returns the estimated tokens of a message in a prompt.
func messageTokens(m *chat.Message) int {
	n := estimateTokens(m.Content.String()) + 16 // the line with number and role
	if !m.CreatedAt.IsZero() {
		n += estimateTokens(minuteFormat)
	}
	for _, c := range m.ToolCalls {
		n += estimateTokens(c.Name) + estimateTokens(c.Arguments) + 4
	}
	return n
}
