package web_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

// long appends a session that is due under the policy small.
func (f *fleet) long(tenant, id string) {
	f.Helper()
	var all []chat.Message
	for i := range 20 {
		text := fmt.Sprintf("Please look at part %d of the plan. %s", i, strings.Repeat("words of a session ", 200))
		all = append(all, chat.Message{Role: chat.RoleUser, Content: chat.TextContent(text)},
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("Done with it.")})
	}
	f.append(tenant, id, all)
}

// ran waits for the end of a run.
func (f *fleet) ran(run store.RunID) {
	f.Helper()
	storetest.Await(f, "the end of a run", func() bool {
		r, err := f.st.Run(f.Context(), run)
		return err == nil && r.Ended()
	})
}

// swept adds what pages of sweeps, bulk operations and held sessions show.
func (f *fleet) swept() {
	f.Helper()
	f.fill(10, "research")
	match := store.RunMatch{Writer: "scripted", Since: time.Now().Add(-time.Hour)}
	undo, err := f.st.Operator.StartBulkUndo(f.Context(), "", match, false, "it lost the order ids", "ada")
	if err != nil {
		f.Fatal(err)
	}
	for range 5 {
		if _, err := f.st.Operator.NextBulkUndo(f.Context(), undo); err != nil {
			f.Fatal(err)
		}
	}
	options := store.SweepOptions{Canary: 0.1, Window: 2 * time.Hour, Note: "after the import", By: "ada"}
	sweep, err := f.st.Operator.Start(f.Context(), options)
	if err != nil {
		f.Fatal(err)
	}
	storetest.Await(f, "the end of the sweep", func() bool {
		s, err := f.st.Operator.Sweep(f.Context(), sweep)
		return err == nil && s.Settled()
	})
}

func TestTheListOfSessionsKeepsItsFilter(t *testing.T) {
	f := newFleet(t, small, func(c *config.Config) { c.Policy.Debounce, c.Policy.MaxDelay = time.Hour, time.Hour })
	for i := range 27 {
		f.long("acme", fmt.Sprintf("plan <%d>", i))
	}
	f.long("other", "one")
	c := f.client("")
	page := c.get(at("sessions", "due", "true", "q", "plan", "model", "gpt-4o", "tenant", "acme"),
		"Please look at part 0 of the plan", "plan &lt;0&gt;", "Due ✕", "id has plan ✕", "Compact all that match…")
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page)
	if next == nil || strings.Count(page, "<tr id=") != 25 {
		t.Fatalf("%v: %s", next, page)
	}
	second := c.get("/ui/sessions" + html.UnescapeString(next[1]))
	if strings.Count(second, "<tr id=") != 2 || !strings.Contains(next[1], "due=true") || !strings.Contains(next[1], "tenant=acme") {
		t.Errorf("%s: %s", next[1], second)
	}
	c.get(at("sessions", "q", "nowhere"), "No session matches", "Take a part of the filter away")

	page = c.get(at("sessions", "tenant", "other"))
	c.want(c.submit(page, "Compact those selected…"), "No session is selected")
	cursor := regexp.MustCompile(`name="\?cursor" value="([1-9]\d*)"`).FindStringSubmatch(page)[1]
	preview := c.submit(page, "Compact those selected…", "?cursor", cursor)
	c.want(preview, "Compact 1 session</b>", `id=one&amp;tenant=other`)
	c.want(c.submit(preview, "Compact 1 session"), "1 run was asked for")
}

func TestFindGoesToTheOneThatItNames(t *testing.T) {
	f := newFleet(t, small)
	f.long("acme", "chat/42")
	f.long("acme", "chat/43")
	f.long("other", "chat/43")
	f.ran(1)
	c := f.client("")
	session := at("session", "tenant", "acme", "id", "chat/42")
	for query, want := range map[string]string{"chat/42": session, "AT/42": session, "1": "/ui/run?run=1"} {
		resp, _ := c.send(http.MethodGet, at("find", "q", query), nil)
		if to := resp.Header.Get("Location"); to != want {
			t.Errorf("%s leads to %s, want %s", query, to, want)
		}
		c.get(want)
	}
	c.get(at("find", "q", "chat/43"), "other <span", "acme <span")
	c.get(at("find", "q", "chat"), "chat/42", "chat/43")
	c.get(at("find", "q", "summary-9-9"), "No session, run or summary has this name")
}

func TestTheCardOfAPauseEndsIt(t *testing.T) {
	f := newFleet(t, small)
	c := f.client("")
	c.get(at("held-back"), "Nothing is held back", "Nothing is held by: no leader")
	if err := f.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "acme"}, "a new <b>tool</b>", "ada"); err != nil {
		t.Fatal(err)
	}
	f.long("acme", "one")
	page := c.get(at("held-back"), "Paused by an operator", "By ada: a new &lt;b&gt;tool&lt;/b&gt;", "compactor resume --tenant acme",
		"Please look at part 0 of the plan", "1 session</a>")
	c.want(c.submit(page, "End the pause"), "has ended.")
	f.ran(1)
	c.get(at("held-back"), "Nothing is held back")
}

func TestASweepIsForecastAndStarted(t *testing.T) {
	f := newFleet(t, small, func(c *config.Config) { c.Policy.Debounce, c.Policy.MaxDelay = time.Hour, time.Hour })
	c := f.client("")
	page := c.get(at("sweeps"), "No sweep has started yet", "nightly", "Run now…")
	c.want(c.submit(page, "Forecast it", "all:bool", "true"), "No session is due now")
	f.long("acme", "one")
	forecast := c.submit(page, "Forecast it", "all:bool", "true", "note", "after the import")
	c.want(forecast, "A sweep over 1 session that", "not known: no earlier sweep", "Start the sweep over 1 session")
	c.want(c.submit(forecast, "Start the sweep"), "Sweep 1</a> has started")
	c.get(at("sweep", "sweep", "1"), "after the import", "How its runs ended")
	page = c.get(at("sweeps"), "Sweep 1</a>", "after the import")
	c.want(c.submit(page, "Its ticks start nothing", "note", "provider is down"), "Its ticks start nothing.")
	c.get(at("sweeps"), "nothing while it is paused", "provider is down")
}

func TestWhatAModelWroteIsUndone(t *testing.T) {
	f := newFleet(t, small)
	f.long("acme", "one")
	f.ran(1)
	c := f.client("")
	page := c.get(at("bulk", "writer", "scripted"), `value="scripted"`, "in the last 12 hours: the night")
	c.want(c.submit(page, "Count those", "all:bool", "true"), "want at least one of since")
	c.want(c.submit(page, "Count those", "all:bool", "true", "filter.writer", "another"), "nothing to undo")
	preview := c.submit(page, "Count those", "all:bool", "true", "filter.writer", "scripted", "note", "it lost the order ids")
	c.want(preview, "Undo 1 run</b>, writer <b>scripted</b>, of all tenants, 1 session", `href="/ui/run?run=1"`, "Undo 1 run</button>")
	c.want(c.submit(preview, "Undo 1 run"), "Bulk undo 1</a> is done: 1 of 1 done")
	c.get(at("bulk"), "it lost the order ids", "written by <b>scripted</b>")
	c.get(at("bulk", "kind", "undo", "bulk", "1"), "Bulk undo 1", "Nothing so far.")
	page = c.get(at("bulk", "kind", "compact"))
	c.want(c.submit(page, "Count those", "all:bool", "true", "filter.outcome", "applied"), "Compact 1 session again")
}
