package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// The kinds of bulk operations.
const (
	BulkUndo    = "undo"
	BulkCompact = "compact"
)

// RunMatch selects runs: for an undo the compactions in force, for a recompaction the last
// compaction of each session, dry runs apart. Zero fields match all.
type RunMatch struct {
	Since time.Time `json:"since,omitzero"` // they ended then or later
	Until time.Time `json:"until,omitzero"` // they ended before
	// Strategy is that of one of the steps.
	Trigger  string `json:"trigger,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	Policy   string `json:"policy,omitempty"`
	Version  int    `json:"version,omitempty"` // of the policy
	// Model is a prefix of the session's model, Writer one of the model that wrote a summary.
	Model  string `json:"model,omitempty"`
	Writer string `json:"writer,omitempty"`
}

// Validate returns an ErrInvalid for a match of everything, and for a trigger that there is not.
func (m RunMatch) Validate() error {
	triggers := []string{"", TriggerNightly, TriggerEvent, TriggerOperator, TriggerApplication, TriggerBulk}
	switch {
	case m == RunMatch{}:
		return invalid("want at least one of since, until, writer, model, policy, strategy, trigger and outcome")
	case !slices.Contains(triggers, m.Trigger):
		return invalid("trigger %q: want %s", m.Trigger, strings.Join(triggers[1:], ", "))
	}
	return nil
}

// BulkUndoPreview counts what a bulk undo would undo. Later counts the runs on top of those
// that match: without cascade, they prevent the undo.
type BulkUndoPreview struct {
	Runs     int64       `json:"runs"`
	Sessions int64       `json:"sessions"`
	Tokens   chat.Tokens `json:"tokens"` // that come back into views
	Later    int64       `json:"later_runs"`
}

// PreviewBulkUndo previews a bulk undo. An empty tenant means all. It reads all runs.
func (s Operator) PreviewBulkUndo(ctx context.Context, tenant string, m RunMatch) (BulkUndoPreview, error) {
	const query = `SELECT runs, sessions, tokens, later FROM compactor.preview_bulk_undo($1, $2)`
	return queryRow(ctx, s.Store, "preview bulk undo", pgx.RowToStructByPos[BulkUndoPreview], query, tenant, m)
}

// BulkCompactPreview counts the sessions and tokens of a bulk recompaction.
type BulkCompactPreview struct {
	Sessions  int64       `json:"sessions"`
	Tokens    chat.Tokens `json:"view_tokens"`
	LogTokens chat.Tokens `json:"total_tokens"` // of all their source messages
	Paused    int64       `json:"paused"`       // of the sessions; they are left out
}

// PreviewBulkCompact previews a bulk recompaction. An empty tenant means all. It reads all runs.
func (s Operator) PreviewBulkCompact(ctx context.Context, tenant string, m RunMatch) (BulkCompactPreview, error) {
	const query = `SELECT sessions, tokens, log_tokens, held FROM compactor.preview_bulk_compact($1, $2)`
	return queryRow(ctx, s.Store, "preview bulk compact", pgx.RowToStructByPos[BulkCompactPreview], query, tenant, m)
}

// FirstToUndo returns the first runs that a bulk undo would undo, the newest first.
func (s Reader) FirstToUndo(ctx context.Context, tenant string, m RunMatch, limit int) ([]RunRow, error) {
	const query = queryRuns + ` WHERE r.id = ANY(ARRAY(SELECT compactor.first_to_undo($1, $2, $3))) ORDER BY r.id DESC`
	return queryRows(ctx, s.Store, "preview bulk undo", pgx.RowToStructByPos[RunRow], query, tenant, m, limit)
}

// StartBulkUndo records a bulk undo of the runs that match now, those of a tenant or, if that is
// empty, of all; NextBulkUndo does it. With cascade, later runs of a session are undone with the
// one that matches.
func (s Operator) StartBulkUndo(ctx context.Context, tenant string, m RunMatch, cascade bool, note, by string) (int64, error) {
	return s.startBulk(ctx, BulkUndo, tenant, m, cascade, Options{}, 0, note, by)
}

// StartBulkCompact records a bulk recompaction of the sessions that match now, those of a tenant
// or, if that is empty, of all; a scheduler queues a run of TriggerBulk with options o for each.
// It stops for its failures as a sweep does, see SweepOptions.StopShare.
func (s Operator) StartBulkCompact(
	ctx context.Context, tenant string, m RunMatch, o Options, stopShare float64, note, by string,
) (int64, error) {
	return s.startBulk(ctx, BulkCompact, tenant, m, false, o, stopShare, note, by)
}

func (s Operator) startBulk(
	ctx context.Context, kind, tenant string, m RunMatch, cascade bool, o Options, stopShare float64, note, by string,
) (int64, error) {
	const query = `SELECT compactor.start_bulk($1, $2, $3, $4, $5, $6, $7, $8)`
	return queryRow(ctx, s.Store, "start bulk "+kind, pgx.RowTo[int64], query,
		kind, tenant, m, cascade, o, note, by, cmp.Or(stopShare, DefaultStopShare))
}

// BulkUndoStep is a run that a bulk undo has processed. Code is undone, or the reason that the
// run stays in force: later_runs, in_use, locked, archived, purged or not_applicable. With Run 0
// there was none left, and Code is the status of the bulk undo.
type BulkUndoStep struct {
	Run  RunID
	Code string
}

// NextBulkUndo undoes the next run of a bulk undo, the newest first, in one transaction. After an
// interruption the next call goes on. Concurrent calls take turns.
func (s Operator) NextBulkUndo(ctx context.Context, id int64) (BulkUndoStep, error) {
	const query = `SELECT coalesce(run, 0), code FROM compactor.bulk_undo_next($1)`
	return queryRow(ctx, s.Store, "bulk undo", pgx.RowToStructByPos[BulkUndoStep], query, id)
}

// OpenBulkCompacts returns the bulk recompactions to take pages of, the oldest first.
func (s Scheduler) OpenBulkCompacts(ctx context.Context) ([]int64, error) {
	const query = `SELECT id FROM compactor.bulk_operations WHERE kind = 'compact' AND status = 'open' ORDER BY id`
	return queryRows(ctx, s.Store, "open bulk compacts", pgx.RowTo[int64], query)
}

// BulkCompactPage queues runs for up to limit sessions of an open bulk recompaction and advances
// it, in one transaction. The caller enqueues the runs. more reports that there may be others
// now: it is open, and its sessions are not paused.
func (s Scheduler) BulkCompactPage(ctx context.Context, id int64, limit int, grace time.Duration) (page []Delivery, more bool, err error) {
	const query = `SELECT runs, status IS NOT DISTINCT FROM 'open' FROM compactor.bulk_compact_page($1, $2, $3)`
	var runs []RunID
	if err := s.pool.QueryRow(ctx, s.q(query), id, limit, grace).Scan(&runs, &more); err != nil {
		return nil, false, wrap("bulk compact", err)
	}
	for _, run := range runs {
		page = append(page, Delivery{Run: run, Attempt: 1, Trigger: TriggerBulk})
	}
	return page, more, nil
}

// CancelBulk ends an open bulk operation of a kind. Its changes stay; its runs that no worker
// has tried end as cancelled.
func (s Operator) CancelBulk(ctx context.Context, kind string, id int64, by string) error {
	return execute(ctx, s.Store, "cancel bulk "+kind, `SELECT compactor.cancel_bulk($1, $2, $3)`, kind, id, by)
}

// ResumeBulkCompact opens a bulk recompaction again that was cancelled or has stopped.
// ErrNotApplicable: it is done.
func (s Operator) ResumeBulkCompact(ctx context.Context, id int64, by string) error {
	return execute(ctx, s.Store, "resume bulk compact", `SELECT compactor.resume_bulk_compact($1, $2)`, id, by)
}

// BulkOperation is a bulk undo or recompaction with its progress.
type BulkOperation struct {
	ID          int64      `json:"id"`
	Kind        string     `json:"kind"`
	Tenant      string     `json:"tenant,omitempty"`
	Match       RunMatch   `json:"filter"`
	Cascade     bool       `json:"cascade"`
	Options     Options    `json:"options"` // of the runs of a recompaction
	Note        string     `json:"note,omitempty"`
	RequestedBy string     `json:"requested_by"`
	RequestedAt time.Time  `json:"requested_at"`
	Status      string     `json:"status"` // open, done, cancelled or stopped, for its failures
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	Matched     int64      `json:"matched"` // runs or sessions, at the beginning
	Done        int64      `json:"done"`    // runs undone, or queued
	Refused     int64      `json:"refused"`
	// Waiting and Running are the present states of the runs of a recompaction.
	Waiting int64 `json:"waiting"`
	Running int64 `json:"running"`
}

// Settled reports whether the operation does nothing more and all of its runs have ended.
func (b BulkOperation) Settled() bool { return b.Status != "open" && b.Waiting+b.Running == 0 }

const queryBulks = `
	SELECT id, kind, tenant, filter, cascade, options, note, requested_by, requested_at, status, ended_at, matched, done, refused,
		r.waiting, r.running
	FROM compactor.bulk_operations b CROSS JOIN LATERAL (
		SELECT count(*) FILTER (WHERE status = 'queued') AS waiting, count(*) FILTER (WHERE status = 'running') AS running
		FROM compactor.runs WHERE bulk = b.id AND status IN ('queued', 'running')) r
	WHERE kind = $1 AND (b.tenant = (SELECT compactor.bound_tenant())) IS NOT FALSE`

// Bulks returns the latest bulk operations of a kind, the newest first, of those before one unless that is 0.
func (s Operator) Bulks(ctx context.Context, kind string, before int64, limit int) ([]BulkOperation, error) {
	const query = queryBulks + ` AND ($3 = 0 OR id < $3) ORDER BY id DESC LIMIT $2`
	return queryRows(ctx, s.Store, "list bulk "+kind, pgx.RowToStructByPos[BulkOperation], query, kind, limit, before)
}

// Bulk returns a bulk operation. ErrNotFound names it.
func (s Operator) Bulk(ctx context.Context, kind string, id int64) (BulkOperation, error) {
	op := fmt.Sprintf("bulk %s %d", kind, id)
	return queryRow(ctx, s.Store, op, pgx.RowToStructByPos[BulkOperation], queryBulks+` AND id = $2`, kind, id)
}

// BulkReport is a bulk operation with some of what it left alone, and how its runs ended.
type BulkReport struct {
	BulkOperation
	Refusals []BulkRefusal `json:"refusals,omitempty"`
	Outcomes []RunOutcome  `json:"outcomes,omitempty"`
}

// BulkReport returns a bulk operation with so many of its refusals. ErrNotFound names it.
func (s Operator) BulkReport(ctx context.Context, kind string, id int64, refusals int) (out BulkReport, err error) {
	if out.BulkOperation, err = s.Bulk(ctx, kind, id); err != nil {
		return out, err
	}
	out.RequestedAt = out.RequestedAt.UTC()
	if out.Refusals, err = s.BulkRefusals(ctx, id, 0, refusals); err == nil {
		out.Outcomes, err = s.BulkOutcomes(ctx, id)
	}
	return out, err
}

// BulkOutcomes counts the ended runs of a bulk recompaction by outcome, the most frequent first.
func (s Operator) BulkOutcomes(ctx context.Context, id int64) ([]RunOutcome, error) {
	query := fmt.Sprintf(queryRunOutcomes, "bulk")
	return queryRows(ctx, s.Store, "outcomes of a bulk compact", pgx.RowToStructByPos[RunOutcome], query, id)
}

// BulkRefusal is a run that a bulk undo left in force, or the last one of a session that a
// recompaction left out.
type BulkRefusal struct {
	Run     RunID  `json:"run"`
	Session string `json:"session"`
	Tenant  string `json:"tenant"`
	Code    string `json:"code"`
}

// BulkRefusals returns the refusals of a bulk operation, the newest runs first, of those before one
// unless that is 0.
func (s Operator) BulkRefusals(ctx context.Context, id int64, before RunID, limit int) ([]BulkRefusal, error) {
	const query = `
		SELECT f.run, n.id, n.tenant, f.code FROM compactor.bulk_refusals f JOIN compactor.sessions n ON n.sid = f.sid
		WHERE f.bulk = $1 AND ($3 = 0 OR f.run < $3) ORDER BY f.run DESC LIMIT $2`
	return queryRows(ctx, s.Store, "bulk refusals", pgx.RowToStructByPos[BulkRefusal], query, id, limit, before)
}
