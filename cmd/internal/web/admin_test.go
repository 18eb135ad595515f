package web_test

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sessionstore/compactor/store"
)

// desk is a browser without scripts that is signed in with a key of a scope.
type desk struct {
	*fleet
	client *http.Client
}

func (f *fleet) desk(scope string, tenant ...string) desk {
	f.Helper()
	of := strings.Join(tenant, "")
	_, secret, err := f.st.Admin.CreateKey(f.Context(), store.NewKey{Name: "test-" + scope + of, Scope: scope, Tenant: of}, "test")
	if err != nil {
		f.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	d := desk{f, &http.Client{Jar: jar}}
	if page := d.post("/ui/sign-in", url.Values{"key": {secret}}); !strings.Contains(page, "<h1>Overview") {
		f.Fatalf("not signed in: %.1000s", page)
	}
	return d
}

func (d desk) post(path string, fields url.Values) string {
	d.Helper()
	answer, err := d.client.PostForm(d.url+path, fields)
	return d.read(answer, err)
}

func (d desk) get(path string) string {
	d.Helper()
	answer, err := d.client.Get(d.url + path)
	return d.read(answer, err)
}

func (d desk) read(answer *http.Response, err error) string {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		d.Fatal(err)
	}
	return string(raw)
}

var (
	forms  = regexp.MustCompile(`(?s)<form.*?</form>`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// submit sends the form of a page whose HTML has a text, with more fields by name and value in turn.
func (d desk) submit(page, with string, more ...string) string {
	d.Helper()
	for _, form := range forms.FindAllString(page, -1) {
		if !strings.Contains(form, with) {
			continue
		}
		fields := url.Values{}
		for _, m := range hidden.FindAllStringSubmatch(form, -1) {
			fields.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
		}
		for i := 0; i+1 < len(more); i += 2 {
			fields.Set(more[i], more[i+1])
		}
		return d.post("/ui/do", fields)
	}
	d.Fatalf("no form has %q: %s", with, page)
	return ""
}

// want fails the test unless a page has texts; those that begin with a ! it must not have.
func (d desk) want(page string, texts ...string) string {
	d.Helper()
	for _, text := range texts {
		if not, ok := strings.CutPrefix(text, "!"); strings.Contains(page, strings.TrimPrefix(text, "!")) == ok {
			d.Errorf("%q, missing or (%t) not wanted, in %s", not, ok, page[max(0, strings.Index(page, "<main")):])
		}
	}
	return page
}

func TestPolicyIsAppliedAfterADryRun(t *testing.T) {
	f := newFleet(t, small)
	f.fill(3, "acme")
	d := f.desk(store.ScopeAdmin)
	const file = "name: support\r\nmatch: {tenant: acme}\r\nstart: 0.5\r\ntarget: 0.2\r\n"
	page := d.want(d.get("/ui/policies"), "from the configuration", "Show what changes", "!version 1")
	look := d.submit(page, `name=":raw"`, ":raw", file, "_path", "/v1/policies?dry_run=true")
	d.want(look, "not in force → a new version", "<b>3 sessions</b> default → support", "Put it in force, for 3 sessions")
	d.want(d.submit(page, `name=":raw"`, ":raw", file, "_path", "/v1/policies/test?sample=20"), "Planned on 3 sessions")
	d.want(d.submit(page, `name=":raw"`, ":raw", "name: x\nstarts: 1\n", "_path", "/v1/policies?dry_run=true"), "starts", `role="alert"`)
	d.want(d.get("/ui/policies"), "!version 1")
	d.want(d.submit(look, "dry_run=false"), "is in force")
	d.want(d.get("/ui/policies"), "support", "tenant=acme")

	page = d.get("/ui/policy?policy=support")
	look = d.submit(page, `name=":raw"`, ":raw", strings.Replace(file, "0.5", "0.6", 1), "_path", "/v1/policies?dry_run=true")
	d.submit(d.want(look, "version 1 → a new version", "<td>0.6</td>"), "dry_run=false")
	page = d.want(d.get("/ui/policy?policy=support"), "support, version 2", "What version 2 changed", "<code>start</code>")
	look = d.want(d.submit(page, "Version 1 replaces"), "version 2 → version 1", "Put version 1 in force")
	d.want(d.submit(look, "dry_run=false"), "Version 1 of support is in force again.")
	f.followed()
	look = d.want(d.submit(d.get("/ui/policy?policy=support"), "disable"), "version 1 → out of force", "support → default")
	d.want(d.submit(look, "dry_run=false"), "is out of force")
	d.want(d.get("/ui/policy?policy=support"), "Not in force", "Put in force")
	d.want(f.desk(store.ScopeRead).get("/ui/policy?policy=support"), "!Put in force", "!Show what changes", "!Try on")
	d.want(f.desk(store.ScopeOperate).get("/ui/policies"), "!Show what changes", "Try on")
}

func TestPausesAndLimitsAreSetAndEnded(t *testing.T) {
	f := newFleet(t)
	f.fill(1, "acme")
	d, op := f.desk(store.ScopeAdmin), f.desk(store.ScopeOperate)
	page := d.want(d.get("/ui/limits"), "Nothing is paused", "No limit is set")
	set := []string{"?tenant", "acme", "cost_micros_per_day:micros", "2.5", "calls_per_hour:number", "0", "note", "until Monday"}
	d.want(d.submit(page, "Set these limits", set...), "The limits are set.")
	page = d.want(d.get("/ui/limits"), "cost in a day", "of 2.50", "Reached", "until Monday", `value="2.5"`)
	d.want(op.get("/ui/limits"), "of 2.50", "!Set these limits")
	d.want(op.submit(page, "Set these limits", append(set, "_token", token(op.get("/ui/limits")))...), "this needs a key of scope admin")
	d.want(d.submit(page, "Take all limits"), "taken away")
	d.want(d.get("/ui/limits"), "No limit is set")

	page = op.get("/ui/limits")
	d.want(op.submit(page, "Show what it holds", "note", "x"), `role="alert"`) // of what has no default
	look := d.want(op.submit(page, "Show what it holds", "?tenant", "acme", "note", "<b>migration"), "would wait")
	d.want(op.get("/ui/limits"), "Nothing is paused")
	d.want(op.submit(look, "Hold these runs back"), "The pause is in force.")
	page = d.want(op.get("/ui/limits"), "tenant acme", "&lt;b&gt;migration", "compactor resume --tenant acme")
	d.want(op.submit(page, "End the pause"), "The pause is ended.")
	d.want(op.get("/ui/limits"), "Nothing is paused")
	d.want(f.desk(store.ScopeRead).get("/ui/limits"), "Nothing is paused", "!New pause")
}

// token returns the token of the forms of a page.
func token(page string) string {
	return regexp.MustCompile(`name="_token" value="([^"]*)"`).FindStringSubmatch(page)[1]
}

func TestKeysAreMadeAndRevoked(t *testing.T) {
	f := newFleet(t)
	d := f.desk(store.ScopeAdmin)
	page := d.want(d.get("/ui/admin"), "test-admin", "Migrations", "server version", "What operators did")
	made := d.submit(page, "Make the key", "name", "ci", "scope", "read", "?tenant", "acme")
	secret := regexp.MustCompile(`cpk_[\w-]{30,}`).FindString(d.want(made, "Key ci, scope read, tenant acme."))
	page = d.want(d.get("/ui/admin"), "ci", "tenant acme", "key.create")
	if secret == "" || strings.Contains(page, secret) {
		t.Errorf("the key %q is in the page, or was not shown: %s", secret, made)
	}
	d.want(d.submit(page, "reach of ci", "grace_seconds:number", "3600"), "it is not shown again", "cpk_")
	d.want(d.submit(d.get("/ui/admin"), "Requests with ci are refused"), "The key is revoked.")
	d.want(d.get("/ui/admin"), "!<b>ci</b>")
	d.want(d.get("/ui/admin?ended=1"), "revoked", "ci")

	page = d.want(
		f.desk(store.ScopeOperate).get("/ui/admin"),
		"this needs a key of scope admin; this one has operate",
		"<h1>Admin",
		"!New key",
		"!server version",
	)
	if strings.Contains(page, "test-admin") {
		t.Error("a key that may not see keys sees them")
	}
	f.fill(1, "acme")
	one := f.desk(store.ScopeAdmin, "acme")
	d.want(one.get("/ui/admin"), "test-adminacme", "this needs a key of all tenants", "!test-operate", "For tenant acme.")
	d.want(one.get("/ui/policies"), "from the configuration")
	d.want(one.get("/ui/policy?policy=default"), "It has never been applied")
	page = d.want(one.get("/ui/limits"), "Of tenant acme.", "!All sessions of all tenants")
	d.want(one.submit(page, "Show what it holds", "note", "x"), "would wait")
	d.want(one.submit(page, "Set these limits", "calls_per_hour:number", "3"), "The limits are set.")
}

// What is typed and clicked, with scripts: a file tried and applied, a pause made and ended, a key made.
func TestAdministersInABrowser(t *testing.T) {
	f := newFleet(t, small)
	f.fill(2, "acme")
	_, secret, err := f.st.Admin.CreateKey(
		t.Context(),
		store.NewKey{Name: "on-call", Scope: store.ScopeAdmin, Note: "people on call"},
		"test",
	)
	if err != nil {
		t.Fatal(err)
	}
	f.desk(store.ScopeRead)
	ctx := f.browser(1440, 900, "light")
	click := func(path string) chromedp.Action[chromedp.Void] {
		return chromedp.Steps(chromedp.WaitVisible(path), chromedp.Click(path))
	}
	see := func(text string) chromedp.Action[chromedp.Void] {
		return chromedp.WaitVisible(`//*[contains(text(), "` + text + `")]`)
	}
	f.do(ctx, "sign in", f.page("/ui/sign-in"), chromedp.SendKeys("input[name=key]", secret+"\n"), chromedp.WaitReady("#main"))
	f.do(
		ctx,
		"policy",
		f.page("/ui/policies"),
		chromedp.SendKeys("textarea", "name: support\nmatch: {tenant: acme}\nstart: 0.5\ntarget: 0.2\n"),
		click(`//button[text()="Try on 20 sessions"]`),
		see("Planned on 2 sessions"),
		click(`//button[text()="Show what changes"]`),
		see("Put it in force, for 2 sessions"),
	)
	f.picture(ctx, "policies-dry-run")
	f.do(ctx, "apply", click(`//button[contains(text(), "Put it in force")]`), see("The policy file is in force."))
	f.do(ctx, "pause", f.page("/ui/limits"), click(`//summary[text()="New pause…"]`), chromedp.SendKeys(`[name="?tenant"]`, "acme"))
	f.picture(ctx, "limits-new-pause")
	f.do(ctx, "look", click(`//button[text()="Show what it holds"]`), see("would wait"))
	f.picture(ctx, "limits-dry-run")
	f.do(ctx, "hold", click(`//button[text()="Hold these runs back"]`), see("The pause is in force."))
	f.do(ctx, "end", f.page("/ui/limits"), click(`//summary[text()="End it…"]`))
	f.picture(ctx, "limits-end-pause")
	f.do(ctx, "ended", click(`//button[text()="End the pause"]`), see("The pause is ended."))
	f.do(ctx, "limit, on a phone", screen(390, 900, "light"), f.page("/ui/limits"), click(`//summary[text()="New limit…"]`))
	f.picture(ctx, "limits-new-limit")
	f.do(
		ctx,
		"key",
		screen(1440, 900, "light"),
		f.page("/ui/admin"),
		click(`//summary[text()="New key…"]`),
		chromedp.SendKeys(`[name=name]`, "ci"),
		chromedp.SendKeys(`#main [name="?tenant"]`, "acme"),
	)
	f.do(ctx, "made", click(`//button[text()="Make the key"]`), see("it is not shown again"))
	f.picture(ctx, "admin-new-key")
	if shots != "" {
		f.shoot(ctx, "admin-keys", at("admin"))
	}
}

// picture keeps a picture of what is shown.
func (f *fleet) picture(ctx context.Context, name string) {
	f.Helper()
	if shots == "" {
		return
	}
	raw := run(ctx, f, name, chromedp.FullScreenshot(100))
	if err := errors.Join(os.MkdirAll(shots, 0o750), os.WriteFile(filepath.Join(shots, name+".png"), raw, 0o600)); err != nil {
		f.Fatal(err)
	}
}
