package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/summary"
)

type summaryCmd struct {
	Show   summaryShowCmd   `cmd:"" help:"Show a summary: its prose and references, the messages it covers, its author and cost."`
	Expand summaryExpandCmd `cmd:"" help:"Show the source messages that a summary covers."`
}

type summaryShowCmd struct {
	ID string `arg:"" help:"Its id, as view --all shows it: summary-120-7."`
}

type summaryJSON struct {
	ID            string                 `json:"id"`
	Tenant        string                 `json:"tenant"`
	Session       string                 `json:"session"`
	Seq           chat.Seq               `json:"seq"`
	Kind          chat.Kind              `json:"kind"`
	InView        bool                   `json:"in_view"`
	SummaryOf     string                 `json:"summary_of"`
	CoveredTokens int64                  `json:"covered_tokens"`
	Tokens        chat.Tokens            `json:"tokens"`
	Prose         string                 `json:"prose"`
	References    string                 `json:"references,omitempty"`
	Run           runJSON                `json:"run"`
	Report        *summary.Provenance    `json:"report,omitempty"`
	Calls         []store.SummaryCallRow `json:"calls,omitempty"`

	seqs string // SummaryOf in readable form
}

func (c *summaryShowCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	out, err := loadSummary(ctx, st, c.ID)
	if err != nil {
		return err
	}
	return e.show(out, func() { out.print(e) })
}

func loadSummary(ctx context.Context, st *store.Store, id string) (summaryJSON, error) {
	row, err := st.Operator.Summary(ctx, id)
	if err != nil {
		return summaryJSON{}, err
	}
	run, err := st.Run(ctx, row.Run)
	if err != nil {
		return summaryJSON{}, err
	}
	calls, err := st.Operator.SummaryCalls(ctx, row.Run)
	if err != nil {
		return summaryJSON{}, err
	}
	covered, err := st.Among(ctx, row.Key, row.SummaryOf)
	if err != nil {
		return summaryJSON{}, err
	}
	out := summaryJSON{
		ID: id, Tenant: row.Key.Tenant, Session: row.Key.Session, Seq: row.Seq, Kind: row.Kind, InView: row.Included,
		SummaryOf: row.SummaryOf.String(), seqs: seqText(row.SummaryOf), Tokens: row.Tokens, Run: newRunJSON(run),
	}
	reason := ""
	for _, m := range covered {
		out.CoveredTokens += int64(m.Tokens)
		if m.SummarizedBy == id {
			reason = m.ExcludeReason
		}
	}
	out.Prose, out.References = extract.Split(row.Content.String())
	if row.Kind == chat.KindSummary {
		if out.Report, err = reportOf(run.Steps, reason); err != nil {
			return out, err
		}
		out.Calls = calls
	}
	return out, nil
}

// reportOf returns the report of the step that wrote a summary. Among several it prefers
// the step whose strategy is the exclusion reason, then one that produced a summary.
func reportOf(steps json.RawMessage, reason string) (*summary.Provenance, error) {
	var all []struct {
		Strategy string              `json:"strategy"`
		Summary  *summary.Provenance `json:"summary"`
	}
	if err := json.Unmarshal(steps, &all); err != nil {
		return nil, fmt.Errorf("the run's steps: %w", err)
	}
	var found *summary.Provenance
	best := -1
	for _, s := range all {
		if s.Summary == nil {
			continue
		}
		fits := 0
		if s.Strategy == reason {
			fits += 2
		}
		if s.Summary.WrittenBy != "" {
			fits++
		}
		if fits > best {
			found, best = s.Summary, fits
		}
	}
	return found, nil
}

func (s *summaryJSON) print(e *Env) {
	where := "no longer in the view"
	if s.InView {
		where = "in the view"
	}
	e.say("%s", e.Out.Bold(s.ID)+e.Out.Dim("  "+term.Clean(s.Session)+"  "+where))
	e.pairs(s.facts()...)
	for _, text := range []string{s.Prose, s.References} {
		if text != "" {
			e.say("\n%s", term.CleanLines(strings.TrimSuffix(text, "\n")))
		}
	}
}

// facts returns the properties of a summary that print shows above its text.
func (s *summaryJSON) facts() []pair {
	pairs := []pair{
		{"covers", fmt.Sprintf("messages %s, %s tokens (`compactor summary expand %s`)", s.seqs, term.Count(s.CoveredTokens), s.ID)},
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
	row, err := st.Operator.Summary(ctx, c.ID)
	if err != nil {
		return err
	}
	covered := row.SummaryOf
	var msgs []store.Stored
	for known := 0; ; { // a covered message may be a summary itself
		if msgs, err = st.Among(ctx, row.Key, covered); err != nil {
			return err
		}
		if len(msgs) == known {
			break
		}
		known = len(msgs)
		for _, m := range msgs {
			covered = covered.Union(m.SummaryOf)
		}
	}
	return e.show(map[string]any{
		"id": c.ID, "session": row.Key.Session, "summary_of": row.SummaryOf.String(), "messages": messagesJSON(msgs),
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
