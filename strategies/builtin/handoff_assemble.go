package builtin

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Reasons of what a handoff excludes and writes, beside its name.
const (
	reasonCompactionNote = "compaction_note"
	reasonOrphanResult   = "orphan_result"
	reasonStubResult     = "stub_result"
)

// assemble makes the plan: the pruned head, the summary, the pruned tail.
func (p *handoffPass) assemble(summary string) {
	for i := range min(p.start, len(p.view)) {
		if i > 0 || !p.noted() {
			p.standIn(i)
		}
	}
	gone := p.gone()
	if p.h.reference {
		p.sanitize(gone)
	}
	stubs := p.stubResults(gone)
	p.role = p.summaryRole()
	if p.role == "" {
		p.merge(summary)
	} else {
		if !p.h.reference && p.h.end != "" {
			summary += "\n\n" + p.h.end
		}
		// What is written first stands first where positions are equal.
		behind := slices.IndexFunc(stubs, func(a chat.Addition) bool { return a.Position > p.position() })
		if behind < 0 {
			behind = len(stubs)
		}
		p.plan.Additions = append(append(p.plan.Additions, stubs[:behind]...), chat.Addition{
			Kind: chat.KindSummary, Reason: p.h.Name(), Covers: p.covers(), Position: p.position(),
			Message: chat.Message{Role: p.role, Content: chat.TextContent(summary)},
		})
		stubs = stubs[behind:]
	}
	for i := p.start; i < len(p.view); i++ {
		if merged := p.role == "" && i == p.end; !gone[i] && !merged {
			p.standIn(i)
		}
	}
	p.plan.Additions = append(p.plan.Additions, stubs...)
}

// standIn plans what pruning made of a message that stays.
func (p *handoffPass) standIn(i int) {
	if a := p.pruned[p.seq(i)]; a != nil {
		p.plan.Additions = append(p.plan.Additions, *a)
	}
}

func (p *handoffPass) entry(i int) *plan.Entry { return &p.t.Entries[p.view[i]] }
func (p *handoffPass) seq(i int) chat.Seq      { return p.entry(i).Seq }
func (p *handoffPass) inMiddle(i int) bool     { return i >= p.start && i < p.end && !p.keep[i] }
func (p *handoffPass) target() *chat.Message   { return p.messages[p.end] }

// gone marks what the summary takes the place of.
func (p *handoffPass) gone() []bool {
	gone := make([]bool, len(p.view))
	for i := range gone {
		gone[i] = p.inMiddle(i)
	}
	return gone
}

// covers returns the messages that the summary is of.
func (p *handoffPass) covers() chat.Ranges {
	var set plan.SeqSet
	for i := p.start; i < min(p.end, len(p.view)); i++ {
		if p.inMiddle(i) {
			set.Add(p.seq(i))
		}
	}
	return set.Ranges()
}

// position is that of the first message that is summarized, or behind the last one.
func (p *handoffPass) position() chat.Seq {
	for i := p.start; i < min(p.end, len(p.view)); i++ {
		if p.inMiddle(i) {
			return p.entry(i).Position
		}
	}
	return p.entry(len(p.view)-1).Position + 1
}

// noted plans the note on the leading system message.
func (p *handoffPass) noted() bool {
	m := p.messages[0]
	if !p.h.systemNote || m.Role != chat.RoleSystem || strings.Contains(m.Content.String(), p.h.note) {
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
	p.plan.Additions = append(p.plan.Additions, chat.Addition{
		Kind: chat.KindReplacement, Reason: reasonCompactionNote, Covers: chat.RangesOf(p.seq(0)),
		Position: p.entry(0).Position, Message: noted,
	})
	return true
}

// summaryRole returns the role that keeps user and assistant taking turns on both sides
// of the summary, or none where only merging it into the tail does.
func (p *handoffPass) summaryRole() chat.Role {
	before, behind := chat.RoleUser, chat.RoleUser
	if p.start > 0 {
		before = p.messages[p.start-1].Role
	}
	if p.end < len(p.view) {
		behind = p.target().Role
	}
	role := chat.RoleAssistant
	if before == chat.RoleAssistant || before == chat.RoleTool {
		role = chat.RoleUser
	}
	if !p.h.reference && !slices.ContainsFunc(p.spans[:p.start], anyUser) {
		return chat.RoleUser // a conversation that begins with the assistant is refused by some
	}
	if role != behind {
		return role
	}
	other := chat.RoleUser
	if role == chat.RoleUser {
		other = chat.RoleAssistant
	}
	if other == before && p.mergeable() {
		return ""
	}
	return other
}

// mergeable reports whether the first message behind the summary may be rewritten:
// not one that has to stay as it is.
func (p *handoffPass) mergeable() bool {
	if p.h.reference { // the reference has no pins; callers that pin rely on them
		return !p.keep[p.end]
	}
	return !p.keep[p.end] && !p.spans[p.end].calls && p.spans.last(realUser) != p.end
}

// merge puts the summary in front of the first message of the tail. One that makes
// calls stays a message of its own; another becomes part of the summary, so that
// what is summarized stays linked to it.
func (p *handoffPass) merge(summary string) {
	old := p.target()
	merged := *old
	merged.ID = ""
	framed := summary + "\n\n" + p.h.end + "\n\n"
	if old.Content.Parts != nil {
		merged.Content.Parts = append([]chat.Part{{Type: "text", Text: framed}}, old.Content.Parts...)
	} else {
		merged.Content = chat.TextContent(framed + old.Content.Text)
	}
	a := chat.Addition{
		Kind: chat.KindReplacement, Reason: p.h.Name(), Covers: chat.RangesOf(p.seq(p.end)),
		Position: p.entry(p.end).Position,
	}
	if len(old.ToolCalls) > 0 {
		p.plan.Exclude = append(p.plan.Exclude, chat.Exclusion{Reason: p.h.Name(), Seqs: p.covers()})
	} else {
		a.Kind, a.Covers = chat.KindSummary, a.Covers.Union(p.covers())
		merged = chat.Message{Role: merged.Role, Name: merged.Name, Content: merged.Content}
	}
	a.Message = merged
	p.plan.Additions = append(p.plan.Additions, a)
}

// sanitize takes out results whose call is gone, wherever it stood.
func (p *handoffPass) sanitize(gone []bool) {
	calls := map[string]bool{}
	for i, m := range p.messages {
		if !gone[i] && m.Role == chat.RoleAssistant {
			for _, c := range m.ToolCalls {
				calls[c.ID] = true
			}
		}
	}
	var orphans plan.SeqSet
	for i, m := range p.messages {
		if !gone[i] && m.Role == chat.RoleTool && m.ToolCallID != "" && !calls[m.ToolCallID] {
			orphans.Add(p.seq(i))
			gone[i] = true
		}
	}
	p.plan.Exclude = append(p.plan.Exclude, orphans.Exclude(reasonOrphanResult).Exclude...)
}

// stubResults answers calls that nothing answers any more. No view can hold such an
// answer, which stands for no message; it is for those who apply the plan unguarded.
func (p *handoffPass) stubResults(gone []bool) []chat.Addition {
	if !p.h.reference {
		return nil
	}
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
			if c.ID == "" || answered[c.ID] {
				continue
			}
			stubs = append(stubs, chat.Addition{
				Kind: chat.KindSummary, Reason: reasonStubResult, Position: p.entry(i).Position + 1,
				Message: chat.Message{Role: chat.RoleTool, ToolCallID: c.ID, Content: chat.TextContent(p.h.stub)},
			})
		}
	}
	return stubs
}
