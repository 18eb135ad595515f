package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// install installs Postgres binaries: with apt-get on Debian as root, otherwise by download
// into the cache folder, which the finder searches too.
func install(ctx context.Context, log *slog.Logger) error {
	if runtime.GOOS == "linux" && os.Geteuid() == 0 && executable("/usr/bin/apt-get") {
		return installApt(ctx, log)
	}
	cache, err := cacheDir()
	if err != nil {
		return fmt.Errorf("install postgres: %w", err)
	}
	return download(ctx, log, cache, embeddedpostgres.DefaultConfig())
}

// installApt installs Debian's package without its default cluster.
func installApt(ctx context.Context, log *slog.Logger) error {
	log.Info("installing postgresql with apt-get")
	const dir = "/etc/postgresql-common/createcluster.d"
	dropIn := filepath.Join(dir, "compactor.conf")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the package would
		return err
	}
	if err := os.WriteFile(dropIn, []byte("create_main_cluster = false\n"), 0o644); err != nil { //nolint:gosec // read by the package, holds no secret
		return err
	}
	defer func() {
		_ = os.Remove(dropIn)
		_ = os.Remove(dir) // fails if the folder holds other files
	}()
	for _, args := range [][]string{
		{"update", "-q"},
		{"install", "-y", "-q", "--no-install-recommends", "postgresql"},
	} {
		cmd := exec.Command("/usr/bin/apt-get", args...)
		cmd.Env = append(environ(), "DEBIAN_FRONTEND=noninteractive")
		detach(cmd, nil, syscall.SIGTERM)
		if err := run(ctx, cmd); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	return nil
}

// download downloads binaries into the cache folder. The library cannot download without
// starting a server, which listens on all interfaces at a fixed port and refuses root. It is
// therefore given a locale that initdb rejects, and success is judged by the binaries.
func download(ctx context.Context, log *slog.Logger, cache string, config embeddedpostgres.Config) error {
	const version = embeddedpostgres.V17
	target := filepath.Join(cache, "postgres-17")
	log.Info("downloading postgres", "version", string(version), "into", target)
	// Servers may run as another user than the one who downloads.
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // see above
		return fmt.Errorf("install postgres: %w", err)
	}
	scratch, err := os.MkdirTemp(cache, "scratch-")
	if err != nil {
		return fmt.Errorf("install postgres: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	port, err := freePort(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("install postgres: %w", err)
	}
	server := embeddedpostgres.NewDatabase(config.Version(version).CachePath(cache).BinariesPath(target).
		RuntimePath(filepath.Join(scratch, "run")).DataPath(filepath.Join(scratch, "data")).
		Port(uint32(port)).Locale("no such locale").Logger(io.Discard))
	ended := make(chan error, 1)
	go func() { ended <- server.Start() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		// The library takes no context. It renames a complete download into place, so an
		// abandoned one leaves no partial files.
		return context.Cause(ctx)
	}
	if err == nil {
		err = server.Stop()
	}
	if executable(filepath.Join(target, "bin", "postgres")) && executable(filepath.Join(target, "bin", "initdb")) {
		return nil
	}
	return fmt.Errorf("install postgres: %w", errors.Join(err, errors.New("the download holds no binaries")))
}

// cacheDir returns the folder of downloaded binaries: in the user's cache folder, or for
// root in the system's, as other users may not enter root's.
func cacheDir() (string, error) {
	if unprivileged() != nil {
		return "/var/cache/compactor", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "compactor"), nil
}
