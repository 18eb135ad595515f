package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// database is the name of the database and of its owner.
	database = "compactor"
	// readyTimeout bounds a start; recovery after a crash is the slow case.
	readyTimeout = 2 * time.Minute
	// portAttempts: between choosing a free port and listening on it another
	// process may take it.
	portAttempts = 5
)

// startPostgres fills in the Postgres part of the stack.
func startPostgres(ctx context.Context, s *Stack, o Options) error {
	if o.DatabaseURL != "" {
		s.DatabaseURL, s.Postgres = o.DatabaseURL, Server{Kind: Given}
		return nil
	}
	f, err := s.open(ctx, o)
	if err != nil {
		return err
	}
	data := f.join("postgres")
	major, err := clusterVersion(data)
	if err != nil {
		return err
	}
	bin, err := o.find.postgres(ctx, major)
	if errors.Is(err, ErrNoPostgres) && o.Install {
		if err = install(ctx, o.Logger); err == nil {
			bin, err = o.find.postgres(ctx, major)
		}
	}
	if err != nil {
		return err
	}
	password, passwordFile, err := f.secret("password")
	if err != nil {
		return fmt.Errorf("keep password: %w", err)
	}
	if major == 0 {
		if err := initCluster(ctx, f, bin, data, passwordFile); err != nil {
			return fmt.Errorf("initdb: %w", err)
		}
	}
	if err := clearStale(ctx, data); err != nil {
		return err
	}
	p, port, err := launch(ctx, f, bin, data, o)
	if err != nil {
		return fmt.Errorf("start postgres from %s: %w", bin.dir, err)
	}
	s.stops = append(s.stops, func() error {
		// Fast shutdown ends the sessions and writes a checkpoint; immediate
		// shutdown leaves that to the recovery at the next start.
		return p.stop(step{syscall.SIGINT, 10 * time.Second}, step{syscall.SIGQUIT, 6 * time.Second})
	})
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(database, password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	version, err := createDatabase(ctx, u)
	if err != nil {
		return err
	}
	s.DatabaseURL = u.String()
	s.Postgres = Server{Kind: Private, Version: version, Dir: data, Bin: bin.dir, PID: p.pid()}
	return nil
}

// clusterVersion returns the major version that made the data folder, zero
// where there is none yet.
func clusterVersion(data string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, fmt.Errorf("%s holds no Postgres data folder: %w", data, err)
	}
	return v, nil
}

// initCluster makes the data folder beside its place and moves it there, so
// that a start that was killed leaves none that is half made.
func initCluster(ctx context.Context, f *folder, bin binaries, data, passwordFile string) error {
	half := data + ".new"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	if _, err := f.mkdir(filepath.Base(half)); err != nil {
		return err
	}
	cmd := exec.Command(bin.path("initdb"), "--pgdata", half, "--no-sync", "--encoding", "UTF8", "--locale", "C",
		"--username", database, "--auth", "scram-sha-256", "--pwfile", passwordFile)
	cmd.Dir, cmd.Env = f.path, environ()
	detach(cmd, f.as, syscall.SIGKILL)
	if err := run(ctx, cmd); err != nil {
		return err
	}
	return os.Rename(half, data)
}

// clearStale waits for the Postgres of a parent that was killed to finish its
// shutdown, and removes the pid file of one that is dead. Postgres does so too,
// but not where the process id belongs to another program by now.
func clearStale(ctx context.Context, data string) error {
	deadline := time.Now().Add(15 * time.Second)
	for {
		pid := postmaster(data).pid
		if pid == 0 {
			return nil
		}
		if !alive(pid) || !isPostgres(ctx, pid) {
			return os.Remove(filepath.Join(data, "postmaster.pid"))
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is in use by a Postgres of an earlier start, process %d: stop it first", data, pid)
		}
		if err := backoff.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// isPostgres reports whether the process is a Postgres; in doubt it is.
func isPostgres(ctx context.Context, pid int) bool {
	id := strconv.Itoa(pid)
	name, err := os.ReadFile(filepath.Join("/proc", id, "comm"))
	if err != nil {
		name, err = exec.CommandContext(ctx, "ps", "-o", "comm=", "-p", id).Output()
	}
	return err != nil || strings.Contains(string(name), "postgres") || strings.Contains(string(name), "postmaster")
}

// settings of a private server; everything not named keeps its default.
func settings(o Options, port int) map[string]string {
	onOff := "off"
	if o.Durable {
		onOff = "on"
	}
	all := map[string]string{
		"shared_buffers":     "256MB",
		"max_connections":    "200",
		"max_wal_size":       "2GB",
		"checkpoint_timeout": "15min",
		"jit":                "off",
		"timezone":           "UTC",
		"log_timezone":       "UTC",
		"fsync":              onOff,
		"synchronous_commit": onOff,
		"full_page_writes":   onOff,
	}
	maps.Copy(all, o.Settings)
	all["listen_addresses"] = "127.0.0.1"
	all["port"] = strconv.Itoa(port)
	all["unix_socket_directories"] = ""
	return all
}

// launch starts the server and returns when it accepts connections.
func launch(ctx context.Context, f *folder, bin binaries, data string, o Options) (*process, int, error) {
	var err error
	for range portAttempts {
		var port int
		if port, err = freePort(ctx); err != nil {
			return nil, 0, err
		}
		var p *process
		if p, err = launchAt(ctx, f, bin, data, port, o); err == nil {
			return p, port, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, 0, err
}

var errPortTaken = errors.New("port taken by another process")

func launchAt(ctx context.Context, f *folder, bin binaries, data string, port int, o Options) (*process, error) {
	log, err := os.OpenFile(f.join("postgres.log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	args := []string{"-D", data}
	all := settings(o, port)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "-c", name+"="+all[name])
	}
	cmd := exec.Command(bin.path("postgres"), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = f.path, environ(), log, log
	detach(cmd, f.as, syscall.SIGINT)
	p, err := startProcess(cmd)
	if err != nil {
		return nil, err
	}
	err = awaitReady(ctx, p, data)
	if err == nil {
		return p, nil
	}
	err = errors.Join(err, p.stop(step{syscall.SIGQUIT, 6 * time.Second}))
	said, rerr := io.ReadAll(io.NewSectionReader(log, from, 1<<20))
	switch {
	case ctx.Err() != nil || rerr != nil:
		return nil, err
	case strings.Contains(string(said), "could not bind"):
		return nil, errPortTaken
	default:
		return nil, fmt.Errorf("%w: %s", err, lastLines(string(said), 8))
	}
}

// awaitReady polls the server's own word in its pid file. A connection could
// reach somebody else's server on the same port.
func awaitReady(ctx context.Context, p *process, data string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	for {
		if pm := postmaster(data); pm.ready && pm.pid == p.pid() {
			return nil
		}
		if p.ended() {
			return fmt.Errorf("it ended at once (%w)", p.err)
		}
		if err := backoff.Wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// createDatabase makes the database on first use and returns the version of
// the server.
func createDatabase(ctx context.Context, u url.URL) (string, error) {
	u.Path = "/postgres"
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		return "", fmt.Errorf("connect to the new server: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var version string
	var exists bool
	const query = `select current_setting('server_version'), exists (select from pg_database where datname = $1)`
	if err := conn.QueryRow(ctx, query, database).Scan(&version, &exists); err != nil {
		return "", fmt.Errorf("ask the new server: %w", err)
	}
	if !exists {
		if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{database}.Sanitize()); err != nil {
			return "", fmt.Errorf("create database %s: %w", database, err)
		}
	}
	version, _, _ = strings.Cut(version, " ")
	return version, nil
}

// freePort returns a port of the loopback interface that was free a moment ago.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
