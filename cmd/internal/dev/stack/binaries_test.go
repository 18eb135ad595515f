package stack

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestMissingBinariesNameTheWaysOut(t *testing.T) {
	t.Parallel()
	nowhere := &finder{look: func(string) (string, error) { return "", exec.ErrNotFound }}
	_, err := Start(t.Context(), Options{find: nowhere})
	if !errors.Is(err, ErrNoPostgres) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"install", "DATABASE_URL", "demo --install"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}

func TestInstallHint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goos string
		apt  bool
		want string
	}{
		{"linux", true, "apt-get install postgresql"},
		{"darwin", false, "brew install postgresql@17"},
		{"linux", false, "server package"},
	} {
		if got := installHint(c.goos, c.apt); !strings.Contains(got, c.want) {
			t.Errorf("%s, apt %v: %q", c.goos, c.apt, got)
		}
	}
}

func TestFinderTakesTheNewestUsable(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, v := range []string{"9.6", "13", "14", "17"} {
		dir := filepath.Join(root, v, "bin")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"postgres", "initdb"} {
			script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + v + ".2 (Debian 1-deb12u1)'\n"
			writeExecutable(t, filepath.Join(dir, name), []byte(script))
		}
	}
	f := &finder{
		look:     func(string) (string, error) { return "", exec.ErrNotFound },
		patterns: []string{filepath.Join(root, "*", "bin")},
	}
	for major, want := range map[int]int{0: 17, 14: 14} {
		got, err := f.postgres(t.Context(), major)
		if err != nil || got != filepath.Join(root, strconv.Itoa(want), "bin") {
			t.Errorf("wanting %d: got %s, %v", major, got, err)
		}
	}
	if _, err := f.postgres(t.Context(), 16); !errors.Is(err, ErrNoPostgres) || !strings.Contains(err.Error(), "(version 17)") {
		t.Errorf("wanting 16: got %v", err)
	}
}
