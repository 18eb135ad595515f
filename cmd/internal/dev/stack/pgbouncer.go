package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// pgBouncerPool is the number of server connections, fewer than most clients open.
const pgBouncerPool = 4

// StartPgBouncer starts a PgBouncer in transaction mode, otherwise with its default settings,
// before the server of Options.DatabaseURL. The DatabaseURL of the stack leads through it.
func StartPgBouncer(ctx context.Context, o Options) (*Stack, error) {
	return start(ctx, o, startPgBouncer)
}

func startPgBouncer(ctx context.Context, s *Stack, o Options) error {
	path, err := o.find.server(ctx, "pgbouncer")
	if err != nil {
		return err
	}
	server, err := pgx.ParseConfig(o.DatabaseURL)
	if err != nil {
		return errors.New("database url: not a valid Postgres DSN") // pgx's text may quote the password
	}
	f, err := s.open(ctx, o)
	if err != nil {
		return err
	}
	dir, err := f.mkdir("pgbouncer")
	if err != nil {
		return err
	}
	users, auth := filepath.Join(dir, "users.txt"), "scram-sha-256"
	if server.Password == "" {
		auth = "trust"
	}
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	if err := writeFor(f.as, users, quoted(server.User)+" "+quoted(server.Password)+"\n"); err != nil {
		return err
	}
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(server.User, server.Password),
		Path: "/" + server.Database, RawQuery: "sslmode=disable",
	}
	p, port, err := s.launch(ctx, f, service{
		name: "pgbouncer", timeout: 20 * time.Second, taken: regexp.MustCompile("[Aa]ddress already in use"),
		death: syscall.SIGTERM, stop: []step{{syscall.SIGTERM, 5 * time.Second}},
		command: func(port int) *exec.Cmd {
			ini := filepath.Join(dir, "pgbouncer.ini")
			// A failure shows when the process starts.
			_ = writeFor(f.as, ini, fmt.Sprintf(`[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = %s
auth_file = %s
pool_mode = transaction
default_pool_size = %d
`, server.Host, server.Port, port, auth, users, pgBouncerPool))
			return exec.Command(path, ini)
		},
		ready: func(ctx context.Context, port, _ int) bool {
			through.Host = address(port)
			conn, err := pgx.Connect(ctx, through.String())
			if err != nil {
				return false
			}
			return conn.Close(ctx) == nil
		},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	through.Host = address(port)
	s.DatabaseURL, s.Postgres = through.String(), Server{Kind: Private, Dir: dir, PID: p.pid()}
	return nil
}

// writeFor writes a file that only the servers' user may read.
func writeFor(as *identity, path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return give(path, as)
}
