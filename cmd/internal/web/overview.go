package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// overviewPage is the state of the fleet, or of a tenant.
type overviewPage struct {
	reports.Overview
	Sweep   *store.SweepReport // the latest, if it is open or ended within the time shown
	Actions []store.Action
	Hours   int
	// Queued and Running count runs, of all triggers.
	Queued, Running int64
	// Saved and Micros are of the time shown.
	Saved, Micros float64
	// Slow are the percentiles of the trigger and outcome with most applied runs of an hour, nil for none.
	Slow     *store.OutcomeActivity
	Outcomes chart
	Tenants  []tenantRow
}

// tenantRow is a tenant with sessions that are due or models that cost.
type tenantRow struct {
	Name string
	Due  store.TenantDue
	Use  store.SeriesModels
}

// chart is bars of parts of a time, with marks.
type chart struct {
	Bars  []chartBar
	Lines []chartLine
	Marks []chartMark
	Times []chartTime
}

type (
	chartBar struct {
		Class, Title string
		X, W, Y, H   float64
	}
	chartLine struct {
		Y     float64
		Label string
	}
	chartMark struct {
		X, Y         float64
		Anchor       string
		Label, Title string
		At           time.Time
	}
	chartTime struct {
		X      float64
		Anchor string
		Label  string
	}
)

// kinds of outcomes in the order in which bars are drawn, from below.
var outcomeKinds = []struct{ Class, Name string }{
	{"o-applied", "applied"}, {"o-held", "no summary"}, {"o-skip", "skipped"}, {"o-undo", "undone"}, {"o-failed", "failed"},
}

// outcomeKind returns the place of runs among outcomeKinds.
func outcomeKind(r store.SeriesRuns) int {
	switch {
	case r.Kind == "undo":
		return 3
	case r.Status == "failed":
		return 4
	case r.Outcome == "no_summary":
		return 1
	case r.Status == "skipped":
		return 2
	}
	return 0
}

func overview(q *request) (any, error) {
	p := overviewPage{Hours: 24}
	switch q.param("hours") {
	case "1":
		p.Hours = 1
	case "168":
		p.Hours = 168
	}
	parts := map[int]string{1: "30", 24: "24", 168: "56"}[p.Hours]
	err := q.get(&p.Overview, "/v1/overview", "tenants", "10", "hours", strconv.Itoa(p.Hours), "parts", parts)
	if err == nil && q.Tenant == "" { // sweeps are of all tenants for a key of all
		var sweeps struct{ Items []store.SweepReport }
		if err = q.get(&sweeps, "/v1/sweeps", "limit", "1"); err == nil && len(sweeps.Items) > 0 {
			if s := sweeps.Items[0]; s.EndedAt == nil || s.EndedAt.After(p.Series.From) {
				p.Sweep = &store.SweepReport{}
				err = q.get(p.Sweep, api.Path("sweeps", strconv.FormatInt(s.ID, 10)))
			}
		}
	}
	if err == nil && q.Admin {
		var log struct{ Items []store.Action }
		err = q.get(&log, "/v1/audit", "limit", "6")
		p.Actions = log.Items
	}
	p.sums()
	p.Outcomes = p.draw()
	return &p, err
}

// sums computes the figures of more than one row.
func (p *overviewPage) sums() {
	for _, r := range p.Fleet.Active {
		p.Queued, p.Running = p.Queued+r.Queued, p.Running+r.Running
	}
	for _, r := range p.Series.Runs {
		p.Saved += float64(r.Saved)
	}
	for _, m := range p.Series.Models {
		p.Micros += float64(m.CostMicros)
	}
	for i, o := range p.LastHour.Outcomes {
		if o.Status == "applied" && (p.Slow == nil || o.Runs > p.Slow.Runs) {
			p.Slow = &p.LastHour.Outcomes[i]
		}
	}
	at := map[string]int{}
	row := func(name string) *tenantRow {
		i, ok := at[name]
		if !ok {
			i = len(p.Tenants)
			at[name] = i
			p.Tenants = append(p.Tenants, tenantRow{Name: name})
		}
		return &p.Tenants[i]
	}
	for _, d := range p.Fleet.Tenants {
		if !d.Others {
			row(d.Tenant).Due = d
		}
	}
	for _, u := range p.Series.Tenants() {
		if u.Tenant != "" && len(p.Tenants) < 20 {
			row(u.Tenant).Use = u
		}
	}
}

const chartHeight, chartTop = 192.0, 36.0

// draw returns the bars of the outcomes.
func (p *overviewPage) draw() (c chart) {
	s := p.Series
	part := time.Duration(s.Seconds * float64(time.Second))
	if part <= 0 {
		return c
	}
	n := int(math.Ceil(float64(s.To.Sub(s.From))/float64(part))) + 1
	counts := make([][5]int64, n)
	most := int64(1)
	for _, r := range s.Runs {
		if i := int(r.At.Sub(s.From) / part); i >= 0 && i < n {
			counts[i][outcomeKind(r)] += r.Runs
		}
	}
	for _, of := range counts {
		sum := int64(0)
		for _, runs := range of {
			sum += runs
		}
		most = max(most, sum)
	}
	step := niceStep(most)
	top := float64((most + step - 1) / step * step)
	width := 100 / float64(n)
	for v := step; float64(v) <= top; v += step {
		c.Lines = append(c.Lines, chartLine{chartHeight - float64(v)/top*(chartHeight-chartTop), term.Count(v)})
	}
	for i, of := range counts {
		y := chartHeight
		for k, runs := range of {
			if runs > 0 {
				h := float64(runs) / top * (chartHeight - chartTop)
				y -= h
				c.Bars = append(
					c.Bars,
					chartBar{
						outcomeKinds[k].Class,
						term.Plural(runs, "run", "runs") + " " + outcomeKinds[k].Name,
						round(width * (float64(i) + .12)),
						round(width * .76),
						round(y),
						round(h),
					},
				)
			}
		}
	}
	whole := float64(n) * float64(part)
	free := [3]float64{101, 101, 101} // left of it, a row of labels is free
	for _, m := range s.Marks {       // the newest first
		mark := chartMark{X: round(100 * float64(m.At.Sub(s.From)) / whole), Y: 10, Anchor: "end", At: m.At}
		label := term.Truncate(m.What+" "+term.Clean(m.Name), 24)
		if row := slices.IndexFunc(free[:], func(x float64) bool { return mark.X <= x }); row >= 0 {
			mark.Y, mark.Label = float64(10+11*row), label
			free[row] = mark.X - 20 // the width of a label
		}
		mark.Title = label
		c.Marks = append(c.Marks, mark)
	}
	for i := range 5 {
		share := float64(i) / 4
		label := "now"
		if i < 4 {
			label = strings.TrimSuffix(
				term.Duration(time.Duration((1-share)*float64(time.Duration(n-1)*part)).Round(time.Minute)),
				" 0m",
			) + " ago"
		}
		c.Times = append(
			c.Times,
			chartTime{100 * share * float64(n-1) / float64(n), cmp.Or(map[int]string{0: "start", 4: "end"}[i], "middle"), label},
		)
	}
	return c
}

// niceStep returns a step of a scale up to most that has few lines.
func niceStep(most int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, f := range []int64{1, 2, 5} {
			if most <= 4*f*unit {
				return f * unit
			}
		}
	}
}

func round(v float64) float64 { return math.Round(v*1000) / 1000 }
