package web_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
)

// decided returns runs of the tenant airline-desk, one that wrote a summary, one that changed nothing and one that was undone,
// and its session with the largest view.
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
	id, err := f.st.Request(f.Context(), k, store.TriggerOperator, "ada",
		store.Options{Pipeline: []store.Step{{Strategy: "keep_last_n_messages", Params: map[string]any{"n": 500}}}})
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

func TestARunIsShownUndoneAndShownAgain(t *testing.T) {
	f := newFleet(t, small)
	f.fill(8, "airline-desk")
	f.settled()
	applied, skipped, undone, large := f.decided()
	operator, reader := f.client("operate"), f.client("read")
	page, path := at("run", "run", applied), "/v1/runs/"+applied+"/undo"
	reader.get(page, "Run "+applied, "What survived", "Model calls", "Its sources", "Your key may read only", "!See what an undo would do")
	reader.get(at("run", "run", skipped), "Run "+skipped+": nothing to compact", "There is nothing to undo")
	reader.get(at("run", "run", undone), "no longer in force", "ada undid it", "There is nothing to undo")
	reader.get(at("decisions"), "nothing_to_compact", at("run", "run", skipped), "12k")
	listed := at("runs", "status", "applied", "trigger", "event", "model", "scripted")
	reader.get(listed, at("run", "run", applied), "!"+at("run", "run", skipped))
	reader.get(at("runs", "model", "none"), "No run matches")
	if status, out := reader.post(path); status != http.StatusForbidden || !strings.Contains(out, "forbidden") {
		t.Errorf("a reader undoes: %d %s", status, out)
	}

	look := operator.submit(operator.get(page, "dry_run:bool"), "See what an undo would do")
	operator.want(look, "Undo run "+applied, "messages come back")
	operator.get(page, "!no longer in force")
	if status, out := operator.post(path, "_token", "another"); status != http.StatusForbidden || !strings.Contains(out, "stale_page") {
		t.Errorf("with another token: %d %s", status, out)
	}
	operator.want(operator.submit(look, "Undo run "+applied), "is undone")
	operator.get(page, "no longer in force", "key:test-operate", "There is nothing to undo", "!See what an undo would do")

	failed, err := f.st.Request(t.Context(), store.Key{Tenant: "airline-desk", Session: large}, store.TriggerOperator, "ada",
		store.Options{Pipeline: []store.Step{{Strategy: "keep_last_n_messages", Params: map[string]any{"n": -1}}}})
	if err != nil {
		t.Fatal(err)
	}
	f.ran(failed)
	operator.get(at("run", "run", strconv.FormatInt(failed, 10)), "It failed.", "invalid_options", "!What it took out")
	resp, text := operator.send(http.MethodGet, at("run", "run", "x"), nil)
	if operator.want(text, "not_found"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("no number: %d", resp.StatusCode)
	}
}

func TestAnEditedSummaryIsAppliedAsTheOperators(t *testing.T) {
	f := newFleet(t, small, func(c *config.Config) { c.API.HideTexts = true })
	f.fill(8, "airline-desk")
	f.settled()
	_, _, _, large := f.decided()
	operator := f.client("operate")
	query := []string{"tenant", "airline-desk", "id", large, "with", "strategies:handoff"}
	operator.get(at("compact", query...), "Planning", "compact/plan", "handoff")
	f.client("read").get(at("compact", query...), "Your key may read only", "!Planning")
	plan := at("compact/plan", query...)
	operator.get(plan, "Texts are hidden", "nothing is spent yet", "!own-text", "!<main")
	shown := operator.get(plan+"&texts=1", "own-text", `name="strategies:list" value="handoff"`, "leave the view")

	text := "They looked at the <b>bucket</b>. " + strings.Repeat("The snapshot is read before it is written. ", 8)
	out := operator.submit(shown, "Compact now", "summary.text", text)
	m := regexp.MustCompile(`run\?run=(\d+)#undo`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal(out)
	}
	page, path := at("run", "run", m[1]), "/v1/sessions/"+large+"/compact"
	operator.get(page, "key:test-operate (operator)", "Texts are hidden", "!bucket")
	operator.get(page+"&texts=1", "They looked at the &lt;b&gt;bucket&lt;/b&gt;.")

	status, out := operator.post(path, "?tenant", "airline-desk", "?wait", "20s", "from", "view", "_result", "result-compacted",
		"pipeline:json", `[{"strategy": "keep_last_n_messages", "params": {"n": 3}}]`)
	if status != 200 || !strings.Contains(out, "#undo") {
		t.Fatalf("%d %s", status, out)
	}
	operator.want(operator.submit(operator.get(page), "See what an undo would do"),
		"It takes 1 later run along", "Undo 2 runs", `name="cascade:bool"`)

	if err := f.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "airline-desk"}, "test", "test"); err != nil {
		t.Fatal(err)
	}
	operator.get(at("compact", query...), "The session is paused")
	operator.get(plan+"&paused=1", "force:bool")
	status, out = operator.post(path, "?tenant", "airline-desk")
	if operator.want(out, "force runs it anyway"); status != http.StatusConflict {
		t.Errorf("status %d, want a conflict", status)
	}
}

func TestASummaryIsEditedAppliedAndUndoneInTheBrowser(t *testing.T) {
	f := newFleet(t, small)
	f.fill(8, "airline-desk")
	f.settled()
	_, _, _, large := f.decided()
	ctx := f.browser(1440, 900, "light")
	edit := chromedp.Evaluate[any](`(() => { const t = document.querySelector('#own-text');
		t.value += ' The snapshot is read before it is written.'.repeat(8);
		t.dispatchEvent(new Event('input', {bubbles: true})); return 1; })()`)
	compact := at("compact", "tenant", "airline-desk", "id", large, "with", "strategies:handoff")
	f.do(ctx, "edit", f.page(compact), chromedp.WaitReady("#own-text"))
	run(ctx, f, "edit", edit)
	if said := run(ctx, f, "button", chromedp.Evaluate[string](text(".commit button"))); said != "Apply with my summary" {
		t.Errorf("the button says %q", said)
	}
	f.do(ctx, "apply", chromedp.Click(".commit button"), chromedp.WaitReady("#plan .note.info a[href$='#undo']"),
		chromedp.Click("#plan .note.info a[href$='#undo']"), chromedp.WaitReady("#undo"), chromedp.Click("#undo form button"),
		chromedp.WaitReady("#undo .result form button"), chromedp.Click("#undo .result form button"), chromedp.WaitReady("#undo .note.info"))
	f.do(ctx, "news", chromedp.WaitReady(".again:not([hidden])")) // nothing is replaced while the result is there
	f.do(ctx, "fresh", chromedp.Evaluate[chromedp.Void](`document.querySelector('.again').click()`), chromedp.WaitReady("#main > .note"))
	if said := run(ctx, f, "state", chromedp.Evaluate[string](text("#main"))); !strings.Contains(said, "There is nothing to undo") {
		t.Errorf("after the undo: %s", said)
	}
}
