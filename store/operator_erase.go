package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Erasure records that content was erased, or is to be: that of messages, of a session or of
// a tenant.
type Erasure struct {
	ID      int64    `json:"id"`
	Tenant  string   `json:"tenant"`
	Session string   `json:"session,omitempty"`  // empty: all of the tenant
	IDs     []string `json:"messages,omitempty"` // of messages; empty: all of the session
	Note    string   `json:"note"`

	RequestedBy string    `json:"requested_by"`
	RequestedAt time.Time `json:"requested_at"`
	// Of a tenant, nothing is erased before the request is confirmed.
	ConfirmedBy string    `json:"confirmed_by,omitempty"`
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`

	// The numbers that were erased; of a tenant before it is confirmed, those at the request.
	Sessions int64 `json:"sessions"` // with those that have copies, as forks do
	Messages int64 `json:"messages_erased"`
	Derived  int64 `json:"derived"` // summaries and replacements
	Answers  int64 `json:"answers"` // stored answers of models
	// Repeats are later messages that hold text of the erased ones, or may: those that are not
	// erased with them are left to the operator.
	Repeats []Repeat `json:"repeats,omitempty"`
}

const erasureColumns = `id, tenant, coalesce(session, ''), coalesce(ids, '{}'), note, requested_by, requested_at,
	coalesce(confirmed_by, ''), coalesce(confirmed_at, '0001-01-01Z'), coalesce(ended_at, '0001-01-01Z'),
	sessions, messages, derived, answers, repeats`

// Erase erases the content of messages in a session and in all forks that share them, or with no
// ids that of the whole session and of its copies in forks, with its labels and its metadata. It
// also erases summaries and replacements that may repeat the content, messages of later
// replacements of the view that hold parts of it, and all stored answers of models for these
// sessions. The rows of messages stay, with their ids; an undo restores no erased content. note
// is the reason. With dryRun, Erase changes nothing and returns the erasure that it would make.
// It is one transaction, which locks the sessions. ErrDamaged: a segment of the archive to
// rewrite cannot be read, and nothing has changed.
func (s Admin) Erase(ctx context.Context, k Key, ids []string, note, by string, dryRun bool) (Erasure, error) {
	return s.erase(ctx, k, ids, note, by, func(Erasure) error {
		if dryRun {
			return errRollback
		}
		return nil
	})
}

// EraseShown erases as Erase does if that is what a dry run has shown, by its token. ErrStale: it would
// erase something else by now, and nothing has changed.
func (s Admin) EraseShown(ctx context.Context, k Key, ids []string, note, by, token string) (Erasure, error) {
	return s.erase(ctx, k, ids, note, by, func(e Erasure) error {
		if e.Preview().Token != token {
			return &Error{Kind: ErrStale, Message: "what would be erased is not what was shown", Hint: "Preview it again."}
		}
		return nil
	})
}

// erase erases unless check, which is called with the erasure, returns an error.
func (s Admin) erase(ctx context.Context, k Key, ids []string, note, by string, check func(Erasure) error) (e Erasure, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		repeats, more, err := s.repeats(ctx, tx, k, ids)
		if err != nil {
			return err
		}
		const query = `SELECT ` + erasureColumns + ` FROM compactor.erase($1, $2, $3, $4, $5, $6, $7)`
		rows, _ := tx.Query(ctx, s.q(query), k.tenant(), k.Session, ids, note, by, more, repeats) // rows hold the error
		e, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Erasure])
		if err == nil {
			err = check(e)
		}
		if err == nil && e.EndedAt.IsZero() {
			e, err = s.eraseSegments(ctx, tx, e.ID)
		}
		return err
	})
	if errors.Is(err, errRollback) {
		err = nil
	}
	return e, wrap("erase", err)
}

// ErasurePreview is what an erasure would do.
type ErasurePreview struct {
	Tenant     string          `json:"tenant"`
	Session    string          `json:"session"`
	IDs        []string        `json:"messages"` // empty: all of the session
	Repeats    []RepeatPreview `json:"repeats"`
	WouldErase struct {
		Messages int64 `json:"messages"`
		Derived  int64 `json:"derived"`
		Answers  int64 `json:"answers"`
		Sessions int64 `json:"sessions"`
	} `json:"would_erase"`
	// Token is of all of this: see EraseShown.
	Token string `json:"confirm"`
}

// RepeatPreview is a Repeat before anything is erased.
type RepeatPreview struct {
	Session  string `json:"session"`
	Message  string `json:"message"`
	Replaced bool   `json:"replaced"`
	Holds    bool   `json:"holds"`
	Erased   bool   `json:"would_erase"`
}

// Preview returns the effects of an erasure, without the id and the times of one that is done.
func (e Erasure) Preview() ErasurePreview {
	p := ErasurePreview{Tenant: e.Tenant, Session: e.Session, IDs: append([]string{}, e.IDs...), Repeats: []RepeatPreview{}}
	for _, r := range e.Repeats {
		p.Repeats = append(p.Repeats, RepeatPreview(r))
	}
	w := &p.WouldErase
	w.Messages, w.Derived, w.Answers, w.Sessions = e.Messages, e.Derived, e.Answers, e.Sessions
	raw, _ := json.Marshal(p) // never fails
	sum := sha256.Sum256(raw)
	p.Token = hex.EncodeToString(sum[:8])
	return p
}

// eraseSegments replaces each segment that holds content of an erasure by one without it, which
// it has read back, and ends the erasure.
func (s Admin) eraseSegments(ctx context.Context, tx pgx.Tx, id int64) (e Erasure, err error) {
	type part struct {
		id, sid int64
		keep    chat.Ranges
	}
	parts, err := collectRows(ctx, s.Store, tx, func(row pgx.CollectableRow) (p part, err error) {
		return p, row.Scan(&p.id, &p.sid, rangesText{&p.keep})
	}, `SELECT id, sid, keep::text FROM compactor.segments_to_erase($1)`, id)
	if err != nil {
		return e, err
	}
	for _, p := range parts {
		old, err := s.segment(ctx, tx, p.id)
		if err != nil {
			return e, err
		}
		bodies, err := old.unpack(p.keep)
		if err != nil {
			return e, err
		}
		g, back, err := s.addSegment(ctx, tx, p.sid, bodies, &p.id)
		if err != nil {
			return e, err
		}
		seqs, texts := split(back)
		if _, err := tx.Exec(ctx, s.q(`SELECT compactor.replace_segment($1, $2, $3, $4)`), p.id, g, seqs, texts); err != nil {
			return e, err
		}
	}
	if _, err := tx.Exec(ctx, s.q(`SELECT compactor.end_erasure($1)`), id); err != nil {
		return e, err
	}
	rows, _ := tx.Query(ctx, s.q(queryErasure), id) // rows hold the error
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Erasure])
}

// RequestErasure records that all sessions of a tenant are to be erased, once ConfirmErasure has
// confirmed it.
func (s Admin) RequestErasure(ctx context.Context, tenant, note, by string) (Erasure, error) {
	const query = `SELECT ` + erasureColumns + ` FROM compactor.request_erasure($1, $2, $3)`
	return queryRow(ctx, s.Store, "request erasure", pgx.RowToStructByPos[Erasure], query, tenant, note, by)
}

// ConfirmErasure confirms the erasure of a tenant, within a week of its request; NextErasure does
// it. One that is confirmed stays so.
func (s Admin) ConfirmErasure(ctx context.Context, id int64, tenant, by string) (Erasure, error) {
	const query = `SELECT ` + erasureColumns + ` FROM compactor.confirm_erasure($1, $2, $3)`
	return queryRow(ctx, s.Store, "confirm erasure", pgx.RowToStructByPos[Erasure], query, id, tenant, by)
}

// NextErasure erases the next session of a tenant whose erasure is confirmed, in a transaction of
// its own; EndedAt is set when there was none left. After an interruption the next call goes on.
// Concurrent calls take turns.
func (s Admin) NextErasure(ctx context.Context, id int64, tenant string) (Erasure, error) {
	const query = `SELECT ` + erasureColumns + ` FROM compactor.erase_next($1, $2)`
	return queryRow(ctx, s.Store, "erase tenant", pgx.RowToStructByPos[Erasure], query, id, tenant)
}

const queryErasure = `SELECT ` + erasureColumns + ` FROM compactor.erasures WHERE id = $1`

// Erasure returns an erasure.
func (s Admin) Erasure(ctx context.Context, id int64) (Erasure, error) {
	return queryRow(ctx, s.Store, fmt.Sprintf("erasure %d", id), pgx.RowToStructByPos[Erasure], queryErasure, id)
}

// Erasures returns the latest erasures of a tenant, the newest first; those of all if it is empty.
func (s Admin) Erasures(ctx context.Context, tenant string, limit int) ([]Erasure, error) {
	const query = `SELECT ` + erasureColumns + ` FROM compactor.erasures WHERE $1 IN ('', tenant) ORDER BY id DESC LIMIT $2`
	return queryRows(ctx, s.Store, "list erasures", pgx.RowToStructByPos[Erasure], query, tenant, limit)
}
