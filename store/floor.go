package store

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
)

// What `compactor bench` measures against. Nothing else uses this file.

// Floor is the least a compaction of a session costs here: the index-only load of
// its view, and one transaction that writes ranges, an exclusion and a ledger row,
// without queue, claim or planning. It drops the oldest messages behind the first
// until no more than target tokens are left.
func (s *Store) Floor(ctx context.Context, sid int64, target chat.Tokens) error {
	metas, err := s.ViewMetas(ctx, sid)
	if err != nil {
		return err
	}
	var total, freed chat.Tokens
	for _, m := range metas {
		total += m.Tokens
	}
	cut := 1
	for cut < len(metas) && total-freed > target {
		freed += metas[cut].Tokens
		cut++
	}
	out := chat.Ranges{{Lo: metas[1].Seq, Hi: metas[cut-1].Seq + 1}}.String()
	const query = `
		WITH s AS (SELECT * FROM compactor.sessions WHERE sid = $1 FOR NO KEY UPDATE),
		r AS (INSERT INTO compactor.runs (sid, trigger, status, outcome, in_force, revision, base_run, snapshot_seq, applied_seq,
				live_before, live_after, appended, messages_before, messages_after, tokens_before, tokens_after, started_at, ended_at)
			SELECT sid, 'application', 'applied', 'applied', true, revision + 1, head_run, last_seq, last_seq, live, live - $2::int8multirange,
				'{}', live_messages, live_messages - $3, live_tokens, live_tokens - $4, now(), now() FROM s RETURNING id, live_after),
		e AS (INSERT INTO compactor.exclusions (run, sid, reason, seqs) SELECT id, $1, 'truncation', $2 FROM r)
		UPDATE compactor.sessions t SET live = r.live_after, revision = t.revision + 1, head_run = r.id,
			live_messages = t.live_messages - $3, live_tokens = t.live_tokens - $4, due = false
		FROM r WHERE t.sid = $1`
	_, err = s.pool.Exec(ctx, s.q(query), sid, out, cut-1, int64(freed))
	return wrap("floor", err)
}

// WALPosition returns how many bytes of write-ahead log the server has written in all.
func (s *Store) WALPosition(ctx context.Context) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`).Scan(&n)
	return n, wrap("wal position", err)
}

// Vacuum makes the log's pages all-visible and checkpoints, as time would.
func (s *Store) Vacuum(ctx context.Context) error {
	for _, sql := range []string{`VACUUM (ANALYZE) compactor.message_log`, `VACUUM (ANALYZE) compactor.sessions`, `CHECKPOINT`} {
		if _, err := s.pool.Exec(ctx, s.q(sql)); err != nil {
			return wrap("vacuum", err)
		}
	}
	return nil
}

// Analyze tells the planner what is there, as autovacuum does before long: worth
// it behind a large import.
func (s *Store) Analyze(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, s.q(`ANALYZE compactor.message_log, compactor.sessions`))
	return wrap("analyze", err)
}

// DropSchema removes the schema and everything in it.
func (s *Store) DropSchema(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `DROP SCHEMA IF EXISTS `+s.schema+` CASCADE`)
	return wrap("drop schema", err)
}

// SweepTimes returns when the first run of a sweep was queued and its last one ended,
// as seconds apart, with the number of runs and of those applied.
func (s *Store) SweepTimes(ctx context.Context, sweep int64) (seconds float64, ended, applied int64, err error) {
	const query = `
		SELECT coalesce(extract(epoch FROM max(ended_at) - min(queued_at)), 0)::float8, count(ended_at),
			count(*) FILTER (WHERE status = 'applied')
		FROM compactor.runs WHERE sweep = $1`
	err = s.pool.QueryRow(ctx, s.q(query), sweep).Scan(&seconds, &ended, &applied)
	return seconds, ended, applied, wrap("sweep times", err)
}
