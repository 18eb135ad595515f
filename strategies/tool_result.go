package strategies

import (
	"context"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/chat"
)

// toolResult collapses all but the newest tool call groups into one message each
// that holds their results.
type toolResult struct {
	keep   int64
	filter toolFilter
}

func newToolResult(a *Args) (Strategy, error) {
	return &toolResult{keep: keepLastToolCallGroups(a), filter: newToolFilter(a)}, nil
}

// Name implements Strategy.
func (*toolResult) Name() string { return "tool_result" }

// Reads implements Reader.
func (s *toolResult) Reads(t *Transcript) []chat.Seq {
	out := s.filter.reads(t, s.keep)
	groups := t.Groups()
	for _, i := range olderToolCalls(t, s.keep) {
		g := groups[i]
		for e := g.Start; e < g.End; e++ {
			out = append(out, t.Entries[e].Seq)
		}
		for _, g := range t.also[i] {
			for e := g.Start; e < g.End; e++ {
				out = append(out, t.Entries[e].Seq)
			}
		}
	}
	return out
}

// Plan implements Strategy.
func (s *toolResult) Plan(_ context.Context, t *Transcript) (chat.Plan, error) {
	const reason = "tool_result_compaction"
	older, dropped, err := s.filter.apply(t, s.keep)
	if err != nil || len(older)+len(dropped) == 0 {
		return chat.Plan{}, err
	}
	groups := t.Groups()
	plan := chat.Plan{Additions: make([]chat.Addition, 0, len(older))}
	var out seqSet
	for _, i := range dropped {
		t.seqs(&out, i)
	}
	plan.Exclude = out.exclude(reason).Exclude
	for _, i := range older {
		var covers seqSet
		t.seqs(&covers, i)
		text, err := resultText(t, append([]chat.Group{groups[i]}, t.also[i]...))
		if err != nil {
			return chat.Plan{}, err
		}
		plan.Additions = append(plan.Additions, chat.Addition{
			Kind: chat.KindSummary, Reason: reason, Covers: covers.ranges(),
			Position: t.Entries[groups[i].Start].Position,
			Message:  chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(text)},
		})
	}
	return plan, nil
}

// resultText is the results of a group in one line, each behind the name of the
// tool that gave it.
func resultText(t *Transcript, runs []chat.Group) (string, error) {
	names := map[string]string{}
	var results []*chat.Message
	for _, g := range runs {
		for e := g.Start; e < g.End; e++ {
			m, err := t.Read(e)
			if err != nil {
				return "", err
			}
			for _, c := range m.ToolCalls {
				if c.ID != "" && c.Name != "" {
					names[c.ID] = c.Name
				}
			}
			if m.Role == chat.RoleTool {
				results = append(results, m)
			}
		}
	}
	if len(results) == 0 {
		return "[Tool results: no results]", nil
	}
	var b strings.Builder
	b.WriteString("[Tool results: ")
	for i, m := range results {
		if i > 0 {
			b.WriteString("; ")
		}
		label := m.Content.String()
		if name := names[m.ToolCallID]; name != "" {
			label = name + ": " + label
		}
		b.WriteString(strings.TrimFunc(label, isBlank))
	}
	b.WriteString("]")
	return b.String(), nil
}

// isBlank reports white space, the information separators among it.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
