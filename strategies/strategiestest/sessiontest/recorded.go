package sessiontest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Long reports whether tests take all of the recorded sessions, which takes minutes:
// LONG_TESTS=1 go test ./...
func Long() bool { return os.Getenv("LONG_TESTS") != "" }

// RecordedFile returns the path of a file of recorded sessions: in DATA_DIR, or in ../shared/data
// beside the module. It skips the test if there is none.
func RecordedFile(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("DATA_DIR")
	if dir == "" {
		dir = filepath.Join(moduleRoot(t), "..", "shared", "data")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) { //nolint:gosec // the tester names the folder
		t.Skipf("no %s in %s (DATA_DIR names another folder)", name, dir)
	}
	return path
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}

// Recorded returns each nth session of a file of recorded sessions, and all of them if Long.
func Recorded(t testing.TB, name string, nth int) []chat.Session {
	t.Helper()
	f, err := os.Open(RecordedFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []chat.Session
	r := chat.NewReader(f)
	for n := 1; ; n++ {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if Long() || n%nth == 0 {
			out = append(out, s)
		}
	}
}
