package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/policy"
)

// large writes a session that is due.
func (s *server) large(t *testing.T, tenant, session string) {
	t.Helper()
	s.say(t, tenant, session, slices.Repeat([]string{strings.Repeat("words of a session ", 1000)}, 40)...)
}

// fleetServer returns a server on which acme and other have the same of everything, keys of both and one of all.
func fleetServer(t *testing.T) (s *server, acme, other, all string) {
	t.Helper()
	s = newServer(t, func(c *config.Config) {
		c.Schedules = map[string]policy.Schedule{}
		for name, tenant := range map[string]string{"nightly": "", "acme": "acme", "other": "other"} {
			schedule := policy.DefaultSchedule()
			schedule.Cron, schedule.Tenant = "0 3 1 1 *", tenant
			c.Schedules[name] = schedule
		}
	})
	return s, s.key(t, store.ScopeAdmin, "acme"), s.key(t, store.ScopeAdmin, "other"), s.key(t, store.ScopeAdmin, "")
}

type fields = map[string]any

func TestPausesAreOfTheTenant(t *testing.T) {
	s, acme, other, all := fleetServer(t)
	s.do(t, acme, http.MethodPost, "/v1/pauses?dry_run=true", fields{"model": "GPT"}).want(t, 200, `"items":[]`, `"holds":{"due":`, `"more":false`)
	s.do(t, acme, http.MethodPost, "/v1/pauses", fields{"model": "gpt", "note": "why"}).want(t, 200, `"tenant":"acme"`, `"requested_by":"key:admin-4"`)
	s.do(t, all, http.MethodPost, "/v1/pauses", fields{}).want(t, 422, "body.all", "has no default")
	s.do(t, all, http.MethodPost, "/v1/pauses", fields{"all": true}).want(t, 200)
	s.do(t, all, http.MethodPost, "/v1/pauses?tenant=other", fields{"policy": "none"}).want(t, 404, "no policy none is in force")
	type list struct{ Items []store.Pause }
	pauses := into[list](t, s.do(t, all, http.MethodGet, "/v1/pauses", nil).want(t, 200)).Items
	if len(pauses) != 2 || len(into[list](t, s.do(t, acme, http.MethodGet, "/v1/pauses", nil).want(t, 200)).Items) != 1 {
		t.Errorf("%+v", pauses)
	}
	for _, p := range pauses {
		s.do(t, other, http.MethodDelete, fmt.Sprint("/v1/pauses/", p.ID), nil).want(t, 404, `"code":"not_found"`)
	}
	s.do(t, other, http.MethodDelete, "/v1/pauses/99", nil).want(t, 404, `"code":"not_found"`)
	s.do(t, acme, http.MethodDelete, fmt.Sprint("/v1/pauses/", pauses[0].ID), nil).want(t, 200, `"items":[]`)
	s.do(t, all, http.MethodGet, "/v1/audit?tenant=acme", nil).want(t, 200, "pause.end", "pause.create", `"by":"key:admin-4"`)
	s.do(t, acme, http.MethodGet, "/v1/audit?limit=1", nil).want(t, 200, "pause.end", `"next":`)
	s.do(t, acme, http.MethodGet, "/v1/audit?after=x", nil).want(t, 422)
	if r := s.do(t, other, http.MethodGet, "/v1/audit", nil).want(t, 200); strings.Contains(r.body, "pause") {
		t.Errorf("sees what others did: %s", r.body)
	}
}

func TestLimitsAreOfTheTenant(t *testing.T) {
	s, acme, other, all := fleetServer(t)
	s.do(t, acme, http.MethodPut, "/v1/limits", fields{"calls_per_hour": 5, "runs_per_second": 0.5, "note": "plan"}).
		want(t, 200, `"tenant":"acme"`, `"calls_per_hour":5`, `"cost_micros_per_hour":null`)
	s.do(t, acme, http.MethodPut, "/v1/limits", fields{}).want(t, 422, "want a cost per hour")
	s.do(t, acme, http.MethodPut, "/v1/limits", fields{"all": true, "calls_per_hour": 5}).want(t, 422, "body.all")
	s.do(t, acme, http.MethodPut, "/v1/limits", fields{"calls_per_hour": -5}).want(t, 422, "body.calls_per_hour")
	s.do(t, all, http.MethodPut, "/v1/limits", fields{"calls_per_hour": 5}).want(t, 422, "query.tenant")
	s.do(t, all, http.MethodPut, "/v1/limits", fields{"all": true, "cost_micros_per_day": 5_000_000}).want(t, 200)
	s.do(t, other, http.MethodGet, "/v1/limits", nil).want(t, 200, `"items":[]`)
	s.do(t, other, http.MethodDelete, "/v1/limits", nil).want(t, 404)
	s.do(t, acme, http.MethodDelete, "/v1/limits", nil).want(t, 200, `"items":[]`)
	s.do(t, all, http.MethodGet, "/v1/audit", nil).want(t, 200, "limit.clear", "limit.set", "cost_micros_per_day 5000000")
}

// A tenant's key changes and ends no limit and no pause that an operator of all tenants has set for it.
func TestATenantLiftsNoLimitsOfOthers(t *testing.T) {
	s, acme, _, all := fleetServer(t)
	const refused = "set by an operator of all tenants"
	s.do(t, all, http.MethodPut, "/v1/limits?tenant=acme", fields{"calls_per_hour": 5}).want(t, 200, `"tenant":"acme"`)
	s.do(t, acme, http.MethodDelete, "/v1/limits", nil).want(t, 403, `"code":"forbidden"`, refused)
	s.do(t, acme, http.MethodPut, "/v1/limits", fields{"calls_per_hour": 500}).want(t, 403, refused)
	s.do(t, acme, http.MethodGet, "/v1/limits", nil).want(t, 200, `"calls_per_hour":5,`)
	s.do(t, all, http.MethodDelete, "/v1/limits?tenant=acme", nil).want(t, 200)

	s.do(t, all, http.MethodPost, "/v1/pauses?tenant=acme", fields{}).want(t, 200, `"tenant":"acme"`)
	err := s.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "acme", Model: "gpt"}, "by the command", "cli:ada")
	if err != nil {
		t.Fatal(err)
	}
	s.do(t, acme, http.MethodPost, "/v1/pauses", fields{"model": "gpt", "note": "mine"}).want(t, 403, refused)
	pauses := into[struct{ Items []store.Pause }](t, s.do(t, acme, http.MethodGet, "/v1/pauses", nil).want(t, 200)).Items
	for _, p := range pauses {
		s.do(t, acme, http.MethodDelete, fmt.Sprint("/v1/pauses/", p.ID), nil).want(t, 403, refused)
		s.do(t, all, http.MethodDelete, fmt.Sprint("/v1/pauses/", p.ID), nil).want(t, 200)
	}
	if len(pauses) != 2 {
		t.Errorf("%+v", pauses)
	}
}

func TestSchedulesOfOthersAreNotShown(t *testing.T) {
	s, acme, _, all := fleetServer(t)
	r := s.do(t, acme, http.MethodGet, "/v1/schedules", nil).want(t, 200, `"schedule":"acme"`)
	if strings.Contains(r.body, "other") || strings.Contains(r.body, "nightly") {
		t.Error(r.body)
	}
	none := s.do(t, acme, http.MethodGet, "/v1/schedules/none", nil).want(t, 404)
	hidden := s.do(t, acme, http.MethodGet, "/v1/schedules/other", nil).want(t, 404)
	if diff := cmp.Diff(strings.ReplaceAll(none.body, "none", "other"), hidden.body); diff != "" {
		t.Error(diff)
	}
	s.do(t, acme, http.MethodPost, "/v1/schedules/acme/pause", nil).want(t, 403, "concerns others, too")
	s.do(t, all, http.MethodGet, "/v1/schedules/none", nil).want(t, 404, "want acme, nightly, other")
	s.do(t, all, http.MethodPost, "/v1/schedules/acme/pause", fields{"note": "later"}).want(t, 200, `"note":"later"`, `"paused_by":"key:admin-0"`)
	s.do(t, acme, http.MethodGet, "/v1/schedules/acme", nil).want(t, 200, `"paused_at"`, `"next":[`)
	s.do(t, all, http.MethodPost, "/v1/schedules/acme/resume", nil).want(t, 200)
	s.do(t, all, http.MethodPost, "/v1/schedules/acme/resume", nil).want(t, 404, "is not paused")
	s.do(t, all, http.MethodPost, "/v1/schedules/acme/run", nil).want(t, 200, `"entry":"acme"`, `"status":"open"`)
	s.do(t, all, http.MethodGet, "/v1/audit", nil).want(t, 200, "schedule.pause", "schedule.resume", "schedule.run")
}

func TestTicksOfThePastAreFired(t *testing.T) {
	s := newServer(t, func(c *config.Config) {
		c.Schedules = map[string]policy.Schedule{}
		for name, tenant := range map[string]string{"hourly": "", "acme": "acme", "other": "other"} {
			schedule := policy.DefaultSchedule()
			schedule.Cron, schedule.Tenant = "0 * * * *", tenant
			c.Schedules[name] = schedule
		}
	})
	acme, all := s.key(t, store.ScopeOperate, "acme"), s.key(t, store.ScopeOperate, "")
	const backfill = "/v1/schedules/hourly/backfill"
	from := fields{"from": time.Now().Add(-150 * time.Minute)}
	s.do(t, all, http.MethodPost, backfill, from).want(t, 200, `"ticks":`, `"to_fire":`, `"sessions_due":0`)
	done := into[struct {
		ToFire int `json:"to_fire"`
		Result struct {
			Fired  int
			Sweeps []int64
		}
	}](t, s.do(t, all, http.MethodPost, backfill+"?dry_run=false", from).want(t, 200))
	if done.ToFire < 2 || done.Result.Fired != done.ToFire || len(done.Result.Sweeps) != 1 {
		t.Errorf("%+v", done)
	}
	s.do(t, all, http.MethodPost, backfill, from).want(t, 200, `"to_fire":0`)
	s.do(t, all, http.MethodPost, backfill, fields{"from": time.Now().Add(time.Hour)}).want(t, 422, "want a time in the past")
	s.do(t, acme, http.MethodPost, "/v1/schedules/acme/backfill?dry_run=false", from).want(t, 403, "concerns others, too")
	s.do(t, acme, http.MethodPost, "/v1/schedules/other/backfill", from).want(t, 404)
}

func TestASweepIsForecastAndSteered(t *testing.T) {
	s, acme, other, all := fleetServer(t)
	s.large(t, "acme", "s1")
	s.do(t, acme, http.MethodPost, "/v1/sweeps", nil).want(t, 200, `"forecast":{`)
	s.do(t, all, http.MethodPost, "/v1/sweeps", nil).want(t, 422, "query.tenant")
	s.do(t, acme, http.MethodPost, "/v1/sweeps", fields{"canary": 2}).want(t, 422, "body.canary")
	type started struct{ Sweep store.SweepReport }
	sweep := into[started](t, s.do(t, acme, http.MethodPost, "/v1/sweeps?dry_run=false", fields{"note": "now"}).want(t, 200, `"tenant":"acme"`, `"note":"now"`)).Sweep.ID
	at := fmt.Sprint("/v1/sweeps/", sweep)
	s.do(t, acme, http.MethodPost, "/v1/sweeps?dry_run=false", nil).want(t, 409, `"code":"in_use"`)
	for _, path := range []string{at, "/v1/sweeps/99"} {
		s.do(t, other, http.MethodGet, path, nil).want(t, 404, "not found")
		s.do(t, other, http.MethodPost, path+"/pause", nil).want(t, 404, "does not exist")
	}
	s.do(t, other, http.MethodGet, "/v1/sweeps", nil).want(t, 200, `"items":[]`)
	s.do(t, all, http.MethodGet, "/v1/sweeps?limit=1", nil).want(t, 200, `"next":"`+fmt.Sprint(sweep))
	s.do(t, all, http.MethodGet, "/v1/sweeps?after="+fmt.Sprint(sweep), nil).want(t, 200, `"items":[]`)
	s.do(t, acme, http.MethodPost, at+"/release", nil).want(t, 409, `"code":"not_applicable"`)
	s.do(t, acme, http.MethodPost, at+"/pause", fields{"note": "wait"}).want(t, 200, `"status":"paused"`)
	s.do(t, acme, http.MethodPost, at+"/resume", fields{"seconds": 60}).want(t, 200, `"status":"open"`, "window_end")
	s.do(t, acme, http.MethodPost, at+"/cancel", nil).want(t, 200, `"status":"cancelled"`)
	s.do(t, acme, http.MethodGet, "/v1/audit", nil).want(t, 200, "sweep.start", "sweep.pause", "sweep.resume", "sweep.cancel")
}

func TestBulkOperationsArePreviewed(t *testing.T) {
	s, acme, _, all := fleetServer(t)
	s.works(t)
	s.large(t, "acme", "s1")
	s.large(t, "other", "s2")
	storetest.Await(t, "both are compacted", func() bool {
		runs, err := s.st.Operator.Runs(t.Context(), store.RunFilter{Limit: 10})
		return err == nil && len(runs) == 2 && runs[0].Status == store.StatusApplied && runs[1].Status == store.StatusApplied
	})
	filter := fields{"filter": fields{"trigger": "event"}}
	s.do(t, acme, http.MethodPost, "/v1/bulk/undo", filter).want(t, 403, "concerns others, too")
	s.do(t, all, http.MethodPost, "/v1/bulk/undo?tenant=acme", fields{"filter": fields{}}).want(t, 422, "body.filter")
	s.do(t, all, http.MethodPost, "/v1/bulk/undo?tenant=acme", filter).want(t, 200, `"undo":{"runs":1,`)
	s.do(t, all, http.MethodPost, "/v1/bulk/compact?tenant=acme", filter).want(t, 200, `"compact":{"sessions":1,`)
	type started struct{ Bulk store.BulkReport }
	b := into[started](t, s.do(t, all, http.MethodPost, "/v1/bulk/undo?tenant=acme&dry_run=false", filter).want(t, 200)).Bulk
	if b.Status != "done" || b.Done != 1 {
		t.Errorf("%+v", b)
	}
	at := fmt.Sprint("/v1/bulk/undo/", b.ID)
	s.do(t, acme, http.MethodGet, at, nil).want(t, 200, `"tenant":"acme"`)
	s.do(t, acme, http.MethodGet, "/v1/bulk/undo", nil).want(t, 200, `"id":`)
	s.do(t, all, http.MethodGet, at+"/refusals", nil).want(t, 200, `"items":[]`)
	s.do(t, all, http.MethodGet, at+"/refusals?tenant=other", nil).want(t, 404)
	s.do(t, all, http.MethodGet, "/v1/bulk/undo?tenant=other", nil).want(t, 200, `"items":[]`)
	s.do(t, all, http.MethodPost, at+"/cancel", nil).want(t, 409, `"code":"not_applicable"`)
	s.do(t, all, http.MethodPost, at+"/resume", nil).want(t, 200, `"status":"done"`)
	s.do(t, all, http.MethodPost, "/v1/bulk/redo", filter).want(t, 422, "path.kind")
	s.do(t, acme, http.MethodGet, "/v1/audit", nil).want(t, 200, "bulk.undo", "run.undo")
}

func TestStatsAndHeldBackAreOfTheTenant(t *testing.T) {
	s, acme, other, all := fleetServer(t)
	s.large(t, "acme", "s1")
	s.do(t, acme, http.MethodGet, "/v1/stats", nil).want(t, 200, `"tenant":"acme"`, `"last_hour"`)
	if r := s.do(t, other, http.MethodGet, "/v1/stats", nil).want(t, 200); strings.Contains(r.body, "acme") {
		t.Error(r.body)
	}
	s.do(t, other, http.MethodGet, "/v1/held-back", nil).want(t, 200, `"items":[`)
	s.do(t, all, http.MethodGet, "/v1/held-back", nil).want(t, 200, `"items":[`)
}

func TestKeysAreMadeByKeys(t *testing.T) {
	s, acme, other, all := fleetServer(t)
	type made struct {
		ID  int64
		Key string
	}
	key := into[made](t, s.do(t, acme, http.MethodPost, "/v1/keys", fields{"name": "app", "scope": "append", "note": "tests"}).want(t, 201, `"tenant":"acme"`, `"created_by":"key:admin-4"`))
	s.do(t, key.Key, http.MethodGet, "/v1/keys", nil).want(t, 403)
	s.do(t, acme, http.MethodPost, "/v1/keys", fields{"name": "items", "scope": "append", "output": "item"}).want(t, 201, `"output":"item"`)
	s.do(t, acme, http.MethodPost, "/v1/keys", fields{"name": "both", "scope": "append", "output": "both"}).want(t, 422, "body.output")
	s.do(t, acme, http.MethodPost, "/v1/keys", fields{"name": "app", "scope": "read"}).want(t, 409, `"code":"in_use"`)
	s.do(t, acme, http.MethodPost, "/v1/keys", fields{"name": "app2", "scope": "read", "all": true}).want(t, 422)
	s.do(t, all, http.MethodPost, "/v1/keys", fields{"name": "app2", "scope": "read"}).want(t, 422, "query.tenant")
	s.do(t, all, http.MethodPost, "/v1/keys", fields{"name": "app2", "scope": "root", "all": true}).want(t, 422, "body.scope")
	s.do(t, all, http.MethodPost, "/v1/keys", fields{"name": "app2", "scope": "read", "all": true}).want(t, 201, `"tenant":null`)
	for _, name := range []string{"app", fmt.Sprint(key.ID), "none", "app2"} {
		s.do(t, other, http.MethodDelete, "/v1/keys/"+name, nil).want(t, 404)
		s.do(t, other, http.MethodPost, "/v1/keys/"+name+"/rotate", nil).want(t, 404)
	}
	r := s.do(t, acme, http.MethodGet, "/v1/keys", nil).want(t, 200, `"name":"app"`)
	if strings.Contains(r.body, "other") || strings.Contains(r.body, `"tenant":null`) || strings.Contains(r.body, key.Key) {
		t.Error(r.body)
	}
	s.do(t, all, http.MethodGet, "/v1/keys", nil).want(t, 200, `"name":"app"`, `"tenant":null`)
	rotated := into[made](t, s.do(t, acme, http.MethodPost, "/v1/keys/app/rotate", fields{"grace_seconds": 60}).want(t, 200, `"key":"cpk_`))
	s.do(t, rotated.Key, http.MethodGet, "/v1/sessions", nil).want(t, 200)
	s.do(t, key.Key, http.MethodGet, "/v1/sessions", nil).want(t, 200)
	s.do(t, acme, http.MethodDelete, "/v1/keys/app", nil).want(t, 200, fmt.Sprintf(`"revoked":%d`, rotated.ID))
	s.do(t, acme, http.MethodGet, "/v1/keys?all=true", nil).want(t, 200, `"revoked_by":"key:admin-4"`)
	s.do(t, acme, http.MethodGet, "/v1/audit", nil).want(t, 200, "key.create", "key.revoke")
}
