// Package suites finds the clients and the suites of others that tests use, which the script install has installed.
package suites

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Absent skips a test of a program of others, or fails it where nothing may be skipped.
func Absent(t *testing.T, text string) {
	t.Helper()
	if os.Getenv("REQUIRE_NODE") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Folder returns the folder node_modules that install has made for a folder here, or of deploy/integrations.
func Folder(t *testing.T, folder string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("computes for long, in another process")
	}
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "compactor", "suites", fmt.Sprintf("%s-%x", filepath.Base(folder), sum[:6]))
	if _, err := os.Stat(filepath.Join(dir, "installed")); err != nil { //nolint:gosec // tests name the folder
		Absent(t, "run deploy/suites/install first")
	}
	return filepath.Join(dir, "node_modules")
}
