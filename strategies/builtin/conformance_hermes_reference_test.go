package builtin

import (
	"context"
	"errors"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// referenceHandoff is a handoff with the flow of Hermes Agent, including its losses: it
// takes summaries for requests of the user, summarizes instructions, leaves calls without
// results, and answers these with a fixed text. The vectors apply to it; everything else
// (pruning, estimates, boundaries of groups, budgets, prefixes, merging) is the product's.
type referenceHandoff struct {
	*handoff

	// last is set to the last pass.
	last **referencePass
}

// referencePass is the state of planning one handoff.
type referencePass struct {
	*handoffPass

	// tail is the end of the middle, which may be one after the last message.
	tail int
	// dropped counts the messages that the fallback text replaced.
	dropped int
}

func (s referenceHandoff) WithFocus(topic string) plan.Strategy {
	s.handoff = s.handoff.WithFocus(topic).(*handoff)
	return s
}

func (s referenceHandoff) WithPrevious(summary string) plan.Strategy {
	s.handoff = s.handoff.WithPrevious(summary).(*handoff)
	return s
}

// HasContent does not compare the size of the view with that of a compression.
func (s referenceHandoff) HasContent(t *plan.Transcript) bool {
	view := s.loadedSpans(t)
	if len(view) == 0 {
		return false
	}
	start, end := s.bounds(view)
	return start < end
}

func (s referenceHandoff) bounds(view spans) (start, end int) {
	start = view.forward(s.first)
	return start, max(view.tail(start, int64(s.tail), 3, anyUser), start+1)
}

func (s referenceHandoff) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	p := &referencePass{handoffPass: s.pass(t)}
	*s.last = nil
	if p.view == nil {
		return chat.Plan{}, nil
	}
	*s.last = p
	if err := p.read(ctx); err != nil {
		return chat.Plan{}, err
	}
	pinned := pinnedEntries(t)
	for i, e := range p.view {
		p.keep[i] = pinned[e]
	}
	p.start, p.tail = s.bounds(p.spans)
	p.end = min(p.tail, len(p.view))
	p.collect()
	text, err := p.summary(ctx)
	switch {
	case err == nil:
		p.assemble(text)
	case !errors.Is(err, plan.ErrNoSummary):
		return chat.Plan{}, err
	default:
		p.dropped = p.tail - p.start
		p.assemble(s.fallbackText(p.dropped))
	}
	return p.plan, err
}

// collect takes the previous summary from the whole view, and summarizes it again.
func (p *referencePass) collect() {
	newest := chat.Seq(0)
	for i, m := range p.messages {
		if summary, _, ok := p.h.splitOwn(m); ok && !p.h.isFallback(strings.TrimSpace(summary)) && p.seq(i) > newest {
			newest, p.task.Previous = p.seq(i), strings.TrimSpace(summary)
		}
		if p.inMiddle(i) {
			addMessage(&p.task, m, p.entry(i).Kind, p.seq(i))
		}
	}
	if p.h.previous != nil {
		p.task.Previous = *p.h.previous
	}
}

func (p *referencePass) inMiddle(i int) bool { return i >= p.start && i < p.end && !p.keep[i] }

// summary accepts an empty answer, and ignores the limit of a small summary.
func (p *referencePass) summary(ctx context.Context) (string, error) {
	p.task.Budget = p.proportionalBudget()
	text, err := p.ask(ctx)
	if err != nil && !errors.Is(err, plan.ErrEmptySummary) {
		return "", err
	}
	return p.h.prefixed(text), nil
}

func (p *referencePass) assemble(summary string) {
	for i := range min(p.start, len(p.view)) {
		if i > 0 || !p.addSystemNote() {
			p.addPruned(i)
		}
	}
	gone := make([]bool, len(p.view))
	for i := range gone {
		gone[i] = p.inMiddle(i)
	}
	p.dropOrphans(gone)
	stubs := p.stubResults(gone)
	merged := -1
	if p.role = p.alternatingRole(p.end < len(p.view) && !p.keep[p.end]); p.role == "" {
		merged = p.end
		p.merge(summary)
	} else {
		// Of additions at the same position the one that is written first stands first.
		for len(stubs) > 0 && stubs[0].Position <= p.position() {
			p.plan.Additions, stubs = append(p.plan.Additions, stubs[0]), stubs[1:]
		}
		p.addSummary(summary)
	}
	for i := p.start; i < len(p.view); i++ {
		if !gone[i] && i != merged {
			p.addPruned(i)
		}
	}
	p.plan.Additions = append(p.plan.Additions, stubs...)
}

// merge rewrites messages with calls too.
func (p *referencePass) merge(summary string) {
	old := p.messages[p.end]
	if len(old.ToolCalls) == 0 {
		p.handoffPass.merge(summary)
		return
	}
	merged := *old
	merged.ID, merged.Content = "", p.mergedContent(summary)
	p.plan.Exclude = append(p.plan.Exclude, chat.Exclusion{Reason: p.h.Name(), Seqs: p.covers()})
	p.plan.Additions = append(p.plan.Additions, replacement(p.entry(p.end), merged, p.h.Name()))
}

// dropOrphans removes results without a call.
func (p *referencePass) dropOrphans(gone []bool) {
	calls := map[string]bool{}
	for i, m := range p.messages {
		for _, c := range m.ToolCalls {
			calls[c.ID] = calls[c.ID] || !gone[i] && m.Role == chat.RoleAssistant
		}
	}
	var orphans plan.SeqSet
	for i, m := range p.messages {
		if !gone[i] && m.Role == chat.RoleTool && m.ToolCallID != "" && !calls[m.ToolCallID] {
			orphans.Add(p.seq(i))
			gone[i] = true
		}
	}
	p.plan.Exclude = append(p.plan.Exclude, orphans.Exclude("orphan_result").Exclude...)
}

// stubResults answers the calls that have no result. No valid view contains such answers.
func (p *referencePass) stubResults(gone []bool) []chat.Addition {
	var stubs []chat.Addition
	answered := map[string]bool{}
	for i, m := range p.messages {
		if !gone[i] && m.Role == chat.RoleTool {
			answered[m.ToolCallID] = true
		}
	}
	for i, m := range p.messages {
		if gone[i] || m.Role != chat.RoleAssistant {
			continue
		}
		for _, c := range m.ToolCalls {
			if c.ID != "" && !answered[c.ID] {
				stubs = append(stubs, chat.Addition{
					Kind: chat.KindSummary, Reason: "stub_result", Position: p.entry(i).Position + 1,
					Message: chat.Message{Role: chat.RoleTool, ToolCallID: c.ID, Content: chat.TextContent(hermesStub)},
				})
			}
		}
	}
	return stubs
}
