package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
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
	// Leads is the scheduler that leads; nil for none.
	Leads *Leader `json:"leads,omitempty"`
}

// SeriesRuns counts the runs that ended in a part with an outcome. Saved are the tokens that compactions took off views.
type SeriesRuns struct {
	At      time.Time   `json:"at"`
	Kind    string      `json:"kind"`
	Status  string      `json:"status"`
	Outcome string      `json:"outcome"`
	Runs    int64       `json:"runs"`
	Saved   chat.Tokens `json:"saved_tokens"`
}

// SeriesModels is what calls of models cost that ended in a part, of one of the tenants with the highest costs, or of the
// others with an empty one.
type SeriesModels struct {
	At         time.Time `json:"at"`
	Tenant     string    `json:"tenant,omitempty"`
	Calls      int64     `json:"calls"`
	CostMicros int64     `json:"cost_micros"`
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
		SELECT at, CASE WHEN place <= 50 THEN tenant ELSE '' END, sum(calls)::bigint, sum(cost)::bigint FROM (
			SELECT date_bin($3, ended_at, $2) AS at, coalesce(s.tenant, o.tenant, '') AS tenant, count(*) AS calls, sum(cost_micros) AS cost,
				row_number() OVER (PARTITION BY date_bin($3, ended_at, $2) ORDER BY sum(cost_micros) DESC) AS place
			FROM compactor.summary_calls o LEFT JOIN compactor.sessions s ON s.sid = o.sid
			WHERE ended_at >= $2 AND $1 IN ('', coalesce(s.tenant, o.tenant)) GROUP BY 1, 2) c
		GROUP BY 1, 2 ORDER BY 1, 4 DESC`
	querySeriesWorkers = `
		SELECT min(started_at), 'process', worker FROM compactor.runs o
		WHERE ended_at >= $2 AND $1 = '' AND worker IS NOT NULL GROUP BY worker`
	queryMarks = `
		SELECT * FROM (
			SELECT changed_at, 'policy', concat_ws('@', name, version::text) FROM compactor.policy_changes
			WHERE changed_at >= $2 AND ($1 = '' OR tenant IS NULL OR tenant IN ('', $1))
			UNION ALL SELECT paused_at, 'pause', concat_ws(' ', nullif(tenant, ''), nullif(model, ''), nullif(policy, '')) FROM compactor.pauses
			WHERE paused_at >= $2 AND ($1 = '' OR tenant IN ('', $1))
			UNION ALL SELECT started_at, 'sweep', id::text FROM compactor.sweeps WHERE started_at >= $2 AND ($1 = '' OR tenant IN ('', $1))
		) m(at, what, name) ORDER BY at DESC LIMIT 40`
	queryLeader = `
		SELECT holder, coalesce(renewed_at, expires_at), queue_away_since, workers_away_since
		FROM compactor.leader WHERE role = 'scheduler' AND expires_at > now()`
)

// SeriesReader reads series again and again. It keeps the parts that are over, in which no more runs end, so that each
// reading costs the runs of the last ones: a day of a large fleet is 150,000. Safe for concurrent use.
type SeriesReader struct {
	mu   sync.Mutex
	over map[seriesOf]Series
}

type seriesOf struct {
	tenant string
	part   time.Duration
}

// maxSeries bounds the series that are kept, maxProcesses the processes that each knows, so that no mark says that they began anew.
const maxSeries, maxProcesses = 100, 1000

// Read returns the series of a tenant or, with an empty one, of all, in so many parts.
func (r *SeriesReader) Read(ctx context.Context, s *Store, tenant string, within time.Duration, parts int) (Series, error) {
	part := (within / time.Duration(max(parts, 1))).Round(time.Second)
	now, err := queryRow(ctx, s, "time", pgx.RowTo[time.Time], `SELECT now()`)
	if err != nil {
		return Series{}, err
	}
	out := Series{To: now.UTC(), Seconds: part.Seconds()}
	out.From = out.To.Add(-within).Truncate(part).Add(part) // whole parts, which are the same at the next reading
	key := seriesOf{tenant, part}
	r.mu.Lock()
	kept := r.over[key]
	r.mu.Unlock()
	from := out.From
	if kept.From.Compare(out.From) <= 0 && kept.To.After(from) {
		from = kept.To
	} else {
		kept = Series{}
	}
	if err := out.read(ctx, s, tenant, from, part); err != nil {
		return out, err
	}
	before := func(at time.Time) bool { return !at.Before(out.From) && at.Before(from) }
	out.Runs = append(where(kept.Runs, func(x SeriesRuns) bool { return before(x.At) }), out.Runs...)
	out.Models = append(where(kept.Models, func(x SeriesModels) bool { return before(x.At) }), out.Models...)
	known := map[string]bool{}
	for _, m := range kept.Marks {
		known[m.Name] = true
	}
	out.Marks = append(where(out.Marks, func(m Mark) bool { return m.What != "process" || !known[m.Name] }), kept.Marks...)
	slices.SortStableFunc(out.Marks, func(a, b Mark) int { return b.At.Compare(a.At) })

	end := out.To.Add(-part / 2).Truncate(part) // of the parts that are over: transactions that end runs are short
	if end.After(from) {
		keep := Series{From: out.From, To: end}
		keep.Runs = where(out.Runs, func(x SeriesRuns) bool { return x.At.Before(end) })
		keep.Models = where(out.Models, func(x SeriesModels) bool { return x.At.Before(end) })
		keep.Marks = where(out.Marks, func(m Mark) bool { return m.What == "process" && m.At.Before(end) })
		keep.Marks = keep.Marks[:min(len(keep.Marks), maxProcesses)] // the newest
		r.mu.Lock()
		if r.over == nil || len(r.over) >= maxSeries {
			r.over = map[seriesOf]Series{}
		}
		r.over[key] = keep
		r.mu.Unlock()
	}
	out.Marks = where(out.Marks, func(m Mark) bool { // a process of the first part may have begun before
		return !m.At.Before(out.From) && (m.What != "process" || !m.At.Before(out.From.Add(part)))
	})
	return out, nil
}

// where returns the elements for which keep is true, in a list of its own.
func where[T any](all []T, keep func(T) bool) []T {
	return slices.DeleteFunc(append([]T{}, all...), func(x T) bool { return !keep(x) })
}

// read reads what happened since a time, and the marks of the whole series.
func (o *Series) read(ctx context.Context, s *Store, tenant string, from time.Time, part time.Duration) error {
	var batch pgx.Batch
	// Without sequential scans the planner takes the small tables for large ones.
	batch.Queue(`SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`)
	batch.Queue(s.q(querySeriesRuns), tenant, from, part)
	batch.Queue(s.q(querySeriesModels), tenant, from, part)
	batch.Queue(s.q(querySeriesWorkers), tenant, from)
	batch.Queue(s.q(queryMarks), tenant, o.From)
	batch.Queue(s.q(queryLeader))
	return readBatch(ctx, s, "read the series", "enable_seqscan", "off", &batch, func(results pgx.BatchResults) error {
		_, err := results.Exec()
		if err == nil {
			o.Runs, err = nextRows[SeriesRuns](results)
		}
		if err == nil {
			o.Models, err = nextRows[SeriesModels](results)
		}
		var workers []Mark
		if err == nil {
			workers, err = nextRows[Mark](results)
		}
		if err == nil {
			o.Marks, err = nextRows[Mark](results)
			o.Marks = append(o.Marks, workers...)
		}
		if err != nil {
			return err
		}
		leaders, err := nextRows[Leader](results)
		if len(leaders) > 0 {
			o.Leads = &leaders[0]
		}
		return err
	})
}

// Tenants returns the tenants of a series with what their models cost in the whole time, those with the highest costs first.
func (o *Series) Tenants() (out []SeriesModels) {
	at := map[string]int{}
	for _, m := range o.Models {
		i, ok := at[m.Tenant]
		if !ok {
			i = len(out)
			at[m.Tenant] = i
			out = append(out, SeriesModels{Tenant: m.Tenant})
		}
		out[i].Calls, out[i].CostMicros = out[i].Calls+m.Calls, out[i].CostMicros+m.CostMicros
	}
	slices.SortStableFunc(out, func(a, b SeriesModels) int { return cmp.Compare(b.CostMicros, a.CostMicros) })
	return out
}
