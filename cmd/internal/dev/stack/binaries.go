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
	"slices"
	"strconv"
	"strings"
)

// oldest is the first major version with multiranges.
const oldest = 14

// ErrMissing means that a server is not installed and could not be fetched.
var ErrMissing = errors.New("not found")

// finder searches for server binaries, and fetches those that are missing.
type finder struct {
	look       func(name string) (string, error) // exec.LookPath
	patterns   []string                          // folders of Postgres, as globs, in order of preference
	cache      string                            // folder of fetched servers
	repository string                            // of Maven
	lists      string                            // glob of the lists of apt
	refused    bool                              // fetch nothing
	notice     func(line string)                 // called before a fetch
}

// newFinder returns a finder of this machine.
func newFinder(refused bool, notice func(string)) *finder {
	return &finder{
		look: exec.LookPath,
		patterns: []string{
			"/usr/lib/postgresql/*/bin",
			"/usr/pgsql-*/bin",
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
			"/opt/homebrew/bin",
		},
		cache: cacheDir(), repository: mavenCentral, lists: "/var/lib/apt/lists/*_Packages*",
		refused: refused || os.Getenv(NoFetch) != "", notice: notice,
	}
}

// postgres returns the preferred folder with the binaries of a version; 0 allows any.
func (f *finder) postgres(ctx context.Context, major int) (string, error) {
	return f.findOrFetch(ctx, "postgres", major, func() (string, error) { return f.postgresDir(ctx, major) })
}

// server returns the path of a server with one binary.
func (f *finder) server(ctx context.Context, name string) (string, error) {
	return f.findOrFetch(ctx, name, 0, func() (string, error) {
		places := []string{"", "/usr/sbin"} // which is not on every PATH
		if f.cache != "" {
			places = append(places, filepath.Join(f.cache, name, "usr", "bin"), filepath.Join(f.cache, name, "usr", "sbin"))
		}
		for _, place := range places {
			if path, err := f.look(filepath.Join(place, name)); err == nil {
				return path, nil
			}
		}
		return "", fmt.Errorf("%s %w on PATH", name, ErrMissing)
	})
}

// postgresDir returns the folder with the binaries of a version among those of dirs.
func (f *finder) postgresDir(ctx context.Context, major int) (string, error) {
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
	want, found := fmt.Sprintf("%d or newer", oldest), ""
	if major != 0 {
		want = fmt.Sprintf("%d, which made this data folder,", major)
	}
	if len(others) > 0 {
		found = "; not usable: " + strings.Join(others, ", ")
	}
	return "", fmt.Errorf("postgres %s %w%s", want, ErrMissing, found)
}

// dirs returns the distinct folders that hold the binaries of Postgres, in order of preference.
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
	patterns := f.patterns
	if f.cache != "" {
		patterns = append(slices.Clip(patterns), filepath.Join(f.cache, "postgres-*", "bin"), filepath.Join(f.cache, "postgres-*", "usr/lib/postgresql/*/bin"))
	}
	for _, pattern := range patterns {
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
	out, err := runVersion(ctx, server)
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(digits.FindString(out))
	if err != nil {
		return 0, fmt.Errorf("version unreadable in %q", out)
	}
	return v, nil
}

// runVersion returns the output of a binary for --version. It fails if libraries are missing.
func runVersion(ctx context.Context, binary string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, "--version")
	cmd.Env = environ(binary)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, lastLines(string(out), 2))
	}
	return string(out), nil
}
