package web_test

import (
	"context"
	"flag"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/cli"
	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/backlog"
	"github.com/sessionstore/compactor/cmd/internal/web"
	"github.com/sessionstore/compactor/deploy/suites"
	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

// shots is where screenshots are kept.
var shots = os.Getenv("SCREENSHOTS")

// only limits screenshots to addresses with a text.
var only = flag.String("page", "", "make screenshots of pages whose name has this text")

// fleet is a server with the dashboard, and a worker and a scheduler, on a database of its own.
type fleet struct {
	*testing.T
	app *cli.App
	st  *store.Store
	url string
}

// newFleet starts a server on a database of its own, in parallel to other tests; change changes its configuration.
func newFleet(t *testing.T, change ...func(*config.Config)) *fleet {
	t.Helper()
	t.Parallel()
	dsn := storetest.DB(t, "web-"+migrations.Fingerprint(), func(ctx context.Context, dsn string) error {
		_, _, err := migrations.CreateRoles(ctx, dsn, migrations.DefaultSchema)
		if err == nil {
			_, err = migrations.Up(ctx, dsn, migrations.DefaultSchema)
		}
		return err
	})
	model := llmtest.New(llmtest.Step{Times: 1 << 20})
	address, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	c := config.Default()
	c.Database.URL, c.Redis.URL = config.Secret(dsn), config.Secret(storetest.Redis(t))
	c.API.Listen = "127.0.0.1:0"
	c.LLM.Models = []llm.Profile{
		{Name: "scripted", BaseURL: address, Window: 128_000, MaxOutput: 16_000, Price: llm.Price{Input: 0.25, Cached: 0.025, Output: 2}},
	}
	c.Policy.Debounce, c.Policy.MaxDelay = 50*time.Millisecond, 500*time.Millisecond
	for _, f := range change {
		f(&c)
	}
	app, err := cli.NewApp(t.Context(), c, slog.New(slog.DiscardHandler), cli.AppOptions{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close() })
	f := &fleet{T: t, app: app, st: app.Store}
	running, err := api.Listen(t.Context(), api.Options{
		Config: app.Config, Store: app.Store, Planner: app.Planner, Registry: app.Planner.Registry, Logger: app.Logger, Version: "test",
		Pages: web.Pages(web.Options{Version: "test", HideTexts: c.API.HideTexts, SignOut: c.API.SignOut}),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.url = "http://" + running.Address()
	schedules, err := app.SchedulerRole(app)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- cli.RunRoles(ctx, cli.Role{Name: "api", Run: running.Run}, schedules, app.WorkerRole())
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	storetest.Await(t, "the policy of the configuration", func() bool { // or sessions would be due under another
		_, err := f.st.Operator.DefaultPolicy(t.Context())
		return err == nil
	})
	return f
}

// small is a policy under which the sessions of fill are due.
func small(c *config.Config) {
	c.Policy.WindowTokens = 16_000
	c.Policy.Windows = map[string]chat.Tokens{"gpt-4o": 16_000}
}

// fill appends generated sessions, n of each tenant.
func (f *fleet) fill(n int, tenants ...string) {
	f.Helper()
	for i, tenant := range tenants {
		for s := range backlog.Generate(backlog.Options{Seed: uint64(i + 1), Sessions: n, End: time.Now()}) {
			f.append(tenant, s.ID, s.Messages)
		}
	}
}

func (f *fleet) append(tenant, id string, messages []chat.Message) {
	f.Helper()
	given := make([]store.NewMessage, len(messages))
	for i, m := range messages {
		given[i] = store.NewMessage{Message: m}
	}
	if _, _, err := f.st.Append(f.Context(), store.Key{Tenant: tenant, Session: id}, "gpt-4o", given); err != nil {
		f.Fatal(err)
	}
}

// settled waits until no session is due that nothing holds back.
func (f *fleet) settled() {
	f.Helper()
	storetest.Await(f, "the end of all runs", func() bool {
		s, err := f.st.Operator.Stats(f.Context(), "", 10)
		if err != nil {
			f.Fatal(err)
		}
		held := int64(0)
		for _, h := range s.HeldBack {
			if h.Reason == store.HeldNoLeader || h.Reason == store.HeldNoWorker {
				return false // not yet
			}
			held += h.Sessions
		}
		return len(s.Fleet.Active) == 0 && s.Due.Sessions <= held
	})
}

// browser opens Chromium, and fails the test for errors in its console, for what breaks the content security
// policy, and for requests to other hosts.
func (f *fleet) browser(width, height int64, theme string) context.Context {
	f.Helper()
	if testing.Short() {
		f.Skip("computes for long, in another process")
	}
	path := ""
	for _, name := range []string{"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"} {
		if _, err := os.Stat(name); err == nil {
			path = name
		}
	}
	if path == "" {
		if os.Getenv("REQUIRE_BROWSER") != "" {
			f.Fatal("there is no Chromium")
		}
		f.Skip("there is no Chromium here")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(f.Context()), options...)
	f.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	f.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	f.Cleanup(cancel)
	err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, f.url+"/") && !strings.HasPrefix(e.Request.URL, "about:") {
				f.Errorf("a page asked another host: %s", e.Request.URL)
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork { // statuses of errors that a test asks for
				f.Errorf("console: %s %s", e.Entry.Text, e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			f.Errorf("exception: %s", e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" {
				for _, a := range e.Args {
					f.Errorf("console: %s %s", a.Value, a.Description)
				}
			}
		}
	})
	if err != nil {
		f.Fatal(err)
	}
	f.do(ctx, "start", screen(width, height, theme))
	return ctx
}

// screen sets the size of the page and the preferred theme.
func screen(width, height int64, theme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600,
		})
		if err == nil {
			_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
			}})
		}
		return err
	})
}

// do runs actions in a browser.
func (f *fleet) do(ctx context.Context, what string, actions ...chromedp.Action[chromedp.Void]) {
	f.Helper()
	run(ctx, f, what, chromedp.Steps(actions...))
}

// run runs an action in a browser and returns its value.
func run[T any](ctx context.Context, f *fleet, what string, action chromedp.Action[T]) T {
	f.Helper()
	at, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(at, action)
	if err != nil {
		text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText")) // for the message
		f.Fatalf("%s: %v; the page has\n%.3000s", what, err, text)
	}
	return v
}

// page opens a page.
func (f *fleet) page(path string) chromedp.Action[chromedp.Void] {
	return chromedp.Navigate(f.url + path)
}

// shoot keeps a picture of the whole page at a phone's and a desktop's width, light and dark.
func (f *fleet) shoot(ctx context.Context, name, path string) {
	f.Helper()
	if !strings.Contains(name, *only) {
		return
	}
	for _, width := range []int64{390, 1440} {
		f.do(ctx, name, screen(width, 900, "light"), f.page(path), chromedp.WaitReady("main"), chromedp.WaitNotPresent("main .empty[role=status]"))
		wider := fmt.Sprintf(`Math.max(0, document.documentElement.scrollWidth - %d)`, width) // a phone's innerWidth grows with the page
		if over := run(ctx, f, name, chromedp.Evaluate[int](wider)); over > 0 {
			f.Errorf("%s is %d pixels wider than a screen of %d", name, over, width)
		}
		for _, theme := range []string{"light", "dark"} {
			f.do(ctx, name, screen(width, 900, theme))
			if (width < 600) == (theme == "dark") { // each width and each theme once
				f.accessible(ctx, fmt.Sprintf("%s at %d, %s", name, width, theme))
			}
			if shots == "" {
				continue
			}
			picture := run(ctx, f, name, chromedp.FullScreenshot(100))
			if err := os.MkdirAll(shots, 0o750); err != nil {
				f.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(shots, fmt.Sprintf("%s-%d-%s.png", name, width, theme)), picture, 0o600); err != nil {
				f.Fatal(err)
			}
		}
	}
}

// accessible fails the test for serious findings of axe-core on the page that is shown.
func (f *fleet) accessible(ctx context.Context, name string) {
	f.Helper()
	raw, err := os.ReadFile(filepath.Join(suites.Folder(f.T, "../../../deploy/suites/dashboard"), "axe-core", "axe.min.js"))
	if err != nil {
		f.Fatal(err)
	}
	found := run(ctx, f, "axe on "+name, chromedp.Evaluate[[]string](string(raw)+`;
		axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}).then(r => r.violations
			.filter(v => v.impact == 'serious' || v.impact == 'critical').flatMap(v => v.nodes.slice(0, 3)
			.map(n => v.id + ': ' + n.html.slice(0, 200) + ' ' + n.failureSummary.replace(/\s+/g, ' '))))`, chromedp.EvalAwaitPromise))
	for _, v := range found {
		f.Errorf("%s: %s", name, v)
	}
}

// at returns the address of a page with a query of names and values in turn.
func at(page string, query ...string) string {
	if len(query) == 0 {
		return "/ui/" + page
	}
	return "/ui/" + page + "?" + pairs(query).Encode()
}

// pairs returns values that are given as names and values in turn.
func pairs(of []string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(of); i += 2 {
		v.Add(of[i], of[i+1])
	}
	return v
}

// client is a browser without scripts, which follows no redirects.
type client struct {
	*fleet
	http.Client
}

// client returns a client that has signed in with a new key of a scope, for a tenant or for all; without a scope it has not.
func (f *fleet) client(scope string, tenant ...string) *client {
	f.Helper()
	jar, _ := cookiejar.New(nil) // it has no options that could be wrong
	c := &client{f, http.Client{Jar: jar, Timeout: time.Minute}}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if scope != "" {
		of := strings.Join(tenant, "")
		secret := f.key(store.NewKey{Name: "test-" + scope + of, Scope: scope, Tenant: of})
		if resp, text := c.send(http.MethodPost, "/ui/sign-in", url.Values{"key": {secret}}); resp.StatusCode != http.StatusSeeOther {
			f.Fatalf("sign in: %d %s", resp.StatusCode, text)
		}
	}
	return c
}

// key makes a key and returns its secret.
func (f *fleet) key(k store.NewKey) string {
	f.Helper()
	_, secret, err := f.st.Admin.CreateKey(f.Context(), k, "test")
	if err != nil {
		f.Fatal(err)
	}
	return secret
}

// send returns the answer to a request, and its text.
func (c *client) send(method, path string, form url.Values) (*http.Response, string) {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return resp, string(raw)
}

// get returns a page, of status 200, and fails the test unless it has texts, as want does.
func (c *client) get(path string, texts ...string) string {
	c.Helper()
	resp, page := c.send(http.MethodGet, path, nil)
	if resp.StatusCode != http.StatusOK {
		c.Fatalf("%s: %d %s", path, resp.StatusCode, page)
	}
	return c.want(page, texts...)
}

// want fails the test unless a page has texts; those that begin with a ! it must not have.
func (c *client) want(page string, texts ...string) string {
	c.Helper()
	for _, text := range texts {
		if of, not := strings.CutPrefix(text, "!"); strings.Contains(page, of) == not {
			c.Errorf("%q is in the page: %t, want %t\n%s", of, not, !not, page[max(0, strings.Index(page, "<main")):])
		}
	}
	return page
}

var (
	formPattern   = regexp.MustCompile(`(?s)<form[^>]*action="/ui/do".*?</form>`)
	hiddenPattern = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
	tokenPattern  = regexp.MustCompile(`name="_token" value="([^"]+)"`)
)

// submit sends the form of a page that has a text, with names and values in turn before its hidden fields, and returns the result.
func (c *client) submit(page, has string, fields ...string) string {
	c.Helper()
	for _, form := range formPattern.FindAllString(page, -1) {
		if strings.Contains(form, has) {
			v := pairs(fields)
			for _, m := range hiddenPattern.FindAllStringSubmatch(form, -1) {
				v.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
			}
			_, result := c.send(http.MethodPost, "/ui/do", v)
			return result
		}
	}
	c.Fatalf("no form has %q: %s", has, page)
	return ""
}

// post calls an operation without the form of a page, with names and values in turn, and returns the status and the result.
func (c *client) post(operation string, fields ...string) (int, string) {
	c.Helper()
	resp, result := c.send(http.MethodPost, "/ui/do", pairs(append(fields, "_token", c.token(), "_method", "POST", "_path", operation)))
	return resp.StatusCode, result
}

// token returns the token that forms of the client's pages have, "" if it has not signed in.
func (c *client) token() string {
	c.Helper()
	_, page := c.send(http.MethodGet, "/ui/", nil)
	return append(tokenPattern.FindStringSubmatch(page), "", "")[1]
}
