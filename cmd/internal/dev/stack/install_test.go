package stack

import (
	"archive/zip"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// repository serves an archive like those that the library downloads: a zip
// that holds a tar of the binaries, here two scripts.
func repository(t *testing.T, ok bool) embeddedpostgres.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ok || !strings.HasSuffix(r.URL.Path, ".jar") {
			http.NotFound(w, r)
			return
		}
		raw, err := os.ReadFile(filepath.Join("testdata", "postgres.txz"))
		if err != nil {
			t.Error(err)
		}
		archive := zip.NewWriter(w)
		file, err := archive.Create("postgres.txz")
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := file.Write(raw); err != nil {
			t.Error(err)
		}
		if err := archive.Close(); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return embeddedpostgres.DefaultConfig().BinaryRepositoryURL(server.URL)
}

func TestDownloadBringsBinariesThatAreFound(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "cache")
	o := Options{}.withDefaults()
	if err := download(t.Context(), o.Logger, cache, repository(t, true)); err != nil {
		t.Fatal(err)
	}
	f := &finder{
		look:     func(string) (string, error) { return "", exec.ErrNotFound },
		patterns: []string{filepath.Join(cache, "postgres-*", "bin")},
	}
	if got, err := f.postgres(t.Context(), 0); err != nil || got != filepath.Join(cache, "postgres-17", "bin") {
		t.Errorf("got %s, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "scratch-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestFailedDownloadReportsTheReason(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	err := download(t.Context(), o.Logger, t.TempDir(), repository(t, false))
	if err == nil || !strings.Contains(err.Error(), "no version found matching 17") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := download(ctx, o.Logger, t.TempDir(), repository(t, true)); err == nil {
		t.Error("a cancelled download succeeded")
	}
}
