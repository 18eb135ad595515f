package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// SessionRow is one session of a list.
type SessionRow struct {
	Tenant       string      `json:"tenant"`
	Session      string      `json:"session"`
	Model        string      `json:"model"`
	Messages     int64       `json:"messages"`
	LiveMessages int64       `json:"messages_in_view"`
	TotalTokens  chat.Tokens `json:"total_tokens"` // of all source messages
	LiveTokens   chat.Tokens `json:"view_tokens"`  // of the view
	// ContextTokens is the size that is compared with DueTokens: by the provider's report, else by
	// the calibration of the model, else LiveTokens with the margin on estimates.
	ContextTokens chat.Tokens `json:"context_tokens"`
	DueTokens     chat.Tokens `json:"start_tokens"`
	Due           bool        `json:"due"`
	Suspect       bool        `json:"suspect"` // the view may be invalid
	Revision      int64       `json:"revision"`
	LastMessageAt time.Time   `json:"last_message_at"`
	Policy        string      `json:"policy"`
	CooldownUntil *time.Time  `json:"-"` // automatic runs skip it until then; nil: they do not
	SID           int64       `json:"cursor"`
	Parent        string      `json:"parent,omitempty"` // a session of the same tenant
	Children      int64       `json:"children,omitempty"`
}

// SessionFilter selects sessions; zero fields select all.
type SessionFilter struct {
	Tenant string
	Due    bool
	// Quarantined selects those that automatic runs leave alone, Held those that a reason holds back
	// (see HeldReasons).
	Quarantined bool
	Held        string
	// Labels are its own and, under other keys, those of its parent.
	Labels map[string]string
	Model  string
	Policy string
	// Text is a part of the session's id, whatever the case, ID the whole of it, in any tenant unless one is given.
	Text string
	ID   string
	// SIDs are cursors of sessions; nil for any.
	SIDs []int64
	// ChildrenOf is the parent of the sessions, by its name.
	ChildrenOf string
	// Furthest selects those that are due, furthest over their start first, on one page. A reason is then looked for in
	// the first scannedHeldSessions of them.
	Furthest bool
	// After is the cursor of the previous page.
	After int64
	Limit int
}

// Sessions of a page that are looked at for filters without an index: what holds a session back is
// computed for each.
const (
	scannedSessions     = 20_000
	scannedHeldSessions = 200
)

// waitReasons are those that sessions are held back for that need not be due.
var waitReasons = []string{
	StateQuarantined, StateServiceManaged, "waiting_after_undo", "mid_turn", "not_triggered", "open_tool_loop",
}

const querySessions = `
	SELECT s.tenant, id, s.model, messages, live_messages, total_tokens, live_tokens,
		CASE WHEN reported_prompt_tokens IS NULL
			THEN coalesce(c.overhead + ceil(c.scale * live_tokens)::bigint, live_tokens + ceil(live_estimated_tokens * t.margin)::bigint)
			ELSE greatest(0, reported_prompt_tokens + tokens_since_report) END,
		coalesce(t.start, 0), due,
		suspect_seq IS NOT NULL, revision, coalesce(last_message_at, created_at), policy, cooldown_until, sid,
		coalesce((SELECT p.id FROM compactor.sessions p WHERE p.sid = s.parent), ''),
		(SELECT count(*) FROM compactor.sessions c WHERE c.parent = s.sid)
	FROM compactor.sessions s ` + joinCalibration + `
	CROSS JOIN LATERAL (   -- of the policy in force; numeric represents a margin of 0.1 exactly
		SELECT s.due_tokens AS start, s.estimate_margin::numeric AS margin WHERE ` + followsPolicy + `
		UNION ALL SELECT f.due_tokens, f.estimate_margin::numeric FROM compactor.shown_session(s.tenant, s.id) f
		WHERE (` + followsPolicy + `) IS NOT true) t`

// Sessions returns sessions in order of creation, and the cursor of the next page, 0 for none. A page
// looks at a bounded number of sessions, and so may hold fewer, or none, where there are more.
func (s Operator) Sessions(ctx context.Context, f SessionFilter) (rows []SessionRow, next int64, err error) {
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	// Conditions as text, as a prepared plan for any filter would use no partial index.
	indexed := []string{"s.sid > " + arg(f.After)}
	if f.Tenant != "" {
		indexed = append(indexed, "s.tenant = "+arg(f.Tenant))
	}
	if f.Due {
		indexed = append(indexed, "s.due")
	}
	if f.Quarantined {
		indexed = append(indexed, "s.state = 'quarantined'")
	}
	if f.SIDs != nil {
		indexed = append(indexed, "s.sid = ANY("+arg(f.SIDs)+")")
	}
	if f.ID != "" { // of each tenant, as the index begins with it
		indexed = append(indexed, `(s.tenant, s.id) IN (WITH RECURSIVE t AS (SELECT min(tenant) AS tenant FROM compactor.sessions
			UNION ALL SELECT (SELECT min(n.tenant) FROM compactor.sessions n WHERE n.tenant > t.tenant) FROM t WHERE t.tenant IS NOT NULL)
			SELECT tenant, `+arg(f.ID)+" FROM t)")
	}
	if f.ChildrenOf != "" {
		indexed = append(indexed, "s.parent IN (SELECT p.sid FROM compactor.sessions p WHERE p.tenant = s.tenant AND p.id = "+arg(f.ChildrenOf)+")")
	}
	order := "s.sid"
	if f.Furthest {
		order = "s.live_tokens - s.due_tokens DESC, s.sid"
		indexed = append(indexed, "s.due")
	}
	from := func(more string, limit int) string {
		return "(SELECT s.sid FROM compactor.sessions s WHERE " + strings.Join(append(slices.Clone(indexed), more), " AND ") +
			" ORDER BY " + order + " LIMIT " + strconv.Itoa(limit) + ")"
	}
	scanned, most := "", scannedSessions
	if f.Held != "" { // by the index of those that are due, or that of those that wait
		most = scannedHeldSessions
		scanned = from("s.due", most)
		if slices.Contains(waitReasons, f.Held) && !f.Furthest {
			scanned = from("(s.state <> 'active' OR s.hold_seq > 0 OR s.loop_seq IS NOT NULL)", most)
		}
	} else if len(f.Labels) > 0 || f.Model != "" || f.Policy != "" || f.Text != "" {
		scanned = from("true", most)
	}
	where := indexed
	if scanned != "" {
		const query = `SELECT coalesce(max(sid), 0), count(*), coalesce(array_agg(sid) FILTER (WHERE %t), '{}') FROM (%s) x`
		var upto, n int64
		var sids []int64
		if err := s.pool.QueryRow(ctx, s.q(fmt.Sprintf(query, f.Held != "", scanned)), args...).Scan(&upto, &n, &sids); err != nil {
			return nil, 0, wrap("list sessions", err)
		}
		if n == int64(most) {
			next = upto
		}
		if f.Held != "" { // no others of that range
			where = append(where, "s.sid = ANY("+arg(sids)+")")
		} else {
			where = append(where, "s.sid <= "+arg(upto))
		}
	}
	for _, c := range []struct {
		value any
		empty bool
		where string
	}{
		{f.Model, f.Model == "", "s.model = %s"},
		{f.Policy, f.Policy == "", "s.policy = %s"},
		{f.Text, f.Text == "", "strpos(lower(s.id), lower(%s)) > 0"},
		{f.Labels, len(f.Labels) == 0, "CASE WHEN s.parent IS NULL THEN s.labels ELSE compactor.labels_of(s.tenant, s.id) END @> %s"},
	} {
		if !c.empty {
			where = append(where, fmt.Sprintf(c.where, arg(c.value)))
		}
	}
	query := querySessions + " WHERE " + strings.Join(where, " AND ") + " ORDER BY " + order
	if f.Held != "" { // in this order, so that no more are looked at than a page needs
		query = "SELECT * FROM (" + query + " OFFSET 0) x WHERE EXISTS (SELECT FROM compactor.held_back(x.tenant, x.id) h WHERE h.reason = " + arg(f.Held) + ")"
		if !f.Furthest {
			query += " ORDER BY sid"
		}
	}
	query += " LIMIT " + arg(f.Limit)
	rows, err = queryRows(ctx, s.Store, "list sessions", pgx.RowToStructByPos[SessionRow], query, args...)
	if len(rows) == f.Limit && f.Limit > 0 {
		next = rows[f.Limit-1].SID
	}
	if f.Furthest {
		next = 0
	}
	return rows, next, err
}

const querySession = querySessions + ` WHERE s.tenant = $1 AND id = $2`

// Session returns one session. ErrNotFound names it.
func (s *Store) Session(ctx context.Context, k Key) (SessionRow, error) {
	return queryRow(ctx, s, fmt.Sprintf("session %s", k), pgx.RowToStructByPos[SessionRow], querySession, k.tenant(), k.Session)
}

// RunRow is one run of the ledger.
type RunRow struct {
	ID             RunID           `json:"run"`
	Tenant         string          `json:"tenant"`
	Session        string          `json:"session"`
	Trigger        string          `json:"trigger"`
	Kind           string          `json:"kind"`
	RequestedBy    string          `json:"requested_by"`
	Status         string          `json:"status"`
	Outcome        string          `json:"outcome"`              // empty until the run has ended
	ErrorCode      string          `json:"error_code,omitempty"` // of a failed run, or of a model that wrote no summary for it
	Error          string          `json:"error,omitempty"`
	InForce        bool            `json:"in_force"`
	Revision       int64           `json:"revision,omitempty"` // the view it made; 0 if it made none
	Undoes         RunID           `json:"undoes,omitempty"`   // kind undo: the undone run
	Steps          json.RawMessage `json:"-"`
	MessagesBefore int64           `json:"messages_before"`
	MessagesAfter  int64           `json:"messages_after"`
	TokensBefore   int64           `json:"tokens_before"`
	TokensAfter    int64           `json:"tokens_after"`
	Utilization    float64         `json:"utilization"`
	PolicyHash     string          `json:"policy_hash,omitempty"`
	Policy         string          `json:"policy,omitempty"`
	PolicyVersion  int             `json:"policy_version,omitempty"` // 0: that of the configuration
	Worker         string          `json:"worker,omitempty"`
	Attempts       int             `json:"attempts"`
	Snoozes        int             `json:"snoozes"`
	Failures       int             `json:"failures"`
	QueuedAt       time.Time       `json:"queued_at,omitzero"`
	StartedAt      *time.Time      `json:"started_at,omitempty"`
	EndedAt        *time.Time      `json:"ended_at,omitempty"`
	Options        json.RawMessage `json:"options,omitempty"`
	Model          string          `json:"model,omitempty"`        // called last; empty for none
	Calls          int             `json:"model_calls,omitempty"`  // of models
	InputTokens    int64           `json:"input_tokens,omitempty"` // of those calls
	OutputTokens   int64           `json:"output_tokens,omitempty"`
	CostMicros     int64           `json:"cost_micros,omitempty"` // millionths of the unit that prices are in
	Origin         RunID           `json:"origin,omitempty"`      // of a fork: the run that this one is a copy of
	Fired          string          `json:"fired,omitempty"`       // the policy's trigger that held when it began
	LookedUp       int64           `json:"looked_up,omitempty"`   // how often an agent looked up what it had taken out of the view
	// Window, Start and Target are those that it ran under; 0 if they are not recorded.
	Window chat.Tokens `json:"window,omitempty"`
	Start  chat.Tokens `json:"start,omitempty"`
	Target chat.Tokens `json:"target,omitempty"`
}

// RunFilter selects runs, newest first; zero fields select all.
type RunFilter struct {
	Key     Key // with an empty Session: the tenant's, or all
	Status  string
	Outcome string
	Trigger string
	Model   string // that was called
	Sweep   int64
	Before  RunID // next of the previous page
	Limit   int
}

const queryRuns = `
	SELECT r.id, s.tenant, s.id, r.trigger, r.kind, r.requested_by, r.status, coalesce(r.outcome, ''),
		coalesce(r.error_code, ''), coalesce(r.error, ''), r.in_force, coalesce(r.revision, 0), coalesce(r.undoes, 0),
		coalesce(r.steps, 'null')::text, coalesce(r.messages_before, 0), coalesce(r.messages_after, 0),
		coalesce(r.tokens_before, 0), coalesce(r.tokens_after, 0), coalesce(r.utilization, 0), coalesce(r.policy_hash, ''),
		coalesce(r.policy, ''), coalesce(r.policy_version, 0), coalesce(r.worker, ''), r.attempts, r.snoozes, r.failures,
		r.queued_at, r.started_at, r.ended_at, coalesce(r.options, '{}')::text,
		coalesce(c.model, ''), c.calls, c.input_tokens, c.output_tokens, c.cost_micros, coalesce(r.origin, 0), coalesce(r.fired, ''), r.looked_up,
		coalesce((p.spec #>> '{limits,window}')::bigint, 0), coalesce((p.spec #>> '{limits,start}')::bigint, 0),
		coalesce((p.spec #>> '{limits,target}')::bigint, 0)
	FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid LEFT JOIN compactor.policies p ON p.hash = r.policy_hash
	CROSS JOIN LATERAL (SELECT (array_agg(model ORDER BY id DESC) FILTER (WHERE model IS NOT NULL))[1] AS model, count(*) AS calls,
		coalesce(sum(input_tokens), 0)::bigint AS input_tokens, coalesce(sum(output_tokens), 0)::bigint AS output_tokens,
		coalesce(sum(cost_micros), 0)::bigint AS cost_micros
		FROM compactor.summary_calls WHERE run = r.id OFFSET 0) c`

// RunsPage returns a page of runs, newest first, and the Before of the next one, 0 for none. It looks at a
// bounded number of runs (functions/runs_page.sql), and so may hold fewer than Limit, or none, where there
// are more.
func (s Reader) RunsPage(ctx context.Context, f RunFilter) (rows []RunRow, next RunID, err error) {
	const page = `SELECT ids, coalesce(next, 0) FROM compactor.runs_page($1, $2, $3, $4, $5, $6, $7, p_trigger => $8, p_model => $9)`
	var ids []RunID
	err = s.pool.QueryRow(ctx, s.q(page), f.Key.Tenant, f.Key.Session, f.Status, f.Outcome, f.Sweep, f.Before, f.Limit, f.Trigger, f.Model).Scan(&ids, &next)
	if err != nil {
		return nil, 0, wrap("list runs", err)
	}
	const query = queryRuns + ` WHERE r.id = ANY($1) ORDER BY r.id DESC`
	rows, err = queryRows(ctx, s.Store, "list runs", pgx.RowToStructByPos[RunRow], query, ids)
	return rows, next, err
}

// Runs returns the newest runs, page by page: with a filter that few match, it reads the ledger.
func (s Operator) Runs(ctx context.Context, f RunFilter) (all []RunRow, err error) {
	for n := f.Limit; len(all) < n; {
		var rows []RunRow
		f.Limit = n - len(all)
		if rows, f.Before, err = s.Reader.RunsPage(ctx, f); err != nil {
			return nil, err
		}
		if all = append(all, rows...); f.Before == 0 {
			break
		}
	}
	return all, nil
}

// Run returns one run. ErrNotFound names it.
func (s *Store) Run(ctx context.Context, id RunID) (RunRow, error) {
	return queryRow(ctx, s, fmt.Sprintf("run %d", id), pgx.RowToStructByPos[RunRow], queryRuns+` WHERE r.id = $1`, id)
}

// Unchanged returns the tokens at the beginning of the view that an applied run has left as they
// were. Reasoning leaves the view after the first change only.
func (s Operator) Unchanged(ctx context.Context, id RunID) (chat.Tokens, error) {
	const query = `
		WITH run AS (
			SELECT sid, live_before * int8multirange(int8range(1, applied_seq + 1)) AS live,
				live_before - live_after + (live_after - live_before) + coalesce(appended, '{}') AS changed
			FROM compactor.runs WHERE id = $1 AND status = 'applied'),
		messages AS (
			SELECT m.token_count, run.changed @> m.seq AS changed,
				row_number() OVER (ORDER BY m.position, m.kind <> 's', m.kind = 'm' AND m.position <> m.seq, m.seq) AS n
			FROM run CROSS JOIN LATERAL unnest(run.live + run.changed) x
			CROSS JOIN LATERAL (SELECT * FROM compactor.message_log l
				WHERE l.sid = run.sid AND l.seq >= lower(x) AND l.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) m)
		SELECT coalesce(sum(token_count), 0)::bigint FROM messages WHERE n < (SELECT min(n) FROM messages WHERE changed)`
	return queryRow(ctx, s.Store, fmt.Sprintf("run %d", id), pgx.RowTo[chat.Tokens], query, id)
}

// Outcomes counts the ended runs with an id above after, or with -n those of the latest n ids, by trigger
// and outcome. Runs that changed
// nothing count with the tokens that they found.
func (s Operator) Outcomes(ctx context.Context, after RunID) ([]OutcomeRow, error) {
	const query = `
		SELECT trigger, outcome, count(*), coalesce(sum(tokens_before), 0)::bigint,
			coalesce(sum(CASE WHEN status = 'applied' OR outcome = 'dry_run' THEN tokens_after ELSE tokens_before END), 0)::bigint
		FROM compactor.runs WHERE id > CASE WHEN $1 < 0 THEN (SELECT max(id) FROM compactor.runs) ELSE 0 END + $1::bigint AND outcome IS NOT NULL AND origin IS NULL GROUP BY 1, 2 ORDER BY 1, 2`
	return queryRows(ctx, s.Store, "outcomes", pgx.RowToStructByPos[OutcomeRow], query, after)
}

// OutcomeRow is one line of Outcomes.
type OutcomeRow struct {
	Trigger      string `json:"trigger"`
	Outcome      string `json:"outcome"`
	Runs         int64  `json:"runs"`
	TokensBefore int64  `json:"tokens_before"`
	TokensAfter  int64  `json:"tokens_after"`
}

// Checksum returns a hash of the stored source messages of a session up to a seq, and
// their number. Compaction changes neither.
func (s Admin) Checksum(ctx context.Context, sid int64, upTo chat.Seq) (sum string, messages int64, err error) {
	const query = `
		SELECT coalesce(md5(string_agg(
				md5(l.seq || ' ' || id || ' ' || coalesce(substr(sha256(convert_to(body, 'UTF8')), 1, 16), body_digest)::text),
				'' ORDER BY l.seq)), ''), count(*)
		FROM compactor.message_log l LEFT JOIN compactor.message_body b ON b.sid = l.sid AND b.seq = l.seq
		WHERE l.sid = $1 AND l.seq <= $2 AND kind = 'm'`
	err = s.pool.QueryRow(ctx, s.q(query), sid, upTo).Scan(&sum, &messages)
	return sum, messages, wrap("checksum", err)
}

const queryViewMetas = selectMetas + ` FROM compactor.sessions s ` + joinView + ` WHERE s.sid = $1`

// ViewMetas returns the metadata of a session's view, in view order, for the validity
// check (chat.Check). It is an index-only scan.
func (s Operator) ViewMetas(ctx context.Context, sid int64) ([]chat.Meta, error) {
	return s.metas(ctx, "load view", sid, nil, chat.Open, queryViewMetas, sid)
}

// Undo reverts an applied run of a session: it restores the view before that run, with archived
// messages, and keeps all messages appended since. With cascade it reverts later runs in force
// too; without, they are an ErrInUse that names them. Undo returns the run that records it.
func (s *Store) Undo(ctx context.Context, k Key, run RunID, cascade bool, by string) (RunID, error) {
	return restoring(ctx, s, k, func() (RunID, error) {
		return queryRow(ctx, s, "undo", pgx.RowTo[RunID], queryUndo, k.tenant(), k.Session, run, cascade, by)
	})
}
