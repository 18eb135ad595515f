package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// fleet registers the operations of operators on more than one session.
func (a *api) fleet() {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	register(a, operation{
		scope: reads, method: get, path: "/v1/held-back", id: "list-held-back",
		summary: "Why sessions that are due do not run, since when, until when and by what it ends",
	}, heldBack)
	register(a, operation{
		scope: reads, method: get, path: "/v1/stats", id: "get-stats",
		summary: "What is due, waits and runs, and what runs did in the last hour and day",
	}, stats)
	register(a, operation{
		scope: reads, method: get, path: "/v1/overview", id: "get-overview",
		summary: "What is due and waits, whether the fleet is well, and what runs did in the last hours",
	}, overview)
	register(a, operation{
		scope: reads, method: get, path: "/v1/activity", id: "get-activity",
		summary: "What runs did in the last hours, in parts, with what was changed then",
	}, activity)
	register(a, operation{
		scope: admins, method: get, path: "/v1/audit", id: "list-actions",
		summary: "What operators did, the newest first",
	}, listActions)

	register(a, operation{
		scope: reads, method: get, path: "/v1/schedules", id: "list-schedules",
		summary: "List schedules with their next times and what became of the last",
	}, listSchedules)
	register(a, operation{
		scope: reads, method: get, path: "/v1/schedules/{schedule}", id: "get-schedule",
		summary: "One schedule",
	}, getSchedule)
	register(a, operation{
		scope: operates, method: post, path: "/v1/schedules/{schedule}/pause", id: "pause-schedule",
		summary: "Pause a schedule: its ticks start nothing",
	}, pauseSchedule)
	register(a, operation{
		scope: operates, method: post, path: "/v1/schedules/{schedule}/resume", id: "resume-schedule",
		summary: "End the pause of a schedule",
	}, resumeSchedule)
	register(a, operation{
		scope: operates, method: post, path: "/v1/schedules/{schedule}/run", id: "run-schedule",
		summary: "Start a sweep of a schedule now, or return the one that has not begun",
	}, runSchedule)
	register(a, operation{
		scope: operates, method: post, path: "/v1/schedules/{schedule}/backfill", id: "backfill-schedule",
		summary: "Fire the ticks of a time in the past that started no sweep",
	}, backfillSchedule)

	register(a, operation{
		scope: reads, method: get, path: "/v1/sweeps", id: "list-sweeps",
		summary: "List sweeps, the newest first",
	}, listSweeps)
	register(a, operation{
		scope: reads, method: get, path: "/v1/sweeps/{sweep}", id: "get-sweep",
		summary: "The progress of a sweep, and how its runs ended",
	}, getSweep)
	register(a, operation{
		scope: operates, method: post, path: "/v1/sweeps", id: "start-sweep",
		summary: "Start a sweep over sessions that are due, or forecast it",
	}, startSweep)
	for action, summary := range map[string]string{
		store.SweepPause: "Pause a sweep", store.SweepResume: "Go on with a sweep that is paused or stopped, where it was",
		store.SweepCancel: "End a sweep for good", store.SweepRelease: "Have events run what a sweep that was stopped or cancelled holds back",
	} {
		register(a, operation{scope: operates, method: post, path: "/v1/sweeps/{sweep}/" + action, id: action + "-sweep", summary: summary},
			func(ctx context.Context, c *caller, in *steerIn) (*body[store.SweepReport], error) {
				b := given(in.Body)
				if err := c.store.Operator.SteerSweep(ctx, in.Sweep, action, b.Note, c.by(), seconds(b.Seconds)); err != nil {
					return nil, err
				}
				return answer(c.store.Operator.SweepReport(ctx, in.Sweep))
			})
	}

	register(a, operation{scope: reads, method: get, path: "/v1/pauses", id: "list-pauses", summary: "List what is paused"}, listPauses)
	register(a, operation{
		scope: operates, method: post, path: "/v1/pauses", id: "create-pause",
		summary: "Pause the runs of a tenant, of models or of a policy, or of all",
	}, createPause)
	register(a, operation{scope: operates, method: del, path: "/v1/pauses/{pause}", id: "end-pause", summary: "End a pause"}, endPause)

	register(a, operation{
		scope: reads, method: get, path: "/v1/limits", id: "list-limits",
		summary: "List the limits of costs and runs, and their present use",
	}, listLimits)
	register(a, operation{
		scope: admins, method: put, path: "/v1/limits", id: "set-limits",
		summary: "Replace the limits of a tenant, or of all together",
	}, setLimits)
	register(a, operation{
		scope: admins, method: del, path: "/v1/limits", id: "clear-limits",
		summary: "Remove the limits of a tenant, or of all together",
	}, clearLimits)
}

// all returns the store for subjects of all tenants. That of a key of one tenant is bound to it,
// and refuses.
func (c *caller) all() *store.Store {
	if c.key.Tenant != nil {
		return c.store
	}
	return c.bound("")
}

// whom fails where a change would be of all tenants and the request does not say so.
func (c *caller) whom(all bool) error {
	switch {
	case c.tenant == "" && !all:
		return invalid("query.tenant", "give tenant, or all in the body: whom it is for has no default")
	case c.tenant != "" && all:
		return invalid("body.all", "all: this is for tenant %s", c.tenant)
	}
	return nil
}

// Preview is the parameter of operations that first show their effects.
type Preview struct {
	// A text: the framework gives the default to a false one.
	DryRun string `query:"dry_run" enum:"true,false" default:"true" doc:"Show what would change, and change nothing."`
}

func (p Preview) only() bool { return p.DryRun != "false" }

// Newest selects a page of a list with the newest first.
type Newest struct {
	Page
	After string `query:"after" doc:"next of the page before."`
}

// newest returns a page of rows that are numbered, of those before after.
func newest[T any](c *caller, in Newest, number func(T) int64, rows func(before int64, limit int) ([]T, error)) (*body[list[T]], error) {
	limit, before, err := in.numbered(c, in.After)
	if err != nil {
		return nil, err
	}
	found, err := rows(before, limit)
	next := int64(0)
	if len(found) == limit && limit > 0 {
		next = number(found[limit-1])
	}
	return page(found, next, err)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func heldBack(ctx context.Context, c *caller, _ *struct{}) (*body[list[store.Held]], error) {
	return items(c.store.Operator.HeldBack(ctx, c.tenant))
}

// Named says how many tenants are named.
type Named struct {
	Tenants int `query:"tenants" default:"10" minimum:"0" maximum:"1000" doc:"Tenants to name, those with most to compact first."`
}

func stats(ctx context.Context, c *caller, in *Named) (*body[store.Stats], error) {
	return answer(c.store.Operator.Stats(ctx, c.tenant, in.Tenants))
}

// Span is the time of a series.
type Span struct {
	Hours int `query:"hours" default:"24" minimum:"1" maximum:"168" doc:"How far the series reaches back."`
	Parts int `query:"parts" default:"24" minimum:"1" maximum:"100" doc:"Parts of the series."`
}

func (in Span) within() time.Duration { return time.Duration(in.Hours) * time.Hour }

func activity(ctx context.Context, c *caller, in *Span) (*body[store.Series], error) {
	return answer(c.server.overviews.Series.Read(ctx, c.store, c.tenant, in.within(), in.Parts))
}

type overviewIn struct {
	Named
	Span
}

func overview(ctx context.Context, c *caller, in *overviewIn) (*body[reports.Overview], error) {
	return answer(c.server.overviews.Read(ctx, c.store, c.server.o.Config, c.tenant, in.Tenants, in.within(), in.Parts))
}

func listActions(ctx context.Context, c *caller, in *Newest) (*body[list[store.Action]], error) {
	limit, err := in.limit(c)
	if err != nil {
		return nil, err
	}
	rows, err := c.store.Admin.AuditLog(ctx, c.tenant, in.After, limit)
	out := list[store.Action]{Items: append([]store.Action{}, rows...)}
	if len(rows) == limit && limit > 0 {
		out.Next = rows[limit-1].Place
	}
	return answer(out, err)
}

// given returns an optional body, or its zero value.
func given[T any](body *T) (v T) {
	if body != nil {
		v = *body
	}
	return v
}

// SchedulePath is the parameter of paths below a schedule.
type SchedulePath struct {
	Schedule string `path:"schedule" doc:"The name of the schedule."`
}

// schedule returns a schedule that the caller may see: one of its tenant, or any.
func (c *caller) schedule(ctx context.Context, name string) (scheduler.ScheduleRow, error) {
	row, err := c.server.o.Config.SchedulerConfig().ShownSchedule(ctx, c.store, name, time.Now())
	if c.tenant != "" && (errors.Is(err, store.ErrNotFound) || err == nil && !c.sees(row)) {
		err = fmt.Errorf("schedule %q: %w", name, store.ErrNotFound) // without the names of others
	}
	return row, err
}

// sees reports whether a schedule is of the caller's tenant.
func (c *caller) sees(row scheduler.ScheduleRow) bool {
	s, ok := row.Settings.(policy.Schedule)
	return c.tenant == "" || ok && s.Tenant == c.tenant
}

func listSchedules(ctx context.Context, c *caller, _ *struct{}) (*body[list[scheduler.ScheduleRow]], error) {
	rows, err := c.server.o.Config.SchedulerConfig().ShownSchedules(ctx, c.store, time.Now())
	return items(slices.DeleteFunc(rows, func(r scheduler.ScheduleRow) bool { return !c.sees(r) }), err)
}

func getSchedule(ctx context.Context, c *caller, in *SchedulePath) (*body[scheduler.ScheduleRow], error) {
	return answer(c.schedule(ctx, in.Schedule))
}

type pauseScheduleIn struct {
	SchedulePath
	Body *noteBody
}

type noteBody struct {
	Note string `json:"note,omitempty" doc:"Why, for those who look later."`
}

func pauseSchedule(ctx context.Context, c *caller, in *pauseScheduleIn) (*body[scheduler.ScheduleRow], error) {
	if _, err := c.schedule(ctx, in.Schedule); err != nil {
		return nil, err
	}
	if err := c.all().Operator.PauseSchedule(ctx, in.Schedule, given(in.Body).Note, c.by()); err != nil {
		return nil, err
	}
	return answer(c.schedule(ctx, in.Schedule))
}

func resumeSchedule(ctx context.Context, c *caller, in *SchedulePath) (*body[scheduler.ScheduleRow], error) {
	row, err := c.schedule(ctx, in.Schedule)
	if err == nil {
		err = c.all().Operator.ResumeSchedule(ctx, in.Schedule, c.by())
	}
	row.PausedAt, row.PausedBy, row.Note = nil, "", ""
	return answer(row, err)
}

func runSchedule(ctx context.Context, c *caller, in *SchedulePath) (*body[store.SweepReport], error) {
	if _, err := c.schedule(ctx, in.Schedule); err != nil {
		return nil, err
	}
	s, err := c.server.o.Config.SchedulerConfig().ScheduleNamed(in.Schedule)
	if err != nil {
		return nil, err
	}
	id, _, err := scheduler.RunSchedule(ctx, c.all(), in.Schedule, s, time.Now(), c.by())
	if err != nil {
		return nil, err
	}
	return answer(c.store.Operator.SweepReport(ctx, id))
}

type backfillIn struct {
	SchedulePath
	Preview
	Body struct {
		From time.Time  `json:"from" doc:"The first tick, in the last 90 days."`
		To   *time.Time `json:"to,omitempty" doc:"The last tick, by default now."`
	}
}

type backfillOut struct {
	scheduler.Backfill
	Result *scheduler.Backfilled `json:"result,omitempty" doc:"Absent with dry_run."`
}

func backfillSchedule(ctx context.Context, c *caller, in *backfillIn) (*body[backfillOut], error) {
	if _, err := c.schedule(ctx, in.Schedule); err != nil {
		return nil, err
	}
	now := time.Now()
	b, err := c.server.o.Config.SchedulerConfig().Backfill(ctx, c.all(), in.Schedule, in.Body.From, *cmp.Or(in.Body.To, &now), now)
	if err != nil || in.only() {
		return answer(backfillOut{Backfill: b}, err)
	}
	done, err := b.Fire(ctx, c.all(), time.Now, c.by(), func() {})
	return answer(backfillOut{b, &done}, err)
}

// SweepPath is the parameter of paths below a sweep.
type SweepPath struct {
	Sweep int64 `path:"sweep" minimum:"1" doc:"The number of the sweep."`
}

func listSweeps(ctx context.Context, c *caller, in *Newest) (*body[list[store.SweepReport]], error) {
	return newest(c, *in, func(r store.SweepReport) int64 { return r.ID }, func(before int64, limit int) (out []store.SweepReport, err error) {
		rows, err := c.store.Operator.Sweeps(ctx, before, limit)
		for _, r := range rows {
			out = append(out, r.Report())
		}
		return out, err
	})
}

func getSweep(ctx context.Context, c *caller, in *SweepPath) (*body[store.SweepReport], error) {
	return answer(c.store.Operator.SweepReport(ctx, in.Sweep))
}

type steerIn struct {
	SweepPath
	Body *steerBody
}

type steerBody struct {
	Note    string  `json:"note,omitempty" doc:"Why, for those who look later."`
	Seconds float64 `json:"seconds,omitempty" minimum:"1" maximum:"31536000" doc:"Of resume: stop after this time."`
}

type startSweepIn struct {
	Preview
	Body *startSweepBody
}

type startSweepBody struct {
	All     bool    `json:"all,omitempty" doc:"Sessions of all tenants, with a key of all tenants."`
	Seconds float64 `json:"seconds,omitempty" minimum:"1" maximum:"31536000" doc:"Stop after this time."`
	StopAt  float64 `json:"stop_at,omitempty" exclusiveMinimum:"0" maximum:"1" doc:"Stop when more of the latest runs than this share failed or got no summary; 0.5 by default, 1 for never."`
	Canary  float64 `json:"canary,omitempty" minimum:"0" maximum:"1" doc:"Run this share of the sessions first, and the others only if no more of its runs than stop_at failed."`
	Note    string  `json:"note,omitempty" doc:"Why, for those who look later."`
}

type startSweepOut struct {
	Forecast *store.SweepEstimate `json:"forecast,omitempty" doc:"Of a dry run."`
	Sweep    *store.SweepReport   `json:"sweep,omitempty" doc:"The sweep that was started."`
}

func startSweep(ctx context.Context, c *caller, in *startSweepIn) (*body[startSweepOut], error) {
	b := given(in.Body)
	if err := c.whom(b.All); err != nil {
		return nil, err
	}
	if in.only() {
		f, err := c.store.Operator.ForecastSweep(ctx, c.tenant)
		if err != nil {
			return nil, err
		}
		limit, limited, err := c.store.Operator.RunLimit(ctx, c.tenant)
		perSecond := 0.0
		if limited {
			perSecond = *limit.RunsPerSecond
		}
		return answer(startSweepOut{Forecast: new(f.Estimate(perSecond))}, err)
	}
	id, err := c.store.Operator.Start(ctx, store.SweepOptions{
		Tenant: c.tenant, Window: seconds(b.Seconds), StopShare: b.StopAt, Canary: b.Canary, Note: b.Note, By: c.by(),
	})
	if err != nil {
		return nil, err
	}
	r, err := c.store.Operator.SweepReport(ctx, id)
	return answer(startSweepOut{Sweep: &r}, err)
}

func listPauses(ctx context.Context, c *caller, _ *struct{}) (*body[list[store.Pause]], error) {
	return items(c.store.Operator.Pauses(ctx))
}

type createPauseIn struct {
	DryRun bool `query:"dry_run" doc:"Count what it would hold back, and pause nothing."`
	Body   struct {
		All    bool   `json:"all,omitempty" doc:"All sessions of all tenants."`
		Model  string `json:"model,omitempty" doc:"Sessions whose model begins so."`
		Policy string `json:"policy,omitempty" doc:"Sessions with this policy."`
		Note   string `json:"note,omitempty" doc:"Why: shown by everything that the pause holds back."`
	}
}

type createPauseOut struct {
	Items []store.Pause  `json:"items" doc:"The pauses in force."`
	Holds *store.Holding `json:"holds,omitempty" doc:"Of a dry run."`
}

func createPause(ctx context.Context, c *caller, in *createPauseIn) (*body[createPauseOut], error) {
	scope := store.PauseScope{Tenant: c.tenant, Model: in.Body.Model, Policy: in.Body.Policy}
	if all := scope == (store.PauseScope{}); all != in.Body.All {
		return nil, invalid("body.all", "give all, or tenant, model and policy: what to pause has no default")
	}
	var out createPauseOut
	if in.DryRun {
		holds, err := c.server.o.Store.Reader.WouldHold(ctx, scope) // the tenant of a key is in the scope
		if err != nil {
			return nil, err
		}
		out.Holds = &holds
	} else if err := c.all().Operator.PauseRuns(ctx, scope, in.Body.Note, c.by()); err != nil {
		return nil, err
	}
	found, err := c.store.Operator.Pauses(ctx)
	out.Items = append([]store.Pause{}, found...)
	return answer(out, err)
}

type endPauseIn struct {
	Pause int64 `path:"pause" doc:"The number of the pause."`
}

func endPause(ctx context.Context, c *caller, in *endPauseIn) (*body[list[store.Pause]], error) {
	if err := c.all().Operator.EndPause(ctx, c.tenant, in.Pause, c.by()); err != nil {
		return nil, err
	}
	return listPauses(ctx, c, nil)
}

func listLimits(ctx context.Context, c *caller, _ *struct{}) (*body[list[store.Spending]], error) {
	return items(c.store.Operator.Spending(ctx, c.tenant))
}

type setLimitsIn struct {
	Body struct {
		All           bool     `json:"all,omitempty" doc:"The limits of all tenants together."`
		MicrosPerHour *int64   `json:"cost_micros_per_hour,omitempty" minimum:"0" doc:"Cost of the calls in an hour, in millionths of the unit of the models' prices."`
		MicrosPerDay  *int64   `json:"cost_micros_per_day,omitempty" minimum:"0"`
		CallsPerHour  *int64   `json:"calls_per_hour,omitempty" minimum:"0"`
		TokensPerHour *int64   `json:"tokens_per_hour,omitempty" minimum:"0" doc:"Tokens of the calls in an hour, input and output."`
		RunsPerSecond *float64 `json:"runs_per_second,omitempty" doc:"Runs that start in a second; also 0.1 for one in ten seconds."`
		Note          string   `json:"note,omitempty" doc:"Why."`
	}
}

func setLimits(ctx context.Context, c *caller, in *setLimitsIn) (*body[list[store.Spending]], error) {
	b := in.Body
	limit := store.SpendingLimit{
		Tenant: c.tenant, MicrosPerHour: b.MicrosPerHour, MicrosPerDay: b.MicrosPerDay, CallsPerHour: b.CallsPerHour,
		TokensPerHour: b.TokensPerHour, RunsPerSecond: b.RunsPerSecond, Note: b.Note, ChangedBy: c.by(),
	}
	err := c.whom(b.All)
	if err == nil {
		err = limit.Validate()
	}
	if err == nil {
		err = c.all().Operator.LimitSpending(ctx, limit)
	}
	if err != nil {
		return nil, err
	}
	return items(c.store.Operator.Spending(ctx, c.tenant))
}

// Whom is the parameter of operations without a body that have to name whom they are for.
type Whom struct {
	All bool `query:"all" doc:"Those of all tenants together."`
}

func clearLimits(ctx context.Context, c *caller, in *Whom) (*body[list[store.Spending]], error) {
	err := c.whom(in.All)
	if err == nil {
		err = c.all().Operator.LimitSpending(ctx, store.SpendingLimit{Tenant: c.tenant, ChangedBy: c.by()})
	}
	if err != nil {
		return nil, err
	}
	return items(c.store.Operator.Spending(ctx, c.tenant))
}
