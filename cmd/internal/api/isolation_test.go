package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// The content, the notes and the names of the other tenant have this word.
const secret = "zebra"

// theirs makes one of each resource for a tenant, and returns their ids by the parameters of paths.
func (s *server) theirs(t *testing.T, tenant string) map[string]string {
	t.Helper()
	k := s.fill(t, tenant, secret+"-chat", said("m1", secret+" one"), said("m2", secret+" two"), said("m3", secret+" three"))
	summary, run := s.summarized(t, k, chat.Ranges{{Lo: 1, Hi: 3}}, "about "+secret)
	o := s.st.Operator
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, _, err := s.st.Admin.CreateKey(t.Context(), store.NewKey{Name: secret, Scope: store.ScopeAdmin, Tenant: tenant}, secret)
	check(err)
	sweep, err := o.StartSweep(t.Context(), tenant, 0, secret, secret)
	check(err)
	bulk, err := o.StartBulkUndo(t.Context(), tenant, store.RunMatch{Trigger: store.TriggerNightly}, false, secret, secret)
	check(err)
	check(o.PauseRuns(t.Context(), store.PauseScope{Tenant: tenant, Model: secret}, secret, secret))
	pauses, err := o.Pauses(t.Context())
	check(err)
	_, err = o.ChangePolicies(t.Context(), []store.PolicyChange{{
		Name: secret + "-policy", Spec: []byte(`{}`), Hash: secret, FleetHash: secret, Match: map[string]string{"tenant": tenant}, Note: secret, Thresholds: []store.Threshold{{DueTokens: 1 << 30}},
	}}, secret)
	check(err)
	return map[string]string{
		"session": k.Session, "seq": "1", "message": "m1", "run": fmt.Sprint(run), "id": summary, "key": fmt.Sprint(key.ID), "sweep": fmt.Sprint(sweep),
		"bulk": fmt.Sprint(bulk), "pause": fmt.Sprint(pauses[0].ID), "policy": secret + "-policy", "kind": "undo", "schedule": "nightly",
	}
}

// Every operation, with every id of the other tenant, answers as for one that does not exist, and
// changes nothing of the other's.
func TestNoOperationReachesAnotherTenant(t *testing.T) {
	s := newServer(t)
	ids := s.theirs(t, "theirs")
	unknown := map[string]string{
		"session": "unknown-chat", "seq": "1", "message": "m1", "run": "99999", "id": "summary-1-99999", "key": "99999", "sweep": "99999", "bulk": "99999",
		"pause": "99999", "policy": "unknown-policy", "kind": "undo", "schedule": "nightly",
	}
	all := s.key(t, store.ScopeAdmin, "")
	ours := s.key(t, store.ScopeAdmin, "ours")
	fingerprint := func() (out []string) {
		for _, path := range []string{
			at(ids["session"], ""), at(ids["session"], "/view"), at(ids["session"], "/messages"), "/v1/runs/" + ids["run"], "/v1/sweeps/" + ids["sweep"],
			"/v1/policies/" + ids["policy"], "/v1/pauses", "/v1/keys", "/v1/bulk/undo", "/v1/limits", "/v1/audit",
		} {
			out = append(out, s.do(t, all, http.MethodGet, path+"?tenant=theirs", nil).want(t, 200).body)
		}
		return out
	}
	before := fingerprint()
	for _, d := range s.operations(t) {
		if d.path == "/v1/events" {
			continue // a stream: see TestEventsContinueWhereAClientStopped
		}
		answers := make([]reply, 2)
		for i, of := range []map[string]string{ids, unknown} {
			path, body := d.request(s.doc)
			if strings.Contains(d.path, "{") {
				path = d.path
				for name, value := range of {
					if name == "id" && strings.HasPrefix(d.path, "/v1/bulk") {
						value = of["bulk"]
					}
					path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
				}
			}
			if d.method == http.MethodDelete {
				path += "?note=x"
			}
			answers[i] = s.do(t, ours, d.method, path, body, "If-Match", `"1"`)
			if text := strings.ReplaceAll(answers[i].body, of["session"], ""); strings.Contains(strings.ReplaceAll(text, of["policy"], ""), secret) {
				t.Errorf("%s %s shows %s", d.method, path, answers[i].body)
			}
		}
		if same := answers[0].status == answers[1].status && codeOf(answers[0].body) == codeOf(answers[1].body); !same && strings.Contains(d.path, "{") {
			t.Errorf("%s %s: %d %s, but %d %s", d.method, d.path, answers[0].status, answers[0].body, answers[1].status, answers[1].body)
		}
	}
	if diff := cmp.Diff(before, fingerprint()); diff != "" {
		t.Errorf("the other tenant has changed: %s", diff)
	}
}

// codeOf returns the code of a problem, or nothing.
func codeOf(body string) string {
	_, rest, _ := strings.Cut(body, `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}
