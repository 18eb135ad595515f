package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The triggers of a run.
const (
	TriggerNightly     = "nightly"
	TriggerEvent       = "event"
	TriggerOperator    = "operator"
	TriggerApplication = "application"
	TriggerBulk        = "bulk" // a bulk recompaction: see StartBulkCompact
)

// Options override the policy for one run; the zero value overrides nothing. They are
// stored with the run as JSON.
type Options struct {
	// From selects the messages that an operator's run reads: "log" (all source messages, as
	// if no run were in force; the operators' default) or "view".
	From string `json:"from,omitempty"`
	// Pipeline replaces the policy's.
	Pipeline []Step `json:"pipeline,omitempty"`
	// Focus names the subjects that a summary should keep.
	Focus string `json:"focus,omitempty"`
	// DryRun plans and records without applying.
	DryRun bool `json:"dry_run,omitempty"`
	// AllowGrowth applies a result even if it saves less than the policy's minimum.
	AllowGrowth bool `json:"allow_growth,omitempty"`
	// Force executes an operator's run although its session is paused.
	Force bool `json:"force,omitempty"`
	// Summary is an operator's own summary, which takes the place of a model's; nil for none.
	Summary *WrittenSummary `json:"summary,omitempty"`
}

// WrittenSummary is a summary that a person wrote. Its secrets must be masked.
type WrittenSummary struct {
	Text   string `json:"text"`
	Author string `json:"author,omitempty"`
	Note   string `json:"note,omitempty"`
}

// Step is one strategy of a pipeline with its parameters.
type Step struct {
	Strategy string         `json:"strategy"`
	Params   map[string]any `json:"params,omitempty"`
}

// Request queues a run for a session. If a run of the same trigger is queued already,
// Request returns it where its options are the same, and ErrInUse otherwise. ErrInvalid:
// an option is out of range, or no worker has registered a strategy or parameter.
func (s *Store) Request(ctx context.Context, k Key, trigger, by string, o Options) (RunID, error) {
	op := fmt.Sprintf("request a compaction of session %s", k)
	raw, err := json.Marshal(o)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %w", op, ErrInvalid, err)
	}
	const query = `SELECT compactor.request_compaction($1, $2, $3, $4, $5)`
	var run RunID
	var batch pgx.Batch
	traced(ctx, &batch)
	batch.Queue(s.q(query), k.tenant(), k.Session, string(raw), by, trigger).QueryRow(func(row pgx.Row) error { return row.Scan(&run) })
	return run, wrap(op, s.pool.SendBatch(ctx, &batch).Close())
}
