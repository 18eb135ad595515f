package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// DefaultTenant is the tenant of everything that names none.
const DefaultTenant = "default"

// Key identifies a session. An empty Tenant is DefaultTenant.
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

// NewMessage is a message to append. Without a Counter, Tokens is ignored and the store
// estimates a token per three bytes.
type NewMessage struct {
	chat.Message
	Tokens  chat.Tokens
	Counter string
}

// encode returns messages as the JSON argument of the SQL function append. Bodies are
// stored as encoded here, so nothing is escaped without need.
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

// SetModel sets the model of a session, and with it the thresholds, as an Append with
// another model does.
func (s *Store) SetModel(ctx context.Context, k Key, model string) error {
	return execute(ctx, s, "set model", `SELECT compactor.set_model($1, $2, $3)`, k.tenant(), k.Session, model)
}

// SetLabels replaces the labels of a session, which policies match, and for its children those
// that they have not themselves. A session that does not exist is created.
func (s *Store) SetLabels(ctx context.Context, k Key, labels map[string]string) error {
	raw, err := json.Marshal(labels)
	if err != nil {
		return fmt.Errorf("set labels: %w", err)
	}
	return execute(ctx, s, "set labels", `SELECT compactor.set_labels($1, $2, $3)`, k.tenant(), k.Session, string(raw))
}

// SetParent makes a session the child of another one of its tenant; an empty name takes that
// back. A session that does not exist is created, the parent has to exist: ErrNotFound.
// ErrInvalid: the parent is the session itself or below it, or the line is too long.
func (s *Store) SetParent(ctx context.Context, k Key, parent string) error {
	return execute(ctx, s, "set parent", `SELECT compactor.set_parent($1, $2, $3)`, k.tenant(), k.Session, parent)
}

// Fork creates a session, a child of k, with a copy of the messages of k up to one of them,
// and of the runs that were applied by then, so its view is the one that k had. at is the
// message's id or its seq, empty for the last one. Fork returns the number of messages. An
// append to k waits until the copy is made. ErrConflict: the session exists.
func (s *Store) Fork(ctx context.Context, k Key, session, at string) (messages int64, err error) {
	const query = `SELECT compactor.fork($1, $2, $3, $4)`
	return restoring(ctx, s, k, func() (int64, error) {
		return queryRow(ctx, s, "fork", pgx.RowTo[int64], query, k.tenant(), k.Session, session, at)
	})
}

// State is the state of a session that an application reports, for the triggers of policies;
// nil leaves a part as it is. Closed and Overflow, of a prompt that did not fit into the
// window, are events: they hold until a run has seen them.
type State struct {
	Closed          *bool `json:"closed,omitempty"`
	Overflow        *bool `json:"overflow,omitempty"`
	NeedsFollowUp   *bool `json:"needs_follow_up,omitempty"`
	HasPendingInput *bool `json:"has_pending_input,omitempty"`
}

// ReportState reports the state of a session. ErrNotFound names it.
func (s *Store) ReportState(ctx context.Context, k Key, state State) error {
	return execute(ctx, s, "report state", `SELECT compactor.report_state($1, $2, $3)`, k.tenant(), k.Session, state)
}

// SetPolicy names the policy of a session, whatever it matches; an empty name takes that
// back. ErrNotFound: no policy of the name is in force for the session's tenant.
func (s *Store) SetPolicy(ctx context.Context, k Key, policy string) error {
	return execute(ctx, s, "set policy", `SELECT compactor.set_policy($1, $2, $3)`, k.tenant(), k.Session, policy)
}

// SessionChange holds properties to set; nil leaves one as it is.
type SessionChange struct {
	Model  *string           `json:"model,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Parent *string           `json:"parent,omitempty"`
	Policy *string           `json:"policy,omitempty"`
}

// Configure sets properties of a session as SetModel, SetLabels, SetParent and SetPolicy do, all or
// none of them. ErrNotFound names the session.
func (s *Store) Configure(ctx context.Context, k Key, c SessionChange) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var exists bool
		if err := tx.QueryRow(ctx, s.q(`SELECT compactor.view_revision($1, $2) IS NOT NULL`), k.tenant(), k.Session).Scan(&exists); err != nil || !exists {
			return cmp.Or(err, pgx.ErrNoRows)
		}
		for _, p := range []struct {
			value any
			given bool
			query string
		}{
			{c.Model, c.Model != nil, `SELECT compactor.set_model($1, $2, $3)`},
			{c.Labels, c.Labels != nil, `SELECT compactor.set_labels($1, $2, $3::jsonb)`},
			{c.Parent, c.Parent != nil, `SELECT compactor.set_parent($1, $2, $3)`},
			{c.Policy, c.Policy != nil, `SELECT compactor.set_policy($1, $2, $3)`},
		} {
			if !p.given {
				continue
			}
			if _, err := tx.Exec(ctx, s.q(p.query), k.tenant(), k.Session, p.value); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(fmt.Sprintf("session %s", k), err)
}

// queryView returns one row with seq 0 for an empty view, so that its revision is read.
const queryView = `
	SELECT coalesce(v.seq, 0), coalesce(v.id, ''), coalesce(v.kind, ''), coalesce(v.message, 'null')::text, coalesce(v.token_count, 0),
		coalesce(v.created_at, '0001-01-01Z'), coalesce(v.source_id, ''), revision
	FROM compactor.view_revision($1, $2) revision LEFT JOIN compactor.view($1, $2) v ON true WHERE revision IS NOT NULL`

// View returns the messages to send to the model, in order, and the revision of the view.
// A session that does not exist has no messages and revision 0.
func (s *Store) View(ctx context.Context, k Key) (msgs []Stored, revision int64, err error) {
	msgs, err = queryRows(ctx, s, fmt.Sprintf("view of session %s", k), func(row pgx.CollectableRow) (Stored, error) {
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
	}, queryView, k.tenant(), k.Session)
	if err != nil {
		return nil, 0, err
	}
	if len(msgs) == 1 && msgs[0].Seq == 0 {
		msgs = nil
	}
	return msgs, revision, nil
}

// All returns every message of a session, excluded ones with the reason.
func (s *Store) All(ctx context.Context, k Key) ([]Stored, error) {
	return s.Among(ctx, k, chat.Ranges{{Lo: 1, Hi: chat.Open}})
}

// Among returns the messages of a session with a seq in ranges, in the form of All.
func (s *Store) Among(ctx context.Context, k Key, ranges chat.Ranges) ([]Stored, error) {
	const query = `
		SELECT seq, id, kind, coalesce(body, ''), role, token_count, counter, coalesce(created_at, '0001-01-01Z'),
			coalesce(source_id, ''), included, coalesce(reason, ''), coalesce(excluded_by, 0), coalesce(summarized_by, ''),
			pinned, coalesce(summary_of, '{}')::text, coalesce(bared_by, 0)
		FROM compactor.messages_among($1, $2, $3)`
	all, err := queryRows(ctx, s, fmt.Sprintf("messages of session %s", k), func(row pgx.CollectableRow) (Stored, error) {
		var m Stored
		var id, body, source string
		var created time.Time
		var role chat.Role
		err := row.Scan(&m.Seq, &id, &m.Kind, &body, &role, &m.Tokens, &m.Counter, &created, &source, &m.Included,
			&m.ExcludeReason, &m.ExcludedBy, &m.SummarizedBy, &m.Pinned, rangesText{&m.SummaryOf}, &m.ReasoningExcludedBy)
		if err != nil {
			return m, err
		}
		if body == "" {
			m.Role, m.Purged = role, true // until the archive has it
		}
		return m, m.fill(id, body, source, created)
	}, query, k.tenant(), k.Session, ranges.String())
	if err != nil {
		return all, err
	}
	var archived []*Stored
	for i := range all {
		if all[i].Purged {
			archived = append(archived, &all[i])
		}
	}
	_, err = s.fillArchived(ctx, k, archived)
	return all, err
}

// fill decodes the body, unless it is empty, and sets the fields stored beside it. A message
// without a time has the zero time, also in queries.
func (m *Stored) fill(id, body, source string, created time.Time) error {
	if body != "" { // otherwise it is in the archive
		if err := m.UnmarshalJSON([]byte(body)); err != nil {
			text := fmt.Sprintf("stored message %d cannot be read: %v", m.Seq, err)
			return &Error{Kind: errInternal, Message: text, Hint: hintDamaged}
		}
	}
	m.ID, m.SourceID = id, source
	if created = created.UTC(); created.Year() >= 1 && created.Year() <= 9999 { // JSON has no other years
		m.CreatedAt = created
	}
	return nil
}

// Exclude takes messages that the application has deleted out of the view, by their ids,
// each with the call, results and reasoning that stay or go with it (reason
// deleted_by_application). The log keeps them, and no run brings them back: an Append or a
// Replace that names the id again does, or an undo of the run that Exclude returns; that
// is 0 if all were deleted already. ErrNotFound names ids that the session does not have.
func (s *Store) Exclude(ctx context.Context, k Key, ids []string, by string) (RunID, error) {
	const query = `SELECT coalesce(compactor.exclude($1, $2, $3, $4), 0)`
	op := fmt.Sprintf("exclude messages of session %s", k)
	return queryRow(ctx, s, op, pgx.RowTo[RunID], query, k.tenant(), k.Session, ids, by)
}

// Replace sets the view to a history that the application compacted: known ids stay or
// come back, absent ones are excluded (reason replaced, or deleted_by_application where
// msgs is empty, which clears the view), and new messages take their position in msgs, or
// before a tool group that they would split. revision is that of View; ErrStale if the
// session has changed since. Replace returns the run that records it.
func (s *Store) Replace(ctx context.Context, k Key, revision int64, msgs []NewMessage, by string) (int64, error) {
	return s.ReplaceSeen(ctx, k, revision, 0, msgs, by)
}

// ReplaceSeen replaces the view up to seen, which the caller has read while others append:
// later messages stay in the view. A seen of 0 stands for the whole view.
func (s *Store) ReplaceSeen(ctx context.Context, k Key, revision int64, seen chat.Seq, msgs []NewMessage, by string) (int64, error) {
	return replace(ctx, s, k, revision, seen, msgs, by, func(*pgx.Batch) {})
}

// replace is ReplaceSeen before other statements of its transaction, in one round trip.
func replace(
	ctx context.Context, s *Store, k Key, revision int64, seen chat.Seq, msgs []NewMessage, by string, after func(*pgx.Batch),
) (run RunID, err error) {
	op := fmt.Sprintf("replace view of session %s", k)
	for i := range msgs {
		chat.Sanitize(&msgs[i].Message)
	}
	raw, err := encode(msgs)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", op, err)
	}
	const query = `SELECT compactor.replace_view($1, $2, $3, $4::json, $5, nullif($6, 0))`
	return restoring(ctx, s, k, func() (RunID, error) {
		var batch pgx.Batch
		batch.Queue(s.q(query), k.tenant(), k.Session, revision, raw, by, seen).QueryRow(func(row pgx.Row) error { return row.Scan(&run) })
		after(&batch)
		return run, wrap(op, s.pool.SendBatch(ctx, &batch).Close())
	})
}

// ReplaceRaw is ReplaceSeen for messages with their ids as chat-completions JSON: a list, or an object with messages. It
// also returns the state of the view, which may have been repaired after the run. The login needs the rights of the role
// operator.
func (s *Store) ReplaceRaw(
	ctx context.Context, k Key, revision int64, seen chat.Seq, raw []byte, by string,
) (run RunID, now ViewState, err error) {
	var doc struct {
		Messages []chat.Message `json:"messages"`
	}
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		err = json.Unmarshal(raw, &doc.Messages)
	} else if err = json.Unmarshal(raw, &doc); err == nil && doc.Messages == nil {
		err = errors.New("want a list of messages, or an object with messages")
	}
	if err != nil {
		return 0, now, fmt.Errorf("replace view of session %s: %w: %w", k, ErrInvalid, err)
	}
	msgs := make([]NewMessage, len(doc.Messages))
	for i, m := range doc.Messages {
		msgs[i].Message = m
	}
	run, err = replace(ctx, s, k, revision, seen, msgs, by, func(batch *pgx.Batch) {
		batch.Queue(s.q(queryViewState), k.tenant(), k.Session).QueryRow(func(row pgx.Row) error { return row.Scan(&now.Revision, &now.LastSeq) })
	})
	return run, now, err
}

// ReportUsage records the provider's token count of a prompt that held the view up to
// seq (0: the whole view). It returns false and changes nothing if the view was
// compacted after that prompt.
func (s *Store) ReportUsage(ctx context.Context, k Key, promptTokens chat.Tokens, seq chat.Seq) (bool, error) {
	return s.ReportCache(ctx, k, Usage{PromptTokens: promptTokens, Seq: seq})
}

// Usage is what a provider counted of a prompt, and what its cache had of it.
type Usage struct {
	PromptTokens chat.Tokens `json:"prompt_tokens"` // with those of the cache
	Seq          chat.Seq    `json:"seq,omitempty"` // the last message of the prompt; 0: the whole view
	// Revision is that of the view in the prompt; nil for the present one.
	Revision      *int64       `json:"revision,omitempty"`
	CachedTokens  *chat.Tokens `json:"cached_tokens,omitempty"`  // read from the cache
	WrittenTokens *chat.Tokens `json:"written_tokens,omitempty"` // written to it
	MissReason    string       `json:"miss_reason,omitempty"`    // the provider's, for a miss of the cache
}

// ReportCache records a Usage as ReportUsage does, and adds what it says of the cache to the sums of
// its revision.
func (s *Store) ReportCache(ctx context.Context, k Key, u Usage) (bool, error) {
	const query = `SELECT compactor.report_usage($1, $2, $3, nullif($4, 0), $5, $6, nullif($7, ''), $8)`
	op := fmt.Sprintf("report usage of session %s", k)
	return queryRow(ctx, s, op, pgx.RowTo[bool], query, k.tenant(), k.Session, u.PromptTokens, u.Seq, u.CachedTokens, u.WrittenTokens, u.MissReason, u.Revision)
}

// Pin prevents runs from excluding source messages, all or none of them. Excluded ones return with
// the next run, for which the session becomes due. Idempotent. Many cost as much as one.
func (s *Store) Pin(ctx context.Context, k Key, messageIDs ...string) error {
	_, err := restoring(ctx, s, k, func() (struct{}, error) {
		const query = `SELECT compactor.pin($1, $2, $3::text[])`
		return struct{}{}, execute(ctx, s, "pin", query, k.tenant(), k.Session, messageIDs)
	})
	return err
}

// BringBack brings a source message back into the view with the next run, for which the session becomes due.
// It is pinned for that, as nothing else brings back a single one, unless it is in the view. BringBack
// returns the message. ErrNotApplicable: a run has written it, so an undo brings it back.
func (s Admin) BringBack(ctx context.Context, k Key, seq chat.Seq) (Stored, error) {
	m, err := s.Reader.Message(ctx, k, seq)
	switch {
	case err != nil || m.Included && m.Kind == chat.KindSource:
		return m, err
	case m.Kind != chat.KindSource:
		return m, fmt.Errorf("message %d was written by a run, an undo brings it back: %w", seq, ErrNotApplicable)
	}
	m.Pinned = true
	return m, s.Pin(ctx, k, m.ID)
}

// Unpin removes pins, all or none; the messages stay in the view until a run excludes them.
func (s *Store) Unpin(ctx context.Context, k Key, messageIDs ...string) error {
	return execute(ctx, s, "unpin", `SELECT compactor.unpin($1, $2, $3::text[])`, k.tenant(), k.Session, messageIDs)
}
