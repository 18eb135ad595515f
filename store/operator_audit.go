package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Finding is the result of one check of Audit.
type Finding struct {
	Check  string // the invariant
	Count  int64  // number of violations
	Sample string // one of them
}

// invariants holds queries that return the number of violations and one of them.
var invariants = []struct{ name, query string }{
	{"excluded messages name a run and a reason (I3)", `
		SELECT count(*), coalesce(min(session || ' #' || seq), '') FROM compactor.messages
		WHERE kind = 'source' AND excluded AND excluded_by IS NULL`},
	{"replaced messages link to an existing summary (I3)", `
		SELECT count(*), coalesce(min(e.run::text), '') FROM compactor.exclusions e
		LEFT JOIN compactor.message_log m ON m.sid = e.sid AND m.seq = e.summary_seq AND m.kind <> 'm'
		WHERE e.summary_seq IS NOT NULL AND m.seq IS NULL`},
	{"live counters match the view", `
		SELECT count(*), coalesce(min(s.id), '') FROM compactor.sessions s CROSS JOIN LATERAL (
			SELECT count(*) AS n, coalesce(sum(m.token_count - CASE WHEN m.bare THEN
				coalesce(m.reasoning_tokens, compactor.reasoning_tokens(m.body, m.token_count)) ELSE 0 END), 0) AS tokens
			FROM unnest(s.live) x CROSS JOIN LATERAL (SELECT l.*, l.flags & 66 = 2 AND s.reasoning_out @> l.seq AS bare
				FROM compactor.message_log l WHERE l.sid = s.sid
				AND l.seq >= lower(x) AND l.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) m
			WHERE NOT (m.bare AND m.role_code = 'a' AND m.calls = 0 AND m.flags & 7 = 2)) v
		WHERE v.n <> s.live_messages OR v.tokens <> s.live_tokens`},
	{"the log has no holes", `
		SELECT count(*), coalesce(min(s.id), '') FROM compactor.sessions s CROSS JOIN LATERAL (
			SELECT count(*) AS n, coalesce(max(seq), 0) AS last, count(*) FILTER (WHERE kind = 'm') AS sources
			FROM compactor.message_log m WHERE m.sid = s.sid) v
		WHERE v.n <> s.last_seq OR v.last <> s.last_seq OR v.sources <> s.messages`},
	{"the view is that of the latest run in force (I6)", `
		SELECT count(*), coalesce(min(s.id), '') FROM compactor.sessions s JOIN compactor.runs r ON r.id = s.head_run
		LEFT JOIN compactor.runs u ON u.id = r.undoes
		WHERE s.live <> r.live_after OR r.revision <> s.revision
			OR s.reasoning_out <> coalesce(CASE WHEN r.kind = 'undo' THEN u.reasoning_before ELSE r.reasoning_before END, '{}') + coalesce(r.reasoning_taken, '{}')`},
	{"pinned messages are in the view (I4)", `
		SELECT count(*), coalesce(min(id), '') FROM compactor.sessions
		WHERE NOT pinned <@ (live + unholdable) AND suspect_seq IS NULL AND NOT due`},
	{"no run is past its lease for long", `
		SELECT count(*), coalesce(min(id::text), '') FROM compactor.runs WHERE status = 'running' AND lease_until < now() - interval '5 minutes'`},
	{"no run waits in the queue for more than an hour", `
		SELECT count(*), coalesce(min(id::text), '') FROM compactor.runs WHERE status = 'queued' AND queued_at < now() - interval '1 hour'`},
}

// Audit checks the invariants over all data. It reads every row, which takes minutes on
// a large store. It can run while the system works.
func (s *Store) Audit(ctx context.Context) ([]Finding, error) {
	var out []Finding
	for _, check := range invariants {
		f := Finding{Check: check.name}
		// A full scan may exceed StatementTimeout.
		err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
				return err
			}
			return tx.QueryRow(ctx, s.q(check.query)).Scan(&f.Count, &f.Sample)
		})
		if err != nil {
			return nil, fmt.Errorf("check that %s: %w", check.name, mapError(err))
		}
		out = append(out, f)
	}
	return out, nil
}

// Setting is a database setting or statistic that affects the store.
type Setting struct {
	Name, Value string
	OK          bool
	Advice      string // the remedy if it is not OK
}

// Settings checks the server's version, the vacuum settings, and whether enough pages of
// the log are all-visible for index-only scans.
func (s *Store) Settings(ctx context.Context) ([]Setting, error) {
	const query = `
		SELECT 'server version', current_setting('server_version'), current_setting('server_version_num')::int >= 140000,
			'Postgres 14 or newer is needed (multiranges)'
		UNION ALL SELECT 'autovacuum', current_setting('autovacuum'), current_setting('autovacuum') = 'on',
			'turn it on: planning is an index-only scan on vacuumed pages'
		UNION ALL SELECT 'track_counts', current_setting('track_counts'), current_setting('track_counts') = 'on',
			'turn it on: autovacuum is blind without it'
		UNION ALL SELECT 'fsync', current_setting('fsync'), current_setting('fsync') = 'on',
			'off loses acknowledged messages in a crash'
		UNION ALL SELECT 'message_log autovacuum_vacuum_insert_threshold', coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions)
				WHERE option_name = 'autovacuum_vacuum_insert_threshold'), 'default'),
			EXISTS (SELECT FROM pg_options_to_table(c.reloptions) WHERE option_name = 'autovacuum_vacuum_insert_threshold'),
			'a migration sets it to 100000: it was reset since'
			FROM pg_class c WHERE c.oid = 'compactor.message_log'::regclass
		UNION ALL SELECT 'message_log all-visible pages', relallvisible || ' of ' || relpages,
			relpages < 1000 OR relallvisible > relpages * 0.5, 'VACUUM compactor.message_log'
			FROM pg_class WHERE oid = 'compactor.message_log'::regclass
		UNION ALL SELECT 'sessions dead rows', n_dead_tup || ' of ' || n_live_tup, n_dead_tup < 10000 OR n_dead_tup < n_live_tup,
			'VACUUM compactor.sessions; autovacuum does not keep up'
			FROM pg_stat_user_tables WHERE relid = 'compactor.sessions'::regclass`
	return queryRows(ctx, s, "settings", pgx.RowToStructByPos[Setting], query)
}
