package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Explanation holds the state of a session that decides about its runs.
type Explanation struct {
	SessionRow
	Labels         map[string]string // its own and, under other keys, those of its parent
	PolicyOverride string
	// PolicyHash is that of the session's thresholds.
	PolicyHash           string
	LiveEstimatedTokens  chat.Tokens
	ReportedPromptTokens *chat.Tokens
	TokensSinceReport    chat.Tokens
	Line                 Line  // of the model and the tenant
	Reports              int64 // that taught it
	// State is empty, StateQuarantined, with a reason, or StateServiceManaged.
	State            string
	QuarantineReason string
	// Held are the reasons that hold it back, in the order of HeldReasons.
	Held []Held
	// LoopSeq is set while a run waits for the end of an open tool loop with signed reasoning,
	// to the last message that the run saw.
	LoopSeq         *chat.Seq
	LoopOpen        bool
	AwaitsAnswer    bool // the guard mid_turn waits, up to the window
	IneffectiveRuns int
	// NextCheckAt is the next time that a trigger waits for, if nothing is written; nil for none.
	NextCheckAt    *time.Time
	WrittenAt      *time.Time // the last write that waits for an event run
	FirstWrittenAt *time.Time
	Last           *RunRow  // the last ended run; nil for none
	Active         []RunRow // queued or running
}

// Explain returns the explanation of a session's runs, as of one moment. ErrNotFound names the
// session.
func (s Operator) Explain(ctx context.Context, k Key) (x Explanation, err error) {
	const state = `
		SELECT compactor.labels_of(s.tenant, s.id), coalesce(s.policy_override, ''), s.policy_hash, s.live_estimated_tokens,
			s.reported_prompt_tokens, s.tokens_since_report, coalesce(c.overhead, 0), coalesce(c.scale, 0), coalesce(c.reports, 0),
			CASE s.state WHEN 'active' THEN '' ELSE s.state END, coalesce(s.quarantine_reason, ''), s.loop_seq,
			cardinality(s.open_calls) > 0 OR s.open_answered, s.awaits_answer AND NOT s.due, s.ineffective_runs, o.last_at, o.first_at,
			CASE WHEN s.next_check_at IS NOT NULL THEN (SELECT coalesce(min(t), s.next_check_at) FROM unnest(ARRAY[
				s.last_message_at + make_interval(secs => s.due_idle), s.created_at + make_interval(secs => s.due_age),
				coalesce(s.view_changed_at, s.created_at) + make_interval(secs => s.due_since_run)]) t WHERE t > now()) END
		FROM compactor.sessions x CROSS JOIN LATERAL compactor.shown_session(x.tenant, x.id) s ` + joinCalibration + `
			LEFT JOIN compactor.outbox o ON o.sid = s.sid WHERE x.sid = $1`
	const runs = queryRuns + ` WHERE r.sid = $1 AND (r.status IN ('queued', 'running') OR r.id =
		(SELECT max(id) FROM compactor.runs WHERE sid = $1 AND status NOT IN ('queued', 'running'))) ORDER BY r.id`
	err = pgx.BeginTxFunc(ctx, s.pool, snapshotTx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, s.q(querySession), k.tenant(), k.Session) // rows hold the error
		var err error
		if x.SessionRow, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[SessionRow]); err != nil {
			return err
		}
		err = tx.QueryRow(ctx, s.q(state), x.SID).Scan(
			&x.Labels, &x.PolicyOverride, &x.PolicyHash, &x.LiveEstimatedTokens, &x.ReportedPromptTokens, &x.TokensSinceReport,
			&x.Line.Overhead, &x.Line.Scale, &x.Reports, &x.State, &x.QuarantineReason, &x.LoopSeq, &x.LoopOpen, &x.AwaitsAnswer,
			&x.IneffectiveRuns, &x.WrittenAt, &x.FirstWrittenAt, &x.NextCheckAt)
		if err != nil {
			return err
		}
		x.Held, err = collectRows(ctx, s.Store, tx, pgx.RowToStructByPos[Held], queryHeld+`($1, $2)`, k.tenant(), k.Session)
		if err != nil {
			return err
		}
		sortHeld(x.Held)
		all, err := collectRows(ctx, s.Store, tx, pgx.RowToStructByPos[RunRow], runs, x.SID)
		for _, r := range all {
			if r.Ended() {
				x.Last = &r
			} else {
				x.Active = append(x.Active, r)
			}
		}
		return err
	})
	return x, wrap(fmt.Sprintf("session %s", k), err)
}

// ErrorRow is a session that needs a look: its last run failed, or it is quarantined.
type ErrorRow struct {
	Tenant  string     `json:"tenant"`
	Session string     `json:"session"`
	Policy  string     `json:"policy"`
	Run     RunID      `json:"run,omitempty"` // that failed; 0 for a quarantined session
	Code    string     `json:"code"`
	Error   string     `json:"error,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
}

// Errors returns the sessions of a tenant, or of all, that are quarantined or whose last run
// has failed, those that failed last first.
func (s Operator) Errors(ctx context.Context, tenant string, limit int) ([]ErrorRow, error) {
	const query = `
		SELECT s.tenant, s.id, s.policy, 0::bigint AS run, 'quarantined', coalesce(s.quarantine_reason, ''), NULL::timestamptz
		FROM compactor.sessions s WHERE s.state = 'quarantined' AND ($1 = '' OR s.tenant = $1)
		UNION ALL
		SELECT s.tenant, s.id, s.policy, r.id, r.outcome, coalesce(r.error, ''), r.ended_at
		FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid
		WHERE r.status = 'failed' AND s.state <> 'quarantined' AND ($1 = '' OR s.tenant = $1) AND NOT EXISTS (SELECT FROM compactor.runs l
			WHERE l.sid = r.sid AND l.id > r.id AND l.status NOT IN ('queued', 'running') AND NOT compactor.says_nothing(l.outcome, l.options))
		ORDER BY run DESC LIMIT $2`
	return queryRows(ctx, s.Store, "list errors", pgx.RowToStructByPos[ErrorRow], query, tenant, limit)
}
