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
	switch {
	case r.Grew:
		e.say("nothing changed: the view would have become larger; --allow-growth applies it anyway")
	case !r.Changed() && r.OpenLoop:
		e.say("%s", outcomeText(store.RunRow{Outcome: worker.OutcomeOpenToolLoop}))
	case !r.Changed() && f.target > 0 && a.IncludedTokens <= f.target:
		e.say("nothing to do: the view is within the policy's target of %s tokens (change it with --start and --target)", term.Count(f.target))
	case !r.Changed():
		e.say("nothing to compact")
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
	if c.Out == "" {
		e.say("")
		writeMessages(e, f.stored(), c.Full)
	}
	if len(r.Excluded) == 0 {
		return nil
	}
	e.say("")
	if c.Explain {
		return f.eachExcluded(e)
	}
	return f.excludedByReason(e)
}

// eachExcluded lists every excluded message.
func (f *compactedFile) eachExcluded(e *Env) error {
	t := e.Out.Table(term.Num("OUT"), term.Text("ROLE"), term.Num("TOKENS"), term.Text("REASON"), term.Text("REPLACED BY"), term.Text("ID"))
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
	var order []key
	sums := map[key]*sum{}
	for _, x := range f.report.Excluded {
		k := key{x.Reason, x.By}
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

func inPlace(by chat.Seq) string {
	if by == 0 {
		return ""
	}
	return fmt.Sprintf("message %d", by)
}

// seqText formats a set of seqs, such as "4-5, 8".
func seqText(r chat.Ranges) string {
	parts := make([]string, len(r))
	for i, x := range r {
		parts[i] = strconv.FormatInt(int64(x.Lo), 10)
		if x.Hi > x.Lo+1 {
			parts[i] += "-" + strconv.FormatInt(int64(x.Hi-1), 10)
		}
	}
	return strings.Join(parts, ", ")
}
