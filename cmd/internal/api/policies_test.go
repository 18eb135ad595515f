package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
)

func TestAPolicyIsPreviewedAndApplied(t *testing.T) {
	s, acme, other, all := fleetServer(t)
	s.large(t, "acme", "s1")
	const file = "name: support\nmatch: {tenant: acme}\nstart: 0.5\ntarget: 0.2\n"
	s.do(t, acme, http.MethodPost, "/v1/policies", file).want(t, 403, "concerns others, too")
	s.do(t, all, http.MethodPost, "/v1/policies", "name: Support\nbegin_at: 1\n").want(t, 422, `"errors":[`, `"field":"body.`)
	s.do(t, all, http.MethodPost, "/v1/policies", "{").want(t, 422, `"field":"body`)
	s.do(t, all, http.MethodPost, "/v1/policies", file, "Content-Type", "application/yaml").want(t, 200, `"applied":false`, `"become_due"`, `"key":"start"`)
	s.do(t, all, http.MethodGet, "/v1/policies/support", nil).want(t, 404)
	s.do(t, all, http.MethodPost, "/v1/policies?dry_run=false", file).want(t, 200, `"applied":true`, `"version":1`)
	again := into[policies.Changes](t, s.do(t, all, http.MethodPost, "/v1/policies?dry_run=false", file).want(t, 200))
	if again.Applied || len(again.Policies) > 0 {
		t.Errorf("applied again: %+v", again)
	}
	s.do(t, all, http.MethodPost, "/v1/policies?dry_run=false", `{"name": "support", "match": {"tenant": "acme"}, "start": 0.6, "target": 0.2, "note": "as JSON"}`).want(t, 200, `"version":2`)
	s.do(t, acme, http.MethodGet, "/v1/policies", nil).want(t, 200, `"name":"support"`, `"note":"as JSON"`)
	s.do(t, all, http.MethodGet, "/v1/policies", nil).want(t, 200, `"progress":{`)
	s.do(t, acme, http.MethodGet, "/v1/policies/support?version=1", nil).want(t, 200, `"in_force":false`, `"created_by":"key:admin-0"`)
	v2 := into[policies.Detail](t, s.do(t, acme, http.MethodGet, "/v1/policies/support", nil).want(t, 200, `"before":1`, `{"key":"start","from":"0.5","to":"0.6"}`))
	s.do(t, all, http.MethodPost, "/v1/policies?dry_run=false", v2.File).want(t, 200, `"policies":[]`) // it leads to the same
	s.do(t, all, http.MethodGet, "/v1/installation", nil).want(t, 200, `"migrations_pending":[]`, `"name":"server version"`)
	s.do(t, acme, http.MethodGet, "/v1/installation", nil).want(t, 403)
	s.do(t, acme, http.MethodGet, "/v1/policies/support/history", nil).want(t, 200, `"versions":[`, `"changes":[`)
	if r := s.do(t, other, http.MethodGet, "/v1/policies", nil).want(t, 200); strings.Contains(r.body, "support") {
		t.Error(r.body)
	}
	for _, name := range []string{"support", "none"} {
		s.do(t, other, http.MethodGet, "/v1/policies/"+name, nil).want(t, 404)
		s.do(t, other, http.MethodGet, "/v1/policies/"+name+"/history", nil).want(t, 404)
		s.do(t, other, http.MethodPost, "/v1/policies/"+name+"/disable", nil).want(t, 404)
		s.do(t, other, http.MethodPost, "/v1/policies/"+name+"/rollback", nil).want(t, 404)
	}
	s.do(t, acme, http.MethodPut, "/v1/policies/support/sessions/s1", nil).want(t, 200, `"policy":"support"`)
	s.do(t, acme, http.MethodPut, "/v1/policies/none/sessions/s1", nil).want(t, 404)
	s.do(t, other, http.MethodPut, "/v1/policies/default/sessions/s1", nil).want(t, 404)
	s.do(t, acme, http.MethodPost, "/v1/policies/support/rollback", nil).want(t, 403)
	s.do(t, all, http.MethodPost, "/v1/policies/support/rollback", nil).want(t, 200, `"applied":false`)
	s.do(t, all, http.MethodPost, "/v1/policies/support/rollback?dry_run=false", fields{"to": 1}).want(t, 200, `"applied":true`, `"version":1`)
	s.do(t, all, http.MethodPost, "/v1/policies/support/disable?dry_run=false", nil).want(t, 200, `"applied":true`)
	s.do(t, acme, http.MethodGet, "/v1/audit", nil).want(t, 200, "policy.disable", "policy.apply", "support@2")
}

func TestAPolicyIsTriedOnSessions(t *testing.T) {
	s, acme, other, all := fleetServer(t)
	for _, session := range []string{"s1", "s2", "s3"} {
		s.large(t, "acme", session)
	}
	s.large(t, "other", "theirs")
	const file = "name: support\nmatch: {tenant: acme}\nstart: 0.5\ntarget: 0.2\n"
	type tried struct {
		Sessions []reports.Preview
		Totals   reports.TrialTotals
	}
	try := func(key, query string, body any) tried {
		t.Helper()
		return into[tried](t, s.do(t, key, http.MethodPost, "/v1/policies/test"+query, body).want(t, 200))
	}
	for _, key := range []string{acme, all} {
		got := try(key, "?sample=2", file)
		if got.Totals.Sessions != 2 || len(got.Sessions) != 2 || got.Totals.TokensAfter >= got.Totals.TokensBefore || got.Totals.TokensBefore == 0 {
			t.Errorf("a sample: %+v", got.Totals)
		}
		if x := got.Sessions[0]; x.Policy != "support" || x.Version != 0 || !strings.HasPrefix(x.Session, "s") || len(x.Gone) == 0 {
			t.Errorf("%+v", x)
		}
	}
	if got := try(acme, "?session=s3&session=s1", nil); got.Totals.Sessions != 2 || got.Sessions[0].Session != "s3" || got.Sessions[0].Policy != "default" {
		t.Errorf("sessions by name, under their own policy: %+v", got)
	}
	if got := try(acme, "", nil); got.Totals.Sessions != 3 {
		t.Errorf("all: %+v", got.Totals)
	}
	if got := try(other, "", file); got.Totals.Sessions != 0 {
		t.Errorf("a file for acme, by other: %+v", got)
	}
	s.do(t, other, http.MethodPost, "/v1/policies/test?session=s1", nil).want(t, 404, `"code":"not_found"`)
	s.do(t, acme, http.MethodPost, "/v1/policies/test", "name: Support\nbegin_at: 1\n").want(t, 422, `"errors":[`)
	s.do(t, acme, http.MethodPost, "/v1/policies/test?sample=1000", file).want(t, 422, "query.sample")
	s.do(t, s.key(t, store.ScopeAppend, "acme"), http.MethodPost, "/v1/policies/test", file).want(t, 403)
	if runs, err := s.st.Operator.Runs(t.Context(), store.RunFilter{Limit: 9}); err != nil || len(runs) > 0 {
		t.Errorf("it made runs: %v, %v", runs, err)
	}
	s.do(t, acme, http.MethodGet, "/v1/policies/support", nil).want(t, 404)
}
