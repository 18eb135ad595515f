package traces

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// However many spans there are, nothing waits for a collector that does not answer but Close, for a time, and
// nothing is left behind. That it is away is one line of the log, or else the error of Close.
func TestNothingWaitsForACollector(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer server.Close()
	defer close(done)
	for name, url := range map[string]string{"a port without a listener": "http://127.0.0.1:9/v1/traces", "one that hangs": server.URL} {
		var log bytes.Buffer
		p, err := Start(t.Context(), url, "test", slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for range 5000 { // more than the queue holds
			_, span := p.Tracer("test").Start(t.Context(), "span")
			span.End()
		}
		err = p.Close(t.Context())
		if lines := strings.Count(log.String(), "\n"); lines > 1 || (lines == 1) == (err != nil) {
			t.Errorf("%s: closed with %v, and the log\n%s", name, err, log.String())
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" {
			http.Error(w, strings.Repeat("no such path, ", 100), http.StatusNotFound)
		}
	}))
	defer server.Close()
	if err := Probe(t.Context(), server.URL+"/v1/traces"); err != nil {
		t.Error(err)
	}
	for url, want := range map[string]string{server.URL + "/other": "404", "http://127.0.0.1:9/v1/traces": "refused"} {
		if err := Probe(t.Context(), url); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > longest {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
