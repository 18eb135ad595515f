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

// SummaryRow is a summary or replacement message that a run wrote.
type SummaryRow struct {
	Stored
	Key Key
	Run RunID
}

// Summary returns the message that a run wrote under an id, in a session or, with none, in the one
// that it was written in: a fork has a copy under the same id. ErrNotFound names the id.
func (s Reader) Summary(ctx context.Context, k Key, id string) (SummaryRow, error) {
	const query = `
		SELECT s.tenant, s.id, m.run, m.seq, m.kind, coalesce(b.body, ''), m.token_count, m.counter,
			coalesce(CASE WHEN m.flags & 128 = 0 THEN m.created_at END, '0001-01-01Z'), m.summary_of::text, s.live @> m.seq
		FROM compactor.sessions s JOIN compactor.message_log m ON m.sid = s.sid AND m.id = $1 AND m.kind <> 'm'
		LEFT JOIN compactor.message_body b ON b.sid = m.sid AND b.seq = m.seq WHERE `
	row := SummaryRow{}
	where, args := `s.tenant = $2 AND s.id = $3`, []any{id, k.tenant(), k.Session}
	if k.Session == "" { // the ids of messages written by runs end in the run's id
		run, err := strconv.ParseInt(id[strings.LastIndexByte(id, '-')+1:], 10, 64)
		if err != nil {
			return row, fmt.Errorf("summary %q: %w (an id ends in the number of its run, such as summary-120-7)", id, ErrNotFound)
		}
		where, args = `s.sid = (SELECT sid FROM compactor.runs WHERE id = $2) AND m.run = $2`, []any{id, run}
	}
	var body string
	var kind byte
	var created time.Time
	err := s.pool.QueryRow(ctx, s.q(query+where), args...).Scan(&row.Key.Tenant, &row.Key.Session, &row.Run, &row.Seq, &kind, &body, &row.Tokens,
		&row.Counter, &created, rangesText{&row.SummaryOf}, &row.Included)
	if err != nil {
		return row, fmt.Errorf("summary %q: %w", id, mapError(err))
	}
	row.Kind = kinds[kind]
	if err := row.fill(id, body, "", created); err != nil || body != "" {
		return row, err
	}
	_, err = s.fillArchived(ctx, row.Key, []*Stored{&row.Stored})
	return row, err
}

// Covered returns the tokens of the messages in the place of which a summary is, and the reason for
// which its run took them out of the view.
func (s Reader) Covered(ctx context.Context, row *SummaryRow) (tokens int64, reason string, err error) {
	const query = `
		SELECT coalesce((SELECT sum(l.token_count) FROM unnest($2::int8multirange) x CROSS JOIN LATERAL (SELECT m.token_count FROM compactor.message_log m
				WHERE m.sid = r.sid AND m.seq >= lower(x) AND m.seq < upper(x) OFFSET 0) l), 0)::bigint,
			coalesce((SELECT e.reason FROM compactor.exclusions e WHERE e.sid = r.sid AND e.run = r.id AND e.summary_seq = $3 LIMIT 1), '')
		FROM compactor.runs r WHERE r.id = $1`
	err = s.pool.QueryRow(ctx, s.q(query), row.Run, row.SummaryOf.String(), row.Seq).Scan(&tokens, &reason)
	return tokens, reason, wrap(fmt.Sprintf("summary %q", row.ID), err)
}

// Sources returns the message that Summary returns, and the seqs of all that it covers: also those
// that summaries and replacements among them cover.
func (s Reader) Sources(ctx context.Context, k Key, id string) (row SummaryRow, covered chat.Ranges, err error) {
	const query = `
		WITH RECURSIVE down AS (SELECT $2::int8multirange AS seqs UNION
			SELECT w.summary_of FROM down CROSS JOIN LATERAL unnest(down.seqs) x CROSS JOIN LATERAL (SELECT m.summary_of FROM compactor.message_log m
				WHERE m.sid = (SELECT sid FROM compactor.runs WHERE id = $1) AND m.seq >= lower(x) AND m.seq < upper(x) AND m.kind <> 'm' OFFSET 0) w)
		SELECT coalesce(range_agg(x), '{}')::text FROM down CROSS JOIN LATERAL unnest(seqs) x`
	if row, err = s.Summary(ctx, k, id); err != nil {
		return row, nil, err
	}
	err = s.pool.QueryRow(ctx, s.q(query), row.Run, row.SummaryOf.String()).Scan(rangesText{&covered})
	return row, covered, wrap(fmt.Sprintf("summary %q", id), err)
}

// NoteLookups counts for runs of a tenant that an agent looked up messages that they had taken out of
// its view. Other runs are passed over.
func (s Reader) NoteLookups(ctx context.Context, tenant string, runs []RunID) error {
	_, err := s.pool.Exec(ctx, s.q(`SELECT compactor.note_lookups($1, $2)`), Key{Tenant: tenant}.tenant(), runs)
	return wrap("note look-ups", err)
}

// SummariesOf returns the ids of the summaries that a run wrote, ordered by the number of
// messages covered, largest first.
func (s Reader) SummariesOf(ctx context.Context, run RunID) ([]string, error) {
	const query = `
		SELECT m.id FROM compactor.runs r JOIN compactor.message_log m ON m.sid = r.sid AND m.run = r.id
		WHERE r.id = $1 AND m.kind = 's'
		ORDER BY (SELECT sum(upper(x) - lower(x)) FROM unnest(m.summary_of) x) DESC, m.seq`
	return queryRows(ctx, s.Store, "summaries of a run", pgx.RowTo[string], query, run)
}

// SummaryTally counts summaries and model calls of one kind.
type SummaryTally struct {
	// Kind is "summary" or "call".
	Kind string `json:"what"`
	// Code names the writer of a summary, or "none: " and the reason; for a call, its state
	// and code.
	Code       string `json:"code"`
	Count      int64  `json:"count"`
	CostMicros int64  `json:"cost_micros"`
}

// SummaryTallies counts the summaries of runs with an id above after by writer, and their
// model calls by result.
func (s Operator) SummaryTallies(ctx context.Context, after RunID) ([]SummaryTally, error) {
	const query = `
		SELECT 'summary', coalesce('none: ' || (x->>'no_summary'), x->'summary'->>'written_by',
				concat_ws(': ', 'none', x->'summary'->>'failure')), count(*), 0::bigint
		FROM compactor.runs, jsonb_array_elements(CASE jsonb_typeof(steps) WHEN 'array' THEN steps ELSE '[]' END) x
		WHERE id > $1 AND origin IS NULL AND x ? 'summary' GROUP BY 1, 2
		UNION ALL
		SELECT 'call', concat_ws(': ', state, code), count(*), sum(cost_micros)::bigint
		FROM compactor.summary_calls WHERE run > $1 GROUP BY 1, 2
		ORDER BY 1 DESC, 3 DESC, 2`
	return queryRows(ctx, s.Store, "summaries", pgx.RowToStructByPos[SummaryTally], query, after)
}

// SummaryCallRow is one call of a model for a run.
type SummaryCallRow struct {
	State      string  `json:"state"`
	Code       string  `json:"code,omitempty"`
	Model      string  `json:"model,omitempty"`
	PromptHash string  `json:"prompt_hash"`
	Attempts   int     `json:"attempts"`
	Input      int64   `json:"input_tokens"`
	Cached     int64   `json:"cached_tokens"`
	Output     int64   `json:"output_tokens"`
	Reasoning  int64   `json:"reasoning_tokens"`
	CostMicros int64   `json:"cost_micros"`
	Seconds    float64 `json:"seconds"`
	// Estimated counts the attempts whose tokens are estimated, as the server reported none.
	Estimated int `json:"estimated_attempts,omitempty"`
	// HTTPStatus and ServerError are the server's answer to the last attempt that failed, or the
	// reason that there is none.
	HTTPStatus  int    `json:"http_status,omitempty"`
	ServerError string `json:"server_error,omitempty"`
}

const summaryCallColumns = `state, coalesce(code, ''), coalesce(model, ''), prompt_hash, attempts,
	input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_micros, coalesce(took_us, 0) / 1e6::float8,
	estimated, coalesce(http_status, 0), coalesce(server_error, '')`

// SummaryCalls returns the model calls of a run, in order.
func (s Reader) SummaryCalls(ctx context.Context, run RunID) ([]SummaryCallRow, error) {
	const query = `SELECT ` + summaryCallColumns + ` FROM compactor.summary_calls WHERE run = $1 ORDER BY id`
	return queryRows(ctx, s.Store, "summary calls", pgx.RowToStructByPos[SummaryCallRow], query, run)
}

// LastCalls returns the last call of each model that ended within a day.
func (s Operator) LastCalls(ctx context.Context) ([]SummaryCallRow, error) {
	const query = `SELECT DISTINCT ON (model) ` + summaryCallColumns + `
		FROM compactor.summary_calls WHERE ended_at > now() - interval '1 day' AND attempts > 0 ORDER BY model, id DESC`
	return queryRows(ctx, s.Store, "last calls", pgx.RowToStructByPos[SummaryCallRow], query)
}
