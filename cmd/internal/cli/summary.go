package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/summary"
)

type summaryCmd struct {
	Show   summaryShowCmd   `cmd:"" help:"Show a summary: its prose and references, the messages it covers, its author and cost."`
	Expand summaryExpandCmd `cmd:"" help:"Show the source messages that a summary covers."`
}

type summaryShowCmd struct {
	ID string `arg:"" help:"Its id, as view --all shows it: summary-120-7."`
}

func (c *summaryShowCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	out, err := reports.LoadSummary(ctx, st, store.Key{}, c.ID)
	if err != nil {
		return err
	}
	return e.show(out, func() { printSummary(e, &out) })
}

func printSummary(e *Env, s *reports.Summary) {
	where := "no longer in the view"
	if s.InView {
		where = "in the view"
	}
	e.say("%s", e.Out.Bold(s.ID)+e.Out.Dim("  "+term.Clean(s.Session)+"  "+where))
	e.pairs(summaryFacts(s)...)
	for _, text := range []string{s.Prose, s.References} {
		if text != "" {
			e.say("\n%s", term.CleanLines(strings.TrimSuffix(text, "\n")))
		}
	}
}

// summaryFacts returns the properties of a summary that printSummary shows above its text.
func summaryFacts(s *reports.Summary) []pair {
	pairs := []pair{
		{"covers", fmt.Sprintf("messages %s, %s tokens (`compactor summary expand %s`)", seqText(s.Covers), term.Count(s.CoveredTokens), s.ID)},
		{"run", fmt.Sprintf("%d, %s, %s", s.Run.ID, runTrigger(s.Run.RunRow), s.Run.Outcome)},
	}
	size := term.Count(int64(s.Tokens)) + " tokens"
	r := s.Report
	if r == nil {
		return append(pairs, pair{"size", size})
	}
	pairs = append(pairs,
		pair{"written by", authorOf(r)},
		pair{"size", size + when(r.References > 0, fmt.Sprintf(", about %s of them references", term.Count(int64(r.References))))},
		pair{"note", r.Note},
		pair{"checked", when(r.Links > 0 || r.Dropped > 0 || r.Unquoted > 0, fmt.Sprintf(
			"%s to messages, %d without a message of the user left out, %d without quotation marks",
			term.Plural(r.Links, "line with links", "lines with links"), r.Dropped, r.Unquoted))},
		pair{"read in", when(r.Parts > 1, plural(r.Parts, "part"))},
	)
	for _, t := range r.Trimmed {
		pairs = append(pairs, pair{"not shown", t.Step + ": " + t.String()})
	}
	pairs = append(pairs, pair{"redacted", r.Redacted.String()}, pair{"redacted in the answer", r.RedactedAnswer.String()})
	for _, c := range r.Calls {
		pairs = append(pairs, pair{"call", callText(c)})
	}
	return pairs
}

type summaryExpandCmd struct {
	ID   string `arg:"" help:"Its id, as view --all shows it: summary-120-7."`
	Full bool   `help:"Show full texts."`
}

func (c *summaryExpandCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	row, covered, err := st.Reader.Sources(ctx, store.Key{}, c.ID)
	if err != nil {
		return err
	}
	msgs, err := st.Among(ctx, row.Key, covered)
	if err != nil {
		return err
	}
	return e.show(map[string]any{
		"id": c.ID, "session": row.Key.Session, "summary_of": row.SummaryOf.String(), "messages": store.MessageRows(msgs),
	}, func() { writeMessages(e, msgs, c.Full) })
}

// authorOf describes in words how a summary was written, "" without one.
func authorOf(r *summary.Provenance) string {
	var by string
	switch r.WrittenBy {
	case "":
		return ""
	case summary.ByModel:
		by = "model " + r.Model
	case summary.ByExtract:
		by = "no model: an extract"
	case summary.ByMarker:
		by = "no model: a marker"
	case summary.ByOperator:
		by = strings.TrimSpace("operator " + r.Operator)
	default:
		by = r.WrittenBy
	}
	if r.Failure != "" {
		by += " (the model failed: " + r.Failure + ")"
	}
	return by
}

// callText returns a call of a model on one line.
func callText(c summary.Call) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case c.Reused:
		add("stored answer")
	case c.Input > 0 || c.Output > 0 || c.Failed == "":
		cached := ""
		if c.Cached > 0 {
			cached = fmt.Sprintf(" (%d cached)", c.Cached)
		}
		add("%d tokens in%s, %d out, cost %.4f", c.Input, cached, c.Output, float64(c.CostMicros)/1e6)
	}
	if c.Estimated > 0 {
		add("estimated: the server reports no usage")
	}
	if c.Attempts > 1 {
		add("%d attempts", c.Attempts)
	}
	if c.Repair {
		add("repair of the previous answer")
	}
	if c.Rejected != "" {
		add("rejected: %s", c.Rejected)
	}
	if c.Failed != "" {
		add("failed: %s", c.Failed)
	}
	add("prompt %s", c.PromptHash)
	return strings.Join(parts, ", ")
}
