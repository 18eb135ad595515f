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

// install gets Postgres binaries: from apt on Debian as root, else by download
// into the cache folder, where the finder looks too.
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

// installApt installs Debian's package, without the cluster that it would make
// and start by default.
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
		_ = os.Remove(dir) // only where we made it: it fails on one that holds something
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

// download fetches binaries into the cache folder. The library cannot fetch
// without starting a server, which ours does better (it would listen on every
// interface of a fixed port, and refuses root): so it is given a locale that
// initdb refuses, and what counts is whether the binaries are there.
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
		// The library takes no context. What it fetches appears by a rename, so
		// leaving it to the end of the process leaves nothing half done.
		return context.Cause(ctx)
	}
	if err == nil {
		err = server.Stop()
	}
	if executable(filepath.Join(target, "bin", "postgres")) && executable(filepath.Join(target, "bin", "initdb")) {
		return nil
	}
	return fmt.Errorf("install postgres: %w", errors.Join(err, errors.New("the download brought no binaries")))
}

// cacheDir returns where downloaded binaries live: the user's cache folder, or the
// system's for root, whose own no other user may enter.
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
