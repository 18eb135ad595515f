package web_test

import (
	"fmt"
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
)

// visitor is a browser without scripts.
type visitor struct {
	*fleet
	client *http.Client
}

// visit returns a visitor that has signed in with a key of a scope and a tenant; "" is all tenants.
func (f *fleet) visit(scope, tenant string) *visitor {
	f.Helper()
	_, secret, err := f.st.Admin.CreateKey(f.Context(), store.NewKey{Name: scope + "-" + tenant, Scope: scope, Tenant: tenant}, "test")
	if err != nil {
		f.Fatal(err)
	}
	v := f.stranger()
	if status, text := v.post("/ui/sign-in", url.Values{"key": {secret}}); status != http.StatusSeeOther {
		f.Fatalf("sign in: %d %s", status, text)
	}
	return v
}

// stranger returns a visitor that has not signed in.
func (f *fleet) stranger() *visitor {
	jar, _ := cookiejar.New(nil) // it has no options that could be wrong
	return &visitor{
		f,
		&http.Client{
			Jar:           jar,
			Timeout:       30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (v *visitor) send(req *http.Request) (*http.Response, string) {
	v.Helper()
	resp, err := v.client.Do(req)
	if err != nil {
		v.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		v.Fatal(err)
	}
	return resp, string(raw)
}

// get returns the status and the text of a page.
func (v *visitor) get(path string) (int, string) {
	v.Helper()
	req, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.url+path, nil)
	if err != nil {
		v.Fatal(err)
	}
	resp, text := v.send(req)
	return resp.StatusCode, text
}

// page returns the text of a page that there is.
func (v *visitor) page(path string) string {
	v.Helper()
	status, text := v.get(path)
	if status != http.StatusOK {
		v.Fatalf("%s: %d %s", path, status, text)
	}
	return text
}

func (v *visitor) post(path string, form url.Values) (int, string) {
	v.Helper()
	req, err := http.NewRequestWithContext(v.Context(), http.MethodPost, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, text := v.send(req)
	return resp.StatusCode, text
}

var tokenField = regexp.MustCompile(`name="_token" value="([^"]+)"`)

// do posts a form of a page, with the token that the page has: names and values in turn.
func (v *visitor) do(method, path string, fields ...string) (int, string) {
	v.Helper()
	form := url.Values{"_method": {method}, "_path": {path}}
	if m := tokenField.FindStringSubmatch(v.page("/ui/")); m != nil {
		form.Set("_token", m[1])
	}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return v.post("/ui/do", form)
}

func TestSignIn(t *testing.T) {
	f := newFleet(t, func(c *config.Config) { c.API.SignOut = 2 * time.Second })
	f.fill(1, "acme")
	in := f.visit("read", "")
	if text := in.page("/ui/"); !strings.Contains(text, "Overview") {
		t.Error("no overview")
	}
	u, _ := url.Parse(f.url + "/ui/")
	if c := in.client.Jar.Cookies(u); len(c) != 1 || strings.Contains(c[0].Value, "cpk_") {
		t.Errorf("cookies %v, want one without the key", c)
	}
	t.Run("without", func(t *testing.T) {
		out := f.stranger()
		if status, _ := out.get("/ui/"); status != http.StatusSeeOther {
			t.Errorf("status %d, want the sign-in", status)
		}
		if status, text := out.post("/ui/sign-in", url.Values{"key": {"cpk_wrong"}}); status != http.StatusUnauthorized ||
			!strings.Contains(text, "invalid_key") ||
			strings.Contains(text, "cpk_wrong") {
			t.Errorf("a wrong key: %d %s", status, text)
		}
		if status, _ := out.post("/ui/do", url.Values{"_method": {"POST"}, "_path": {"/v1/pauses"}, "all:bool": {"true"}}); status != http.StatusUnauthorized {
			t.Errorf("a change: %d", status)
		}
	})
	t.Run("next", func(t *testing.T) {
		for next, want := range map[string]string{
			"/ui/sessions?due=true": "/ui/sessions?due=true", "//evil.example": "/ui/", "https://evil.example/ui/": "/ui/", "/ui/..//evil": "/ui/", `/ui/\\evil`: "/ui/",
		} {
			_, secret, err := f.st.Admin.CreateKey(t.Context(), store.NewKey{Name: fmt.Sprintf("next-%x", next), Scope: "read"}, "test")
			if err != nil {
				t.Fatal(err)
			}
			req, _ := http.NewRequestWithContext(
				t.Context(),
				http.MethodPost,
				f.url+"/ui/sign-in?"+url.Values{"next": {next}}.Encode(),
				strings.NewReader(url.Values{"key": {secret}}.Encode()),
			)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			resp, _ := f.stranger().send(req)
			c := resp.Cookies()
			if got := resp.Header.Get("Location"); got != want || len(c) != 1 || !c[0].HttpOnly ||
				c[0].SameSite != http.SameSiteStrictMode {
				t.Errorf("next %s: %q, %v", next, got, c)
			}
		}
	})
	t.Run("idle", func(t *testing.T) {
		storetest.Await(t, "the end of the sign-in", func() bool {
			select { // a request would renew it
			case <-t.Context().Done():
			case <-time.After(3 * time.Second):
			}
			status, _ := in.get("/ui/")
			return status == http.StatusSeeOther
		})
	})
}

func TestAChangeNeedsTheTokenAndTheScope(t *testing.T) {
	f := newFleet(t)
	paused := func() int {
		p, err := f.st.Operator.Pauses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(p)
	}
	op, reader := f.visit("operate", ""), f.visit("read", "")
	for name, token := range map[string]string{"none": "", "wrong": "x"} {
		if status, text := op.post("/ui/do", url.Values{"_token": {token}, "_method": {"POST"}, "_path": {"/v1/pauses"}, "all:bool": {"true"}}); status != http.StatusForbidden ||
			paused() != 0 {
			t.Errorf("token %s: %d %s", name, status, text)
		}
	}
	if status, text := reader.do("POST", "/v1/pauses", "all:bool", "true"); status != http.StatusForbidden ||
		!strings.Contains(text, "forbidden") ||
		paused() != 0 {
		t.Errorf("a key that reads: %d %s", status, text)
	}
	if status, text := op.do("POST", "/v1/pauses", "all:bool", "true", "note", "<b>x", "_said", "Paused <all>."); status != http.StatusOK ||
		paused() != 1 ||
		!strings.Contains(text, "Paused &lt;all&gt;.") {
		t.Errorf("a key that operates: %d %s", status, text)
	}
	if status, text := op.do("POST", "/v1/limits", "usd_day:number", "many"); status != http.StatusUnprocessableEntity ||
		!strings.Contains(text, "want a number") {
		t.Errorf("no number: %d %s", status, text)
	}
	if status, _ := op.do("GET", "/ui/"); status != http.StatusNotFound {
		t.Errorf("a path that is no operation: %d", status)
	}
}

// Every page for a key that reads: no button that changes anything, and the policy of its content.
func TestAKeyThatReadsSeesNoButton(t *testing.T) {
	f := newFleet(t, small)
	f.fill(3, "acme", "other")
	f.settled()
	own := f.visit("read", "acme")
	for _, p := range f.addresses("acme") {
		status, text := own.get(p)
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", p, status, text)
		}
		if i := strings.Index(text, `action="/ui/do"`); i >= 0 {
			t.Errorf("%s has a form that changes something: %.300s", p, text[i:])
		}
		if strings.Contains(text, "other") && !strings.Contains(p, "admin") {
			i := strings.Index(text, "other")
			t.Logf("%s: …%.80s", p, text[max(0, i-40):])
		}
	}
	for _, p := range f.addresses("other") {
		if status, text := own.get(p); strings.Contains(p, "tenant=other") && status == http.StatusOK {
			t.Errorf("%s of another tenant is shown: %.200s", p, text)
		}
	}
}

// addresses returns an address of each page, with a session and a run of a tenant.
func (f *fleet) addresses(tenant string) []string {
	f.Helper()
	runs, err := f.st.Operator.Runs(f.Context(), store.RunFilter{Key: store.Key{Tenant: tenant}, Status: "applied", Limit: 1})
	if err != nil || len(runs) == 0 {
		f.Fatalf("no run was applied: %v", err)
	}
	return []string{at(""), at("", "tenant", tenant, "hours", "1")}
}
