package builtin

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// reasonCompactionNote is the reason of a system message to which a handoff adds its note.
const reasonCompactionNote = "compaction_note"

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
		if merged := p.role == "" && i == p.end; !p.inMiddle(i) && !merged {
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
func (p *handoffPass) inMiddle(i int) bool     { return i >= p.start && i < p.end && !p.keep[i] }

// covers returns the messages that the summary covers.
func (p *handoffPass) covers() chat.Ranges {
	var set plan.SeqSet
	for i := p.start; i < p.end; i++ {
		if p.inMiddle(i) {
			set.Add(p.seq(i))
		}
	}
	return set.Ranges()
}

// first returns the index of the first summarized message, or the one after the last
// message.
func (p *handoffPass) first() int {
	for i := p.start; i < p.end; i++ {
		if p.inMiddle(i) {
			return i
		}
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

// addSystemNote plans the note on the leading system message and reports whether it is new.
func (p *handoffPass) addSystemNote() bool {
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

// followsUser and precedesUser report whether the summary stands directly behind or in front
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
