package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/worker"
)

const (
	maxDetailed = 3  // sessions of a file that are shown one by one
	maxFileRows = 40 // lines of the table of more
	maxViewed   = 20 // messages of a view that is shown as a whole
	maxLines    = 40 // lines of a summary
)

// printAll shows what became of the sessions: one by one, or of many a line each.
func (c *compactFileCmd) printAll(e *Env, out *fileOutput) error {
	if len(out.sessions) <= maxDetailed {
		for i, f := range out.detailed {
			if i > 0 {
				e.say("")
			}
			if err := c.print(e, f); err != nil {
				return err
			}
		}
		return nil
	}
	t := e.Out.Table(term.Text("SESSION"), term.Text("MESSAGES"), term.Text("TOKENS"), term.Num("SAVED"), term.Num("TARGET"))
	var sum struct{ messages, left, tokens, after, chosen int64 }
	for i, s := range out.sessions {
		b, a := s.Before, s.After
		sum.messages, sum.left = sum.messages+int64(b.Messages), sum.left+int64(a.Messages)
		sum.tokens, sum.after = sum.tokens+b.Tokens, sum.after+a.Tokens
		if s.TargetChosen {
			sum.chosen++
		}
		if i < maxFileRows {
			t.Row(term.Clean(s.Session), change(int64(b.Messages), int64(a.Messages)), change(b.Tokens, a.Tokens), term.Percent(b.Tokens-a.Tokens, b.Tokens), orNone(s.Target))
		}
	}
	if err := t.Write(); err != nil {
		return err
	}
	if n := len(out.sessions) - maxFileRows; n > 0 {
		e.say("… and %s more", term.Count(n))
	}
	e.say("")
	e.say("%s: messages %s, tokens %s (%s saved)", term.Plural(len(out.sessions), "session", "sessions"), change(sum.messages, sum.left),
		change(sum.tokens, sum.after), term.Percent(sum.tokens-sum.after, sum.tokens))
	if sum.chosen > 0 {
		e.say("%s below the policy's target and compacted to a third, to show what would go: --target sets another", term.Plural(sum.chosen, "session was", "sessions were"))
	}
	e.say("--explain shows each with what stays and why, --view with its messages; --json and --out FILE have the views")
	return nil
}

// orNone returns a number of tokens, "" for 0.
func orNone(t chat.Tokens) string {
	if t == 0 {
		return ""
	}
	return term.Count(t)
}

func (c *compactFileCmd) print(e *Env, f *compactedFile) error {
	r := &f.report
	e.say("%s%s", e.Out.Bold(term.Clean(f.name)), e.Out.Dim("  "+orDash(term.Clean(f.session.Model))))
	for _, line := range f.explain {
		e.say("%s", line)
	}
	b, a := r.Before, r.After
	if err := e.Out.Pairs(
		[2]any{"groups", change(int64(b.IncludedGroups), int64(a.IncludedGroups))},
		[2]any{"messages", change(int64(b.IncludedMessages), int64(a.IncludedMessages))},
		[2]any{"tool calls", change(int64(b.IncludedToolCalls), int64(a.IncludedToolCalls))},
		[2]any{"tokens", change(int64(b.IncludedTokens), int64(a.IncludedTokens))},
	); err != nil {
		return err
	}
	if f.chosen {
		e.say("the session is within the policy's target of %s tokens: compacted to a third of it, %s tokens, to show what would go (--target sets another)",
			term.Count(f.former), term.Count(f.target))
	}
	switch {
	case r.Grew:
		e.say("nothing changed: the view would have become larger; --allow-growth applies it anyway")
	case !r.Changed() && r.OpenLoop:
		e.say("%s", outcomeText(store.RunRow{Outcome: worker.OutcomeOpenToolLoop}))
	case !r.Changed() && f.target > 0 && a.IncludedTokens <= f.target:
		e.say("nothing to do: the view is within the target of %s tokens (--target sets another)", term.Count(f.target))
	case !r.Changed():
		e.say("nothing to compact: what is there must stay")
	case f.target > 0 && a.IncludedTokens > f.target:
		e.say("above the target of %s tokens: what must stay, such as system messages, pins and the end of the conversation, takes more", term.Count(f.target))
	}
	if n := len(r.Reasoning); n > 0 {
		e.say("signed reasoning of %s has left: what precedes it has changed", term.Plural(n, "message", "messages"))
	}
	for _, x := range r.Repairs {
		e.say("repaired: %s in %s", x.Reason, term.Plural(x.Messages, "message", "messages"))
	}
	if err := writeSteps(e, r.Steps); err != nil {
		return err
	}
	view := f.stored()
	switch {
	case c.View || c.Full || r.Changed() && len(view) <= maxViewed && c.Out == "":
		e.say("")
		writeMessages(e, view, c.Full)
	case r.Changed():
		if err := f.staying(e, view); err != nil {
			return err
		}
	}
	if len(r.Excluded) > 0 {
		e.say("")
		show := f.excludedByReason
		if c.Explain {
			show = f.eachExcluded
		}
		if err := show(e); err != nil {
			return err
		}
	}
	if !c.Full && c.Out == "" {
		f.summaries(e)
	}
	return nil
}

// staying lists what of the view is of which kind.
func (f *compactedFile) staying(e *Env, view []store.Stored) error {
	kinds := []string{"system messages", "summaries", "messages in a shorter form", "messages as they were"}
	t := e.Out.Table(term.Text("STAYS"), term.Num("MESSAGES"), term.Num("TOKENS"), term.Text("SEQS"))
	for i, name := range kinds {
		n, tokens, seqs := 0, chat.Tokens(0), chat.Ranges{}
		for _, m := range view {
			of := 3
			switch {
			case m.Kind == chat.KindSummary:
				of = 1
			case m.Kind != chat.KindSource:
				of = 2
			case m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper:
				of = 0
			}
			if of == i {
				n, tokens, seqs = n+1, tokens+m.Tokens, append(seqs, chat.Range{Lo: m.Seq, Hi: m.Seq + 1})
			}
		}
		if n > 0 {
			t.Row(name, n, int64(tokens), seqText(chat.Ranges{}.Union(seqs)))
		}
	}
	e.say("")
	return t.Write()
}

// summaries shows the summaries of the view.
func (f *compactedFile) summaries(e *Env) {
	for _, w := range f.report.Written {
		if w.Kind != chat.KindSummary || !strings.Contains(w.Message.Content.String(), "\n") {
			continue // a line stands in the view
		}
		e.say("\n%s", e.Out.Bold(fmt.Sprintf("summary of messages %s (message %d, %s tokens)", seqText(w.Covers), w.Seq, term.Count(w.Tokens))))
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
func (f *compactedFile) eachExcluded(e *Env) error {
	t := e.Out.Table(term.ID("OUT"), term.Text("ROLE"), term.Num("TOKENS"), term.Text("REASON"), term.Text("REPLACED BY"), term.Text("ID"))
	for _, x := range f.report.Excluded {
		t.Row(int64(x.Seq), term.Clean(string(x.Role)), int64(x.Tokens), x.Reason, inPlace(x.By), term.Clean(x.ID))
	}
	return t.Write()
}

// excludedByReason lists the excluded messages by reason and replacement.
func (f *compactedFile) excludedByReason(e *Env) error {
	type key struct {
		reason string
		by     chat.Seq
	}
	type sum struct {
		messages int
		tokens   chat.Tokens
		seqs     chat.Ranges
	}
	single := map[chat.Seq]bool{}
	for _, w := range f.report.Written {
		single[w.Seq] = w.Kind == chat.KindReplacement
	}
	var order []key
	sums := map[key]*sum{}
	for _, x := range f.report.Excluded {
		k := key{x.Reason, x.By}
		if single[x.By] {
			k.by = eachOne
		}
		if sums[k] == nil {
			sums[k] = &sum{}
			order = append(order, k)
		}
		s := sums[k]
		s.messages++
		s.tokens += x.Tokens
		s.seqs = append(s.seqs, chat.Range{Lo: x.Seq, Hi: x.Seq + 1})
	}
	t := e.Out.Table(term.Text("OUT FOR"), term.Num("MESSAGES"), term.Num("TOKENS"), term.Text("SEQS"), term.Text("REPLACED BY"))
	for _, k := range order {
		s := sums[k]
		t.Row(k.reason, s.messages, int64(s.tokens), seqText(chat.Ranges{}.Union(s.seqs)), inPlace(k.by))
	}
	return t.Write()
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
