package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// RunMatch selects compactions in force. Zero fields match all.
type RunMatch struct {
	Since time.Time `json:"since,omitzero"` // they ended then or later
	Until time.Time `json:"until,omitzero"` // they ended before
	// Trigger, Strategy (of one of the steps) and Policy are names.
	Trigger  string `json:"trigger,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	Policy   string `json:"policy,omitempty"`
	Version  int    `json:"version,omitempty"` // of the policy
	// Model is a prefix of the session's model, Writer one of the model that wrote a summary.
	Model  string `json:"model,omitempty"`
	Writer string `json:"writer,omitempty"`
}

// BulkUndoPreview is what a bulk undo would be about. Later counts the runs on top of those
// that match, which are in their way without cascade.
type BulkUndoPreview struct {
	Runs     int64       `json:"runs"`
	Sessions int64       `json:"sessions"`
	Tokens   chat.Tokens `json:"tokens"` // that come back into views
	Later    int64       `json:"later_runs"`
}

// PreviewBulkUndo returns what a bulk undo would be about. An empty tenant means all. It reads
// all runs.
func (s *Store) PreviewBulkUndo(ctx context.Context, tenant string, m RunMatch) (BulkUndoPreview, error) {
	const query = `SELECT runs, sessions, tokens, later FROM compactor.preview_bulk_undo($1, $2)`
	filter, err := json.Marshal(m)
	if err != nil {
		return BulkUndoPreview{}, fmt.Errorf("bulk undo: %w", err)
	}
	return queryRow(ctx, s, "preview bulk undo", pgx.RowToStructByPos[BulkUndoPreview], query, tenant, string(filter))
}

// StartBulkUndo records a bulk undo of the runs that match now, those of a tenant or, if that is
// empty, of all; NextBulkUndo does it. With cascade, later runs of a session are undone with the
// one that matches.
func (s *Store) StartBulkUndo(ctx context.Context, tenant string, m RunMatch, cascade bool, note, by string) (int64, error) {
	const query = `SELECT compactor.start_bulk_undo($1, $2, $3, $4, $5)`
	filter, err := json.Marshal(m)
	if err != nil {
		return 0, fmt.Errorf("bulk undo: %w", err)
	}
	return queryRow(ctx, s, "start bulk undo", pgx.RowTo[int64], query, tenant, string(filter), cascade, note, by)
}

// BulkUndoStep is a run that a bulk undo came to. Code is undone, or why the run stays in force:
// later_runs, in_use, locked or not_applicable. With Run 0 there was none left, and Code is the
// status of the bulk undo.
type BulkUndoStep struct {
	Run  RunID
	Code string
}

// NextBulkUndo undoes the next run of a bulk undo, the newest first, in one transaction. After an
// interruption the next call goes on. Concurrent calls take turns.
func (s *Store) NextBulkUndo(ctx context.Context, id int64) (BulkUndoStep, error) {
	const query = `SELECT coalesce(run, 0), code FROM compactor.bulk_undo_next($1)`
	return queryRow(ctx, s, "bulk undo", pgx.RowToStructByPos[BulkUndoStep], query, id)
}

// CancelBulkUndo ends a bulk undo that is open. What it undid stays so.
func (s *Store) CancelBulkUndo(ctx context.Context, id int64) error {
	_, err := s.pool.Exec(ctx, s.q(`SELECT compactor.cancel_bulk_undo($1)`), id)
	return wrap("cancel bulk undo", err)
}

// BulkUndo is a bulk undo with its progress.
type BulkUndo struct {
	ID          int64      `json:"id"`
	Tenant      string     `json:"tenant,omitempty"`
	Match       RunMatch   `json:"filter"`
	Cascade     bool       `json:"cascade"`
	Note        string     `json:"note,omitempty"`
	RequestedBy string     `json:"requested_by"`
	RequestedAt time.Time  `json:"requested_at"`
	Status      string     `json:"status"` // open, done or cancelled
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	Matched     int64      `json:"matched"` // runs, at the beginning
	Undone      int64      `json:"undone"`
	Refused     int64      `json:"refused"`
}

const queryBulkUndos = `SELECT id, tenant, filter, cascade, note, requested_by, requested_at, status, ended_at, matched, undone, refused FROM compactor.bulk_undos`

// BulkUndos returns the latest bulk undos, the newest first.
func (s *Store) BulkUndos(ctx context.Context, limit int) ([]BulkUndo, error) {
	return queryRows(ctx, s, "list bulk undos", pgx.RowToStructByPos[BulkUndo], queryBulkUndos+` ORDER BY id DESC LIMIT $1`, limit)
}

// BulkUndo returns a bulk undo. ErrNotFound names it.
func (s *Store) BulkUndo(ctx context.Context, id int64) (BulkUndo, error) {
	rows, err := queryRows(ctx, s, "bulk undo", pgx.RowToStructByPos[BulkUndo], queryBulkUndos+` WHERE id = $1`, id)
	switch {
	case err != nil:
		return BulkUndo{}, err
	case len(rows) == 0:
		return BulkUndo{}, fmt.Errorf("bulk undo %d: %w", id, ErrNotFound)
	}
	return rows[0], nil
}

// BulkUndoRefusal is a run that a bulk undo left in force.
type BulkUndoRefusal struct {
	Run     RunID  `json:"run"`
	Session string `json:"session"`
	Tenant  string `json:"tenant"`
	Code    string `json:"code"`
}

// BulkUndoRefusals returns the runs that a bulk undo left in force, the newest first.
func (s *Store) BulkUndoRefusals(ctx context.Context, id int64, limit int) ([]BulkUndoRefusal, error) {
	const query = `
		SELECT f.run, n.id, n.tenant, f.code FROM compactor.bulk_undo_refusals f
		JOIN compactor.sessions n ON n.sid = f.sid
		WHERE f.bulk_undo = $1 ORDER BY f.run DESC LIMIT $2`
	return queryRows(ctx, s, "bulk undo", pgx.RowToStructByPos[BulkUndoRefusal], query, id, limit)
}
