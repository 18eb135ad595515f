package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"github.com/sessionstore/compactor/cmd/internal/term"
)

// NoFetch is the environment variable that, when set, forbids to fetch servers.
const NoFetch = "COMPACTOR_NO_FETCH"

const (
	mavenCentral  = "https://repo1.maven.org/maven2"
	scratchPrefix = "fetch-" // of temporary folders in the cache
	fetchTimeout  = 10 * time.Minute
)

// errUnended means that the library has not ended a download.
var errUnended = errors.New("no download")

// failed holds errors of fetches by path of the server in the cache: a process tries once.
var failed sync.Map

// findOrFetch returns the result of find, and fetches the server if that is ErrMissing. An
// error includes the command that installs the server.
func (f *finder) findOrFetch(ctx context.Context, name string, major int, find func() (string, error)) (string, error) {
	found, missing := find()
	if !errors.Is(missing, ErrMissing) {
		return found, missing
	}
	reason := fmt.Errorf("not fetched because of --no-fetch or %s", NoFetch)
	if !f.refused {
		key := filepath.Join(f.cache, fmt.Sprint(name, major))
		before, ok := failed.Load(key)
		if !ok {
			err := f.fetch(ctx, name, major, func() bool { found, missing = find(); return missing == nil })
			if err == nil {
				return found, missing
			}
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			before, _ = failed.LoadOrStore(key, err)
		}
		reason = fmt.Errorf("fetching it failed: %w", before.(error))
	}
	return "", fmt.Errorf("%w; %w; install it with `%s`%s", missing, reason, f.installCommand(name), otherServers[name])
}

// fetch unpacks a server into the cache, unless found reports that it is there. One process
// at a time fetches. The folder gets its name when it is complete.
func (f *finder) fetch(ctx context.Context, name string, major int, found func() bool) error {
	if f.cache == "" {
		return errors.New("there is no folder for it, as HOME is not set")
	}
	// Servers may run as another user than the one who fetches.
	if err := errors.Join(os.MkdirAll(f.cache, 0o755), os.Chmod(f.cache, 0o755)); err != nil { //nolint:gosec // see above
		return err
	}
	path := filepath.Join(f.cache, "lock")
	lock, err := lockFile(ctx, path, time.Second) // a process that is being started has the lock for a moment
	if errors.Is(err, errLocked) {
		f.notice("waiting for another process, which is fetching into " + f.cache)
		lock, err = lockFile(ctx, path, 2*fetchTimeout)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if found() {
		return nil
	}
	killed, _ := filepath.Glob(filepath.Join(f.cache, scratchPrefix+"*"))
	for _, dir := range killed {
		_ = os.RemoveAll(dir)
	}
	scratch, err := os.MkdirTemp(f.cache, scratchPrefix)
	if err != nil {
		return err
	}
	root, folder, mavenErr := filepath.Join(scratch, "root"), name, errors.ErrUnsupported
	defer func() {
		if !errors.Is(mavenErr, errUnended) { // else the library may be writing into it: the next fetch removes it
			_ = os.RemoveAll(scratch)
		}
	}()
	if name == "postgres" && (major == 0 || major == mavenMajor) {
		folder, mavenErr = f.fetchMaven(ctx, scratch, root)
	}
	if mavenErr != nil {
		if folder, err = f.fetchApt(ctx, scratch, root, name, major); err != nil {
			switch {
			case errors.Is(mavenErr, errors.ErrUnsupported):
				return err
			case errors.Is(err, errors.ErrUnsupported):
				return mavenErr
			}
			return fmt.Errorf("%w; %w", mavenErr, err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // as that of the cache
		return err
	}
	target := filepath.Join(f.cache, folder)
	if err := os.RemoveAll(target); err != nil { // unusable: found is false
		return err
	}
	if err := os.Rename(root, target); err != nil {
		return err
	}
	if !found() {
		return fmt.Errorf("%s holds no usable server", target)
	}
	return nil
}

// announce calls notice with a line about a fetch.
func (f *finder) announce(things string, size int64, source, folder string) {
	f.notice(fmt.Sprintf("fetching %s, %s, from %s into %s (nothing is installed; %s=1 forbids it)",
		things, term.Bytes(size), source, filepath.Join(f.cache, folder), NoFetch))
}

const (
	mavenVersion = embeddedpostgres.V17
	mavenMajor   = 17
)

// fetchMaven downloads Postgres into the folder root and returns its name in the cache. The library
// cannot download without starting a server, which listens on all interfaces at a fixed port and
// refuses root. It is therefore given a locale that initdb rejects, and success is judged by
// the binaries.
func (f *finder) fetchMaven(ctx context.Context, scratch, root string) (string, error) {
	size, err := mavenSize(ctx, f.repository)
	if err != nil {
		return "", err
	}
	folder := fmt.Sprintf("postgres-%d", mavenMajor)
	f.announce("Postgres "+string(mavenVersion), size, f.repository, folder)
	port, err := freePort(ctx)
	if err != nil {
		return "", err
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().BinaryRepositoryURL(f.repository).
		Version(mavenVersion).CachePath(scratch).BinariesPath(root).
		RuntimePath(filepath.Join(scratch, "run")).DataPath(filepath.Join(scratch, "data")).
		Port(uint32(port)).Locale("no such locale").Logger(io.Discard))
	ended := make(chan error, 1)
	go func() { ended <- server.Start() }()
	select {
	case err = <-ended:
	case <-ctx.Done(): // the library takes no context
		return "", fmt.Errorf("%w: %w", errUnended, context.Cause(ctx))
	case <-time.After(fetchTimeout):
		return "", fmt.Errorf("%w from %s within %s", errUnended, f.repository, fetchTimeout)
	}
	if err == nil {
		err = server.Stop()
	}
	catalog, _ := filepath.Glob(filepath.Join(root, "share", "*", "postgres.bki")) // read by initdb: absent where unpacking ended early
	if executable(filepath.Join(root, "bin", "postgres")) && executable(filepath.Join(root, "bin", "initdb")) && len(catalog) > 0 {
		return folder, nil
	}
	return "", fmt.Errorf("download from %s: %w", f.repository, errors.Join(err, errors.New("it holds no binaries")))
}

// mavenSize returns the size of the library's download. It fails within seconds if the
// repository cannot be reached or has none for this machine.
func mavenSize(ctx context.Context, repository string) (int64, error) {
	platform := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "arm64", "arm64v8", 1)
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		platform += "-alpine"
	}
	const artifact = "embedded-postgres-binaries-"
	url := fmt.Sprintf("%s/io/zonky/test/postgres/%s%s/%s/%s%s-%[4]s.jar", repository, artifact, platform, mavenVersion, artifact, platform)
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := (&http.Client{Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", repository, errors.Unwrap(err)) // without the long URL
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s for %s%s %s", repository, response.Status, artifact, platform, mavenVersion)
	}
	return response.ContentLength, nil
}

// cacheDir returns the folder of fetched servers: in the user's cache folder, or in the
// system's for root if the user of the servers may not enter root's. It is "" for a user
// without a folder of that kind: others may write into any other.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if as := unprivileged(); as != nil && (err != nil || blocker(dir, as) != "") {
		dir, err = "/var/cache", nil
	}
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "compactor")
}

// DefaultDir returns a folder of this name for data that are kept, beside the fetched servers; "" if there is no
// place for it.
func DefaultDir(name string) string {
	if dir := cacheDir(); dir != "" {
		return filepath.Join(dir, name)
	}
	return ""
}

// otherServers holds how to use a server that runs elsewhere.
var otherServers = map[string]string{"postgres": ", or set DATABASE_URL", "redis-server": ", or set REDIS_URL"}

// installers lists package managers with their packages of the servers.
var installers = []struct {
	tool, command              string
	postgres, redis, pgBouncer string
}{
	{"apt-get", "apt-get install", "postgresql", "redis-server", "pgbouncer"},
	{"dnf", "dnf install", "postgresql-server", "redis", "pgbouncer"},
	{"apk", "apk add", "postgresql", "redis", "pgbouncer"},
	{"brew", "brew install", "postgresql@17", "redis", "pgbouncer"},
}

// installCommand returns the command that installs a server on this machine.
func (f *finder) installCommand(name string) string {
	for _, i := range installers {
		if _, err := f.look(i.tool); err != nil {
			continue
		}
		command := i.command + " " + map[string]string{"postgres": i.postgres, "redis-server": i.redis, "pgbouncer": i.pgBouncer}[name]
		sudo := "sudo "
		if os.Geteuid() == 0 || i.tool == "brew" {
			sudo = ""
		}
		if i.tool == "apt-get" && !f.aptHasLists() {
			command = "apt-get update && " + sudo + command
		}
		return sudo + command
	}
	return "the package manager of this system"
}
