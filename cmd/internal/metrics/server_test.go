package metrics

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func serve(t *testing.T, m *Metrics, h *Health) *Server {
	t.Helper()
	s, err := m.Serve(t.Context(), "127.0.0.1:0", h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTheListenerServesMetricsAndHealth(t *testing.T) {
	t.Parallel()
	var h Health
	s := serve(t, New("v1.2.3", "abc"), &h)
	if !s.Loopback() {
		t.Errorf("%s is not on the loopback interface", s.Address())
	}
	for path, part := range map[string]string{
		"/metrics": `compactor_build_info{go_version="go`,
		"/healthz": "ok\n",
	} {
		if code, body := get(t, s, path); code != http.StatusOK || !strings.Contains(body, part) {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	if code, body := get(t, s, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, starting) {
		t.Errorf("before the start: %d %s", code, body)
	}
	h.Start()
	if code, _ := get(t, s, "/readyz"); code != http.StatusOK {
		t.Errorf("after the start: %d", code)
	}
	h.Stop()
	h.Start() // of a start that takes long
	if code, body := get(t, s, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, stopping) {
		t.Errorf("after the end: %d %s", code, body)
	}
	for _, path := range []string{"/", "/debug/pprof/"} {
		if code, _ := get(t, s, path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	response, err := http.Post("http://"+s.Address()+"/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", response.StatusCode)
	}
}

func TestReadinessNamesTheCheckThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var h Health
		var fails atomic.Bool
		runs := 0
		h.Start(
			Check{"fine", func(context.Context) error { return nil }},
			Check{"other", func(ctx context.Context) error {
				if runs++; !fails.Load() {
					return nil
				}
				<-ctx.Done() // hangs
				return errors.New("no answer")
			}},
		)
		read := func(want readiness) {
			t.Helper()
			if diff := cmp.Diff(want, h.read(t.Context())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		good := readiness{Status: ready, Checks: []checkResult{{Name: "fine", OK: true}, {Name: "other", OK: true}}}
		bad := readiness{Status: notReady, Checks: []checkResult{{Name: "fine", OK: true}, {Name: "other", Error: "no answer"}}}
		read(good)
		fails.Store(true)
		read(good) // of less than a second ago
		if runs != 1 {
			t.Errorf("%d checks for two probes", runs)
		}
		<-time.After(checkAge)
		read(bad)
		fails.Store(false)
		<-time.After(checkAge)
		read(good)
		h.Stop()
		read(readiness{Status: stopping})
	})
}

func TestSettingsOfTheListener(t *testing.T) {
	t.Parallel()
	for listen, ok := range map[string]bool{
		"127.0.0.1:9464": true, "[::1]:9464": true, "localhost:0": true, "0.0.0.0:9464": true, "off": true,
		"": false, ":9464": false, "127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:99999": false, "127.0.0.1:x": false,
	} {
		c := DefaultConfig()
		c.Listen = listen
		if err := c.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", listen, err)
		}
	}
	if err := (Config{Listen: Off, Tenants: 501}).Validate(); err == nil {
		t.Error("501 tenants")
	}
}
