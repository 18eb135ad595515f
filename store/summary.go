package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// SummaryRow is a summary or stand-in that a run wrote.
type SummaryRow struct {
	Stored
	Key Key
	Run RunID
}

// Summary returns the message that a run wrote under an id; ErrNotFound names it.
func (s *Store) Summary(ctx context.Context, id string) (SummaryRow, error) {
	const query = `
		SELECT s.tenant, s.id, m.seq, m.kind, m.body, m.token_count, m.counter, m.created_at, m.summary_of::text, s.live @> m.seq
		FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid
		JOIN compactor.message_log m ON m.sid = r.sid AND m.id = $2 AND m.run = r.id WHERE r.id = $1`
	// A run's id ends the ids of what it wrote.
	var row SummaryRow
	run, err := strconv.ParseInt(id[strings.LastIndexByte(id, '-')+1:], 10, 64)
	if err != nil {
		return row, fmt.Errorf("summary %q: %w (an id ends in the number of its run, such as summary-120-7)", id, ErrNotFound)
	}
	var body, of string
	var kind byte
	var created time.Time
	err = s.pool.QueryRow(ctx, s.q(query), run, id).Scan(&row.Key.Tenant, &row.Key.Session, &row.Seq, &kind, &body, &row.Tokens, &row.Counter,
		&created, &of, &row.Included)
	if err != nil {
		return row, fmt.Errorf("summary %q: %w", id, mapError(err))
	}
	row.Run, row.Kind = run, kindOf(kind)
	if row.SummaryOf, err = chat.ParseRanges(of); err != nil {
		return row, err
	}
	return row, row.fill(id, body, "", created)
}

// SummariesOf returns the ids of the summaries that a run wrote, with those first that stand
// for the most messages.
func (s *Store) SummariesOf(ctx context.Context, run RunID) ([]string, error) {
	const query = `
		SELECT m.id FROM compactor.runs r JOIN compactor.message_log m ON m.sid = r.sid AND m.run = r.id
		WHERE r.id = $1 AND m.kind = 's'
		ORDER BY (SELECT sum(upper(x) - lower(x)) FROM unnest(m.summary_of) x) DESC, m.seq`
	rows, err := s.pool.Query(ctx, s.q(query), run)
	if err != nil {
		return nil, wrap("summaries of a run", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, wrap("summaries of a run", err)
}

// SummaryTally counts summaries and model calls of one kind.
type SummaryTally struct {
	// What is "summary" or "call".
	What string
	// Code is who wrote a summary ("none: " and why where nobody did), or a call's state with
	// its code.
	Code       string
	Count      int64
	CostMicros int64
}

// SummaryTallies counts the summaries of runs behind after, by who wrote them, and the
// model calls by how they ended.
func (s *Store) SummaryTallies(ctx context.Context, after RunID) ([]SummaryTally, error) {
	const query = `
		SELECT 'summary', coalesce('none: ' || (x->>'no_summary'), x->'summary'->>'written_by', concat_ws(': ', 'none', x->'summary'->>'failure')),
		       count(*), 0::bigint
		FROM compactor.runs, jsonb_array_elements(CASE jsonb_typeof(steps) WHEN 'array' THEN steps ELSE '[]' END) x
		WHERE id > $1 AND x ? 'summary' GROUP BY 1, 2
		UNION ALL
		SELECT 'call', concat_ws(': ', state, code), count(*), sum(cost_micros)::bigint FROM compactor.summary_calls WHERE run > $1 GROUP BY 1, 2
		ORDER BY 1 DESC, 3 DESC, 2`
	rows, err := s.pool.Query(ctx, s.q(query), after)
	if err != nil {
		return nil, wrap("summaries", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SummaryTally])
	return out, wrap("summaries", err)
}
