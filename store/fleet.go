package store

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Fleet is the state of all sessions and runs that wait for something. It is read from the
// sessions that are due, by their index, and from small tables.
type Fleet struct {
	// Tenants are those with sessions that are due, those with most debt first, and the sum of
	// all others last.
	Tenants []TenantDue `json:"tenants"`
	// Outbox counts the sessions that were written to and have no run yet.
	// OldestOutboxSeconds is the time since the oldest became due.
	Outbox              int64   `json:"outbox"`
	OldestOutboxSeconds float64 `json:"oldest_outbox_seconds"`
	// Active are the runs that have not ended, by trigger.
	Active []ActiveRuns `json:"active_runs"`
	// Sweeps are those that have not ended.
	Sweeps []SweepProgress `json:"sweeps"`
}

// TenantDue sums the sessions of a tenant that are due.
type TenantDue struct {
	Tenant string `json:"tenant"`
	// Others reports that this is the sum of all tenants that are not listed.
	Others   bool  `json:"others,omitempty"`
	Sessions int64 `json:"due"`
	// Cooling of these wait for the end of a cooldown, and Repairs of the others have a view
	// that may be invalid.
	Cooling int64 `json:"cooling_down"`
	Repairs int64 `json:"repairs"`
	// Debt is the number of tokens by which their windows are used over their starts.
	Debt chat.Tokens `json:"debt_tokens"`
	// OldestSeconds is the longest time that one without a cooldown has been due: since it became
	// due, or since the end of its cooldown. Where the former is not stored, it is the time of
	// its last message, its import or its policy.
	OldestSeconds float64 `json:"oldest_seconds"`
}

// ActiveRuns counts the runs of a trigger that have not ended.
type ActiveRuns struct {
	Trigger             string  `json:"trigger"`
	Queued              int64   `json:"queued"`
	Running             int64   `json:"running"`
	OldestQueuedSeconds float64 `json:"oldest_queued_seconds"`
}

// SweepProgress is the state of an open sweep: the runs it has queued, and the number of due
// sessions that are left.
type SweepProgress struct {
	ID      int64   `json:"sweep"`
	Entry   string  `json:"entry"`
	Queued  int64   `json:"queued"`
	Left    int64   `json:"left"`
	Seconds float64 `json:"seconds"`
}

// Due returns the sum over all tenants.
func (f Fleet) Due() TenantDue {
	var sum TenantDue
	for _, t := range f.Tenants {
		sum.Sessions += t.Sessions
		sum.Cooling += t.Cooling
		sum.Repairs += t.Repairs
		sum.Debt += t.Debt
		sum.OldestSeconds = max(sum.OldestSeconds, t.OldestSeconds)
	}
	return sum
}

// fleetTimeout bounds each statement of Fleet.
const fleetTimeout = 5 * time.Second

const (
	// queryDue compares as is_due does.
	queryDue = `
		WITH due AS (
			SELECT s.tenant, s.suspect_seq IS NOT NULL AS repair, coalesce(s.cooldown_until > now(), false) AS cooling,
				greatest(0, ceil(coalesce(s.reported_prompt_tokens + s.tokens_since_report, c.overhead + ceil(c.scale * s.live_tokens),
					s.live_tokens + s.live_estimated_tokens * coalesce(f.estimate_margin, s.estimate_margin))
					- coalesce(f.due_tokens, s.due_tokens))) AS debt,
				greatest(coalesce(s.due_since, greatest(s.last_message_at, s.created_at, p.created_at)), s.cooldown_until) AS since
			FROM compactor.sessions s LEFT JOIN compactor.thresholds_of_due($2) f
					ON (f.policy, f.model) = (s.policy, s.model) AND f.revision <> s.thresholds_revision
				LEFT JOIN compactor.policies p ON p.hash = coalesce(f.policy_hash, s.policy_hash) ` + joinCalibration + `
			WHERE s.due AND $2 IN ('', s.tenant)),
		ranked AS (
			SELECT tenant, count(*) AS sessions, count(*) FILTER (WHERE cooling) AS cooling,
				count(*) FILTER (WHERE repair AND NOT cooling) AS repairs, sum(debt) AS debt,
				min(since) FILTER (WHERE NOT cooling) AS since, row_number() OVER (ORDER BY sum(debt) DESC, tenant) <= $1 AS named
			FROM due GROUP BY tenant)
		SELECT coalesce(min(tenant) FILTER (WHERE named), ''), NOT named, sum(sessions)::bigint, sum(cooling)::bigint,
			sum(repairs)::bigint, sum(debt)::bigint, coalesce(extract(epoch FROM greatest(now() - min(since), '0')), 0)::float8
		FROM ranked GROUP BY named, CASE WHEN named THEN tenant END ORDER BY NOT named, sum(debt) DESC, 1`

	queryOutbox = `SELECT count(*), coalesce(greatest(extract(epoch FROM now() - min(first_at)), 0), 0)::float8
		FROM (SELECT sid, first_at FROM compactor.outbox UNION ALL SELECT sid, since FROM compactor.throttled WHERE run = 0) o WHERE ` + ofTenant

	// queryActive has a part for each of the two partial indexes.
	queryActive = `
		SELECT trigger, sum(queued)::bigint, sum(running)::bigint, coalesce(extract(epoch FROM now() - min(since)), 0)::float8
		FROM (
			SELECT trigger, count(*) AS queued, 0 AS running, min(queued_at) AS since
			FROM compactor.runs o WHERE status = 'queued' AND ` + ofTenant + ` GROUP BY 1
			UNION ALL
			SELECT trigger, 0, count(*), NULL FROM compactor.runs o WHERE status = 'running' AND ` + ofTenant + ` GROUP BY 1) r
		GROUP BY 1 ORDER BY 1`

	queryProgress = `
		SELECT id, entry,
			CASE WHEN $1 IN ('', w.tenant) THEN queued
				ELSE (SELECT count(*) FROM compactor.runs o WHERE o.sweep = w.id AND ` + ofTenant + `) END,
			coalesce((SELECT sum(greatest(t.due - t.seen, 0)) FROM compactor.sweep_tenants t
				WHERE t.sweep = w.id AND NOT t.passed AND $1 IN ('', t.tenant)), 0)::bigint,
			extract(epoch FROM now() - started_at)::float8
		FROM compactor.sweeps w WHERE status IN ('open', 'paused') AND ($1 = '' OR w.tenant IN ('', $1)) ORDER BY id`

	// ofTenant reports whether a row o with a sid is of the tenant $1, or any for an empty one.
	ofTenant = `($1 = '' OR (SELECT s.tenant FROM compactor.sessions s WHERE s.sid = o.sid) = $1)`
)

// Fleet returns the state of the sessions of a tenant or, with an empty one, of all. It names
// at most so many tenants.
func (s Operator) Fleet(ctx context.Context, tenant string, tenants int) (f Fleet, err error) {
	var batch pgx.Batch
	batch.Queue(s.q(queryDue), tenants, tenant)
	batch.Queue(s.q(queryOutbox), tenant)
	batch.Queue(s.q(queryActive), tenant)
	batch.Queue(s.q(queryProgress), tenant)
	err = readBatch(ctx, s.Store, "read the fleet", "statement_timeout", fleetTimeout.String(), &batch, func(results pgx.BatchResults) error {
		if f.Tenants, err = nextRows[TenantDue](results); err != nil {
			return err
		}
		if err = results.QueryRow().Scan(&f.Outbox, &f.OldestOutboxSeconds); err != nil {
			return err
		}
		if f.Active, err = nextRows[ActiveRuns](results); err != nil {
			return err
		}
		f.Sweeps, err = nextRows[SweepProgress](results)
		return err
	})
	return f, err
}

// Stats are the state of a tenant, or of all, with what its runs did lately.
type Stats struct {
	Tenant   string    `json:"tenant,omitempty"`
	HeldBack []Held    `json:"held_back"`
	Due      TenantDue `json:"due"`
	Fleet    Fleet     `json:"fleet"`
	LastHour Activity  `json:"last_hour"`
	LastDay  Activity  `json:"last_day"`
}

// Stats returns the state of a tenant or, with an empty one, of all. It names at most so many tenants.
func (s Operator) Stats(ctx context.Context, tenant string, tenants int) (out Stats, err error) {
	out = Stats{Tenant: tenant, HeldBack: []Held{}}
	if out.Fleet, err = s.Fleet(ctx, tenant, tenants); err != nil {
		return out, err
	}
	out.Due = out.Fleet.Due()
	held, err := s.HeldBack(ctx, tenant)
	if err != nil {
		return out, err
	}
	out.HeldBack = append(out.HeldBack, held...)
	if out.LastHour, err = s.Activity(ctx, tenant, time.Hour); err == nil {
		out.LastDay, err = s.Activity(ctx, tenant, 24*time.Hour)
	}
	return out, err
}

// readBatch sends a batch in a transaction with a setting of its own, and calls read with
// the results. op prefixes errors.
func readBatch(ctx context.Context, s *Store, op, setting, value string, batch *pgx.Batch, read func(pgx.BatchResults) error) error {
	var all pgx.Batch
	all.Queue(`SELECT set_config($1, $2, true)`, setting, value)
	all.QueuedQueries = append(all.QueuedQueries, batch.QueuedQueries...)
	results := s.pool.SendBatch(ctx, &all)
	_, err := results.Exec()
	if err == nil {
		err = read(results)
	}
	return wrap(op, cmp.Or(err, results.Close()))
}

// nextRows returns the rows of the next query of a batch.
func nextRows[T any](results pgx.BatchResults) ([]T, error) {
	rows, _ := results.Query() // rows hold the error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
