package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	// readyTimeout bounds a start, including recovery after a crash.
	readyTimeout = 2 * time.Minute
)

// startPostgres sets the Postgres part of the stack.
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
	if err != nil {
		return err
	}
	password, passwordFile, err := f.password()
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
	p, port, err := s.launch(ctx, f, postgresService(filepath.Join(bin, "postgres"), data, o))
	if err != nil {
		return fmt.Errorf("start postgres from %s: %w", bin, err)
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(database, password),
		Host: address(port), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	version, err := createDatabase(ctx, u)
	if err != nil {
		return err
	}
	s.DatabaseURL = u.String()
	s.Postgres = Server{Kind: Private, Version: version, Dir: data, PID: p.pid()}
	return nil
}

// postgresService describes a Postgres on a data folder.
func postgresService(server, data string, o Options) service {
	return service{
		name: "postgres", timeout: readyTimeout, taken: regexp.MustCompile("could not bind"), death: syscall.SIGINT,
		// Fast shutdown ends the sessions and writes a checkpoint; immediate shutdown leaves
		// that to the recovery at the next start.
		stop: []step{{syscall.SIGINT, 10 * time.Second}, {syscall.SIGQUIT, 6 * time.Second}},
		command: func(port int) *exec.Cmd {
			args := []string{"-D", data}
			all := settings(o, port)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				args = append(args, "-c", name+"="+all[name])
			}
			return exec.Command(server, args...)
		},
		ready: func(_ context.Context, _, pid int) bool {
			pm := postmaster(data)
			return pm.ready && pm.pid == pid
		},
	}
}

// clusterVersion returns the major version of a data folder, 0 if it does not exist.
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

// initCluster creates the data folder under another name and renames it, so that a killed
// start leaves no incomplete one.
func initCluster(ctx context.Context, f *folder, bin, data, passwordFile string) error {
	incomplete := data + ".new"
	if err := os.RemoveAll(incomplete); err != nil {
		return err
	}
	if _, err := f.mkdir(filepath.Base(incomplete)); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(bin, "initdb"), "--pgdata", incomplete, "--no-sync", "--encoding", "UTF8", "--locale", "C",
		"--username", database, "--auth", "scram-sha-256", "--pwfile", passwordFile)
	cmd.Dir, cmd.Env = f.path, environ(cmd.Path)
	detach(cmd, f.as, syscall.SIGKILL)
	if _, err := run(ctx, cmd); err != nil {
		return err
	}
	return os.Rename(incomplete, data)
}

// clearStale waits for the shutdown of a Postgres whose parent was killed, and removes the
// pid file of a dead one. Postgres removes it too, unless the process id now belongs to
// another program.
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

// isPostgres reports whether the process is a Postgres. It returns true if that is unknown.
func isPostgres(ctx context.Context, pid int) bool {
	id := strconv.Itoa(pid)
	name, err := os.ReadFile(filepath.Join("/proc", id, "comm"))
	if err != nil {
		name, err = exec.CommandContext(ctx, "ps", "-o", "comm=", "-p", id).Output()
	}
	return err != nil || strings.Contains(string(name), "postgres") || strings.Contains(string(name), "postmaster")
}

// settings returns the settings of a private server that differ from the defaults.
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
		"timezone":           "GMT", // known without files of zones
		"log_timezone":       "GMT",
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

// createDatabase creates the database if necessary and returns the server's version.
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
		return "", fmt.Errorf("query the new server: %w", err)
	}
	if !exists {
		if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{database}.Sanitize()); err != nil {
			return "", fmt.Errorf("create database %s: %w", database, err)
		}
	}
	version, _, _ = strings.Cut(version, " ")
	return version, nil
}
