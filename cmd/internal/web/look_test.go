package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
)

// TestPagesLookRight shows all pages at a phone's and a desktop's width, light and dark; SCREENSHOTS names the folder of the pictures.
func TestPagesLookRight(t *testing.T) {
	f := newFleet(t, small)
	f.fill(8, "airline-desk", "engineering", "research")
	f.settled()
	err := f.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "research"}, "moving to the new tool schema", "ada")
	if err != nil {
		t.Fatal(err)
	}
	f.fill(12, "research") // four sessions more, which wait for the end of the pause
	storetest.Await(t, "a session that is held back", func() bool {
		held, err := f.st.Operator.HeldBack(t.Context(), "")
		return err == nil && len(held) > 0
	})
	long := f.longSession()
	applied, skipped, undone, large := f.decided()
	f.swept()
	f.govern()
	ctx := f.browser(1440, 900, "light")
	f.do(ctx, "warm up", f.page("/ui/"), chromedp.WaitReady("main"))
	for _, p := range []struct{ name, path string }{
		{"overview", at("")},
		// session
		{"session", at("session", "tenant", "engineering", "id", "long")},
		{"session-step", at("session", "tenant", "engineering", "id", "long", "run", fmt.Sprint(long), "message", "5")},

		// runs and compact
		{"runs", at("runs")},
		{"decisions", at("decisions")},
		{"run", at("run", "run", applied)},
		{"run-skipped", at("run", "run", skipped)},
		{"run-undone", at("run", "run", undone)},
		{"compact", at("compact", "tenant", "airline-desk", "id", large, "with", "strategies:handoff")},

		// lists, sweeps, bulk
		{"sessions", at("sessions")},
		{"sessions-filter", at("sessions", "due", "true", "tenant", "research", "model", "gpt-4o")},
		{"sessions-none", at("sessions", "q", "nowhere")},
		{"held-back", at("held-back")},
		{"find", at("find", "q", "a")},
		{"sweeps", at("sweeps")},
		{"sweep", at("sweep", "sweep", "1")},
		{"bulk", at("bulk")},
		{"bulk-compact", at("bulk", "kind", "compact")},
		{"bulk-one", at("bulk", "kind", "undo", "bulk", "1")},

		// policies, limits, admin
		{"policies", at("policies")},
		{"policy-default", at("policy", "policy", "default")},
		{"policy", at("policy", "policy", "support")},
		{"limits", at("limits")},
		{"admin", at("admin")},
	} {
		f.shoot(ctx, p.name, p.path)
	}
}

// govern puts two versions of a policy in force, and limits.
func (f *fleet) govern() {
	f.Helper()
	for _, file := range []string{
		"name: support\nmatch: {tenant: airline-desk}\nstart: 0.6\ntarget: 0.3\nnote: first try\n",
		"name: support\nmatch: {tenant: airline-desk}\nstart: 0.5\ntarget: 0.25\nguards: {max_per_day: 40}\n" +
			"pin_tools: [book_flight]\nnote: smaller, as bookings are long\n",
	} {
		answer, err := http.Post(f.url+"/v1/policies?dry_run=false", "application/yaml", strings.NewReader(file))
		if err != nil || answer.StatusCode != http.StatusOK {
			f.Fatal(answer, err)
		}
		_ = answer.Body.Close()
	}
	for _, limit := range []store.SpendingLimit{
		{MicrosPerDay: new(int64(20_000_000)), RunsPerSecond: new(5.0), ChangedBy: "cli:ada"},
		{
			Tenant: "engineering", MicrosPerHour: new(int64(10_000)), TokensPerHour: new(int64(5_000_000)),
			ChangedBy: "cli:ada", Note: "until the budget is raised",
		},
	} {
		if err := f.st.Operator.LimitSpending(f.Context(), limit); err != nil {
			f.Fatal(err)
		}
	}
	f.followed()
}

// followed waits until all sessions follow the policies.
func (f *fleet) followed() {
	f.Helper()
	storetest.Await(f, "sessions that follow", func() bool {
		p, err := f.st.PolicyProgress(f.Context())
		return err == nil && !p.Pending
	})
}
