package api_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/api"
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
	s.listen(t, c)
}
