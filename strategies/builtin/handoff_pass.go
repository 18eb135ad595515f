package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const (
	summaryShare   = 0.20 // of the summarized tokens
	summaryMinimum = 2000 // tokens
	answerSlack    = 1.3  // answer limit per token of the budget
)

// reasonCompactionNote is the reason of a system message to which a handoff adds its note.
const reasonCompactionNote = "compaction_note"

// handoffPass is the state of planning one handoff.
type handoffPass struct {
	h *handoff
	t *plan.Transcript
	// view holds the indexes of the entries in the view, messages their content after
	// pruning. keep marks those that stay even in the middle.
	view     []int
	messages []*chat.Message
	keep     []bool
	spans    spans
	pruned   map[chat.Seq]*chat.Addition
	// The messages from start to end-1 are the middle, which the task summarizes.
	start, end int
	task       plan.Task
	// limit is the number of tokens that the target leaves for the summary, 0 for no limit.
	limit chat.Tokens
	// role is the role of the summary, empty if it was merged into the first message after
	// it.
	role chat.Role
	plan chat.Plan
}

func (h *handoff) pass(t *plan.Transcript) *handoffPass {
	return &handoffPass{h: h, t: t, view: h.view(t)}
}

// read loads the messages of the view, after pruning.
func (p *handoffPass) read(ctx context.Context) error {
	plan, err := p.h.prune.Plan(ctx, p.t)
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	p.pruned = make(map[chat.Seq]*chat.Addition, len(plan.Additions))
	for i := range plan.Additions {
		p.pruned[plan.Additions[i].Covers[0].Lo] = &plan.Additions[i]
	}
	p.messages = make([]*chat.Message, len(p.view))
	p.spans = make(spans, len(p.view))
	p.keep = make([]bool, len(p.view))
	pinned := pinnedEntries(p.t)
	for i, e := range p.view {
		m, err := p.t.Read(e)
		if err != nil {
			return err
		}
		if a := p.pruned[p.seq(i)]; a != nil {
			m = &a.Message
		}
		entry := p.entry(i)
		p.messages[i], p.spans[i] = m, spanOf(m)
		p.spans[i].summary = p.h.wrote(m) || isSummary(entry)
		p.keep[i] = pinned[e] || instructs(entry)
	}
	return nil
}

// collect sets the messages to summarize and the previous summary. A strict writer gets the
// messages before pruning and those that replacements cover.
func (p *handoffPass) collect() error {
	newest := chat.Seq(0)
	sources := p.h.originals(p.t)
	for _, i := range p.middle() {
		m, kind, seq := p.messages[i], kindOf(p.entry(i)), p.seq(i)
		if p.h.strict() {
			of := sources.of(p.view[i])
			if len(of) > 1 {
				if err := sources.add(&p.task, p.view[i]); err != nil {
					return err
				}
				continue
			}
			var err error
			if m, err = p.t.Read(of[0]); err != nil {
				return err
			}
			seq = p.t.Entries[of[0]].Seq
		}
		summary, rest, ok := p.h.split(m)
		if p.h.strict() && kind != chat.KindSummary { // the writer does not trust it either
			ok = false
		}
		if ok && !p.h.isFallback(summary) && p.seq(i) > newest {
			newest, p.task.Previous = p.seq(i), summary
		}
		switch {
		case ok && rest == "" && len(m.ToolCalls) == 0:
			continue // it is the previous summary
		case ok:
			other := *m
			other.Content = chat.TextContent(rest)
			m, seq = &other, p.seq(i)
		}
		addMessage(&p.task, m, kind, seq)
	}
	if p.h.previous != nil {
		p.task.Previous = *p.h.previous
	}
	return nil
}

// summary requests the summary of the middle and puts the prefix in front of it. The error
// is that of ask.
func (p *handoffPass) summary(ctx context.Context) (string, error) {
	p.task.Most = int(p.h.maxSummary)
	p.task.Budget = max(1, min(p.proportionalBudget(), p.task.Most))
	text, err := p.ask(ctx)
	if err != nil {
		return "", err
	}
	if text = p.h.prefixed(text); text == p.h.prefix {
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, plan.ErrEmptySummary)
	}
	return text, nil
}

// proportionalBudget returns the size of a summary that is proportional to the middle.
func (p *handoffPass) proportionalBudget() int {
	chars := 0
	for _, m := range p.task.Messages {
		chars += tokens.RequestLength(m)
	}
	rough := float64((chars + 3) / 4)
	return max(summaryMinimum, min(int(rough*summaryShare), int(p.h.maxSummary)))
}

// ask requests the summary of the middle with the budget of the task.
func (p *handoffPass) ask(ctx context.Context) (string, error) {
	focus, _ := redact.Redact(p.h.focus)
	p.task.Focus, p.task.Followed = p.h.focus, p.spans.last(realUser) > p.first()
	p.task.MaxTokens = int(float64(p.task.Budget) * answerSlack)
	p.task.Prompt = standardPrompt(summary.Prompt{Budget: chat.Tokens(p.task.Budget), Focus: focus})
	task := counted(p.t, p.task, p.covered(), func(text string) chat.Message {
		return chat.Message{Role: chat.RoleUser, Content: chat.TextContent(p.h.prefixed(text) + "\n\n" + p.h.end)}
	})
	if p.limit > 0 {
		task.Limit = min(task.Limit, p.limit)
	}
	return p.h.ask(ctx, task)
}

// assemble plans the pruned head, the summary and the pruned tail.
func (p *handoffPass) assemble(summary string) {
	for i := range p.start {
		if i > 0 || !p.addSystemNote() {
			p.addPruned(i)
		}
	}
	if p.role = p.summaryRole(); p.role == "" {
		p.merge(summary)
	} else {
		if p.h.end != "" {
			summary += "\n\n" + p.h.end
		}
		p.addSummary(summary)
	}
	for i := p.start; i < len(p.view); i++ {
		if merged := p.role == "" && i == p.end; (i >= p.end || p.keep[i]) && !merged {
			p.addPruned(i)
		}
	}
}

// addPruned plans the pruned form of a message that stays.
func (p *handoffPass) addPruned(i int) {
	if a := p.pruned[p.seq(i)]; a != nil {
		p.plan.Additions = append(p.plan.Additions, *a)
	}
}

func (p *handoffPass) entry(i int) *plan.Entry { return &p.t.Entries[p.view[i]] }
func (p *handoffPass) seq(i int) chat.Seq      { return p.entry(i).Seq }

// middle returns the indexes in the view of the messages to summarize.
func (p *handoffPass) middle() []int {
	var out []int
	for i := p.start; i < p.end; i++ {
		if !p.keep[i] {
			out = append(out, i)
		}
	}
	return out
}

// covered returns the entries that the summary covers.
func (p *handoffPass) covered() []int {
	out := p.middle()
	for k, i := range out {
		out[k] = p.view[i]
	}
	return out
}

func (p *handoffPass) covers() chat.Ranges { return chat.RangesOf(seqsOf(p.t, p.covered())...) }

// first returns the index of the first summarized message, or the one after the last
// message.
func (p *handoffPass) first() int {
	if middle := p.middle(); len(middle) > 0 {
		return middle[0]
	}
	return len(p.view)
}

// position returns the position of the first summarized message, or the one after the last
// message.
func (p *handoffPass) position() chat.Seq {
	if i := p.first(); i < len(p.view) {
		return p.entry(i).Position
	}
	return p.entry(len(p.view)-1).Position + 1
}

// addSystemNote plans the note on the leading system message, unless that is pinned, and
// reports whether it is new.
func (p *handoffPass) addSystemNote() bool {
	m := p.messages[0]
	if !p.h.systemNote || m.Role != chat.RoleSystem || p.entry(0).Pinned || strings.Contains(m.Content.String(), p.h.note) {
		return false
	}
	noted := *m
	noted.ID = ""
	switch {
	case m.Content.Parts != nil:
		noted.Content.Parts = append(slices.Clone(m.Content.Parts), chat.Part{Type: "text", Text: p.h.note})
	case m.Content.Text == "":
		noted.Content = chat.TextContent(p.h.note)
	default:
		noted.Content = chat.TextContent(m.Content.Text + "\n\n" + p.h.note)
	}
	p.plan.Additions = append(p.plan.Additions, replacement(p.entry(0), noted, reasonCompactionNote))
	return true
}

// addSummary plans the summary as a message of its own.
func (p *handoffPass) addSummary(text string) {
	p.plan.Additions = append(p.plan.Additions, chat.Addition{
		Kind: chat.KindSummary, Reason: p.h.Name(), Covers: p.covers(), Position: p.position(),
		Message: chat.Message{Role: p.role, Content: chat.TextContent(text)},
	})
}

// summaryRole returns the role of the summary, or "" if it is merged into the tail. A
// conversation without a user message in its head goes on with the user's role, since some
// providers refuse one that begins with the assistant.
func (p *handoffPass) summaryRole() chat.Role {
	if !slices.ContainsFunc(p.spans[:p.start], anyUser) && !p.followsUser() {
		return chat.RoleUser
	}
	return p.alternatingRole(p.mergeable())
}

// followsUser and precedesUser report whether the summary stands directly after or in front
// of the last user message, because that one stays in the middle.
func (p *handoffPass) followsUser() bool {
	last := p.spans.last(realUser)
	return last >= p.start && last < p.first()
}

func (p *handoffPass) precedesUser() bool {
	last := p.spans.last(realUser)
	return last > p.first() && last < p.end
}

// alternatingRole returns the role with which user and assistant alternate on both sides of
// the summary, or "" if only merging it into the tail achieves that.
func (p *handoffPass) alternatingRole(mergeable bool) chat.Role {
	before, after := chat.RoleUser, chat.RoleUser
	if p.start > 0 && !p.followsUser() {
		before = p.messages[p.start-1].Role
	}
	if p.end < len(p.view) && !p.precedesUser() {
		after = p.messages[p.end].Role
	}
	role, other := chat.RoleAssistant, chat.RoleUser
	if before == chat.RoleAssistant || before == chat.RoleTool {
		role, other = other, role
	}
	switch {
	case role != after:
		return role
	case other == before && mergeable:
		return ""
	}
	return other
}

// mergeable reports whether the first message of the tail may be rewritten.
func (p *handoffPass) mergeable() bool {
	return p.end < len(p.view) && !p.precedesUser() && !p.keep[p.end] && !p.spans[p.end].calls && p.spans.last(realUser) != p.end
}

// merge puts the summary in front of the first message of the tail. The result covers that
// message together with the summarized ones.
func (p *handoffPass) merge(summary string) {
	e, old := p.entry(p.end), p.messages[p.end]
	p.plan.Additions = append(p.plan.Additions, chat.Addition{
		Kind: chat.KindSummary, Reason: p.h.Name(), Covers: chat.RangesOf(e.Seq).Union(p.covers()), Position: e.Position,
		Message: chat.Message{Role: old.Role, Name: old.Name, Content: p.mergedContent(summary)},
	})
}

// mergedContent returns the summary followed by the content of the first message of the
// tail.
func (p *handoffPass) mergedContent(summary string) chat.Content {
	text, c := summary+"\n\n"+p.h.end+"\n\n", p.messages[p.end].Content
	if c.Parts == nil {
		return chat.TextContent(text + c.Text)
	}
	c.Parts = append([]chat.Part{{Type: "text", Text: text}}, c.Parts...)
	return c
}
