package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// SweepRow is one sweep, with the progress of its runs.
type SweepRow struct {
	ID          int64      `json:"sweep"`
	Entry       string     `json:"entry"`  // of the cron, or operator
	Tenant      string     `json:"tenant"` // the only one that it goes over; empty for all
	Status      string     `json:"status"`
	Reason      string     `json:"reason,omitempty"`
	ChangedBy   string     `json:"changed_by,omitempty"`
	ChangedAt   time.Time  `json:"changed_at"`
	RequestedBy string     `json:"requested_by,omitempty"`
	Note        string     `json:"note,omitempty"`
	Tick        time.Time  `json:"tick"`
	StartedAt   time.Time  `json:"started_at"`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	WindowEnd   *time.Time `json:"window_end,omitempty"`
	// Due is the number of sessions that were due when it began, nil before that, and Remaining
	// the number of those that it has not passed yet.
	Due       *int64 `json:"due"`
	Remaining int64  `json:"remaining"`
	// Queued counts its runs, LeftOut the sessions that it passed without one, as a run of
	// another trigger replaced it or the session was paused or in a cooldown.
	Queued  int64 `json:"queued"`
	LeftOut int64 `json:"left_out"`
	// Waiting, Running and Ended are the present states of its runs.
	Waiting int64 `json:"waiting"`
	Running int64 `json:"running"`
	Ended   int64 `json:"ended"`
	// Worked is the time that it was open since it began, or that its runs went on after that.
	// Sweeps leaves it out where all runs have ended.
	Worked time.Duration `json:"-"`
	// CanaryShare is the share of the sessions that comes first, 0 for none. Canary is their
	// number until their runs have succeeded and the others follow; nil before it begins.
	CanaryShare float64 `json:"canary_share,omitempty"`
	Canary      *int64  `json:"canary,omitempty"`
	// AwaitsPolicies reports that it begins when the sessions have the policies of the last change.
	AwaitsPolicies bool `json:"awaits_policies,omitempty"`
}

// Rate returns the runs that ended per second of Worked.
func (r SweepRow) Rate() float64 {
	if r.Worked <= 0 {
		return 0
	}
	return float64(r.Ended) / r.Worked.Seconds()
}

// enoughRuns is the number of runs of a sweep that have to end before TimeLeft uses their rate.
const enoughRuns = 20

// TimeLeft returns the time that the remaining sessions take at the present rate, and false
// where that is not known: before enoughRuns have ended.
func (r SweepRow) TimeLeft() (time.Duration, bool) {
	left := float64(r.Remaining + r.Waiting + r.Running)
	if r.Due == nil || left > 0 && (r.Rate() == 0 || r.Ended < enoughRuns) {
		return 0, false
	}
	if left == 0 {
		return 0, true
	}
	return time.Duration(left / r.Rate() * float64(time.Second)), true
}

// Settled reports whether the sweep queues nothing more and all of its runs have ended.
func (r SweepRow) Settled() bool {
	return r.EndedAt != nil && r.Waiting == 0 && r.Running == 0
}

// querySweeps counts the runs from an index alone; sweep_worked reads them where all have ended.
const querySweeps = `
	SELECT w.id, w.entry, w.tenant, w.status, w.reason, w.changed_by, w.changed_at, w.requested_by, w.note, w.tick,
		w.started_at, w.ended_at, w.window_end, w.due, coalesce(t.remaining, 0), w.queued, w.left_out, r.waiting, r.running, r.ended,
		CASE WHEN $2 OR w.ended_at IS NULL OR r.waiting + r.running > 0 THEN compactor.sweep_worked(w) ELSE '0' END,
		coalesce(w.canary_share, 0), w.canary, compactor.awaits_policies(w)
	FROM compactor.sweeps w
	CROSS JOIN LATERAL (SELECT sum(greatest(due - seen, 0)) FILTER (WHERE NOT passed)::bigint AS remaining
		FROM compactor.sweep_tenants WHERE sweep = w.id) t
	CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE status = 'queued') AS waiting, count(*) FILTER (WHERE status = 'running') AS running,
		count(*) FILTER (WHERE status NOT IN ('queued', 'running')) AS ended FROM compactor.runs WHERE sweep = w.id) r
	WHERE (w.tenant = (SELECT compactor.bound_tenant())) IS NOT FALSE`

// Sweeps returns the latest sweeps, newest first, of those before one unless that is 0.
func (s Operator) Sweeps(ctx context.Context, before int64, limit int) ([]SweepRow, error) {
	const query = querySweeps + ` AND ($3 = 0 OR w.id < $3) ORDER BY w.id DESC LIMIT $1`
	return queryRows(ctx, s.Store, "list sweeps", pgx.RowToStructByPos[SweepRow], query, limit, false, before)
}

// Sweep returns one sweep. ErrNotFound names it.
func (s Operator) Sweep(ctx context.Context, id int64) (SweepRow, error) {
	return queryRow(ctx, s.Store, fmt.Sprintf("sweep %d", id), pgx.RowToStructByPos[SweepRow], querySweeps+` AND w.id = $1`, id, true)
}

// SweepReport is a sweep with its rate and, of one alone, how its runs ended and the sessions that wait for it.
type SweepReport struct {
	SweepRow
	RunsPerSecond float64  `json:"runs_per_second,omitempty"` // not in a list where all runs have ended
	SecondsLeft   *float64 `json:"seconds_left,omitempty"`
	// EndsInTime reports whether that is before WindowEnd; nil where one of the two is not known.
	EndsInTime *bool        `json:"ends_in_time,omitempty"`
	Outcomes   []RunOutcome `json:"outcomes,omitempty"`
	HeldBack   *Held        `json:"held_back,omitempty"`
}

// Report returns the sweep with its rate.
func (r SweepRow) Report() SweepReport {
	r.Tick, r.StartedAt = r.Tick.UTC(), r.StartedAt.UTC()
	out := SweepReport{SweepRow: r, RunsPerSecond: r.Rate()}
	if left, ok := r.TimeLeft(); ok {
		out.SecondsLeft = new(left.Seconds())
		if r.WindowEnd != nil && r.EndedAt == nil {
			out.EndsInTime = new(!time.Now().Add(left).After(*r.WindowEnd))
		}
	}
	return out
}

// SweepReport returns one sweep in full. ErrNotFound names it.
func (s Operator) SweepReport(ctx context.Context, id int64) (out SweepReport, err error) {
	r, err := s.Sweep(ctx, id)
	if err != nil {
		return out, err
	}
	out = r.Report()
	if out.Outcomes, err = s.SweepOutcomes(ctx, id); err == nil {
		out.HeldBack, err = s.HeldBySweep(ctx, id)
	}
	return out, err
}

// RunOutcome counts the runs of a sweep or of a bulk recompaction that ended alike.
type RunOutcome struct {
	Outcome      string `json:"outcome"`
	Failed       bool   `json:"failed"`
	Runs         int64  `json:"runs"`
	TokensBefore int64  `json:"tokens_before"`
	TokensAfter  int64  `json:"tokens_after"`
}

// queryRunOutcomes has the column that names a sweep or a bulk recompaction for %s.
const queryRunOutcomes = `
	SELECT outcome, status = 'failed', count(*), coalesce(sum(tokens_before), 0)::bigint,
		coalesce(sum(CASE WHEN status = 'applied' OR outcome = 'dry_run' THEN tokens_after ELSE tokens_before END), 0)::bigint
	FROM compactor.runs WHERE %s = $1 AND outcome IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC, 1`

// SweepOutcomes counts the ended runs of a sweep by outcome, the most frequent first.
func (s Operator) SweepOutcomes(ctx context.Context, sweep int64) ([]RunOutcome, error) {
	query := fmt.Sprintf(queryRunOutcomes, "sweep")
	return queryRows(ctx, s.Store, "outcomes of a sweep", pgx.RowToStructByPos[RunOutcome], query, sweep)
}

// SweepForecast is the forecast of a sweep that starts now: the sessions that are due, and the
// rate and the cost of an earlier sweep.
type SweepForecast struct {
	Sessions int64 `json:"sessions"`
	Paused   int64 `json:"paused"`  // of them, paused: the sweep leaves them out
	Cooling  int64 `json:"cooling"` // of the others, in a cooldown: it leaves them out, too
	Tenants  int64 `json:"tenants"`
	Tokens   int64 `json:"view_tokens"`
	// OverStart are the tokens that the sessions are above their start.
	OverStart int64 `json:"tokens_over_start"`
	// Like is the latest sweep that is done and had runs, 0 if there is none.
	Like          int64   `json:"like_sweep,omitempty"`
	RunsPerSecond float64 `json:"runs_per_second,omitempty"` // of that sweep
	CallsPerRun   float64 `json:"model_calls_per_run"`
	MicrosPerRun  float64 `json:"cost_micros_per_run"`
}

// Runs returns the number of runs, and their duration at the rate of the earlier sweep; 0 if
// that is not known.
func (f SweepForecast) Runs() (runs int64, takes time.Duration) {
	runs = f.Sessions - f.Paused - f.Cooling
	if f.RunsPerSecond > 0 {
		takes = time.Duration(float64(runs) / f.RunsPerSecond * float64(time.Second))
	}
	return runs, takes
}

// SweepEstimate is a forecast with what follows from it.
type SweepEstimate struct {
	SweepForecast
	Runs    int64   `json:"runs"`
	Seconds float64 `json:"seconds,omitempty"` // the least, where that is known
	Calls   float64 `json:"model_calls"`
	Cost    float64 `json:"cost"` // in the unit of the models' prices
}

// Estimate returns the forecast for runs of which so many may start in a second, 0 without a limit.
func (f SweepForecast) Estimate(perSecond float64) SweepEstimate {
	runs, takes := f.Runs()
	seconds := takes.Seconds()
	if perSecond > 0 {
		seconds = max(seconds, float64(runs)/perSecond)
	}
	return SweepEstimate{f, runs, seconds, f.CallsPerRun * float64(runs), f.MicrosPerRun * float64(runs) / 1e6}
}

// ForecastSweep forecasts a sweep over a tenant, or over all with an empty one. It reads the due
// sessions and the runs of an earlier sweep.
func (s Operator) ForecastSweep(ctx context.Context, tenant string) (SweepForecast, error) {
	const query = `
		WITH due AS (SELECT count(*) AS n, count(*) FILTER (WHERE p.paused) AS paused,
				count(*) FILTER (WHERE NOT p.paused AND s.cooldown_until > now() AND s.hold_code IS NULL AND s.suspect_seq IS NULL) AS cooling, count(DISTINCT tenant) AS tenants,
				coalesce(sum(live_tokens), 0)::bigint AS tokens,
				coalesce(sum(greatest(live_tokens - coalesce(f.due_tokens, s.due_tokens), 0)), 0)::bigint AS over
			FROM compactor.sessions s LEFT JOIN compactor.thresholds_of_due($1) f
				ON (f.policy, f.model) = (s.policy, s.model) AND f.revision <> s.thresholds_revision
				CROSS JOIN LATERAL (SELECT (EXISTS (SELECT FROM compactor.pauses WHERE resumed_at IS NULL)
				OR (SELECT compactor.bound_tenant()) IS NOT NULL) AND EXISTS (SELECT FROM compactor.pauses_of(s.tenant, s.id)) AS paused OFFSET 0) p
			WHERE due AND ($1 = '' OR tenant = $1)),
		earlier AS (SELECT w.id, extract(epoch FROM compactor.sweep_worked(w)) AS seconds FROM compactor.sweeps w
			WHERE w.status = 'done' AND w.queued > 0 ORDER BY w.id DESC LIMIT 1),
		cost AS (SELECT count(DISTINCT r.id) AS runs, count(c.id) AS calls, coalesce(sum(c.cost_micros), 0) AS micros
			FROM earlier JOIN compactor.runs r ON r.sweep = earlier.id AND r.ended_at IS NOT NULL
			LEFT JOIN compactor.summary_calls c ON c.run = r.id)
		SELECT n, paused, cooling, tenants, tokens, over, coalesce((SELECT id FROM earlier), 0),
			coalesce(runs / nullif((SELECT seconds FROM earlier), 0), 0)::float8,
			coalesce(calls::float8 / nullif(runs, 0), 0), coalesce(micros::float8 / nullif(runs, 0), 0)
		FROM due, cost`
	return queryRow(ctx, s.Store, "forecast a sweep", pgx.RowToStructByPos[SweepForecast], query, tenant)
}

// DefaultStopShare is the share of its latest runs above which a sweep stops if they failed,
// would have made the view larger or got no summary.
const DefaultStopShare = 0.5

// StartSweep calls Start for a sweep that stops after window, unless that is 0, and for too many
// failures, see SweepOptions.StopShare.
func (s Operator) StartSweep(ctx context.Context, tenant string, window time.Duration, note, by string) (int64, error) {
	return s.Start(ctx, SweepOptions{Tenant: tenant, Window: window, Note: note, By: by})
}

// SweepOptions selects the sessions of a sweep, and bounds it.
type SweepOptions struct {
	Tenant string        // empty for all
	Window time.Duration // after which it stops; 0: never
	// StopShare is the share of its latest runs, a hundred or more, above which it stops if
	// they failed; 1 is never, 0 DefaultStopShare.
	StopShare float64
	// Canary is the share of the sessions that comes first. The others follow if no more than
	// StopShare of their runs failed. 0 is none.
	Canary   float64
	Note, By string
}

// Start starts a sweep over due sessions and returns its number. A scheduler executes it.
func (s Operator) Start(ctx context.Context, o SweepOptions) (int64, error) {
	const query = `SELECT compactor.start_sweep($1, nullif($2::interval, '0'), $3, $4, $5, $6)`
	return queryRow(ctx, s.Store, "start a sweep", pgx.RowTo[int64], query,
		o.Tenant, o.Window, o.Note, o.By, cmp.Or(o.StopShare, DefaultStopShare), o.Canary)
}

// The actions of SteerSweep.
const (
	SweepPause  = "pause"
	SweepResume = "resume"
	SweepCancel = "cancel"
	// SweepRelease releases the sessions that a stopped or cancelled sweep holds back.
	SweepRelease = "release"
)

// SteerSweep pauses, resumes, cancels or releases a sweep. The queued runs of a paused one are
// executed; those of a cancelled one that no worker has tried end as cancelled. A resumed sweep
// goes on where it was, for window or, if that is 0, up to its earlier end, if that is in the
// future. Sessions that were due when one was stopped or cancelled wait for a day, or until it
// is released. ErrNotApplicable: its status does not allow it.
func (s Operator) SteerSweep(ctx context.Context, sweep int64, action, note, by string, window time.Duration) error {
	const query = `SELECT compactor.steer_sweep('', $1, $2, $3, $4, nullif($5::interval, '0'))`
	return execute(ctx, s.Store, action+" sweep", query, sweep, action, note, by, window)
}
