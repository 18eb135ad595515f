package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
)

func TestSignIn(t *testing.T) {
	f := newFleet(t, func(c *config.Config) { c.API.SignOut = 2 * time.Second })
	f.fill(1, "acme")
	in := f.client("read")
	in.get("/ui/", "Overview")
	u, _ := url.Parse(f.url + "/ui/")
	if c := in.Jar.Cookies(u); len(c) != 1 || strings.Contains(c[0].Value, "cpk_") {
		t.Errorf("cookies %v, want one without the key", c)
	}
	t.Run("without", func(t *testing.T) {
		out := f.client("")
		if resp, _ := out.send(http.MethodGet, "/ui/", nil); resp.StatusCode != http.StatusSeeOther {
			t.Errorf("status %d, want the sign-in", resp.StatusCode)
		}
		resp, text := out.send(http.MethodPost, "/ui/sign-in", url.Values{"key": {"cpk_wrong"}})
		if out.want(text, "invalid_key", "!cpk_wrong"); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a wrong key: %d", resp.StatusCode)
		}
		if status, _ := out.post("/v1/pauses", "all:bool", "true"); status != http.StatusUnauthorized {
			t.Errorf("a change: %d", status)
		}
	})
	t.Run("next", func(t *testing.T) {
		const list = "/ui/sessions?due=true"
		for next, want := range map[string]string{
			list: list, "//evil.example": "/ui/", "https://evil.example/ui/": "/ui/", "/ui/..//evil": "/ui/", `/ui/\\evil`: "/ui/",
		} {
			secret := f.key(store.NewKey{Name: fmt.Sprintf("next-%x", next), Scope: "read"})
			resp, _ := f.client("").send(http.MethodPost, at("sign-in", "next", next), url.Values{"key": {secret}})
			c := resp.Cookies()
			if got := resp.Header.Get("Location"); got != want || len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode {
				t.Errorf("next %s: %q, %v", next, got, c)
			}
		}
	})
	t.Run("large", func(t *testing.T) {
		form := url.Values{"before": {strings.Repeat("x", 100_000)}, "key": {f.key(store.NewKey{Name: "large", Scope: "read"})}}
		if resp, _ := f.client("").send(http.MethodPost, "/ui/sign-in", form); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a form of 100 kB is read: %d", resp.StatusCode)
		}
	})
	t.Run("no templates", func(t *testing.T) {
		if resp, _ := f.client("").send(http.MethodGet, "/ui/assets/x/..%2ftemplates%2fparts.html", nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("a template is sent: %d", resp.StatusCode)
		}
	})
	t.Run("in use", func(t *testing.T) {
		busy, began := f.client("operate"), time.Now()
		storetest.Await(t, "twice the time", func() bool {
			busy.get("/ui/")
			return time.Since(began) > 4*time.Second
		})
	})
	t.Run("polled", func(t *testing.T) {
		open := f.client("append")
		storetest.Await(t, "the end of a page that only asks for fresh figures", func() bool {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/ui/", nil)
			req.Header.Set("HX-Request", "true")
			req.Header.Set("HX-Target", "main#main")
			resp, err := open.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusUnauthorized
		})
	})
	t.Run("idle", func(t *testing.T) {
		storetest.Await(t, "the end of the sign-in", func() bool {
			select { // a request would renew it
			case <-t.Context().Done():
			case <-time.After(3 * time.Second):
			}
			resp, _ := in.send(http.MethodGet, "/ui/", nil)
			return resp.StatusCode == http.StatusSeeOther
		})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/ui/", nil)
		req.Header.Set("HX-Request", "true")
		resp, err := in.Do(req)
		if err != nil || resp.Header.Get("HX-Refresh") != "true" {
			t.Errorf("a page that is open does not go to the sign-in: %v, %v", resp, err)
		}
		_ = resp.Body.Close()
	})
}

func TestAChangeNeedsTheTokenAndTheScope(t *testing.T) {
	f := newFleet(t)
	op, reader := f.client("operate"), f.client("read")
	for _, x := range []struct {
		of        *client
		operation string
		fields    []string
		status    int
		said      string
		paused    int
	}{
		{op, "/v1/pauses", []string{"all:bool", "true", "_token", ""}, http.StatusForbidden, "stale_page", 0},
		{op, "/v1/pauses", []string{"all:bool", "true", "_token", "x"}, http.StatusForbidden, "stale_page", 0},
		{reader, "/v1/pauses", []string{"all:bool", "true"}, http.StatusForbidden, "forbidden", 0},
		{op, "/v1/pauses", []string{"all:bool", "true", "note", "<b>x", "_said", "Paused <all>."}, http.StatusOK, "Paused &lt;all&gt;.", 1},
		{op, "/v1/limits", []string{"usd_day:number", "many"}, http.StatusUnprocessableEntity, "want a number", 1},
		{op, "/v1/limits", []string{"cost_micros_per_day:micros", "2,5"}, http.StatusUnprocessableEntity, "want a number", 1},
		{op, "/v1/limits", []string{"runs_per_second:number", "NaN"}, http.StatusUnprocessableEntity, "want a number", 1},
		{op, "/v1/pauses", []string{":raw", `{"model":"gpt"}`, "?dry_run", "true"}, http.StatusOK, "Done.", 1},
		{op, "/v1/compactions?dry_run=false", []string{"all:bool", "true", "_result", "result-compacted-sessions"}, http.StatusOK, "No run was asked for.", 1},
		{op, "/ui/", []string{"_method", "GET"}, http.StatusNotFound, "names no operation", 1},
	} {
		status, text := x.of.post(x.operation, x.fields...)
		p, err := f.st.Operator.Pauses(t.Context())
		if op.want(text, x.said); err != nil || status != x.status || len(p) != x.paused {
			t.Errorf("%s %q: %d, want %d, with %d pauses, want %d, %v", x.operation, x.fields, status, x.status, len(p), x.paused, err)
		}
	}
}
