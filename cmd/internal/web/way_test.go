package web_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
)

// tab presses Tab until the focus is on an element that matches a selector and has a text.
func (f *fleet) tab(ctx context.Context, selector, has string) {
	f.Helper()
	on := fmt.Sprintf(`document.activeElement.matches(%q) && document.activeElement.innerText.includes(%q)`, selector, has)
	for range 300 {
		f.do(ctx, "Tab", chromedp.KeyEvent(kb.Tab))
		if run(ctx, f, "see the focus", chromedp.Evaluate[bool](on)) {
			return
		}
	}
	f.Fatalf("Tab does not reach %s with %q on %s", selector, has, run(ctx, f, "see the page", chromedp.Location()))
}

// press goes to an element by Tab and presses Enter.
func (f *fleet) press(ctx context.Context, selector, has string) {
	f.Helper()
	f.tab(ctx, selector, has)
	f.do(ctx, "Enter", chromedp.KeyEvent(kb.Enter))
}

// shows waits until a page has a text.
func shows(has string) chromedp.Action[chromedp.Void] {
	return until(fmt.Sprintf(`document.body.innerText.includes(%q)`, has))
}

// An operator at night, with the keyboard alone: sign in, find a session, preview, compact, see it live, step back,
// undo, sweep. Texts are hidden until asked for, and a key that reads finds no button.
func TestAnOperatorsWay(t *testing.T) {
	f := newFleet(t, small, func(c *config.Config) { c.API.HideTexts = true })
	f.fill(6, "acme")
	f.settled()
	runs, err := f.st.Operator.Runs(t.Context(), store.RunFilter{Key: store.Key{Tenant: "acme"}, Status: "applied", Limit: 1})
	if err != nil || len(runs) == 0 {
		t.Fatal(runs, err)
	}
	k := store.Key{Tenant: "acme", Session: runs[0].Session}
	ctx := f.browser(1440, 900, "dark")

	f.signIn(ctx, "admin")
	slash := chromedp.Func(func(ctx context.Context, t *chromedp.Target) error { // as a keyboard: without a character where the page takes it
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: "/", Code: "Slash", Text: "/"})
		return err
	})
	f.do(ctx, "find the session", slash, chromedp.KeyEvent(k.Session), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".lanes"), shows("Texts"))
	view, _, err := f.st.View(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Fields(view[len(view)-1].Content.Text)
	if page := run(ctx, f, "read", chromedp.Evaluate[string](`document.body.innerText`)); strings.Contains(page, strings.Join(said[:min(6, len(said))], " ")) {
		t.Error("a text is shown although texts are hidden")
	}
	f.press(ctx, "a", "Compact now")
	f.do(ctx, "wait for the plan", chromedp.WaitVisible(".commit"))
	f.press(ctx, "button", "Compact now")
	f.do(ctx, "wait for the run", chromedp.WaitVisible("form + .result .note"))

	f.do(ctx, "see a run appear by itself", f.page(at("session", "tenant", k.Tenant, "id", k.Session)), chromedp.WaitVisible(".lanes"))
	before := run(ctx, f, "count runs", chromedp.Evaluate[int](`document.querySelectorAll('.runin').length`))
	id, err := f.st.Request(t.Context(), k, store.TriggerOperator, "ada", store.Options{
		AllowGrowth: true, Pipeline: []store.Step{{Strategy: "keep_last_n_messages", Params: map[string]any{"n": 2}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.do(ctx, "see it", until(fmt.Sprintf(`document.querySelectorAll('.runin').length > %d`, before)))
	f.do(ctx, "step back", chromedp.KeyEvent(kb.ArrowLeft), until(`new URLSearchParams(location.search).get('run') !== null`), chromedp.WaitVisible(".lanes"))

	f.do(ctx, "go to the run", f.page(at("run", "run", fmt.Sprint(id))), chromedp.WaitVisible("main h1"))
	f.press(ctx, "button", "See what an undo")
	f.do(ctx, "be told what it does", chromedp.WaitVisible(".result .note"))
	f.press(ctx, "button", "Undo")
	f.do(ctx, "see it undone", until(`[...document.querySelectorAll('.result .note.info')].some(n => n.innerText.includes('undone'))`))
	if row, err := f.st.Run(t.Context(), id); err != nil || row.InForce {
		t.Errorf("run %+v, %v; want it undone", row, err)
	}

	if err := f.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "night"}, "", "ada"); err != nil {
		t.Fatal(err)
	}
	f.fill(4, "night")
	f.do(ctx, "go to the sweeps", f.page(at("sweeps")), chromedp.WaitVisible("h1"))
	f.press(ctx, "button", "for all tenants")
	f.do(ctx, "read the forecast", chromedp.WaitVisible("#start + .result form"))
	f.press(ctx, "button", "Start")
	f.do(ctx, "see it start", shows("Sweep 1"), f.page(at("sweep", "sweep", "1")), chromedp.WaitVisible(".figs"))
	f.do(ctx, "watch it end", until(`document.body.innerText.includes('Done')`))

	f.do(ctx, "sign out", f.page("/ui/"), chromedp.WaitVisible(".nav"))
	f.press(ctx, "button", "Sign out")
	f.do(ctx, "see that", chromedp.WaitVisible("input[name=key]"))
	f.signIn(ctx, "read")
	f.do(ctx, "look at the session", f.page(at("session", "tenant", k.Tenant, "id", k.Session)), chromedp.WaitVisible(".lanes"))
	if n := run(ctx, f, "look for buttons", chromedp.Evaluate[int](`document.querySelectorAll('main form[method=post], main [hx-post]').length`)); n > 0 {
		t.Errorf("a key that reads sees %d forms", n)
	}
}

// signIn signs in with a new key of a scope, with the keyboard.
func (f *fleet) signIn(ctx context.Context, scope string) {
	f.Helper()
	_, secret, err := f.st.Admin.CreateKey(f.Context(), store.NewKey{Name: "way-" + scope, Scope: scope}, "test")
	if err != nil {
		f.Fatal(err)
	}
	path := at("sign-in", "next", "/ui/?"+url.Values{"hours": {"1"}}.Encode())
	f.do(ctx, "sign in", f.page(path), chromedp.WaitVisible("input[name=key]"), until(`document.activeElement.name === 'key'`),
		chromedp.KeyEvent(secret), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#health"))
}
