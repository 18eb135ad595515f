package web

import (
	"strconv"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
)

var sweepPages = []page{
	{"sweeps", "sweeps", "sweeps", "Sweeps", sweeps},
	{"sweep", "sweep", "sweeps", "Sweep", oneSweep},
	{"bulk", "bulk", "bulk", "Bulk", bulks},
}

// scheduleRow is a schedule with its settings.
type scheduleRow struct {
	scheduler.ScheduleRow
	Settings map[string]any `json:"settings"`
}

// sweepsView is the page of schedules and sweeps.
type sweepsView struct {
	Schedules []scheduleRow
	listed[store.SweepReport]
}

func sweeps(q *request) (any, error) {
	var out sweepsView
	var schedules listed[scheduleRow]
	if err := q.get(&schedules, "/v1/schedules"); err != nil {
		return nil, err
	}
	out.Schedules = schedules.Items
	err := q.get(&out, "/v1/sweeps", "limit", pageRows, "after", q.param("after"))
	return out, err
}

// sweepView is the page of a sweep.
type sweepView struct {
	store.SweepReport
	// Limits are those of runs per second that hold for it.
	Limits []store.Spending
}

// Title returns the name of the page.
func (v sweepView) Title() string { return "Sweep " + strconv.FormatInt(v.ID, 10) }

// Open reports whether it goes on, or may go on.
func (v sweepView) Open() bool { return v.Status == "open" || v.Status == "paused" }

// AtLeast returns the seconds that the runs that are left take by a limit.
func (v sweepView) AtLeast(perSecond float64) float64 {
	return float64(v.Remaining+v.Waiting) / perSecond
}

// InTime reports whether it is known to end in time.
func (v sweepView) InTime() bool { return v.EndsInTime != nil && *v.EndsInTime }

func oneSweep(q *request) (any, error) {
	var out sweepView
	if err := q.get(&out.SweepReport, api.Path("sweeps", q.param("sweep"))); err != nil || !out.Open() {
		return out, err
	}
	var limits listed[store.Spending]
	err := q.get(&limits, "/v1/limits")
	for _, l := range limits.Items {
		if l.RunsPerSecond != nil && (l.Tenant == "" || l.Tenant == out.Tenant) {
			out.Limits = append(out.Limits, l)
		}
	}
	return out, err
}

// bulkView is the page of bulk operations, or of one.
type bulkView struct {
	Kind string
	One  *store.BulkReport
	listed[store.BulkOperation]
	Triggers []string
	// Times are those after which runs ended, to choose from.
	Times []struct{ Name, At string }
}

// Title returns the name of the page.
func (v bulkView) Title() string {
	if v.One == nil {
		return "Bulk"
	}
	return "Bulk " + v.Kind + " " + strconv.FormatInt(v.One.ID, 10)
}

func bulks(q *request) (any, error) {
	out := bulkView{
		Kind:     store.BulkUndo,
		Triggers: []string{store.TriggerNightly, store.TriggerEvent, store.TriggerOperator, store.TriggerApplication, store.TriggerBulk},
	}
	if q.param("kind") == store.BulkCompact {
		out.Kind = store.BulkCompact
	}
	if id := q.param("bulk"); id != "" {
		err := q.get(&out.One, api.Path("bulk", out.Kind, id))
		return out, err
	}
	for _, t := range []struct {
		name  string
		hours int
	}{{"in the last hour", 1}, {"in the last 12 hours: the night", 12}, {"in the last 24 hours", 24}, {"in the last 7 days", 168}} {
		out.Times = append(out.Times, struct{ Name, At string }{t.name, q.since(t.hours)})
	}
	err := q.get(&out, api.Path("bulk", out.Kind), "limit", pageRows, "after", q.param("after"))
	return out, err
}
