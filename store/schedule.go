package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Delivery is a run to enqueue. Attempt numbers its deliveries, from 1.
type Delivery struct {
	Run     RunID
	Attempt int
	Trigger string
}

// relayPages is the number of pages that Relay reads at most to fill one, where rows of the
// outbox need no run.
const relayPages = 16

// Relay turns outbox rows into queued event runs: rows without a write for debounce, or
// older than maxDelay, whose session has no active run. Tenants take turns. Where a run of a
// sweep waits for its first attempt, that one is delivered instead. Rows of sessions that are no
// longer due are deleted; rows written concurrently stay, and those of paused sessions are
// postponed. Rows above the tenant's limit of runs wait for ReleaseThrottled; those above the
// limit for all tenants stay.
func (s Scheduler) Relay(ctx context.Context, debounce, maxDelay time.Duration, limit int, grace time.Duration) ([]Delivery, error) {
	query := `
		WITH RECURSIVE startable AS MATERIALIZED ` + startable + `,
		` + turns(`tenant`, `compactor.outbox r WHERE true`, `$5`) + `,
		ready AS MATERIALIZED (
			SELECT o.*, t.n, t.tenant AS turn FROM turn t CROSS JOIN LATERAL (
				SELECT o.sid, o.gen, o.first_at, o.traceparent, s.tenant, s.due, s.due AND ` + isPaused + ` AS paused,
					(SELECT r.id FROM compactor.runs r WHERE r.sid = o.sid AND r.status = 'queued' AND r.trigger = 'nightly'
						AND r.attempts = 0 AND r.snoozes = 0) AS nightly
				FROM compactor.outbox o JOIN compactor.sessions s ON s.sid = o.sid
				WHERE o.tenant = t.tenant AND (o.last_at <= now() - $1::interval OR o.first_at <= now() - $2::interval)
					AND (NOT s.due OR s.cooldown_until IS NULL OR s.cooldown_until <= now())
					-- OFFSET 0: an index lookup for each row that is read, whatever the planner's estimate of the runs
					AND NOT EXISTS (SELECT FROM compactor.runs r WHERE r.sid = o.sid AND r.status IN ('queued', 'running')
						AND (r.status = 'running' OR r.trigger NOT IN ('nightly', 'bulk')) OFFSET 0)
				ORDER BY o.first_at LIMIT ` + turnShare(`$3::int`) + ` FOR UPDATE OF o SKIP LOCKED) o
			WHERE t.n > 0 LIMIT least($3, (SELECT most FROM startable WHERE tenant = ''))),
		started AS MATERIALIZED (SELECT f.*, f.place > a.most AS over
			FROM (SELECT sid, tenant, first_at, traceparent, n, row_number() OVER (PARTITION BY tenant ORDER BY first_at, sid) AS place
				FROM ready WHERE due AND NOT paused AND nightly IS NULL) f
			LEFT JOIN startable a USING (tenant)),
		counted AS (SELECT ` + countStarted + ` FROM started WHERE over IS NOT true),
		throttled AS (INSERT INTO compactor.throttled (sid, tenant, since, traceparent)
			SELECT sid, tenant, first_at, traceparent FROM started WHERE over ON CONFLICT DO NOTHING),
		queued AS (INSERT INTO compactor.runs (sid, trigger, delivery, deliver_at, written_at, traceparent)
			SELECT sid, 'event', 1, now() + $4::interval, first_at, traceparent FROM started WHERE over IS NOT true
			ON CONFLICT DO NOTHING RETURNING id, delivery, sid),
		hastened AS (UPDATE compactor.runs SET delivery = delivery + 1, deliver_at = now() + $4::interval,
				(written_at, traceparent) = (SELECT first_at, traceparent FROM ready WHERE nightly = runs.id)
			WHERE id IN (SELECT r.id FROM ready
				CROSS JOIN LATERAL (SELECT id, status FROM compactor.runs WHERE id = nightly OFFSET 0 FOR UPDATE SKIP LOCKED) r
				WHERE due AND NOT paused AND r.status = 'queued')
			RETURNING id, delivery, sid),
		held AS (UPDATE compactor.outbox o SET first_at = now() + ` + hold + `, last_at = now() + ` + hold + `
			FROM ready r WHERE o.sid = r.sid AND r.paused),
		-- A run that is locked is ending: the row stays for the next one.
		gone AS (DELETE FROM compactor.outbox o USING ready r WHERE o.sid = r.sid AND o.gen = r.gen AND NOT r.paused
			AND (NOT r.due OR r.sid IN (SELECT sid FROM started UNION ALL SELECT sid FROM hastened)))
		SELECT coalesce(d.id, 0), coalesce(d.delivery, 0), 'event', r.turn FROM ready r
		LEFT JOIN (SELECT queued.* FROM queued CROSS JOIN counted UNION ALL SELECT * FROM hastened) d USING (sid)
		ORDER BY r.n, r.first_at`
	var page []Delivery
	var err error
	for range relayPages {
		var some []Delivery
		var taken int
		some, taken, err = s.takeTurn(ctx, &s.turns.relay, "relay", query, debounce, maxDelay, limit-len(page), grace)
		page = append(page, some...)
		if err != nil || taken == len(some) || len(page) == limit {
			break
		}
	}
	if err != nil || len(page) == 0 {
		return page, err
	}
	// The insert of a run waits for that of a sweep's run of the same session, which may have
	// ended by then. Its session is not due any more, and the new run is not delivered yet.
	const ended = `DELETE FROM compactor.runs r USING compactor.sessions s
		WHERE r.id = ANY($1) AND r.trigger = 'event' AND r.status = 'queued' AND r.attempts = 0 AND s.sid = r.sid AND NOT s.due RETURNING r.id`
	ids := make([]RunID, len(page))
	for i, d := range page {
		ids[i] = d.Run
	}
	gone, err := queryRows(ctx, s.Store, "relay", pgx.RowTo[RunID], ended, ids)
	return slices.DeleteFunc(page, func(d Delivery) bool { return slices.Contains(gone, d.Run) }), err
}

// Undelivered calls Deliver with the same limit for requests of applications.
func (s Scheduler) Undelivered(ctx context.Context, limit int, grace time.Duration) ([]Delivery, error) {
	return s.Deliver(ctx, limit, limit, grace)
}

// Deliver returns queued runs whose delivery is due: requested in SQL, snoozed, or enqueued
// and lost; up to limit of each trigger, the longest due first, and up to requests of those of
// applications, whose tenants take turns. A delivery counts as lost after grace, and then after
// the time that the run has been waiting, up to 32 times grace; that of an operator's run after
// a few seconds, up to grace. Requests for paused sessions are postponed, and the first
// deliveries of applications' requests are subject to the limits of runs, as in Relay.
func (s Scheduler) Deliver(ctx context.Context, requests, limit int, grace time.Duration) ([]Delivery, error) {
	query := `
		WITH RECURSIVE startable AS MATERIALIZED ` + startable + `,
		` + turns(`turn_of`, `compactor.runs r WHERE r.status = 'queued' AND r.trigger = 'application'`, `$4`) + `,
		-- While no run of any tenant may start, a few requests are read, for those that are delivered again.
		bound AS MATERIALIZED (
			SELECT CASE WHEN (SELECT most FROM startable WHERE tenant = '') < 1 THEN least($3, 16) ELSE $3 END::int AS most),
		page AS MATERIALIZED (
			SELECT r.id, r.sid, r.deliver_at, r.turn, r.n, s.tenant, r.trigger = 'application' AND r.delivery = 0 AS first,
				r.trigger IN ('application', 'operator', 'bulk') AND r.options->'force' IS DISTINCT FROM 'true' AND ` + isPaused + ` AS paused
			FROM (SELECT r.*, NULL AS turn, 0 AS n FROM unnest('{operator,event,nightly,bulk}'::text[]) t(trigger)
				CROSS JOIN LATERAL (SELECT r.id, r.sid, r.trigger, r.options, r.deliver_at, r.delivery FROM compactor.runs r
					WHERE r.status = 'queued' AND r.trigger = t.trigger AND r.deliver_at <= now()
					ORDER BY r.deliver_at LIMIT $1 FOR UPDATE SKIP LOCKED) r
				UNION ALL
				(SELECT r.*, t.tenant, t.n FROM turn t
				CROSS JOIN LATERAL (SELECT r.id, r.sid, r.trigger, r.options, r.deliver_at, r.delivery FROM compactor.runs r
					WHERE r.status = 'queued' AND r.trigger = 'application' AND r.turn_of = t.tenant AND r.deliver_at <= now()
					ORDER BY r.deliver_at LIMIT ` + turnShare(`(SELECT most FROM bound)`) + ` FOR UPDATE SKIP LOCKED) r
				WHERE t.n > 0 LIMIT (SELECT most FROM bound))) r
			JOIN compactor.sessions s ON s.sid = r.sid),
		fresh AS (SELECT f.*, f.place > a.most AS over
			FROM (SELECT id, sid, tenant, deliver_at, row_number() OVER (PARTITION BY tenant ORDER BY deliver_at, id) AS place
				FROM page WHERE first AND NOT paused) f
			LEFT JOIN startable a USING (tenant)),
		started AS MATERIALIZED (SELECT id, tenant FROM fresh WHERE over IS NOT true
			ORDER BY place, deliver_at LIMIT (SELECT most FROM startable WHERE tenant = '')),
		counted AS (SELECT ` + countStarted + ` FROM started),
		throttled AS (INSERT INTO compactor.throttled (sid, run, tenant, since)
			SELECT sid, id, tenant, deliver_at FROM fresh WHERE over ON CONFLICT DO NOTHING),
		held AS (UPDATE compactor.runs r SET error_code = CASE WHEN p.paused THEN 'paused' ELSE '` + CodeRunLimit + `' END,
				deliver_at = CASE WHEN p.paused THEN now() + ` + hold + ` ELSE 'infinity' END
			FROM page p WHERE r.id = p.id AND (p.paused OR p.id IN (SELECT id FROM fresh WHERE over))),
		delivered AS (UPDATE compactor.runs SET delivery = delivery + 1, deliver_at = now() + CASE trigger
				WHEN 'operator' THEN least(greatest(now() - waiting_since, interval '5 seconds'), $2::interval)
				ELSE least(greatest(now() - waiting_since, $2::interval), 32 * $2::interval) END
			WHERE id IN (SELECT id FROM page WHERE NOT paused AND NOT first UNION ALL SELECT id FROM started)
			RETURNING id, delivery, trigger)
		SELECT CASE WHEN d.delivery IS NULL THEN 0 ELSE id END, coalesce(d.delivery, 0), coalesce(d.trigger, ''), p.turn
		FROM page p CROSS JOIN counted LEFT JOIN delivered d USING (id)
		WHERE d.delivery IS NOT NULL OR p.paused OR id IN (SELECT id FROM fresh WHERE over) ORDER BY p.n, p.deliver_at`
	page, _, err := s.takeTurn(ctx, &s.turns.deliver, "deliver", query, limit, grace, requests)
	return page, err
}

// RedeliverAll makes the next delivery of all runs due that were enqueued and not attempted
// since, and returns their number. It leaves out postponed, paused and throttled runs, which are
// not in Redis.
func (s Scheduler) RedeliverAll(ctx context.Context) (int64, error) {
	const query = `
		UPDATE compactor.runs SET deliver_at = now() WHERE id IN (SELECT id FROM compactor.runs
			WHERE status = 'queued' AND deliver_at > now() AND deliver_at > waiting_since AND ` + notHeld + `
			FOR UPDATE SKIP LOCKED)`
	return affected(ctx, s.Store, "redeliver", query)
}

// Orphaned returns running runs whose lease has expired.
func (s Scheduler) Orphaned(ctx context.Context, limit int, grace time.Duration) ([]Delivery, error) {
	const query = `
		UPDATE compactor.runs SET delivery = delivery + 1, deliver_at = now() + $2::interval
		WHERE id IN (SELECT id FROM compactor.runs WHERE status = 'running' AND compactor.lease_is_over(lease_until) AND deliver_at <= now()
			LIMIT $1 FOR UPDATE SKIP LOCKED)
		RETURNING id, delivery, trigger`
	return queryRows(ctx, s.Store, "find orphans", pgx.RowToStructByPos[Delivery], query, limit, grace)
}

// OutcomeNotAttempted is the outcome of runs that Expire ends.
const OutcomeNotAttempted = "not_attempted"

// Expire ends up to limit queued runs that no worker has attempted for longer than age,
// as failed, and returns their number. Paused and throttled ones wait.
func (s Scheduler) Expire(ctx context.Context, age time.Duration, limit int) (int64, error) {
	const query = `
		UPDATE compactor.runs SET status = 'failed', outcome = $3, error_code = $3, ended_at = now()
		WHERE id IN (SELECT id FROM compactor.runs WHERE status = 'queued' AND waiting_since < now() - $1::interval
			AND ` + notHeld + ` LIMIT $2 FOR UPDATE SKIP LOCKED)`
	return affected(ctx, s.Store, "expire runs", query, age, limit, OutcomeNotAttempted)
}

// Forgotten queues event runs for due sessions that have no outbox row, no active run, no
// cooldown, and that the last run did not decide on: see the SQL function decides. Those that got
// no summary are found after their cooldown, once no limit of spending is reached. Tenants take
// turns. It leaves out the sessions of sweeps: see the SQL function holding_sweeps. Sessions
// with a limit of runs go to the outbox, for Relay, up to ten times limit.
func (s Scheduler) Forgotten(ctx context.Context, limit int, grace time.Duration) ([]Delivery, error) {
	query := `
		WITH RECURSIVE held AS MATERIALIZED (SELECT tenant FROM compactor.pauses WHERE resumed_at IS NULL AND model = '' AND policy = ''),
		swept AS MATERIALIZED (SELECT * FROM compactor.holding_sweeps()),
		` + turns(`tenant`, `compactor.sessions r WHERE r.due`, `$3`) + `,
		limits AS MATERIALIZED (SELECT tenant FROM compactor.spending_limits WHERE runs_per_second IS NOT NULL),
		reached AS MATERIALIZED (SELECT '' AS tenant WHERE compactor.spending_limited('') UNION ALL SELECT l.tenant FROM compactor.spending_limits l
			WHERE l.tenant IN (SELECT tenant FROM turn) AND l.tenant <> '' AND compactor.spending_limited(l.tenant)),
		most AS MATERIALIZED (SELECT $1 * CASE WHEN EXISTS (SELECT FROM limits) THEN 10 ELSE 1 END AS n),
		found AS MATERIALIZED (SELECT s.*, t.n, EXISTS (SELECT FROM limits l WHERE l.tenant IN ('', s.tenant)) AS limited FROM turn t
			CROSS JOIN LATERAL (SELECT s.sid, s.tenant FROM compactor.sessions s
				WHERE s.due AND s.tenant = t.tenant AND (s.cooldown_until IS NULL OR s.cooldown_until <= now())
					AND NOT EXISTS (SELECT FROM swept h
						WHERE h.tenant IN ('', s.tenant) AND h.until_since >= coalesce(s.due_since, '-infinity')
							AND (NOT h.begun OR EXISTS (SELECT FROM compactor.sweep_tenants w
								WHERE w.sweep = h.sweep AND w.tenant = s.tenant AND NOT w.passed AND w.cursor_sid < s.sid)))
					AND NOT EXISTS (SELECT FROM compactor.outbox o WHERE o.sid = s.sid)
					AND NOT EXISTS (SELECT FROM compactor.throttled h WHERE h.sid = s.sid)
					AND NOT EXISTS (SELECT FROM compactor.runs r WHERE r.sid = s.sid AND r.status IN ('queued', 'running'))
					AND (SELECT compactor.decides(r.kind, r.trigger, r.outcome, r.snapshot_seq, s.last_source_seq, s.cooldown_until IS NOT NULL
							AND NOT (r.outcome = 'no_summary' AND compactor.beyond_limit(r.steps) AND EXISTS (SELECT FROM reached l WHERE l.tenant IN ('', s.tenant))))
						FROM compactor.runs r
						WHERE r.sid = s.sid AND r.options->'dry_run' IS DISTINCT FROM 'true' ORDER BY r.id DESC LIMIT 1) IS NOT true
					AND NOT ` + isPaused + `
				ORDER BY s.sid LIMIT ` + turnShare(`(SELECT n FROM most)`) + `) s
			WHERE t.n > 0 AND NOT EXISTS (SELECT FROM held WHERE tenant IN ('', t.tenant)) LIMIT (SELECT n FROM most)),
		-- Without locked sessions: the insert would wait for a writer, and other writers for this transaction.
		recalled AS (INSERT INTO compactor.outbox (sid, tenant) SELECT f.sid, f.tenant FROM found f
			CROSS JOIN LATERAL (SELECT FROM compactor.sessions s WHERE s.sid = f.sid FOR NO KEY UPDATE SKIP LOCKED) s
			WHERE f.limited ON CONFLICT DO NOTHING),
		queued AS (INSERT INTO compactor.runs (sid, trigger, delivery, deliver_at)
			SELECT sid, 'event', 1, now() + $2::interval FROM found WHERE NOT limited ORDER BY n, sid LIMIT $1
			ON CONFLICT DO NOTHING RETURNING id, delivery, trigger, sid)
		SELECT coalesce(q.id, 0), coalesce(q.delivery, 0), 'event', f.tenant FROM found f LEFT JOIN queued q USING (sid)
		WHERE f.limited OR q.id IS NOT NULL ORDER BY f.n, f.sid`
	page, _, err := s.takeTurn(ctx, &s.turns.forgotten, "find due sessions", query, limit, grace)
	return page, err
}

// ReleaseThrottled returns sessions and requests that wait for the limit of runs of their tenant
// to Relay and Deliver, as many as runs may start now, the longest waiting first.
func (s Scheduler) ReleaseThrottled(ctx context.Context) (int64, error) {
	return queryRow(ctx, s.Store, "release throttled runs", pgx.RowTo[int64], `SELECT compactor.release_throttled()`)
}

// SumSpending sums up the calls of models of the minutes that have passed, so that the check of
// a limit does not read each call.
func (s Scheduler) SumSpending(ctx context.Context) (int64, error) {
	return queryRow(ctx, s.Store, "sum spending", pgx.RowTo[int64], `SELECT compactor.sum_spending()`)
}

// CheckTimes makes sessions due that have been idle for as long as a trigger of their policy
// waits. It checks up to limit sessions and returns their number.
func (s Scheduler) CheckTimes(ctx context.Context, limit int) (int, error) {
	return queryRow(ctx, s.Store, "check times", pgx.RowTo[int], `SELECT compactor.check_times($1)`, limit)
}

// Waiting counts, up to limit, the runs of a trigger that were enqueued and that no worker
// has claimed or snoozed yet, and those that workers have claimed.
func (s Scheduler) Waiting(ctx context.Context, trigger string, limit int) (waiting, running int, err error) {
	const query = `
		SELECT (SELECT count(*) FROM (SELECT FROM compactor.runs
			WHERE status = 'queued' AND trigger = $1 AND deliver_at > now() AND attempts = 0 AND snoozes = 0
				AND ` + notHeld + ` LIMIT $2) q),
			(SELECT count(*) FROM compactor.runs WHERE status = 'running' AND trigger = $1)`
	err = s.pool.QueryRow(ctx, s.q(query), trigger, limit).Scan(&waiting, &running)
	return waiting, running, wrap("count waiting runs", err)
}

// Backlog counts due sessions, active runs and outbox rows, with those that wait for a limit.
type Backlog struct {
	Sessions, Due, Queued, Running, Outbox int64
	OldestQueued                           time.Duration
}

// Backlog returns the backlog of the whole store.
func (s Scheduler) Backlog(ctx context.Context) (Backlog, error) {
	const query = `
		SELECT (SELECT count(*) FROM compactor.sessions), (SELECT count(*) FROM compactor.sessions WHERE due),
			count(*), (SELECT count(*) FROM compactor.runs WHERE status = 'running'),
			(SELECT count(*) FROM compactor.outbox) + (SELECT count(*) FROM compactor.throttled WHERE run = 0),
			coalesce(now() - min(queued_at), '0')
		FROM compactor.runs WHERE status = 'queued'`
	return queryRow(ctx, s.Store, "backlog", pgx.RowToStructByPos[Backlog], query)
}

// LoseCalls marks up to limit calls of models as lost whose worker no longer has their run, and
// returns their number.
func (s Scheduler) LoseCalls(ctx context.Context, limit int) (int64, error) {
	const query = `
		UPDATE compactor.summary_calls SET state = 'lost', ended_at = clock_timestamp()
		WHERE id IN (SELECT c.id FROM compactor.summary_calls c LEFT JOIN compactor.runs r ON r.id = c.run
			WHERE c.state = 'asked' AND (r.status <> 'running' OR r.fence <> c.fence OR c.run IS NULL AND c.asked_at < now() - interval '1 hour')
			LIMIT $1 FOR UPDATE OF c SKIP LOCKED)`
	return affected(ctx, s.Store, "find lost calls", query, limit)
}

// PurgeAnswers deletes the texts of up to limit answers older than age and returns their
// number. Usage and cost stay, as do applied summaries, which are messages.
func (s Scheduler) PurgeAnswers(ctx context.Context, age time.Duration, limit int) (int64, error) {
	const query = `
		UPDATE compactor.summary_calls SET answer = NULL, state = CASE WHEN state = 'answered' THEN 'forgotten' ELSE state END
		WHERE id IN (SELECT id FROM compactor.summary_calls WHERE answer IS NOT NULL AND ended_at < now() - $1::interval
			ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	return affected(ctx, s.Store, "purge answers", query, age, limit)
}
