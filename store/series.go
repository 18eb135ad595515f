package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Series is what happened in a time up to now, in parts of equal length.
type Series struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Seconds is the length of a part.
	Seconds float64        `json:"seconds"`
	Runs    []SeriesRuns   `json:"runs"`
	Models  []SeriesModels `json:"models"`
	Marks   []Mark         `json:"marks"`
	// Tenants are those whose models cost most, Saved and Cost of the whole time.
	Tenants []TenantUse `json:"tenants"`
	// Leads is the scheduler that leads; nil for none.
	Leads *Leader `json:"leads,omitempty"`
}

// SeriesRuns counts the runs that ended in a part with an outcome. Tokens are those that the applied ones saved.
type SeriesRuns struct {
	At      time.Time   `json:"at"`
	Kind    string      `json:"kind"`
	Status  string      `json:"status"`
	Outcome string      `json:"outcome"`
	Runs    int64       `json:"runs"`
	Saved   chat.Tokens `json:"saved_tokens"`
}

// SeriesModels is what calls of models cost that ended in a part.
type SeriesModels struct {
	At         time.Time `json:"at"`
	Calls      int64     `json:"calls"`
	CostMicros int64     `json:"cost_micros"`
}

// TenantUse is what runs of a tenant saved and cost.
type TenantUse struct {
	Tenant     string      `json:"tenant"`
	Runs       int64       `json:"runs"`
	Saved      chat.Tokens `json:"saved_tokens"`
	Calls      int64       `json:"calls"`
	CostMicros int64       `json:"cost_micros"`
}

// Mark is a change that may explain a series: policy, pause, sweep or process (the first run of a worker).
type Mark struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Name string    `json:"name"`
}

// Leader is the process that leads the schedulers.
type Leader struct {
	Name      string    `json:"name"`
	RenewedAt time.Time `json:"renewed_at"`
	// QueueAway and WorkersAway are since when it cannot reach Redis, and finds no worker.
	QueueAway   *time.Time `json:"queue_away_since,omitempty"`
	WorkersAway *time.Time `json:"workers_away_since,omitempty"`
}

const (
	querySeriesRuns = `
		SELECT date_bin($3, ended_at, $2), kind, status, outcome, count(*),
			coalesce(sum(tokens_before - tokens_after) FILTER (WHERE status = 'applied' AND kind = 'compact'), 0)::bigint
		FROM compactor.runs o WHERE ended_at >= $2 AND origin IS NULL AND ` + ofTenant + ` GROUP BY 1, 2, 3, 4 ORDER BY 1, 5 DESC`
	querySeriesModels = `
		SELECT date_bin($3, ended_at, $2), count(*), sum(cost_micros)::bigint
		FROM compactor.summary_calls o WHERE ended_at >= $2 AND ($1 = '' OR o.tenant = $1 OR ` + ofTenant + `) GROUP BY 1 ORDER BY 1`
	queryMarks = `
		SELECT * FROM (
			SELECT changed_at, 'policy', concat_ws('@', name, version::text) FROM compactor.policy_changes
			WHERE changed_at >= $2 AND ($1 = '' OR tenant IS NULL OR tenant IN ('', $1))
			UNION ALL SELECT paused_at, 'pause', concat_ws(' ', nullif(tenant, ''), nullif(model, ''), nullif(policy, '')) FROM compactor.pauses
			WHERE paused_at >= $2 AND ($1 = '' OR tenant IN ('', $1))
			UNION ALL SELECT started_at, 'sweep', id::text FROM compactor.sweeps WHERE started_at >= $2 AND ($1 = '' OR tenant IN ('', $1))
			UNION ALL SELECT min(started_at), 'process', worker FROM compactor.runs o
			WHERE ended_at >= $2 AND $1 = '' AND worker IS NOT NULL GROUP BY worker) m(at, what, name)
		WHERE at >= $2 ORDER BY at DESC LIMIT 40`
	queryTenantUse = `
		SELECT tenant, sum(runs)::bigint, sum(saved)::bigint, sum(calls)::bigint, sum(cost)::bigint FROM (
			SELECT s.tenant, count(*) AS runs, coalesce(sum(tokens_before - tokens_after) FILTER (WHERE status = 'applied' AND kind = 'compact'), 0) AS saved,
				0 AS calls, 0 AS cost
			FROM compactor.runs o JOIN compactor.sessions s ON s.sid = o.sid
			WHERE ended_at >= $2 AND origin IS NULL AND $1 IN ('', s.tenant) GROUP BY 1
			UNION ALL SELECT coalesce(s.tenant, o.tenant), 0, 0, count(*), sum(cost_micros)
			FROM compactor.summary_calls o LEFT JOIN compactor.sessions s ON s.sid = o.sid
			WHERE ended_at >= $2 AND $1 IN ('', coalesce(s.tenant, o.tenant)) GROUP BY 1) u
		GROUP BY 1 ORDER BY 5 DESC, 3 DESC, 1 LIMIT 10`
	queryLeader = `
		SELECT holder, coalesce(renewed_at, expires_at), queue_away_since, workers_away_since
		FROM compactor.leader WHERE role = 'scheduler' AND expires_at > now()`
)

// Series returns the series of a tenant or, with an empty one, of all, in so many parts.
func (s Reader) Series(ctx context.Context, tenant string, within time.Duration, parts int) (out Series, err error) {
	part := (within / time.Duration(max(parts, 1))).Round(time.Second)
	out.Seconds = part.Seconds()
	if out.To, err = queryRow(ctx, s.Store, "time", pgx.RowTo[time.Time], `SELECT now()`); err != nil {
		return out, err
	}
	out.To = out.To.UTC()
	out.From = out.To.Add(-within).Truncate(part).Add(part) // whole parts, which do not move from one reading to the next
	var batch pgx.Batch
	// Without sequential scans the planner takes the small tables for large ones.
	batch.Queue(`SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`)
	batch.Queue(s.q(querySeriesRuns), tenant, out.From, part)
	batch.Queue(s.q(querySeriesModels), tenant, out.From, part)
	batch.Queue(s.q(queryMarks), tenant, out.From)
	batch.Queue(s.q(queryTenantUse), tenant, out.From)
	batch.Queue(s.q(queryLeader))
	err = readBatch(ctx, s.Store, "read the series", "enable_seqscan", "off", &batch, func(results pgx.BatchResults) error {
		if _, err = results.Exec(); err != nil {
			return err
		}
		if out.Runs, err = nextRows[SeriesRuns](results); err != nil {
			return err
		}
		if out.Models, err = nextRows[SeriesModels](results); err != nil {
			return err
		}
		if out.Marks, err = nextRows[Mark](results); err != nil {
			return err
		}
		if out.Tenants, err = nextRows[TenantUse](results); err != nil {
			return err
		}
		leaders, err := nextRows[Leader](results)
		if len(leaders) > 0 {
			out.Leads = &leaders[0]
		}
		return err
	})
	return out, err
}
