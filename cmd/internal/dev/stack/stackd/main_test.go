//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/sessionstore/compactor/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is one connection to stackd.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, dir string) *client {
	t.Helper()
	var conn net.Conn
	storetest.Await(t, "stackd listens", func() bool {
		var err error
		conn, err = net.Dial("unix", filepath.Join(dir, "control.sock"))
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	c := &client{Conn: conn, in: bufio.NewReader(conn)}
	if hello, err := c.in.ReadString('\n'); err != nil || hello != "hello\n" {
		t.Fatalf("greeted with %q, %v", hello, err)
	}
	return c
}

// ask returns the reply to a request, after notices of a fetch.
func (c *client) ask(t *testing.T, want string) reply {
	t.Helper()
	fmt.Fprintln(c, want)
	for replies := json.NewDecoder(c.in); ; {
		var r reply
		if err := replies.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Notice == "" {
			return r
		}
	}
}

func start(t *testing.T, dir string, idle time.Duration) <-chan error {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(t.Context(), dir, idle, slog.New(slog.DiscardHandler)) }()
	return ended
}

func await(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-storetest.Context(t).Done():
		t.Fatal("stackd does not end")
	}
}

func TestLendsOnePostgresUntilTheLastClientGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ended := start(t, dir, 200*time.Millisecond)
	first, second := dial(t, dir), dial(t, dir)
	a, b := first.ask(t, "postgres"), second.ask(t, "postgres")
	if a.Missing && os.Getenv("REQUIRE_DB") != "1" {
		t.Skip(a.Error)
	}
	if a.URL == "" || a != b {
		t.Fatalf("got %+v and %+v", a, b)
	}
	first.Close()
	conn, err := pgx.Connect(t.Context(), b.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close(context.Background())
	second.Close()
	await(t, ended)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := pgx.Connect(t.Context(), b.URL); err == nil {
		t.Error("postgres still runs")
	}
}

func TestRedisEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ended := start(t, dir, 100*time.Millisecond)
	a, b := dial(t, dir), dial(t, dir)
	ra, rb := a.ask(t, "redis"), b.ask(t, "redis")
	if ra.Missing && os.Getenv("REQUIRE_DB") != "1" {
		t.Skip(ra.Error)
	}
	if ra.URL == "" || ra.URL == rb.URL {
		t.Fatalf("got %+v and %+v", ra, rb)
	}
	a.Close()
	b.Close()
	await(t, ended)
}

func TestClientOnTheWayInKeepsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if removeUnused(dir) {
		t.Error("ended under the lock of a client")
	}
	lock.Close()
	if !removeUnused(dir) {
		t.Error("did not end without a client")
	}
}

func TestUnknownRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ended := start(t, dir, 100*time.Millisecond)
	c := dial(t, dir)
	if r := c.ask(t, "oracle"); r.Error == "" || r.Missing {
		t.Errorf("got %+v", r)
	}
	c.Close()
	await(t, ended)
}
