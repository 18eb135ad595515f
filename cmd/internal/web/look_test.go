package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sessionstore/compactor/store"
)

// All pages at a phone's and a desktop's width, light and dark; SCREENSHOTS names the folder that keeps the pictures.
func TestPagesLookRight(t *testing.T) {
	f := newFleet(t, small)
	f.fill(8, "airline-desk", "engineering", "research")
	f.settled()
	if err := f.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "research"}, "moving to the new tool schema", "ada"); err != nil {
		t.Fatal(err)
	}
	f.swept()
	ctx := f.browser(1440, 900, "light")
	f.do(ctx, "warm up", f.page("/ui/"), chromedp.WaitReady("main"))
	for _, p := range []struct{ name, path string }{
		{"overview", at("")},
		// session

		// runs and compact

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
	} {
		f.shoot(ctx, p.name, p.path)
	}
}
