//go:build !nodev

package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/builtin"
)

var dashboardURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/ui/`)

// untilServed runs a command until it has printed the address of the dashboard, calls use, and interrupts the command.
func untilServed(t *testing.T, environ []string, use func(base string), args ...string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	in, out := io.Pipe()
	var notes strings.Builder
	e := &Env{
		Stdin: strings.NewReader(""), Out: term.Output{W: out}, Err: term.Output{W: &notes}, Environ: environ,
		Registry: builtin.Registry(), now: time.Now,
	}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, args, e)
		_ = out.Close()
	}()
	served := false
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if at := dashboardURL.FindString(lines.Text()); at != "" && !served {
			served = true
			go func() { // it prints more meanwhile
				defer interrupt()
				use(strings.TrimSuffix(at, "/ui/"))
			}()
		}
	}
	if code := <-ended; code != 0 || !served {
		t.Errorf("%v: code %d, served %t: %s", args, code, served, notes.String())
	}
}

// fetch returns the answer of a request that succeeds: a POST where there is a body.
func fetch(t *testing.T, url, body string) string {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		t.Errorf("%s: %s: %s %v", url, answer.Status, text, err)
	}
	return string(text)
}

func TestDemoKeepsTheDashboard(t *testing.T) {
	t.Parallel()
	untilServed(t, database(t), func(base string) {
		if page := fetch(t, base+"/ui/", ""); !strings.Contains(page, "<h1>Overview") {
			t.Errorf("no overview: %.500s", page)
		}
		if list := fetch(t, base+"/v1/sessions", ""); strings.Count(list, `"session":`) != 3 {
			t.Errorf("want three sessions: %.1000s", list)
		}
	}, "demo", "--keep", "--sessions=3")
}

// The data outlive the command.
func TestDevKeepsSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Postgres of its own, twice")
	}
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // the user that runs Postgres for root enters it
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"HOME=" + t.TempDir(), "COMPACTOR_API_LISTEN=127.0.0.1:0", "USER=ada", "DATABASE_URL=postgres://127.0.0.1:1/none"}
	args := []string{"dev", "--data-dir", filepath.Join(dir, "data")}
	untilServed(t, environ, func(base string) {
		fetch(t, base+"/v1/sessions/kept/messages?model=gpt-4o", `[{"id": "m1", "role": "user", "content": "Where is it?"}]`)
	}, args...)
	untilServed(t, environ, func(base string) {
		if view := fetch(t, base+"/v1/sessions/kept/view", ""); !strings.Contains(view, "Where is it?") {
			t.Errorf("the session is gone: %s", view)
		}
		fetch(t, base+"/ui/", "")
	}, args...)
}
