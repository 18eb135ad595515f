package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/worker"
)

const (
	maxDetailed = 3  // sessions of a file that are shown one by one
	maxFileRows = 40 // lines of the table of more
	maxViewed   = 20 // messages of a view that is shown as a whole
	maxLines    = 40 // lines of a summary
)

// printAll shows the results of the sessions: one by one, or of many a line each.
func (c *compactFileCmd) printAll(e *Env, out *fileOutput) {
	if len(out.sessions) <= maxDetailed {
		for i, f := range out.detailed {
			if i > 0 {
				e.say("")
			}
			c.print(e, f)
		}
		return
	}
	columns[fileJSON]{
		{"session", term.Text("SESSION"), nil},
		{"after", term.Text("MESSAGES"), func(s fileJSON) any { return change(int64(s.Before.Messages), int64(s.After.Messages)) }},
		{"after", term.Text("TOKENS"), func(s fileJSON) any { return change(s.Before.Tokens, s.After.Tokens) }},
		{"", term.Num("SAVED"), func(s fileJSON) any { return term.Percent(s.Before.Tokens-s.After.Tokens, s.Before.Tokens) }},
		{"target", term.Num("TARGET"), func(s fileJSON) any { return when(s.Target > 0, term.Count(s.Target)) }},
	}.write(e, out.sessions[:min(maxFileRows, len(out.sessions))])
	if n := len(out.sessions) - maxFileRows; n > 0 {
		e.say("… and %s more", term.Count(n))
	}
	var before, after strategies.Counts
	chosen := 0
	for _, s := range out.sessions {
		before.Messages, after.Messages = before.Messages+s.Before.Messages, after.Messages+s.After.Messages
		before.Tokens, after.Tokens = before.Tokens+s.Before.Tokens, after.Tokens+s.After.Tokens
		if s.TargetChosen {
			chosen++
		}
	}
	e.say("")
	e.say("%s: messages %s, tokens %s (%s saved)", plural(len(out.sessions), "session"),
		change(int64(before.Messages), int64(after.Messages)),
		change(before.Tokens, after.Tokens), term.Percent(before.Tokens-after.Tokens, before.Tokens))
	if chosen > 0 {
		e.say("%s below the policy's target and compacted to a third, to show what would go: --target sets another",
			term.Plural(chosen, "session was", "sessions were"))
	}
	e.say("--explain shows each with what stays and why, --view with its messages; --json and --out FILE have the views")
}

func (c *compactFileCmd) print(e *Env, f *compactedFile) {
	r := &f.report
	e.say("%s%s", e.Out.Bold(term.Clean(f.name)), e.Out.Dim("  "+orDash(term.Clean(f.session.Model))))
	for _, line := range f.explain {
		e.say("%s", line)
	}
	b, a := r.Before, r.After
	e.pairs(
		pair{"groups", change(int64(b.IncludedGroups), int64(a.IncludedGroups))},
		pair{"messages", change(int64(b.IncludedMessages), int64(a.IncludedMessages))},
		pair{"tool calls", change(int64(b.IncludedToolCalls), int64(a.IncludedToolCalls))},
		pair{"tokens", change(int64(b.IncludedTokens), int64(a.IncludedTokens))},
	)
	if f.chosen {
		e.say("the session is within the policy's target of %s tokens: compacted to a third of it, %s tokens, to show what would go (--target sets another)",
			term.Count(f.former), term.Count(f.target))
	}
	switch {
	case r.Grew:
		e.say("nothing changed: the view would have become larger; --allow-growth applies it anyway")
	case !r.Changed() && r.OpenLoop:
		e.say("%s", reports.Meaning(store.RunRow{Outcome: worker.OutcomeOpenToolLoop}))
	case !r.Changed() && f.target > 0 && a.IncludedTokens <= f.target:
		e.say("nothing to do: the view is within the target of %s tokens (--target sets another)", term.Count(f.target))
	case !r.Changed():
		e.say("nothing to compact: what is there must stay")
	case f.target > 0 && a.IncludedTokens > f.target:
		e.say("above the target of %s tokens: what must stay, such as system messages, pins and the end of the conversation, takes more", term.Count(f.target))
	}
	if n := len(r.Reasoning); n > 0 {
		e.say("signed reasoning of %s has left: what precedes it has changed", plural(n, "message"))
	}
	for _, x := range r.Repairs {
		e.say("repaired: %s in %s", x.Reason, plural(x.Messages, "message"))
	}
	writeSteps(e, r.Steps)
	view := f.stored()
	switch {
	case c.View || c.Full || r.Changed() && len(view) <= maxViewed && c.Out == "":
		e.say("")
		writeMessages(e, view, c.Full)
	case r.Changed():
		f.staying(e, view)
	}
	if len(r.Excluded) > 0 {
		e.say("")
		if c.Explain {
			f.eachExcluded(e)
		} else {
			f.excludedByReason(e)
		}
	}
	if !c.Full && c.Out == "" {
		f.summaries(e)
	}
}

// staying lists the messages of the view by kind.
func (f *compactedFile) staying(e *Env, view []store.Stored) {
	kinds := []struct {
		name     string
		messages int
		tokens   chat.Tokens
		seqs     chat.Ranges
	}{{name: "system messages"}, {name: "summaries"}, {name: "messages in a shorter form"}, {name: "messages as they were"}}
	for _, m := range view {
		k := &kinds[3]
		switch {
		case m.Kind == chat.KindSummary:
			k = &kinds[1]
		case m.Kind != chat.KindSource:
			k = &kinds[2]
		case m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper:
			k = &kinds[0]
		}
		k.messages, k.tokens, k.seqs = k.messages+1, k.tokens+m.Tokens, append(k.seqs, chat.Range{Lo: m.Seq, Hi: m.Seq + 1})
	}
	t := e.Out.Table(term.Text("STAYS"), term.Num("MESSAGES"), term.Num("TOKENS"), term.Text("SEQS"))
	for _, k := range kinds {
		if k.messages > 0 {
			t.Row(k.name, k.messages, k.tokens, seqText(chat.Ranges{}.Union(k.seqs)))
		}
	}
	e.say("")
	e.wrote(t.Write())
}

// summaries shows the summaries of the view.
func (f *compactedFile) summaries(e *Env) {
	for _, w := range f.report.Written {
		if w.Kind != chat.KindSummary || !strings.Contains(w.Message.Content.String(), "\n") {
			continue // a line stands in the view
		}
		e.say("\n%s", e.Out.Bold(fmt.Sprintf("summary of messages %s (message %d, %s tokens)", seqText(w.Covers), w.Seq,
			term.Count(w.Tokens))))
		lines := strings.Split(strings.TrimSuffix(w.Message.Content.String(), "\n"), "\n")
		for _, line := range lines[:min(maxLines, len(lines))] {
			if line = term.Clean(line); e.Out.Width > 0 {
				line = term.Truncate(line, max(20, e.Out.Width-4))
			}
			e.say("    %s", line)
		}
		if n := len(lines) - maxLines; n > 0 {
			e.say("    … %s (--full)", term.Plural(n, "more line", "more lines"))
		}
	}
}

// eachExcluded lists every excluded message.
func (f *compactedFile) eachExcluded(e *Env) {
	columns[strategies.Excluded]{
		{"seq", term.ID("OUT"), nil},
		{"role", term.Text("ROLE"), nil},
		{"tokens", term.Num("TOKENS"), nil},
		{"reason", term.Text("REASON"), nil},
		{"by", term.Text("REPLACED BY"), func(x strategies.Excluded) any { return inPlace(x.By) }},
		{"id", term.Text("ID"), nil},
	}.write(e, f.report.Excluded)
}

// excludedByReason lists the excluded messages by reason and replacement.
func (f *compactedFile) excludedByReason(e *Env) {
	type group struct {
		reason   string
		by       chat.Seq
		messages int
		tokens   chat.Tokens
		seqs     chat.Ranges
	}
	single := map[chat.Seq]bool{}
	for _, w := range f.report.Written {
		single[w.Seq] = w.Kind == chat.KindReplacement
	}
	var groups []group
	for _, x := range f.report.Excluded {
		if single[x.By] {
			x.By = eachOne
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.reason == x.Reason && g.by == x.By })
		if i < 0 {
			i, groups = len(groups), append(groups, group{reason: x.Reason, by: x.By})
		}
		g := &groups[i]
		g.messages, g.tokens, g.seqs = g.messages+1, g.tokens+x.Tokens, append(g.seqs, chat.Range{Lo: x.Seq, Hi: x.Seq + 1})
	}
	t := e.Out.Table(term.Text("EXCLUDED BY"), term.Num("MESSAGES"), term.Num("TOKENS"), term.Text("SEQS"), term.Text("REPLACED BY"))
	for _, g := range groups {
		t.Row(g.reason, g.messages, g.tokens, seqText(chat.Ranges{}.Union(g.seqs)), inPlace(g.by))
	}
	e.wrote(t.Write())
}

// eachOne stands for the replacements of single messages.
const eachOne chat.Seq = -1

func inPlace(by chat.Seq) string {
	if by == 0 {
		return ""
	}
	if by == eachOne {
		return "a shorter form each"
	}
	return fmt.Sprintf("message %d", by)
}

// seqText formats a set of seqs, such as "4-5, 8", and of many the first ones.
func seqText(r chat.Ranges) string {
	const most = 8
	more := ""
	if n := len(r) - most; n > 1 {
		more = ", … " + term.Plural(n, "more range", "more ranges")
		r = r[:most]
	}
	parts := make([]string, len(r))
	for i, x := range r {
		parts[i] = strconv.FormatInt(int64(x.Lo), 10)
		if x.Hi > x.Lo+1 {
			parts[i] += "-" + strconv.FormatInt(int64(x.Hi-1), 10)
		}
	}
	return strings.Join(parts, ", ") + more
}
