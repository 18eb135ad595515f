package api_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/cli"
)

// certificate writes a certificate of this machine and its key to files, and returns a client that trusts it.
func certificate(t *testing.T) (cert, key string, client *http.Client) {
	t.Helper()
	own := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(own.Close)
	raw, err := x509.MarshalPKCS8PrivateKey(own.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: own.Certificate().Raw}, key: {Type: "PRIVATE KEY", Bytes: raw},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, own.Client()
}

func TestTheServerSpeaksTLS(t *testing.T) {
	s := newServer(t)
	cert, key, client := certificate(t)
	c := s.app.Config
	c.API.TLSCert, c.API.TLSKey = cert, key
	secure := s.listen(t, c)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+secure+"/v1/sessions", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestOtherMachinesNeedAKey(t *testing.T) {
	s := newServer(t)
	c := s.app.Config
	c.API.Listen = "0.0.0.0:0"
	o := api.Options{Config: c, Store: s.st, Planner: s.app.Planner, Registry: s.app.Planner.Registry, Logger: s.app.Logger}
	if _, err := api.Listen(t.Context(), o); !errors.Is(err, api.ErrNoKeys) || !strings.Contains(err.Error(), "compactor key create") {
		t.Fatalf("without a key: %v", err)
	}
	s.key(t, "read", "acme")
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	for _, c.API.Listen = range []string{"0.0.0.0:0", "127.0.0.1:0"} {
		o.Config = c
		running, err := api.Listen(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		s.run(t, cli.Role{Name: "api", Run: running.Run})
	}
	if n := strings.Count(log.String(), "not encrypted"); n != 1 {
		t.Errorf("%d warnings of what is not encrypted: %s", n, log.String())
	}
}

// A server that stops ends its streams, and answers the requests that it has.
func TestAStopWaitsForRequestsAndEndsStreams(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "acme")
	running, err := api.Listen(t.Context(), api.Options{
		Config: s.app.Config, Store: s.st, Planner: s.app.Planner, Registry: s.app.Planner.Registry, Logger: s.app.Logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- running.Run(stopped) }()
	other := *s
	other.url = "http://" + running.Address()

	live := other.stream(t, key, "")
	live.in.Scan()
	other.do(t, key, http.MethodPost, at("s", "/messages"), `[{"role":"user","content":"a"}]`).want(t, 200)
	waits, release := s.holds(t, "s")
	answered := make(chan reply, 1)
	go func() {
		answered <- other.do(t, key, http.MethodPost, at("s", "/messages"), `[{"role":"user","content":"b"}]`)
	}()
	waits()
	stop()
	for live.in.Scan() { // until the server ends it
	}
	release()
	(<-answered).want(t, 200, `"seqs":[2]`)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
