package stack

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeApt stands for the tools of Debian. It logs calls and fails where a file of the folder $0
// lies in tells it to.
const fakeApt = `
here=$(dirname "$0"); tool=$(basename "$0")
[ "$1" = -c ] && shift 2
echo "$tool $*" >>"$here/calls"
[ -e "$here/offline" ] && { echo "E: Could not resolve 'deb.debian.org'" >&2; exit 100; }
case "$tool $*" in
"apt-get update"*) rm -f "$here/outdated"; touch "$(pwd)/state/lists/x_Packages" ;;
"apt-cache depends"*" postgresql") printf 'postgresql\n  Depends: postgresql-15\n' ;;
"apt-cache depends"*" postgresql-15") printf 'postgresql-15\n |Depends: locales\n  Depends: libllvm14\n  Depends: libpq5\n  Depends: zlib1g\n' ;;
"apt-cache depends"*) printf 'redis-tools\n  Depends: libjemalloc2\n' ;;
"apt-get install --print-uris"*libllvm*) exit 1 ;;
"apt-get install --print-uris"*libpq5*) echo "'http://x/libpq5_15.1%2b1_amd64.deb' libpq5_15.1+1_amd64.deb 400000 SHA256:0" ;;
"apt-get install --print-uris"*) ;;
"apt-get download --print-uris postgresql"*) echo "'http://x/postgresql-15_15.1_amd64.deb' postgresql-15_15.1_amd64.deb 17000000 SHA256:0" ;;
"apt-get download --print-uris"*) echo "'http://x/redis-server_7_amd64.deb' redis-server_7_amd64.deb 70000 SHA256:0" ;;
"apt-get download"*)
	[ -e "$here/outdated" ] && { echo 'E: 404  Not Found' >&2; exit 100; }
	shift 2; for name; do touch "${name}_1_amd64.deb"; done ;;
"dpkg-deb -x"*postgresql-15_*) bin=$3/usr/lib/postgresql/15/bin; servers="postgres initdb" ;;
"dpkg-deb -x"*redis-server_*) bin=$3/usr/bin; servers=redis-server ;;
esac
[ -n "$bin" ] && mkdir -p "$bin"
for name in $servers; do
	printf '#!/bin/sh\necho postgres 15.1\n' >"$bin/$name"; chmod 755 "$bin/$name"
	[ -e "$here/broken" ] && printf '#!/bin/sh\necho libpq.so.5: cannot open >&2; exit 127\n' >"$bin/$name"
done
exit 0
`

// aptMachine is a machine with the tools of Debian alone, in files of a folder.
type aptMachine struct {
	t   *testing.T
	dir string
}

func newAptMachine(t *testing.T, files ...string) aptMachine {
	t.Helper()
	m := aptMachine{t, t.TempDir()}
	for _, tool := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		script(t, filepath.Join(m.dir, tool), fakeApt)
	}
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(m.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// finder returns the finder of another process on the machine, and the lines it has noticed.
func (m aptMachine) finder() (f *finder, notices *[]string) {
	notices = new([]string)
	return &finder{
		look: func(name string) (string, error) {
			if !strings.HasPrefix(name, m.dir) {
				name = filepath.Join(m.dir, name)
			}
			return exec.LookPath(name)
		},
		cache: filepath.Join(m.dir, "cache"), lists: filepath.Join(m.dir, "x_Packages"), repository: "http://127.0.0.1:0",
		notice: func(line string) {
			if !strings.HasPrefix(line, "waiting") { // for the lock, which a process that another test starts may hold
				*notices = append(*notices, line)
			}
		},
	}, notices
}

// calls returns the number of calls that begin with a text.
func (m aptMachine) calls(prefix string) int {
	text, _ := os.ReadFile(filepath.Join(m.dir, "calls"))
	return strings.Count("\n"+string(text), "\n"+prefix)
}

// cached returns the names in the cache without its lock.
func (m aptMachine) cached() string {
	paths, _ := filepath.Glob(filepath.Join(m.dir, "cache", "[^l]*"))
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return strings.Join(paths, " ")
}

func TestFetchUnpacksPackages(t *testing.T) {
	t.Parallel()
	m := newAptMachine(t, "x_Packages")
	for range 2 { // the second time from the cache
		f, notices := m.finder()
		bin, err := f.postgres(t.Context(), 0)
		if want := filepath.Join(f.cache, "postgres-15/usr/lib/postgresql/15/bin"); err != nil || bin != want {
			t.Fatalf("got %s, %v", bin, err)
		}
		if path, err := f.server(t.Context(), "redis-server"); err != nil || path != filepath.Join(f.cache, "redis-server/usr/bin/redis-server") {
			t.Fatalf("got %s, %v", path, err)
		}
		for i, line := range *notices {
			want := []string{"postgresql-15 with 1 libraries, 17.4 MB, from apt's sources into " + f.cache, "redis-server and redis-tools, 70.0 kB"}[i]
			if !strings.Contains(line, want) || strings.Contains(line, "\n") {
				t.Errorf("%q lacks %q", line, want)
			}
		}
	}
	if n := m.calls("apt-get download -q"); n != 2 || m.calls("apt-get update") != 0 {
		t.Errorf("%d downloads, or an update", n)
	}
	if got := m.cached(); got != "postgres-15 redis-server" {
		t.Errorf("the cache holds %s", got)
	}
}

func TestFetchUpdatesMissingAndOutdatedLists(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{"missing": nil, "outdated": {"x_Packages", "outdated"}} {
		m := newAptMachine(t, files...)
		f, notices := m.finder()
		if _, err := f.postgres(t.Context(), 0); err != nil || m.calls("apt-get update") != 1 {
			t.Errorf("%s: %v, %q", name, err, *notices)
		}
	}
}

func TestOneProcessFetchesAndOthersWait(t *testing.T) {
	t.Parallel()
	m := newAptMachine(t, "x_Packages")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			f, _ := m.finder()
			if _, err := f.postgres(t.Context(), 0); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := m.calls("apt-get download -q"); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

// A failure is reported in one line with the command to type, is not repeated by the process,
// and leaves nothing in the cache.
func TestFailedFetch(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"offline": "Could not resolve", "broken": "libpq.so.5: cannot open"} {
		m := newAptMachine(t, "x_Packages", file)
		for range 2 {
			f, _ := m.finder()
			_, err := f.postgres(t.Context(), 0)
			if !errors.Is(err, ErrMissing) {
				t.Fatalf("got %v", err)
			}
			for _, want := range []string{want, "127.0.0.1:0", "apt-get install postgresql`, or set DATABASE_URL"} {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		}
		if n := m.calls("apt-get update"); n != 1 || m.cached() != "" {
			t.Errorf("%s: %d updates, the cache holds %s", file, n, m.cached())
		}
	}
}

func TestRestOfAKilledFetchIsRemoved(t *testing.T) {
	t.Parallel()
	m := newAptMachine(t, "x_Packages")
	f, _ := m.finder()
	for _, dir := range []string{"fetch-1/root/usr/lib/postgresql/15/bin", "postgres-15/usr/lib"} { // the second is unusable
		if err := os.MkdirAll(filepath.Join(f.cache, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.postgres(t.Context(), 0); err != nil || m.cached() != "postgres-15" {
		t.Errorf("got %v, the cache holds %s", err, m.cached())
	}
}

// TestWithoutAFolderOfTheUserNothingIsFetched: others could write into any other folder.
func TestWithoutAFolderOfTheUserNothingIsFetched(t *testing.T) {
	t.Parallel()
	m := newAptMachine(t, "x_Packages")
	f, _ := m.finder()
	f.cache = ""
	for _, find := range []func() (string, error){
		func() (string, error) { return f.postgres(t.Context(), 0) },
		func() (string, error) { return f.server(t.Context(), "redis-server") },
	} {
		if _, err := find(); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "HOME is not set") {
			t.Errorf("got %v", err)
		}
	}
}

func TestNothingIsFetchedWhereRefusedOrCancelled(t *testing.T) {
	t.Parallel()
	m := newAptMachine(t, "x_Packages")
	f, _ := m.finder()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.server(ctx, "redis-server"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	f.refused = true
	for _, find := range []func() (string, error){
		func() (string, error) { return f.postgres(t.Context(), 0) },
		func() (string, error) { return f.server(t.Context(), "pgbouncer") },
	} {
		_, err := find()
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), NoFetch) || !strings.Contains(err.Error(), "install it with `") {
			t.Errorf("got %v", err)
		}
	}
	if m.calls("apt-get download -q") > 0 || m.cached() != "" {
		t.Errorf("the cache holds %s", m.cached())
	}
}

// repository serves an archive like those that the library downloads: a zip that holds a tar of
// the binaries, here two scripts.
func repository(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "postgres.txz"))
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	archive := zip.NewWriter(&jar)
	file, err := archive.Create("postgres.txz")
	if err == nil {
		_, err = file.Write(raw)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, ".jar") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(jar.Len()))
		_, _ = w.Write(jar.Bytes())
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestFetchDownloadsFromMaven(t *testing.T) {
	t.Parallel()
	m := newAptMachine(t, "x_Packages")
	f, notices := m.finder()
	f.repository = repository(t)
	if got, err := f.postgres(t.Context(), 0); err != nil || got != filepath.Join(f.cache, "postgres-17", "bin") {
		t.Errorf("got %s, %v", got, err)
	}
	if len(*notices) != 1 || !strings.Contains((*notices)[0], " B, from "+f.repository+" into "+f.cache) || m.calls("apt") > 0 {
		t.Errorf("notices %q, %d calls of apt", *notices, m.calls("apt"))
	}
	if got := m.cached(); got != "postgres-17" {
		t.Errorf("the cache holds %s", got)
	}
}
