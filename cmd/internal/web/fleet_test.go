package web_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

// reader is a client without a browser: it reads pages and sends their forms.
type reader struct {
	*fleet
	client http.Client
}

func (f *fleet) reader(key string) *reader {
	f.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	r := &reader{fleet: f, client: http.Client{Jar: jar, Timeout: time.Minute}}
	if key != "" {
		r.post("/ui/sign-in", url.Values{"key": {key}})
	}
	return r
}

func (r *reader) body(res *http.Response, err error) (string, string) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	return string(raw), res.Request.URL.RequestURI()
}

// open returns a page, and the address where it is.
func (r *reader) open(path string) (page, address string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	return r.body(r.client.Do(req))
}

func (r *reader) post(path string, form url.Values) string {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	page, _ := r.body(r.client.Do(req))
	return page
}

var (
	formPattern  = regexp.MustCompile(`(?s)<form[^>]*action="/ui/do".*?</form>`)
	fieldPattern = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// send sends the form of a page that has a text, with other fields in turn, and returns its result.
func (r *reader) send(page, has string, fields ...string) string {
	r.Helper()
	for _, form := range formPattern.FindAllString(page, -1) {
		if !strings.Contains(form, has) {
			continue
		}
		v := url.Values{}
		for _, m := range fieldPattern.FindAllStringSubmatch(form, -1) {
			name := html.UnescapeString(m[1])
			if strings.HasPrefix(name, "_") { // the last one counts
				v.Del(name)
			}
			v.Add(name, html.UnescapeString(m[2]))
		}
		for i := 0; i+1 < len(fields); i += 2 {
			v.Add(fields[i], fields[i+1])
		}
		return r.post("/ui/do", v)
	}
	r.Fatalf("no form has %q in\n%s", has, page)
	return ""
}

// want fails the test unless a page has texts.
func (r *reader) want(page string, texts ...string) {
	r.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			r.Fatalf("the page lacks %q:\n%s", text, page)
		}
	}
}

// long appends a session that is due under the policy small, once a scheduler has saved that.
func (f *fleet) long(tenant, id string) {
	f.Helper()
	storetest.Await(f, "the policy of the configuration", func() bool {
		_, err := f.st.Operator.DefaultPolicy(f.Context())
		return err == nil
	})
	var all []chat.Message
	for i := range 20 {
		all = append(
			all,
			chat.Message{
				Role: chat.RoleUser,
				Content: chat.TextContent(
					fmt.Sprintf("Please look at part %d of the plan. %s", i, strings.Repeat("words of a session ", 200)),
				),
			},
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("Done with it.")},
		)
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
	undo, err := f.st.Operator.StartBulkUndo(
		f.Context(),
		"",
		store.RunMatch{Writer: "scripted", Since: time.Now().Add(-time.Hour)},
		false,
		"it lost the order ids",
		"ada",
	)
	if err != nil {
		f.Fatal(err)
	}
	for range 5 {
		if _, err := f.st.Operator.NextBulkUndo(f.Context(), undo); err != nil {
			f.Fatal(err)
		}
	}
	sweep, err := f.st.Operator.Start(
		f.Context(),
		store.SweepOptions{Canary: 0.1, Window: 2 * time.Hour, Note: "after the import", By: "ada"},
	)
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
	r := f.reader("")
	page, _ := r.open(at("sessions", "due", "true", "q", "plan", "model", "gpt-4o", "tenant", "acme"))
	r.want(page, "Please look at part 0 of the plan", "plan &lt;0&gt;", "Due ✕", "id has plan ✕", "Compact all that match…")
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page)
	if next == nil || strings.Count(page, "<tr id=") != 25 {
		t.Fatalf("%v: %s", next, page)
	}
	second, address := r.open("/ui/sessions" + html.UnescapeString(next[1]))
	if strings.Count(second, "<tr id=") != 2 || !strings.Contains(address, "due=true") || !strings.Contains(address, "tenant=acme") {
		t.Errorf("%s: %s", address, second)
	}
	page, _ = r.open(at("sessions", "q", "nowhere"))
	r.want(page, "No session matches", "Take a part of the filter away")

	page, _ = r.open(at("sessions", "tenant", "other"))
	r.want(r.send(page, "Compact those selected…"), "No session is selected")
	preview := r.send(
		page,
		"Compact those selected…",
		"?cursor",
		regexp.MustCompile(`name="\?cursor" value="([1-9]\d*)"`).FindStringSubmatch(page)[1],
	)
	r.want(preview, "Compact 1 session</b>", `id=one&amp;tenant=other`)
	r.want(r.send(preview, "Compact 1 session"), "1 run was asked for")
}

func TestFindGoesToTheOneThatItNames(t *testing.T) {
	f := newFleet(t, small)
	f.long("acme", "chat/42")
	f.long("acme", "chat/43")
	f.long("other", "chat/43")
	f.ran(1)
	r := f.reader("")
	for query, want := range map[string]string{"chat/42": "/ui/session?id=chat%2F42&tenant=acme", "AT/42": "/ui/session?id=chat%2F42&tenant=acme", "1": "/ui/run?run=1"} {
		if _, address := r.open(at("find", "q", query)); address != want {
			t.Errorf("%s leads to %s, want %s", query, address, want)
		}
	}
	page, _ := r.open(at("find", "q", "chat/43"))
	r.want(page, "other <span", "acme <span")
	page, _ = r.open(at("find", "q", "chat"))
	r.want(page, "chat/42", "chat/43")
	page, _ = r.open(at("find", "q", "summary-9-9"))
	r.want(page, "No session, run or summary has this name")
}

func TestTheCardOfAPauseEndsIt(t *testing.T) {
	f := newFleet(t, small)
	r := f.reader("")
	page, _ := r.open(at("held-back"))
	r.want(page, "Nothing is held back", "Nothing is held by: no leader")
	if err := f.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "acme"}, "a new <b>tool</b>", "ada"); err != nil {
		t.Fatal(err)
	}
	f.long("acme", "one")
	page, _ = r.open(at("held-back"))
	r.want(
		page,
		"Paused by an operator",
		"By ada: a new &lt;b&gt;tool&lt;/b&gt;",
		"compactor resume --tenant acme",
		"Please look at part 0 of the plan",
		"1 session</a>",
	)
	r.want(r.send(page, "End the pause"), "has ended.")
	f.ran(1)
	page, _ = r.open(at("held-back"))
	r.want(page, "Nothing is held back")
}

func TestASweepIsForecastAndStarted(t *testing.T) {
	f := newFleet(t, small, func(c *config.Config) { c.Policy.Debounce, c.Policy.MaxDelay = time.Hour, time.Hour })
	r := f.reader("")
	page, _ := r.open(at("sweeps"))
	r.want(page, "No sweep has started yet", "nightly", "Run now…")
	r.want(r.send(page, "Forecast it", "all:bool", "true"), "No session is due now")
	f.long("acme", "one")
	forecast := r.send(page, "Forecast it", "all:bool", "true", "note", "after the import")
	r.want(forecast, "A sweep over 1 session that", "not known: no earlier sweep", "Start the sweep over 1 session")
	r.want(r.send(forecast, "Start the sweep"), "Sweep 1</a> has started")
	page, _ = r.open(at("sweep", "sweep", "1"))
	r.want(page, "after the import", "No limit", "How its runs ended")
	page, _ = r.open(at("sweeps"))
	r.want(page, "Sweep 1</a>", "after the import")
	r.want(r.send(page, "Its ticks start nothing", "note", "provider is down"), "Its ticks start nothing.")
	page, _ = r.open(at("sweeps"))
	r.want(page, "nothing while it is paused", "provider is down")
}

func TestWhatAModelWroteIsUndone(t *testing.T) {
	f := newFleet(t, small)
	f.long("acme", "one")
	f.ran(1)
	r := f.reader("")
	page, _ := r.open(at("bulk", "writer", "scripted"))
	r.want(page, `value="scripted"`, "in the last 12 hours: the night")
	r.want(r.send(page, "Count those", "all:bool", "true"), "want at least one of since")
	r.want(r.send(page, "Count those", "all:bool", "true", "filter.writer", "another"), "nothing to undo")
	preview := r.send(page, "Count those", "all:bool", "true", "filter.writer", "scripted", "note", "it lost the order ids")
	r.want(preview, "Undo 1 run</b> of 1 session", `href="/ui/run?run=1"`, "Undo 1 run</button>")
	r.want(r.send(preview, "Undo 1 run"), "Bulk undo 1</a> is done: 1 of 1 done")
	page, _ = r.open(at("bulk"))
	r.want(page, "it lost the order ids", "written by <b>scripted</b>")
	page, _ = r.open(at("bulk", "kind", "undo", "bulk", "1"))
	r.want(page, "Bulk undo 1", "Nothing so far.")
	page, _ = r.open(at("bulk", "kind", "compact"))
	r.want(r.send(page, "Count those", "all:bool", "true", "filter.outcome", "applied"), "Compact 1 session again")
}

func TestAKeyThatOnlyReadsSeesNoButton(t *testing.T) {
	f := newFleet(t, small)
	f.long("acme", "one")
	if err := f.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "acme"}, "", "ada"); err != nil {
		t.Fatal(err)
	}
	f.long("acme", "two")
	_, secret, err := f.st.Admin.CreateKey(t.Context(), store.NewKey{Name: "reads", Scope: store.ScopeRead}, "test")
	if err != nil {
		t.Fatal(err)
	}
	r := f.reader(secret)
	for _, path := range []string{at("sessions"), at("held-back"), at("find", "q", "o"), at("sweeps"), at("bulk"), at("bulk", "kind", "compact")} {
		page, address := r.open(path)
		if strings.Contains(page, `action="/ui/do"`) || address != path {
			t.Errorf("%s at %s has a form:\n%s", path, address, page)
		}
	}
}
