//go:build unix

// Command stackd provides servers to tests: one Postgres for all of them, and a redis-server
// or a PgBouncer per request. Package store/storetest, which may not import cmd, starts it and talks to it
// over a unix socket in the given folder:
//
//	server: hello
//	client: postgres | redis | pgbouncer, a space and the URL of its Postgres
//	server: {"notice": "…"}, before it fetches a server that is missing
//	server: {"url": "…"} or {"error": "…", "missing": true|false}
//
// A lease lasts as long as its connection, and so does not outlive a client that crashes.
// After an idle time without connections, stackd stops its servers, removes the folder and
// exits.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/dev/stack"
)

func main() {
	dir := flag.String("dir", "", "folder of the lock and the socket; removed at the end")
	idle := flag.Duration("idle", 5*time.Second, "exit after this time without a connection")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := serve(ctx, *dir, *idle, log); err != nil {
		log.Error("stackd ended", "error", err)
		stop()
		os.Exit(1)
	}
}

// reply is the answer to a request.
type reply struct {
	Notice  string `json:"notice,omitempty"`
	URL     string `json:"url,omitempty"`
	Error   string `json:"error,omitempty"`
	Missing bool   `json:"missing,omitempty"` // the server is not installed and could not be fetched
}

// server serves leases.
type server struct {
	log     *slog.Logger
	changed chan int // +1 and -1: connections
	leases  sync.WaitGroup

	once     sync.Once
	postgres *stack.Stack // started once
	err      error
}

// serve serves clients until none has been connected for the idle time or ctx ends.
func serve(ctx context.Context, dir string, idle time.Duration, log *slog.Logger) error {
	socket := filepath.Join(dir, "control.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &server{log: log, changed: make(chan int)}
	l.leases.Go(func() { l.accept(ctx, listener) })
	l.waitIdle(ctx, dir, idle)
	cancel()
	err = listener.Close()
	l.leases.Wait()
	if l.postgres != nil {
		err = errors.Join(err, l.postgres.Stop())
	}
	return err
}

// waitIdle waits for the idle time without a connection and removes the folder. Clients hold
// the lock of the folder while they connect, so none can connect while stackd holds it.
func (l *server) waitIdle(ctx context.Context, dir string, idle time.Duration) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for connected := 0; ; {
		select {
		case <-ctx.Done():
			_ = os.RemoveAll(dir)
			return
		case n := <-l.changed:
			connected += n
			timer.Reset(idle)
		case <-timer.C:
			if connected == 0 && removeUnused(dir) {
				return
			}
			timer.Reset(idle)
		}
	}
}

// removeUnused removes the folder unless a client holds its lock.
func removeUnused(dir string) bool {
	lock, err := os.Open(filepath.Join(dir, "lock"))
	if err == nil {
		defer lock.Close()
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false
	}
	_ = os.RemoveAll(dir)
	return true
}

func (l *server) accept(ctx context.Context, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed by serve
		}
		l.leases.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer conn.Close()
			l.count(ctx, +1)
			defer l.count(ctx, -1)
			if err := l.lease(ctx, conn); err != nil {
				l.log.Warn("lease failed", "error", err)
			}
		})
	}
}

func (l *server) count(ctx context.Context, n int) {
	select {
	case l.changed <- n:
	case <-ctx.Done():
	}
}

// lease serves one client until it disconnects.
func (l *server) lease(ctx context.Context, conn net.Conn) error {
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	request, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	out := json.NewEncoder(conn)
	url, stop, err := l.start(ctx, strings.TrimSpace(request), func(line string) { _ = out.Encode(reply{Notice: line}) })
	if err != nil {
		return out.Encode(reply{Error: err.Error(), Missing: errors.Is(err, stack.ErrMissing)})
	}
	if err = out.Encode(reply{URL: url}); err == nil {
		_, _ = in.ReadByte() // until the client disconnects
	}
	return errors.Join(err, stop())
}

// start returns the URL of the requested server and a function that ends its use. All requests
// share one Postgres.
func (l *server) start(ctx context.Context, request string, notice func(string)) (url string, stop func() error, err error) {
	name, argument, _ := strings.Cut(request, " ")
	var s *stack.Stack
	switch name {
	case "postgres":
		l.once.Do(func() { l.postgres, l.err = stack.StartPostgres(ctx, stack.Options{Notice: notice}) })
		if l.err != nil {
			return "", nil, l.err
		}
		return l.postgres.DatabaseURL, func() error { return nil }, nil
	case "redis":
		s, err = stack.StartRedis(ctx, stack.Options{RealRedis: true, Notice: notice})
	case "pgbouncer":
		s, err = stack.StartPgBouncer(ctx, stack.Options{DatabaseURL: argument, Notice: notice})
	default:
		err = fmt.Errorf("unknown request %q", name)
	}
	if err != nil {
		return "", nil, err
	}
	return cmp.Or(s.DatabaseURL, s.RedisURL), s.Stop, nil
}
