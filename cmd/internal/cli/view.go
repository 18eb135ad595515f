package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
)

type viewCmd struct {
	Session string `arg:"" help:"The session."`
	All     bool   `help:"Also show excluded messages, with the reason, the run and the replacement."`
	Groups  bool   `help:"Show the groups: messages that are kept or excluded together."`
	Full    bool   `help:"Show full texts."`
}

type groupJSON struct {
	Index        int            `json:"index"`
	Kind         chat.GroupKind `json:"kind"`
	FirstSeq     chat.Seq       `json:"first_seq"`
	HasReasoning bool           `json:"has_reasoning"`
	Messages     int            `json:"messages"`
	ToolCalls    int            `json:"tool_calls"`
	Tokens       chat.Tokens    `json:"tokens"`
	// Included reports whether any message of the group is in the view.
	Included         bool        `json:"included"`
	IncludedMessages int         `json:"included_messages"`
	IncludedTokens   chat.Tokens `json:"included_tokens"`

	includedCalls int
}

func (c *viewCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	k := key(cfg, c.Session)
	row, err := st.Session(ctx, k)
	if err != nil {
		return err
	}
	var msgs []store.Stored
	if c.All {
		msgs, err = st.All(ctx, k)
	} else {
		msgs, _, err = st.View(ctx, k)
	}
	if err != nil {
		return err
	}
	if c.Groups && c.All {
		// Groups of the log hold source messages only.
		msgs = slices.DeleteFunc(msgs, func(m store.Stored) bool { return m.Kind != chat.KindSource })
	}
	result := map[string]any{"session": reports.WithStart(cfg, row)}
	if c.Groups {
		groups := groupsOf(msgs)
		result["groups"], result["totals"] = groups, totalsOf(groups)
		return e.show(result, func() { writeGroups(e, groups) })
	}
	result["messages"] = store.MessageRows(msgs)
	return e.show(result, func() {
		e.say("%s", e.Out.Bold(term.Clean(row.Session))+e.Out.Dim(fmt.Sprintf("  %s  revision %d  %s of %s in view  %s tokens%s",
			orDash(term.Clean(row.Model)), row.Revision, term.Count(row.LiveMessages), plural(row.Messages, "message"),
			term.Tokens(row.LiveTokens), familyText(row))))
		writeMessages(e, msgs, c.Full)
	})
}

// familyText names the parent of a session and counts its children, behind two spaces each.
func familyText(r store.SessionRow) (text string) {
	if r.Parent != "" {
		text = "  child of " + term.Clean(r.Parent)
	}
	if r.Children > 0 {
		text += "  " + term.Plural(r.Children, "child", "children")
	}
	return text
}

func groupsOf(msgs []store.Stored) []groupJSON {
	metas := make([]chat.Meta, len(msgs))
	for i, m := range msgs {
		metas[i] = m.Meta(m.Seq)
		metas[i].Kind = m.Kind
	}
	groups := chat.Groups(metas)
	out := make([]groupJSON, len(groups))
	for i, g := range groups {
		out[i] = groupJSON{Index: i, Kind: g.Kind, FirstSeq: msgs[g.Start].Seq, HasReasoning: g.HasReasoning, Messages: g.End - g.Start}
		for _, m := range msgs[g.Start:g.End] {
			out[i].ToolCalls += len(m.ToolCalls)
			out[i].Tokens += m.Tokens
			if m.Included {
				out[i].Included = true
				out[i].IncludedMessages++
				out[i].IncludedTokens += m.Tokens
				out[i].includedCalls += len(m.ToolCalls)
			}
		}
	}
	return out
}

func totalsOf(groups []groupJSON) strategies.Counts {
	var t strategies.Counts
	for _, g := range groups {
		t.TotalGroups++
		t.TotalMessages += g.Messages
		t.TotalToolCalls += g.ToolCalls
		t.TotalTokens += int64(g.Tokens)
		if g.Included {
			t.Groups++
		}
		t.Messages += g.IncludedMessages
		t.ToolCalls += g.includedCalls
		t.Tokens += int64(g.IncludedTokens)
	}
	return t
}

func writeGroups(e *Env, groups []groupJSON) {
	dim := func(g groupJSON, text string) any { return term.Styled{Value: text, As: when(!g.Included, e.Out.Dim)} }
	columns[groupJSON]{
		{"index", term.ID("GROUP"), nil},
		{"first_seq", term.ID("SEQ"), nil},
		{"kind", term.Text("KIND"), func(g groupJSON) any { return dim(g, string(g.Kind)) }},
		{"has_reasoning", term.Text("REASONING"), func(g groupJSON) any { return when(g.HasReasoning, "yes") }},
		{"messages", term.Num("MESSAGES"), nil},
		{"tool_calls", term.Num("CALLS"), nil},
		{"tokens", term.Num("TOKENS"), nil},
		{"included", term.Text("INCLUDED"), func(g groupJSON) any {
			if g.Included && g.IncludedMessages < g.Messages {
				return fmt.Sprintf("%d of %s", g.IncludedMessages, plural(g.Messages, "message"))
			}
			return dim(g, yesOrNo(g.Included))
		}},
	}.write(e, groups)
	in := totalsOf(groups)
	of := func(in, all int64) string { return when(in != all, term.Count(in)+" of ") + term.Count(all) }
	e.say("")
	e.pairs(
		pair{"groups", of(int64(in.Groups), int64(in.TotalGroups))},
		pair{"messages", of(int64(in.Messages), int64(in.TotalMessages))},
		pair{"tool calls", of(int64(in.ToolCalls), int64(in.TotalToolCalls))},
		pair{"tokens", of(in.Tokens, in.TotalTokens)},
	)
}

// writeMessages writes messages as text: one truncated line each, unless full is set.
func writeMessages(e *Env, msgs []store.Stored, full bool) {
	seqWidth, tokenWidth, roleWidth := 1, 1, len("assistant")
	for _, m := range msgs {
		seqWidth = max(seqWidth, len(strconv.FormatInt(int64(m.Seq), 10)))
		tokenWidth = max(tokenWidth, len(term.Tokens(m.Tokens)))
	}
	for _, m := range msgs {
		role := term.Truncate(term.Clean(string(m.Role)), roleWidth)
		head := fmt.Sprintf("%*d  %-*s  %*s  ", seqWidth, m.Seq, roleWidth, role, tokenWidth, term.Tokens(m.Tokens))
		text := describe(m)
		if why := explain(m); why != "" {
			text = why + " " + text
		}
		switch {
		case full:
			indent := "\n" + strings.Repeat(" ", term.Width(head))
			text = strings.ReplaceAll(term.CleanLines(strings.TrimSuffix(text, "\n")), "\n", indent)
		case e.Out.Width > 0:
			text = term.Truncate(oneLine(text, 4*e.Out.Width), max(20, e.Out.Width-term.Width(head)))
		default:
			text = term.Truncate(oneLine(text, 400), 100)
		}
		line := head + text
		if !m.Included {
			line = e.Out.Dim(line)
		}
		e.say("%s", strings.TrimRight(line, " "))
	}
}

// yesOrNo returns "yes" for true, or else "no".
func yesOrNo(b bool) string { return cmp.Or(when(b, "yes"), "no") }

// orDash returns a model, or that there is none.
func orDash(model string) string { return cmp.Or(model, "no model") }

// oneLine returns the first most runes of a text with white space collapsed.
func oneLine(text string, most int) string {
	var b strings.Builder
	n := 0
	for field := range strings.FieldsSeq(text) {
		if n > 0 {
			b.WriteByte(' ')
		}
		for _, r := range field {
			if n++; n > most {
				return term.Clean(b.String()) + "…"
			}
			b.WriteRune(r)
		}
	}
	return term.Clean(b.String())
}

// explain returns the annotations of a message, such as "[out: …; pinned]".
func explain(m store.Stored) string {
	var marks []string
	if !m.Included {
		out := "out: " + m.ExcludeReason
		if m.ExcludeReason == "" {
			out = "out"
		}
		if m.ExcludedBy != 0 {
			out += fmt.Sprintf(", run %d", m.ExcludedBy)
		}
		if m.SummarizedBy != "" {
			out += ", see " + m.SummarizedBy
		}
		marks = append(marks, out)
	}
	switch m.Kind {
	case chat.KindSummary:
		marks = append(marks, kindMark("summary", m))
	case chat.KindReplacement:
		marks = append(marks, kindMark("replacement", m))
	case chat.KindSource:
	}
	if m.Purged {
		marks = append(marks, "purged")
	}
	if m.Pinned {
		marks = append(marks, "pinned")
	}
	if m.ReasoningExcludedBy != 0 {
		marks = append(marks, fmt.Sprintf("without reasoning, run %d", m.ReasoningExcludedBy))
	}
	if len(marks) == 0 {
		return ""
	}
	return "[" + strings.Join(marks, "; ") + "]"
}

func kindMark(name string, m store.Stored) string {
	if len(m.SummaryOf) > 0 {
		return name + " of " + seqText(m.SummaryOf)
	}
	return name
}

// describe returns the text, reasoning, tool calls and attachments of a message.
func describe(m store.Stored) string {
	var parts []string
	if m.Reasoning != "" {
		parts = append(parts, "(reasoning) "+m.Reasoning)
	}
	if m.ToolCallID != "" {
		parts = append(parts, "← "+m.ToolCallID+":")
	}
	for _, p := range m.Content.Parts {
		if p.IsReasoning() && p.Text == "" {
			var said struct{ Thinking string }
			_ = json.Unmarshal(p.Raw, &said) // --json has the parts not shown here
			parts = append(parts, strings.TrimSpace("(reasoning) "+said.Thinking))
		}
	}
	if text := m.Content.String(); text != "" {
		parts = append(parts, text)
	}
	if n := m.Content.Media(); n > 0 {
		parts = append(parts, "["+plural(n, "attachment")+"]")
	}
	for _, call := range m.ToolCalls {
		parts = append(parts, fmt.Sprintf("→ %s(%s)", call.Name, call.Arguments))
	}
	return strings.Join(parts, " ")
}
