package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Activity sums up the ledger from a time until now.
type Activity struct {
	Seconds float64 `json:"seconds"`
	// Outcomes are those of the runs that ended, by trigger.
	Outcomes []OutcomeActivity `json:"outcomes"`
	// Models are those of the calls for summaries that ended.
	Models []ModelActivity `json:"models"`
}

// OutcomeActivity describes the runs of a trigger that ended with an outcome.
type OutcomeActivity struct {
	Trigger string `json:"trigger"`
	Status  string `json:"status"`
	Outcome string `json:"outcome"`
	Runs    int64  `json:"runs"`
	// ModelFailed counts those whose summary no model wrote, as it failed: the run has a
	// replacement, such as an extract, or the outcome no_summary.
	ModelFailed int64 `json:"model_failed"`
	// TokensBefore and TokensAfter count the views of those that were applied.
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
	// P50Seconds and P95Seconds are percentiles of the duration of the last attempt.
	P50Seconds float64 `json:"p50_seconds"`
	P95Seconds float64 `json:"p95_seconds"`
}

// ModelActivity sums the calls of a model.
type ModelActivity struct {
	Model    string `json:"model"` // empty if none could be called
	Calls    int64  `json:"calls"`
	Failed   int64  `json:"failed"`
	Rejected int64  `json:"rejected"`
	// Estimated counts the calls whose tokens, and with them the cost, are estimated: the
	// server reported none.
	Estimated int64 `json:"estimated"`
	// InputTokens includes tokens from the server's cache.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CostMicros   int64 `json:"cost_micros"` // millionths of the unit that prices are in
}

const (
	queryOutcomes = `
		SELECT trigger, status, outcome, count(*),
			count(*) FILTER (WHERE status = 'applied' AND error_code IS NOT NULL OR outcome = 'no_summary'),
			coalesce(sum(tokens_before) FILTER (WHERE status = 'applied'), 0)::bigint,
			coalesce(sum(tokens_after) FILTER (WHERE status = 'applied'), 0)::bigint,
			coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY total_us), 0) / 1e6::float8,
			coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY total_us), 0) / 1e6::float8
		FROM compactor.runs o WHERE ended_at >= now() - $2::interval AND origin IS NULL AND ` + ofTenant + `
		GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 3`
	queryModels = `
		SELECT coalesce(model, ''), count(*), count(*) FILTER (WHERE state IN ('failed', 'lost')),
			count(*) FILTER (WHERE state = 'rejected'), count(*) FILTER (WHERE estimated > 0),
			sum(input_tokens)::bigint, sum(output_tokens)::bigint, sum(cost_micros)::bigint
		FROM compactor.summary_calls o WHERE ended_at >= now() - $2::interval AND ($1 = '' OR o.tenant = $1 OR ` + ofTenant + `) GROUP BY 1 ORDER BY 8 DESC, 1`
)

// Activity returns the activity of a tenant or, with an empty one, of all within a time.
func (s Operator) Activity(ctx context.Context, tenant string, within time.Duration) (a Activity, err error) {
	var batch pgx.Batch
	batch.Queue(s.q(queryOutcomes), tenant, within)
	batch.Queue(s.q(queryModels), tenant, within)
	a.Seconds = within.Seconds()
	// The planner overestimates the pages to read by a BRIN index: for a tenth of two million
	// runs it scans the whole table, in 1,000 ms instead of 97.
	err = readBatch(ctx, s.Store, "read the ledger", "enable_seqscan", "off", &batch, func(results pgx.BatchResults) error {
		if a.Outcomes, err = nextRows[OutcomeActivity](results); err == nil {
			a.Models, err = nextRows[ModelActivity](results)
		}
		return err
	})
	return a, err
}
