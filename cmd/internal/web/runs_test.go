package web_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
)

// decided returns runs of the tenant airline-desk, one that wrote a summary, one that changed nothing and one that was undone, and its session with
// the largest view.
func (f *fleet) decided() (applied, skipped, undone, large string) {
	f.Helper()
	sessions, _, err := f.st.Operator.Sessions(f.Context(), store.SessionFilter{Tenant: "airline-desk", Limit: 200})
	if err != nil {
		f.Fatal(err)
	}
	var most store.SessionRow
	for _, s := range sessions {
		if s.LiveTokens > most.LiveTokens {
			most = s
		}
	}
	k := store.Key{Tenant: "airline-desk", Session: most.Session}
	id, err := f.st.Request(
		f.Context(),
		k,
		store.TriggerOperator,
		"ada",
		store.Options{Pipeline: []store.Step{{Strategy: "keep_last_n_messages", Params: map[string]any{"n": 500}}}},
	)
	if err != nil {
		f.Fatal(err)
	}
	if r, err := f.st.WaitRun(f.Context(), id); err != nil || r.Status != "skipped" {
		f.Fatalf("%+v, %v", r, err)
	}
	runs, err := f.st.Operator.Runs(f.Context(), store.RunFilter{Key: store.Key{Tenant: k.Tenant}, Status: "applied", Limit: 200})
	if err != nil || len(runs) < 2 {
		f.Fatal(runs, err)
	}
	if _, err := f.st.Undo(f.Context(), store.Key{Tenant: k.Tenant, Session: runs[1].Session}, runs[1].ID, true, "ada"); err != nil {
		f.Fatal(err)
	}
	return strconv.FormatInt(runs[0].ID, 10), strconv.FormatInt(id, 10), strconv.FormatInt(runs[1].ID, 10), most.Session
}

// guest is a browser without scripts.
type guest struct {
	*fleet
	http.Client
	token string
}

// guest signs in with a key of a scope for all tenants.
func (f *fleet) guest(scope string) *guest {
	f.Helper()
	_, secret, err := f.st.Admin.CreateKey(f.Context(), store.NewKey{Name: scope, Scope: scope}, "test")
	if err != nil {
		f.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	v := &guest{fleet: f, Client: http.Client{Jar: jar}}
	v.say("/ui/sign-in", url.Values{"key": {secret}})
	return v
}

// say posts a form and returns the status and the answer.
func (v *guest) say(path string, form url.Values) (int, string) {
	v.Helper()
	form.Set("_token", v.token)
	r, err := http.NewRequestWithContext(v.Context(), http.MethodPost, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.ask(r)
}

// see returns a page, which must have all of these texts, and none of those after "not".
func (v *guest) see(path string, texts ...string) string {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.url+path, nil)
	if err != nil {
		v.Fatal(err)
	}
	status, page := v.ask(r)
	if m := regexp.MustCompile(`name="_token" value="([^"]+)"`).FindStringSubmatch(page); m != nil {
		v.token = m[1]
	}
	wanted := true
	for _, text := range texts {
		if text == "not" {
			wanted = false
		} else if strings.Contains(page, text) != wanted {
			v.Errorf("%s, %d: %q is in the page: %v, want %v\n%s", path, status, text, !wanted, wanted, mainOf(page))
		}
	}
	return page
}

func (v *guest) ask(r *http.Request) (int, string) {
	v.Helper()
	resp, err := v.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		v.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func mainOf(page string) string {
	_, main, _ := strings.Cut(page, "<main")
	return main
}

// call is a form of an operation.
func call(path string, fields ...string) url.Values {
	v := url.Values{"_method": {"POST"}, "_path": {path}}
	for i := 0; i+1 < len(fields); i += 2 {
		v.Set(fields[i], fields[i+1])
	}
	return v
}

func TestARunIsShownUndoneAndShownAgain(t *testing.T) {
	f := newFleet(t, small)
	f.fill(8, "airline-desk")
	f.settled()
	applied, skipped, undone, large := f.decided()
	operator, reader := f.guest("operate"), f.guest("read")
	page, path := at("run", "run", applied), "/v1/runs/"+applied+"/undo"
	reader.see(
		page,
		"Run "+applied,
		"What survived",
		"Model calls",
		"Its sources",
		"Your key may read only",
		"not",
		"See what an undo would do",
	)
	reader.see(at("run", "run", skipped), "Run "+skipped+": nothing to compact", "There is nothing to undo")
	reader.see(at("run", "run", undone), "no longer in force", "ada undid it", "There is nothing to undo")
	reader.see(at("decisions"), "nothing_to_compact", at("run", "run", skipped), "12k")
	reader.see(
		at("runs", "status", "applied", "trigger", "event", "model", "scripted"),
		at("run", "run", applied),
		"not",
		at("run", "run", skipped),
	)
	reader.see(at("runs", "model", "none"), "Nothing here")
	if status, out := reader.say("/ui/do", call(path)); status != http.StatusForbidden || !strings.Contains(out, "forbidden") {
		t.Errorf("a reader undoes: %d %s", status, out)
	}

	operator.see(page, "See what an undo would do", "dry_run:bool")
	if status, out := operator.say("/ui/do", call(path, "dry_run:bool", "true", "_result", "result-undo")); status != 200 ||
		!strings.Contains(out, "Undo run "+applied) || !strings.Contains(out, "messages come back") {
		t.Errorf("%d %s", status, out)
	}
	operator.see(page, "not", "no longer in force")
	token := operator.token
	operator.token = "another"
	if status, out := operator.say("/ui/do", call(path)); status != http.StatusForbidden || !strings.Contains(out, "stale_page") {
		t.Errorf("with another token: %d %s", status, out)
	}
	operator.token = token
	if status, out := operator.say("/ui/do", call(path, "_said", "Run "+applied+" is undone.")); status != 200 ||
		!strings.Contains(out, "is undone") {
		t.Errorf("%d %s", status, out)
	}
	operator.see(page, "no longer in force", "key:operate", "There is nothing to undo", "not", "See what an undo would do")

	failed, err := f.st.Request(t.Context(), store.Key{Tenant: "airline-desk", Session: large}, store.TriggerOperator, "ada",
		store.Options{Pipeline: []store.Step{{Strategy: "keep_last_n_messages", Params: map[string]any{"n": -1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.st.WaitRun(t.Context(), failed); err != nil {
		t.Fatal(err)
	}
	operator.see(at("run", "run", strconv.FormatInt(failed, 10)), "It failed.", "invalid_options", "not", "What it took out")
	operator.see(at("run", "run", "x"), "not_found")
}

func TestAnEditedSummaryIsAppliedAsTheOperators(t *testing.T) {
	f := newFleet(t, small, func(c *config.Config) { c.API.HideTexts = true })
	f.fill(8, "airline-desk")
	f.settled()
	_, _, _, large := f.decided()
	operator := f.guest("operate")
	query := []string{"tenant", "airline-desk", "id", large, "with", "strategies:handoff"}
	operator.see(at("compact", query...), "Planning", "compact/plan", "handoff")
	f.guest("read").see(at("compact", query...), "Your key may read only", "not", "Planning")
	plan := at("compact/plan", query...)
	operator.see(plan, "Texts are hidden", "nothing is spent yet", "not", "own-text", "<main")
	operator.see(plan+"&texts=1", "own-text", `name="strategies:list" value="handoff"`, "leave the view")

	path := "/v1/sessions/" + large + "/compact"
	fields := []string{
		"?tenant",
		"airline-desk",
		"?wait",
		"20s",
		"strategies:list",
		"handoff",
		"_result",
		"result-compacted",
		"summary.text",
		"They looked at the <b>bucket</b>. " + strings.Repeat("The snapshot is read before it is written. ", 8),
	}
	status, out := operator.say("/ui/do", call(path, fields...))
	m := regexp.MustCompile(`run\?run=(\d+)#undo`).FindStringSubmatch(out)
	if status != 200 || m == nil {
		t.Fatalf("%d %s", status, out)
	}
	page := at("run", "run", m[1])
	operator.see(page, "key:operate (operator)", "Texts are hidden", "not", "bucket")
	operator.see(page+"&texts=1", "They looked at the &lt;b&gt;bucket&lt;/b&gt;.")

	again := call(path, "?tenant", "airline-desk", "?wait", "20s", "from", "view", "_result", "result-compacted",
		"pipeline:json", `[{"strategy": "keep_last_n_messages", "params": {"n": 3}}]`)
	if status, out := operator.say("/ui/do", again); status != 200 || !strings.Contains(out, "#undo") {
		t.Fatalf("%d %s", status, out)
	}
	status, out = operator.say("/ui/do", call("/v1/runs/"+m[1]+"/undo", "dry_run:bool", "true", "_result", "result-undo"))
	if status != 200 || !strings.Contains(out, "It takes 1 later run along") || !strings.Contains(out, "Undo 2 runs") ||
		!strings.Contains(out, `name="cascade:bool"`) {
		t.Errorf("%d %s", status, out)
	}

	if err := f.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "airline-desk"}, "test", "test"); err != nil {
		t.Fatal(err)
	}
	operator.see(at("compact", query...), "The session is paused")
	operator.see(plan+"&paused=1", "force:bool")
	if status, out := operator.say("/ui/do", call(path, "?tenant", "airline-desk")); status != http.StatusConflict ||
		!strings.Contains(out, "force runs it anyway") {
		t.Errorf("%d %s", status, out)
	}
}

func TestASummaryIsEditedAppliedAndUndoneInTheBrowser(t *testing.T) {
	f := newFleet(t, small)
	f.fill(8, "airline-desk")
	f.settled()
	_, _, _, large := f.decided()
	ctx := f.browser(1440, 900, "light")
	edit := chromedp.Evaluate[any](
		`(() => { const t = document.querySelector('#own-text'); t.value += ' ` + strings.Repeat(
			"The snapshot is read before it is written. ",
			8,
		) + `'; t.dispatchEvent(new Event('input', {bubbles: true})); return 1; })()`,
	)
	f.do(
		ctx,
		"edit",
		f.page(at("compact", "tenant", "airline-desk", "id", large, "with", "strategies:handoff")),
		chromedp.WaitReady("#own-text"),
	)
	run(ctx, f, "edit", edit)
	if said := run(ctx, f, "button", chromedp.Evaluate[string](`document.querySelector('.commit button').textContent`)); said != "Apply with my summary" {
		t.Errorf("the button says %q", said)
	}
	f.do(
		ctx,
		"apply",
		chromedp.Click(".commit button"),
		chromedp.WaitReady("#plan .note.info a[href$='#undo']"),
		chromedp.Click("#plan .note.info a[href$='#undo']"),
		chromedp.WaitReady(
			"#undo",
		),
		chromedp.Click("#undo form button"),
		chromedp.WaitReady("#undo .result form button"),
		chromedp.Click("#undo .result form button"),
		chromedp.WaitReady("#undo .note.info"),
	)
	f.do(ctx, "news", chromedp.WaitReady(".again:not([hidden])")) // nothing is replaced while the result is there
	f.do(ctx, "fresh", chromedp.Evaluate[chromedp.Void](`document.querySelector('.again').click()`), chromedp.WaitReady("#main > .note"))
	if said := run(ctx, f, "state", chromedp.Evaluate[string](`document.querySelector('#main').innerText`)); !strings.Contains(
		said,
		"There is nothing to undo",
	) {
		t.Errorf("after the undo: %s", said)
	}
}
