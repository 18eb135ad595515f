package web_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sessionstore/compactor/store"
)

func TestPolicyIsAppliedAfterADryRun(t *testing.T) {
	f := newFleet(t, small)
	f.fill(3, "acme")
	d := f.client(store.ScopeAdmin)
	const file = "name: support\r\nmatch: {tenant: acme}\r\nstart: 0.5\r\ntarget: 0.2\r\n"
	d.get(at("policies", "tenant", "a&b"), "sample=20&amp;tenant=a%26b")
	page := d.get("/ui/policies", "from the configuration", "Show what changes", "!version 1")
	look := d.submit(page, `name=":raw"`, ":raw", file, "_path", "/v1/policies?dry_run=true")
	d.want(look, "not in force → a new version", "<b>3 sessions</b> default → support", "Put it in force, for 3 sessions")
	d.want(d.submit(page, `name=":raw"`, ":raw", file, "_path", "/v1/policies/test?sample=20"), "Planned on 3 sessions")
	d.want(d.submit(page, `name=":raw"`, ":raw", "name: x\nstarts: 1\n", "_path", "/v1/policies?dry_run=true"), "starts", `role="alert"`)
	d.get("/ui/policies", "!version 1")
	d.want(d.submit(look, "dry_run=false"), "is in force")
	d.get("/ui/policies", "support", "tenant=acme")

	page = d.get("/ui/policy?policy=support")
	look = d.submit(page, `name=":raw"`, ":raw", strings.Replace(file, "0.5", "0.6", 1), "_path", "/v1/policies?dry_run=true")
	d.submit(d.want(look, "version 1 → a new version", "<td>0.6</td>"), "dry_run=false")
	page = d.get("/ui/policy?policy=support", "support, version 2", "What version 2 changed", "<code>start</code>")
	look = d.want(d.submit(page, "Version 1 replaces"), "version 2 → version 1", "Put version 1 in force")
	d.want(d.submit(look, "dry_run=false"), "Version 1 of support is in force again.")
	f.followed()
	look = d.want(d.submit(d.get("/ui/policy?policy=support"), "disable"), "version 1 → out of force", "support → default")
	d.want(d.submit(look, "dry_run=false"), "is out of force")
	d.get("/ui/policy?policy=support", "Not in force", "Put in force")
	f.client(store.ScopeRead).get("/ui/policy?policy=support", "!Put in force", "!Show what changes", "!Try on")
	f.client(store.ScopeOperate).get("/ui/policies", "!Show what changes", "Try on")
}

func TestPausesAndLimitsAreSetAndEnded(t *testing.T) {
	f := newFleet(t)
	f.fill(1, "acme")
	d, op := f.client(store.ScopeAdmin), f.client(store.ScopeOperate)
	page := d.get("/ui/limits", "Nothing is paused", "No limit is set")
	set := []string{"?tenant", "acme", "cost_micros_per_day:micros", "2.5", "calls_per_hour:number", "0", "note", "until Monday"}
	d.want(d.submit(page, "Set these limits", set...), "The limits are set.")
	page = d.get("/ui/limits", "cost in a day", "of 2.50", "Reached", "until Monday", `value="2.5"`)
	op.get("/ui/limits", "of 2.50", "!Set these limits")
	op.want(op.submit(page, "Set these limits", append(set, "_token", op.token())...), "this needs a key of scope admin")
	d.want(d.submit(page, "Take all limits"), "taken away")
	d.get("/ui/limits", "No limit is set")

	page = op.get("/ui/limits")
	op.want(op.submit(page, "Show what it holds", "note", "x"), `role="alert"`) // of what has no default
	look := op.want(op.submit(page, "Show what it holds", "?tenant", "acme", "note", "<b>migration"), "would wait")
	op.get("/ui/limits", "Nothing is paused")
	op.want(op.submit(look, "Hold these runs back"), "The pause is in force.")
	page = op.get("/ui/limits", "tenant acme", "&lt;b&gt;migration", "compactor resume --tenant acme")
	op.want(op.submit(page, "End the pause"), "The pause is ended.")
	op.get("/ui/limits", "Nothing is paused")
	f.client(store.ScopeRead).get("/ui/limits", "Nothing is paused", "!New pause")
}

func TestKeysAreMadeAndRevoked(t *testing.T) {
	f := newFleet(t)
	d := f.client(store.ScopeAdmin)
	page := d.get("/ui/admin", "test-admin", "Migrations", "server version", "What operators did")
	made := d.submit(page, "Make the key", "name", "ci", "scope", "read", "?tenant", "acme")
	secret := regexp.MustCompile(`cpk_[\w-]{30,}`).FindString(d.want(made, "Key ci, scope read, tenant acme."))
	page = d.get("/ui/admin", "ci", "tenant acme", "key.create")
	if secret == "" || strings.Contains(page, secret) {
		t.Errorf("the key %q is in the page, or was not shown: %s", secret, made)
	}
	d.want(d.submit(page, "reach of ci", "grace_seconds:number", "3600"), "it is not shown again", "cpk_")
	d.want(d.submit(d.get("/ui/admin"), "Requests with ci are refused"), "The key is revoked.")
	d.get("/ui/admin", "!<b>ci</b>")
	d.get("/ui/admin?ended=1", "revoked", "ci")

	f.client(store.ScopeOperate).get("/ui/admin", "this needs a key of scope admin; this one has operate", "<h1>Admin",
		"!New key", "!server version", "!test-admin")
	f.fill(1, "acme")
	one := f.client(store.ScopeAdmin, "acme")
	one.get("/ui/admin", "test-adminacme", "this needs a key of all tenants", "!test-operate", "For tenant acme.")
	one.get("/ui/policies", "from the configuration")
	one.get("/ui/policy?policy=default", "It has never been applied")
	page = one.get("/ui/limits", "Of tenant acme.", "!All sessions of all tenants")
	one.want(one.submit(page, "Show what it holds", "note", "x"), "would wait")
	one.want(one.submit(page, "Set these limits", "calls_per_hour:number", "3"), "The limits are set.")
}

// TestAdministersInABrowser types and clicks, with scripts: a file tried and applied, a pause made and ended, a key made.
func TestAdministersInABrowser(t *testing.T) {
	f := newFleet(t, small)
	f.fill(2, "acme")
	secret := f.key(store.NewKey{Name: "on-call", Scope: store.ScopeAdmin, Note: "people on call"})
	f.client(store.ScopeRead)
	ctx := f.browser(1440, 900, "light")
	click := func(path string) chromedp.Action[chromedp.Void] {
		return chromedp.Steps(chromedp.WaitVisible(path), chromedp.Click(path))
	}
	see := func(text string) chromedp.Action[chromedp.Void] {
		return chromedp.WaitVisible(`//*[contains(text(), "` + text + `")]`)
	}
	f.do(ctx, "sign in", f.page("/ui/sign-in"), chromedp.SendKeys("input[name=key]", secret+"\n"), chromedp.WaitReady("#main"))
	f.do(ctx, "policy", f.page("/ui/policies"),
		chromedp.SendKeys("textarea", "name: support\nmatch: {tenant: acme}\nstart: 0.5\ntarget: 0.2\n"),
		click(`//button[text()="Try on 20 sessions"]`), see("Planned on 2 sessions"),
		click(`//button[text()="Show what changes"]`), see("Put it in force, for 2 sessions"))
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
	f.do(ctx, "key", screen(1440, 900, "light"), f.page("/ui/admin"), click(`//summary[text()="New key…"]`),
		chromedp.SendKeys(`[name=name]`, "ci"), chromedp.SendKeys(`#main [name="?tenant"]`, "acme"))
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
