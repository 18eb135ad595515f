package reports

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Run is a run of the ledger with its decoded steps.
type Run struct {
	store.RunRow
	// Meaning is a sentence about the outcome, or the status of a run that has not ended.
	Meaning string                  `json:"meaning,omitempty"`
	Steps   []strategies.StepCounts `json:"steps,omitempty"`
	// Summaries holds the ids of the messages the run wrote, CallRows the calls of models, and Cache its effect on the
	// provider's prompt cache; LoadRun sets them.
	Summaries []string               `json:"summaries,omitempty"`
	Cache     *tokens.Rewrite        `json:"cache,omitempty"`
	CallRows  []store.SummaryCallRow `json:"calls,omitempty"`
}

// NewRun returns a run of a list.
func NewRun(r store.RunRow) Run {
	r.QueuedAt = r.QueuedAt.UTC()
	return Run{RunRow: r, Meaning: Meaning(r), Steps: strategies.NewStepCounts(Steps(r))}
}

// StepReport returns the summary report of a step, nil if the step has none.
func StepReport(s pipeline.StepResult) *summary.Provenance {
	switch r := s.Summary.(type) {
	case nil:
		return nil
	case *summary.Provenance:
		return r
	}
	var out summary.Provenance // the step was read from the database
	raw, err := json.Marshal(s.Summary)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return &out
}

// Steps decodes the pipeline steps that the worker recorded.
func Steps(r store.RunRow) []pipeline.StepResult {
	var steps []pipeline.StepResult
	if json.Unmarshal(r.Steps, &steps) != nil {
		return nil // written by another version
	}
	return steps
}

// LoadRun returns a run with all that is known of it. ErrNotFound names it.
func LoadRun(ctx context.Context, st *store.Store, id store.RunID) (out Run, err error) {
	r, err := st.Run(ctx, id)
	if err != nil {
		return out, err
	}
	out = NewRun(r)
	if out.Summaries, err = st.Reader.SummariesOf(ctx, id); err != nil {
		return out, err
	}
	if out.Cache, err = runCache(ctx, st, r); err != nil {
		return out, err
	}
	out.CallRows, err = st.Reader.SummaryCalls(ctx, id)
	return out, err
}

// AwaitRun waits until a run has ended or timeout has passed, and returns its last state.
func AwaitRun(ctx context.Context, st *store.Store, run store.RunID, timeout time.Duration) (store.RunRow, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	row, err := st.WaitRun(waiting, run)
	if waiting.Err() != nil {
		return st.Run(ctx, run)
	}
	return row, err
}

// runCache returns the effect of a run on the prompt cache of its session's model, nil
// for a run without a smaller view or if the prices are not known.
func runCache(ctx context.Context, st *store.Store, r store.RunRow) (*tokens.Rewrite, error) {
	if r.Status != store.StatusApplied || r.TokensAfter >= r.TokensBefore {
		return nil, nil
	}
	s, err := st.Session(ctx, store.Key{Tenant: r.Tenant, Session: r.Session})
	if err != nil {
		return nil, err
	}
	unchanged, err := st.Operator.Unchanged(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return NewRewrite(s.Model, chat.Tokens(r.TokensBefore), chat.Tokens(r.TokensAfter), chat.Tokens(r.TokensAfter)-unchanged), nil
}

// NewRewrite returns the effect of a smaller view on the prompt cache, nil if the prices for the model
// are not known or the view is not smaller.
func NewRewrite(model string, before, after, written chat.Tokens) *tokens.Rewrite {
	c, known := tokens.CacheOf(model)
	if !known || after >= before {
		return nil
	}
	r := c.Rewrite(before, after, min(max(0, written), after))
	return &r
}
