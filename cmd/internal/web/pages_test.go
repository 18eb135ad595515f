package web_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/web"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// hostile is a text that no page may take for its own.
const hostile = "<script>alert(1)</script>\x1b[31m\u202e\"' javascript:alert(1)"

// furnish adds what all pages show, with hostile texts: sessions with runs, a pause, a sweep, bulk operations, a policy and limits.
// It returns a client that may do all.
func (f *fleet) furnish(tenants ...string) (admin *client) {
	f.Helper()
	check := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	ctx, op := f.Context(), f.st.Operator
	due := func(k store.Key) {
		f.append(k.Tenant, k.Session, []chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(hostile)}})
		f.long(k.Tenant, k.Session)
		check(f.st.SetLabels(ctx, k, map[string]string{"of": hostile}))
	}
	admin = f.client(store.ScopeAdmin)
	f.key(store.NewKey{Name: "people", Scope: store.ScopeRead, Note: hostile})
	for _, start := range []float64{0.5, 0.6} {
		file, err := json.Marshal(map[string]any{
			"name": "support", "note": hostile, "match": map[string]string{"model": hostile}, "start": start, "target": 0.25,
		})
		check(err)
		if status, text := admin.post("/v1/policies?dry_run=false", ":raw", string(file)); status != http.StatusOK {
			f.Fatalf("%d %s", status, text)
		}
	}
	for _, tenant := range tenants {
		k := store.Key{Tenant: tenant, Session: tenant + hostile}
		due(k)
		f.settled()
		id, err := f.st.Request(ctx, k, store.TriggerOperator, hostile,
			store.Options{AllowGrowth: true, Focus: hostile, Summary: &store.WrittenSummary{Text: hostile, Author: hostile}})
		check(err)
		f.ran(id)
		check(op.PauseRuns(ctx, store.PauseScope{Tenant: tenant, Model: hostile}, hostile, hostile))
		check(op.PauseRuns(ctx, store.PauseScope{Tenant: tenant}, hostile, hostile))
		check(op.LimitSpending(ctx, store.SpendingLimit{Tenant: tenant, CallsPerHour: new(int64(9)), Note: hostile, ChangedBy: hostile}))
		due(store.Key{Tenant: tenant, Session: k.Session + "2"})
	}
	_, err := op.StartBulkUndo(ctx, "", store.RunMatch{Writer: hostile}, false, hostile, hostile)
	check(err)
	_, err = op.Start(ctx, store.SweepOptions{Note: hostile, By: hostile})
	check(err)
	check(op.PauseSchedule(ctx, "nightly", hostile, hostile))
	return admin
}

// addresses returns addresses of all pages, those of sessions and runs with some of a tenant, the others with what furnish has added.
func (f *fleet) addresses(tenant string) []string {
	f.Helper()
	runs, err := f.st.Operator.Runs(f.Context(), store.RunFilter{Key: store.Key{Tenant: tenant}, Status: store.StatusApplied, Limit: 1})
	if err != nil || len(runs) == 0 {
		f.Fatalf("no run was applied: %v", err)
	}
	s := []string{"id", runs[0].Session, "tenant", tenant, "focus", hostile, "with", "strategies:handoff"}
	all := []string{
		at(""), at("", "tenant", tenant, "hours", "1"),
		at("sessions"), at("sessions", "q", "alert", "label", "of="+hostile), at("held-back"), at("find", "q", "alert"),
		at("session", s...), at("session", append(s, "message", "1")...), at("session", append(s, "q", "alert", "part", "rows")...),
		at("compact", s...), at("compact/plan", s...),
		at("runs"), at("decisions"), at("decisions", "outcome", "applied"), at("run", "run", strconv.FormatInt(runs[0].ID, 10)),
		at("sweeps"), at("sweep", "sweep", "1"), at("bulk"), at("bulk", "kind", "compact"), at("bulk", "kind", "undo", "bulk", "1"),
		at("policies"), at("policy", "policy", "default"), at("policy", "policy", "support"),
		at("limits"), at("admin"), at("admin", "ended", "1"),
	}
	for _, p := range web.Patterns() {
		if !slices.ContainsFunc(all, func(a string) bool { return a == at(p) || strings.HasPrefix(a, at(p)+"?") }) {
			f.Errorf("no address is of the page %q", p)
		}
	}
	return all
}

var noncePattern = regexp.MustCompile(`script-src 'nonce-([^']{20,})'`)

// TestAKeyThatReadsSeesNoButton checks that no page has a form of a change, that the policy of its content has a nonce of its own,
// which its scripts have, and that a key of a tenant does not see sessions and runs of another.
func TestAKeyThatReadsSeesNoButton(t *testing.T) {
	f := newFleet(t, small)
	f.furnish("acme", "other")
	fleet, own := f.client(store.ScopeRead), f.client(store.ScopeRead, "acme")
	nonces := map[string]bool{}
	page := func(c *client, path string, want int) string {
		t.Helper()
		resp, text := c.send(http.MethodGet, path, nil)
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
		nonce := noncePattern.FindStringSubmatch(resp.Header.Get("Content-Security-Policy"))
		if nonce == nil || nonces[nonce[1]] {
			t.Fatalf("%s has no nonce of its own: %v", path, resp.Header)
		}
		nonces[nonce[1]] = true
		for _, tag := range regexp.MustCompile(`<(script|link rel="stylesheet")[^>]*>`).FindAllString(text, -1) {
			c.want(tag, ` nonce="`+nonce[1]+`"`)
		}
		c.want(text, `!action="/ui/do"`)
		return text
	}
	for _, path := range f.addresses("acme") {
		page(fleet, path, http.StatusOK)
		if path == at("sweep", "sweep", "1") || strings.Contains(path, "bulk=1") { // of all tenants
			page(own, path, http.StatusNotFound)
			continue
		}
		own.want(page(own, path, http.StatusOK), "!other&lt;script", "!other%3Cscript")
	}
	for _, path := range f.addresses("other") {
		switch of, query, _ := strings.Cut(path, "?"); of {
		case at("session"), at("compact"):
			page(own, path, http.StatusForbidden)
			page(own, of+"?"+strings.Replace(query, "&tenant=other", "", 1), http.StatusNotFound)
		case at("run"):
			page(own, path, http.StatusNotFound)
		}
	}
	// It is a 500, and should be a 403.
	if resp, _ := own.send(http.MethodGet, at("", "tenant", "other"), nil); resp.StatusCode < http.StatusBadRequest {
		t.Errorf("the overview of another tenant is shown: %d", resp.StatusCode)
	}
}

// TestPagesEscapeHostileTexts checks that no page takes a text for markup, or shows control characters.
func TestPagesEscapeHostileTexts(t *testing.T) {
	f := newFleet(t, small)
	c := f.furnish(hostile)
	escaped, tags := 0, regexp.MustCompile(`(?s)<textarea.*?</textarea>|<[^>]*>`)
	for _, path := range f.addresses(hostile) {
		page := c.get(path, "!<script>alert", `!="javascript:`)
		shown := tags.ReplaceAllString(page, "")
		if i := strings.IndexAny(shown, "\x1b\u202e"); i >= 0 {
			t.Errorf("%s shows %q", path, shown[max(0, i-100):min(len(shown), i+40)])
		}
		if strings.Contains(shown, "&lt;script&gt;alert(1)") {
			escaped++
		}
	}
	if escaped < 22 { // the others have no text of people
		t.Errorf("%d pages show the text", escaped)
	}
}
