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

// nothing is the look of a finder on an empty PATH.
func nothing(string) (string, error) { return "", exec.ErrNotFound }

// script writes an executable script.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	writeExecutable(t, path, []byte("#!/bin/sh\n"+text))
}

func TestFinderTakesTheNewestUsable(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, v := range []string{"9.6", "13", "14", "17"} {
		for _, name := range []string{"postgres", "initdb"} {
			script(t, filepath.Join(root, v, "bin", name), "echo 'postgres (PostgreSQL) "+v+".2 (Debian 1-deb12u1)'\n")
		}
	}
	f := &finder{look: nothing, refused: true, patterns: []string{filepath.Join(root, "*", "bin")}}
	for major, want := range map[int]int{0: 17, 14: 14} {
		got, err := f.postgres(t.Context(), major)
		if err != nil || got != filepath.Join(root, strconv.Itoa(want), "bin") {
			t.Errorf("wanting %d: got %s, %v", major, got, err)
		}
	}
	if _, err := f.postgres(t.Context(), 16); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "(version 17)") {
		t.Errorf("wanting 16: got %v", err)
	}
}

func TestInstallCommand(t *testing.T) {
	t.Parallel()
	lists := filepath.Join(t.TempDir(), "x_Packages")
	if err := os.WriteFile(lists, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, lists, name, want string }{
		{"apt-get", lists, "postgres", "apt-get install postgresql"},
		{"apt-get", "", "redis-server", "apt-get install redis-server"},
		{"dnf", "", "postgres", "dnf install postgresql-server"},
		{"brew", "", "postgres", "brew install postgresql@17"},
		{"pacman", "", "pgbouncer", "the package manager of this system"},
	} {
		f := &finder{lists: c.lists, look: func(name string) (string, error) {
			if name == c.tool {
				return name, nil
			}
			return nothing(name)
		}}
		got := f.installCommand(c.name)
		if !strings.HasSuffix(got, c.want) || strings.Contains(got, "update") != (c.tool == "apt-get" && c.lists == "") {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}
