package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// oldest is the first major version with multiranges.
const oldest = 14

// ErrNoPostgres means that no usable Postgres is installed.
var ErrNoPostgres = errors.New("no Postgres server found")

// finder searches for server binaries.
type finder struct {
	look     func(name string) (string, error) // exec.LookPath
	patterns []string                          // folders, as globs, in order of preference
}

func newFinder() *finder {
	f := &finder{
		look: exec.LookPath,
		patterns: []string{
			"/usr/lib/postgresql/*/bin",
			"/usr/pgsql-*/bin",
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
			"/opt/homebrew/bin",
		},
	}
	if cache, err := cacheDir(); err == nil {
		f.patterns = append(f.patterns, filepath.Join(cache, "postgres-*", "bin"))
	}
	return f
}

// postgres returns the preferred folder with the binaries of a version; 0 allows any.
func (f *finder) postgres(ctx context.Context, major int) (string, error) {
	var others []string
	for _, dir := range f.dirs(ctx) {
		v, err := majorOf(ctx, filepath.Join(dir, "postgres"))
		switch {
		case err != nil:
			others = append(others, fmt.Sprintf("%s (%v)", dir, err))
		case v < oldest || major != 0 && v != major:
			others = append(others, fmt.Sprintf("%s (version %d)", dir, v))
		default:
			return dir, nil
		}
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	return "", noPostgres(major, others)
}

// dirs returns the distinct folders that hold server binaries, in order of preference.
func (f *finder) dirs(ctx context.Context) []string {
	var dirs []string
	if path, err := f.look("postgres"); err == nil {
		dirs = append(dirs, folderOf(path))
	}
	if path, err := f.look("pg_config"); err == nil {
		if out, err := exec.CommandContext(ctx, path, "--bindir").Output(); err == nil {
			dirs = append(dirs, strings.TrimSpace(string(out)))
		}
	}
	for _, pattern := range f.patterns {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(number(b), number(a)) })
		dirs = append(dirs, found...)
	}
	var usable []string
	for _, dir := range dirs {
		if !slices.Contains(usable, dir) && executable(filepath.Join(dir, "postgres")) && executable(filepath.Join(dir, "initdb")) {
			usable = append(usable, dir)
		}
	}
	return usable
}

// folderOf returns the folder of a binary with links resolved.
func folderOf(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Dir(path)
}

var digits = regexp.MustCompile(`\d+`)

// number returns the last number in a path, which is a version; 0 if it has none.
func number(path string) int {
	all := digits.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1])
	return n
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// majorOf returns the major version of a server binary.
func majorOf(ctx context.Context, server string) (int, error) {
	out, err := exec.CommandContext(ctx, server, "--version").Output()
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(digits.FindString(string(out)))
	if err != nil {
		return 0, fmt.Errorf("version unreadable in %q", out)
	}
	return v, nil
}

// noPostgres returns an error with the searched places and remedies.
func noPostgres(major int, others []string) error {
	want := fmt.Sprintf("version %d or newer", oldest)
	if major != 0 {
		want = fmt.Sprintf("version %d, which made this data folder", major)
	}
	found := ""
	if len(others) > 0 {
		found = "; not usable: " + strings.Join(others, ", ")
	}
	return fmt.Errorf("%w (%s; looked on PATH, at pg_config --bindir and in the usual folders%s): %s, set DATABASE_URL to a server that runs, or try `compactor demo --install`",
		ErrNoPostgres, want, found, installHint(runtime.GOOS, executable("/usr/bin/apt-get")))
}

func installHint(goos string, apt bool) string {
	switch {
	case apt:
		return "install it with `apt-get install postgresql`"
	case goos == "darwin":
		return "install it with `brew install postgresql@17`"
	default:
		return "install the postgresql server package of this system"
	}
}
