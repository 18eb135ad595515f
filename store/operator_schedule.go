package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ScheduleState is the state of a schedule in the database. The configuration defines the
// schedule.
type ScheduleState struct {
	Name     string
	PausedAt *time.Time // nil: it is not paused
	Note     string
	PausedBy string // "" for the scheduler, after failures
	// Last is the latest tick that was decided, nil if there is none.
	Last *TickRow
}

// TickRow is a tick that was decided. Outcome and Source are constants of Tick.
type TickRow struct {
	Tick    time.Time `json:"tick"`
	Outcome string    `json:"outcome"`
	Source  string    `json:"source"`
	FiredBy string    `json:"fired_by"`
	// Sweep was started, or stands for that of the tick; 0 if there is none. Status and Reason
	// are those of a SweepRow.
	Sweep  int64  `json:"sweep,omitempty"`
	Status string `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	Queued int64  `json:"queued"`
	Failed int64  `json:"failed"`
}

// Schedules returns the state of the named schedules, and of all others that are paused, by
// name.
func (s Operator) Schedules(ctx context.Context, names []string) ([]ScheduleState, error) {
	const query = `
		SELECT n.name, p.paused_at, coalesce(p.note, ''), coalesce(p.requested_by, ''), t.tick, coalesce(t.outcome, ''),
			coalesce(t.source, ''), coalesce(t.fired_by, ''), coalesce(t.sweep, 0), coalesce(w.status, ''), coalesce(w.reason, ''),
			coalesce(w.queued, 0), (SELECT count(*) FROM compactor.runs WHERE sweep = w.id AND status = 'failed')
		FROM (SELECT unnest($1::text[]) UNION SELECT schedule FROM compactor.schedule_pauses WHERE resumed_at IS NULL) n(name)
		LEFT JOIN compactor.schedule_pauses p ON p.schedule = n.name AND p.resumed_at IS NULL
		LEFT JOIN LATERAL (SELECT * FROM compactor.cron_ticks WHERE entry = n.name ORDER BY tick DESC LIMIT 1) t ON true
		LEFT JOIN compactor.sweeps w ON w.id = t.sweep
		ORDER BY n.name`
	return queryRows(ctx, s.Store, "schedules", func(row pgx.CollectableRow) (st ScheduleState, err error) {
		var tick *time.Time
		var t TickRow
		err = row.Scan(&st.Name, &st.PausedAt, &st.Note, &st.PausedBy, &tick, &t.Outcome,
			&t.Source, &t.FiredBy, &t.Sweep, &t.Status, &t.Reason, &t.Queued, &t.Failed)
		if tick != nil {
			t.Tick = *tick
			st.Last = &t
		}
		return st, err
	}, query, names)
}

// PauseSchedule pauses a schedule: from now on its ticks start nothing, on any scheduler.
// Sweeps that are open go on.
func (s Operator) PauseSchedule(ctx context.Context, name, note, by string) error {
	return execute(ctx, s.Store, "pause schedule", `SELECT compactor.pause_schedule($1, $2, $3)`, name, note, by)
}

// ResumeSchedule ends the pause of a schedule. ErrNotFound: it is not paused.
func (s Operator) ResumeSchedule(ctx context.Context, name, by string) error {
	return execute(ctx, s.Store, "resume schedule", `SELECT compactor.resume_schedule($1, $2)`, name, by)
}

// FiredTicks returns the ticks of a schedule, from one time to another, both included, that
// had a sweep, in order, without those that an operator fired at other times.
func (s Operator) FiredTicks(ctx context.Context, name string, from, to time.Time) ([]time.Time, error) {
	const query = `
		SELECT tick FROM compactor.cron_ticks
		WHERE entry = $1 AND tick BETWEEN $2 AND $3 AND outcome IN ('fired', 'coalesced') AND source <> 'operator' ORDER BY tick`
	return queryRows(ctx, s.Store, "fired ticks", pgx.RowTo[time.Time], query, name, from, to)
}
