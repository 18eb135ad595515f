package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// The methods here need the rights of the role operator.

// ViewState is what a view depends on: it is the same as long as both are.
type ViewState struct {
	Revision int64
	LastSeq  chat.Seq
}

const queryViewState = `SELECT revision, last_seq FROM compactor.sessions WHERE tenant = $1 AND id = $2`

// ViewState returns the state of a session's view, by one look-up in an index. ErrNotFound: there is no
// such session.
func (s Reader) ViewState(ctx context.Context, k Key) (ViewState, error) {
	return queryRow(ctx, s.Store, fmt.Sprintf("view of session %s", k), pgx.RowToStructByPos[ViewState], queryViewState, k.tenant(), k.Session)
}

// RawView is a view as a JSON array of messages, as they are stored.
type RawView struct {
	ViewState
	Messages json.RawMessage
	// FormatKeys reports that messages may have keys of formats that they were read from: see formats.WithoutKeys.
	FormatKeys bool
}

// RawView returns the messages to send to the model without decoding them; with their ids, as
// ReplaceRaw takes them, if ids is set. ErrNotFound: there is no such session.
func (s Reader) RawView(ctx context.Context, k Key, ids bool) (RawView, error) {
	query := `SELECT revision, last_seq, format_keys, messages FROM compactor.view_text($1, $2)`
	if ids {
		query = `SELECT revision, seen, true, messages::text FROM compactor.view_with_revision($1, $2)`
	}
	return queryRow(ctx, s.Store, fmt.Sprintf("view of session %s", k), func(row pgx.CollectableRow) (v RawView, err error) {
		return v, row.Scan(&v.Revision, &v.LastSeq, &v.FormatKeys, (*[]byte)(&v.Messages))
	}, query, k.tenant(), k.Session)
}

// WholeView is a view with what a compaction of it depends on.
type WholeView struct {
	ViewState
	Model string
	// TailStart is the seq from which on no run has changed the view of what was said. (That of the table
	// is behind a summary that is out of the view again, and so behind all messages after an undo.)
	TailStart chat.Seq
	Messages  []Stored // with Pinned
}

// WholeView returns the view of a session. ErrNotFound: there is no such session.
func (s Reader) WholeView(ctx context.Context, k Key) (v WholeView, err error) {
	const query = `
		SELECT coalesce(v.seq, 0), coalesce(v.id, ''), coalesce(v.kind, ''), coalesce(v.message, 'null')::text, coalesce(v.token_count, 0),
			coalesce(v.created_at, '0001-01-01Z'), coalesce(v.source_id, ''), coalesce(s.pinned @> v.seq, false),
			s.revision, s.last_seq, coalesce(s.model, ''), s.tail_start
		FROM (SELECT *, (SELECT coalesce(max(l.seq), 0) + 1 FROM compactor.message_log l
				WHERE l.sid = s.sid AND l.kind = 'm' AND NOT s.flat @> l.seq) AS tail_start
			FROM (SELECT *, live + '{}' AS flat -- a long one is stored compressed, and would be read again for each message
				FROM compactor.sessions WHERE tenant = $1 AND id = $2 OFFSET 0) s OFFSET 0) s
		LEFT JOIN compactor.view($1, $2) v ON true`
	op := fmt.Sprintf("view of session %s", k)
	rows, err := queryRows(ctx, s.Store, op, func(row pgx.CollectableRow) (Stored, error) {
		m := Stored{Included: true}
		var id, body, source string
		var created time.Time
		err := row.Scan(&m.Seq, &id, &m.Kind, &body, &m.Tokens, &created, &source, &m.Pinned, &v.Revision, &v.LastSeq, &v.Model, &v.TailStart)
		if err != nil || m.Seq == 0 {
			return m, err
		}
		return m, m.fill(id, body, source, created)
	}, query, k.tenant(), k.Session)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: %w", op, ErrNotFound)
	}
	if err == nil && rows[0].Seq > 0 {
		v.Messages = rows
	}
	return v, err
}

// Parts returns the view in three parts, each in its order: the summaries of runs, what was said after
// them, with the call that the first of it answers, and what else is before that, such as the system
// prompt and pinned messages.
func (v WholeView) Parts() (summaries, kept, tail []Stored) {
	start, later := len(v.Messages), chat.Open
	for i := len(v.Messages) - 1; i >= 0; i-- {
		m := &v.Messages[i]
		if m.Kind == chat.KindSource && m.Seq < v.TailStart {
			break
		}
		if m.Kind == chat.KindSource && m.Seq < later { // what a replace_view put before others has a higher seq
			start, later = i, m.Seq
		}
	}
	for _, g := range chat.GroupsOf(len(v.Messages), func(i int) *chat.Meta { m := v.Messages[i].Meta(v.Messages[i].Seq); return &m }) {
		if g.Start < start && start < g.End {
			start = g.Start
		}
	}
	for i, m := range v.Messages {
		switch {
		case m.Kind == chat.KindSummary:
			summaries = append(summaries, m)
		case i < start:
			kept = append(kept, m)
		default:
			tail = append(tail, m)
		}
	}
	return summaries, kept, tail
}

// PrefixChanged reports whether what a reader has seen of the view of a revision, up to the message
// seen (0: all of it), stands otherwise in the present view, so that a cache or a thread of a provider
// that was begun with it is of no use. A run that was undone changes nothing. ErrNotFound: there is no
// such session.
func (s Reader) PrefixChanged(ctx context.Context, k Key, revision int64, seen chat.Seq) (bool, error) {
	op := fmt.Sprintf("prefix of session %s", k)
	changed, err := queryRow(ctx, s.Store, op, pgx.RowTo[*bool], `SELECT compactor.prefix_changed($1, $2, $3, nullif($4, 0))`, k.tenant(), k.Session, revision, seen)
	if err == nil && changed == nil {
		err = fmt.Errorf("%s: %w", op, ErrNotFound)
	}
	return err == nil && *changed, err
}
