package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// DefaultTenant is the tenant of everything that names none.
const DefaultTenant = "default"

// Key names a session as applications do. An empty Tenant is DefaultTenant.
type Key struct{ Tenant, Session string }

func (k Key) String() string {
	if k.Tenant == "" || k.Tenant == DefaultTenant {
		return k.Session
	}
	return k.Tenant + "/" + k.Session
}

func (k Key) tenant() string {
	if k.Tenant == "" {
		return DefaultTenant
	}
	return k.Tenant
}

// NewMessage is a message to append. With an empty Counter the store estimates
// the tokens itself (octets/3).
type NewMessage struct {
	chat.Message
	Tokens  chat.Tokens
	Counter string
}

// encode writes messages in the form the SQL function append takes. Bodies are
// stored as they are written here, so nothing is escaped that need not be.
func encode(msgs []NewMessage) (string, error) {
	var b strings.Builder
	b.WriteByte('[')
	for i, m := range msgs {
		if i > 0 {
			b.WriteByte(',')
		}
		raw, err := m.MarshalJSON()
		if err != nil {
			return "", fmt.Errorf("message %d: %w: %w", i, ErrInvalid, err)
		}
		if m.Counter == "" {
			b.Write(raw)
			continue
		}
		counter, err := json.Marshal(m.Counter)
		if err != nil {
			return "", err
		}
		b.Write(raw[:len(raw)-1])
		fmt.Fprintf(&b, `,"token_count":%d,"token_counter":%s}`, m.Tokens, counter)
	}
	b.WriteByte(']')
	return b.String(), nil
}

// Append adds messages to a session, which is made if there is none, and returns
// their seqs. Idempotent by message id; a known id with other content is
// ErrConflict. All or nothing. What Postgres cannot hold (NUL, invalid UTF-8) is
// repaired here; repairs says in how many places.
func (s *Store) Append(ctx context.Context, k Key, model string, msgs []NewMessage) (seqs []chat.Seq, repairs int, err error) {
	for i := range msgs {
		repairs += chat.Sanitize(&msgs[i].Message)
	}
	raw, err := encode(msgs)
	if err != nil {
		return nil, 0, fmt.Errorf("append to session %s: %w", k, err)
	}
	const query = `SELECT compactor.append($1, $2, $3, $4)`
	if err := s.pool.QueryRow(ctx, s.q(query), k.tenant(), k.Session, raw, model).Scan(&seqs); err != nil {
		return nil, 0, fmt.Errorf("append to session %s: %w", k, mapError(err))
	}
	return seqs, repairs, nil
}

// Import is Append for a backlog: it wakes nobody, so what it makes due waits for
// the next sweep.
func (s *Store) Import(ctx context.Context, k Key, model string, msgs []NewMessage) (seqs []chat.Seq, repairs int, err error) {
	for i := range msgs {
		repairs += chat.Sanitize(&msgs[i].Message)
	}
	raw, err := encode(msgs)
	if err != nil {
		return nil, 0, fmt.Errorf("import session %s: %w", k, err)
	}
	var batch pgx.Batch
	batch.Queue(`SELECT set_config('compactor.quiet', 'on', true)`)
	batch.Queue(s.q(`SELECT compactor.append($1, $2, $3, $4)`), k.tenant(), k.Session, raw, model)
	results := s.pool.SendBatch(ctx, &batch)
	defer func() { _ = results.Close() }()
	if _, err = results.Exec(); err == nil {
		err = results.QueryRow().Scan(&seqs)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("import session %s: %w", k, mapError(err))
	}
	return seqs, repairs, wrap("import", results.Close())
}

// Stored is a message of the log with what the store knows of it.
type Stored struct {
	chat.Message
	Seq     chat.Seq
	Kind    chat.Kind
	Tokens  chat.Tokens
	Counter string

	// Included: the message is in the view. The rest explains one that is not.
	Included      bool
	ExcludeReason string
	ExcludedBy    int64  // run
	SummarizedBy  string // id of the summary or stand-in in its place
	Pinned        bool
	SummaryOf     chat.Ranges
}

// queryView has one row, with seq 0, for a session whose view is empty: it has a revision too.
const queryView = `
	SELECT coalesce(v.seq, 0), coalesce(v.id, ''), coalesce(v.kind, ''), coalesce(v.message, 'null')::text, coalesce(v.token_count, 0),
		coalesce(v.created_at, 'epoch'), coalesce(v.source_id, ''), s.revision
	FROM compactor.sessions s LEFT JOIN compactor.view($1, $2) v ON true WHERE s.tenant = $1 AND s.id = $2`

// View returns a session's history as its model is given it. A session that does not
// exist has an empty one and revision 0, as an application sees before it
// appends for the first time.
func (s *Store) View(ctx context.Context, k Key) (msgs []Stored, revision int64, err error) {
	rows, err := s.pool.Query(ctx, s.q(queryView), k.tenant(), k.Session)
	if err != nil {
		return nil, 0, fmt.Errorf("view of session %s: %w", k, mapError(err))
	}
	msgs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Stored, error) {
		m := Stored{Included: true}
		var id, body, source string
		var created time.Time
		if err := row.Scan(&m.Seq, &id, &m.Kind, &body, &m.Tokens, &created, &source, &revision); err != nil {
			return m, err
		}
		if m.Seq == 0 {
			return m, nil
		}
		return m, m.fill(id, body, source, created)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("view of session %s: %w", k, mapError(err))
	}
	if len(msgs) == 1 && msgs[0].Seq == 0 {
		msgs = nil
	}
	return msgs, revision, nil
}

// All returns every message of a session, those out of the view with the reason.
func (s *Store) All(ctx context.Context, k Key) ([]Stored, error) {
	return s.Among(ctx, k, chat.Ranges{{Lo: 1, Hi: chat.Open}})
}

// Among returns those messages of a session that have a seq in ranges, as in All.
func (s *Store) Among(ctx context.Context, k Key, ranges chat.Ranges) ([]Stored, error) {
	const query = `
		SELECT seq, id, kind, message::text, token_count, token_counter, created_at, coalesce(source_id, ''), included,
			coalesce(exclude_reason, ''), coalesce(excluded_by, 0), coalesce(summarized_by, ''), pinned, coalesce(summary_of, '{}')::text
		FROM compactor.messages WHERE tenant = $1 AND session = $2 AND seq <@ $3::int8multirange
		ORDER BY position, (kind <> 'summary'), (kind = 'source' AND position <> seq), seq`
	rows, err := s.pool.Query(ctx, s.q(query), k.tenant(), k.Session, ranges.String())
	if err != nil {
		return nil, fmt.Errorf("messages of session %s: %w", k, mapError(err))
	}
	msgs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Stored, error) {
		var m Stored
		var id, body, source, of string
		var created time.Time
		err := row.Scan(&m.Seq, &id, &m.Kind, &body, &m.Tokens, &m.Counter, &created, &source, &m.Included,
			&m.ExcludeReason, &m.ExcludedBy, &m.SummarizedBy, &m.Pinned, &of)
		if err != nil {
			return m, err
		}
		if m.SummaryOf, err = chat.ParseRanges(of); err != nil {
			return m, err
		}
		return m, m.fill(id, body, source, created)
	})
	if err != nil {
		return nil, fmt.Errorf("messages of session %s: %w", k, mapError(err))
	}
	return msgs, nil
}

func (m *Stored) fill(id, body, source string, created time.Time) error {
	if err := json.Unmarshal([]byte(body), &m.Message); err != nil {
		return fmt.Errorf("stored message %d: %w", m.Seq, err)
	}
	m.ID, m.SourceID, m.CreatedAt = id, source, created.UTC()
	return nil
}

// Replace sets the view to a history that was compacted elsewhere: known ids
// stay, absent ones are excluded (reason replaced), new ones are appended where
// they stand in the list, in front of a tool group that they would split. revision is what View returned; ErrStale if the session
// has moved on. It returns the run.
func (s *Store) Replace(ctx context.Context, k Key, revision int64, msgs []NewMessage, by string) (int64, error) {
	return s.ReplaceSeen(ctx, k, revision, 0, msgs, by)
}

// ReplaceSeen is Replace for a caller that read the view up to seen while others
// may go on appending: what came behind it stays. 0 is everything.
func (s *Store) ReplaceSeen(ctx context.Context, k Key, revision int64, seen chat.Seq, msgs []NewMessage, by string) (int64, error) {
	for i := range msgs {
		chat.Sanitize(&msgs[i].Message)
	}
	raw, err := encode(msgs)
	if err != nil {
		return 0, fmt.Errorf("replace view of session %s: %w", k, err)
	}
	const query = `SELECT compactor.replace_view($1, $2, $3, $4, $5, nullif($6, 0))`
	var run int64
	if err := s.pool.QueryRow(ctx, s.q(query), k.tenant(), k.Session, revision, raw, by, seen).Scan(&run); err != nil {
		return 0, fmt.Errorf("replace view of session %s: %w", k, mapError(err))
	}
	return run, nil
}

// ReportUsage records the provider's own count of a prompt that held the view up
// to seq (0: all of it). It reports false for a prompt older than the last
// compaction, which changes nothing.
func (s *Store) ReportUsage(ctx context.Context, k Key, promptTokens chat.Tokens, seq chat.Seq) (bool, error) {
	const query = `SELECT compactor.report_usage($1, $2, $3, nullif($4, 0))`
	var used bool
	if err := s.pool.QueryRow(ctx, s.q(query), k.tenant(), k.Session, promptTokens, seq).Scan(&used); err != nil {
		return false, fmt.Errorf("report usage of session %s: %w", k, mapError(err))
	}
	return used, nil
}

// Pin keeps a source message in the view whatever runs want; one that is out
// comes back by the run this makes due. Idempotent.
func (s *Store) Pin(ctx context.Context, k Key, messageID string) error {
	_, err := s.pool.Exec(ctx, s.q(`SELECT compactor.pin($1, $2, $3)`), k.tenant(), k.Session, messageID)
	return wrap("pin", err)
}

// Unpin takes a pin away; the message stays in the view until a run excludes it.
func (s *Store) Unpin(ctx context.Context, k Key, messageID string) error {
	_, err := s.pool.Exec(ctx, s.q(`SELECT compactor.unpin($1, $2, $3)`), k.tenant(), k.Session, messageID)
	return wrap("unpin", err)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, mapError(err))
}
