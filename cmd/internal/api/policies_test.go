package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/policies"
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
