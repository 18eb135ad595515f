// Package suites finds the clients and the suites of others that tests use, which the script install has installed.
package suites

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
)

//go:embed */package-lock.json
var locks embed.FS

// Absent skips a test of a program of others, or fails it where nothing may be skipped.
func Absent(t *testing.T, text string) {
	t.Helper()
	if os.Getenv("REQUIRE_NODE") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Folder returns the folder node_modules that install has made for one of the folders here.
func Folder(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("computes for long, in another process")
	}
	lock, err := locks.ReadFile(path.Join(name, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "compactor", "suites", fmt.Sprintf("%s-%x", name, sum[:6]))
	if _, err := os.Stat(filepath.Join(dir, "installed")); err != nil {
		Absent(t, "run deploy/suites/install first")
	}
	return filepath.Join(dir, "node_modules")
}
