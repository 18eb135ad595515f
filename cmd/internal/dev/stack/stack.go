// Package stack is the embedded stack: a private Postgres from the binaries of
// this machine and a Redis, for the demo, the benches and the tests.
//
// It knows how to find, install, start and stop servers. It must not know what
// is stored in them: it runs no migration and reads no table.
package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// Options say what to start. The zero value starts a fast, forgetful Postgres
// in a temporary folder and an in-process Redis.
type Options struct {
	// DatabaseURL and RedisURL name running servers. One that is given is used
	// as it is: nothing is started in its place, checked or stopped.
	DatabaseURL string
	RedisURL    string
	// DataDir keeps the data between starts; one process at a time may use it.
	// Empty: a temporary folder, removed by Stop.
	DataDir string
	// Install fetches Postgres binaries where the machine has none.
	Install bool
	// RealRedis prefers a private redis-server process over the in-process one,
	// where the binary is found.
	RealRedis bool
	// Durable makes a commit survive a crash of the machine. Without it Postgres
	// does not wait for the disk.
	Durable bool
	// Settings are further Postgres settings; they win over the built-in ones.
	Settings map[string]string
	// Logger may be nil.
	Logger *slog.Logger

	find *finder // tests look elsewhere
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.find == nil {
		o.find = newFinder()
	}
	return o
}

// Kind says where a server comes from.
type Kind string

// The kinds of a server.
const (
	// Given servers run already; the stack leaves them alone.
	Given Kind = "given"
	// Private servers are processes of this stack.
	Private Kind = "private"
	// InProcess servers live in this process.
	InProcess Kind = "in-process"
)

// Server describes what stands behind a URL. Only Kind is set for a given one.
type Server struct {
	Kind    Kind
	Version string
	// Dir holds the data and the log, Bin the binaries; PID is the process.
	Dir string
	Bin string
	PID int
}

// Stack is a running stack. Its fields do not change after Start.
type Stack struct {
	DatabaseURL string
	RedisURL    string
	Postgres    Server
	Redis       Server

	folder *folder
	stops  []func() error
	once   sync.Once
	err    error
}

// Start starts what the options do not name and returns when all of it answers.
// The servers are children in process groups of their own: a Ctrl-C in the
// terminal does not reach them, Stop does. On Linux they end with the process
// that started them, however it ends. An error or a cancelled context leaves
// nothing behind.
func Start(ctx context.Context, o Options) (*Stack, error) {
	return start(ctx, o, startPostgres, startRedis)
}

// StartPostgres is Start without Redis.
func StartPostgres(ctx context.Context, o Options) (*Stack, error) {
	return start(ctx, o, startPostgres)
}

// StartRedis is Start without Postgres.
func StartRedis(ctx context.Context, o Options) (*Stack, error) {
	return start(ctx, o, startRedis)
}

func start(ctx context.Context, o Options, parts ...func(context.Context, *Stack, Options) error) (*Stack, error) {
	o = o.withDefaults()
	s := &Stack{}
	for _, part := range parts {
		err := part(ctx, s, o)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	return s, nil
}

// Stop stops the servers that Start started, in reverse order, and removes the
// temporary folder. It waits for them: seconds at most. It may be called more
// than once and from several goroutines; all get the same answer.
func (s *Stack) Stop() error {
	s.once.Do(func() {
		var errs []error
		for _, stop := range slices.Backward(s.stops) {
			errs = append(errs, stop())
		}
		if s.folder != nil {
			errs = append(errs, s.folder.close())
		}
		s.err = errors.Join(errs...)
	})
	return s.err
}

// open returns the folder of the stack, made on first use.
func (s *Stack) open(ctx context.Context, o Options) (*folder, error) {
	if s.folder != nil {
		return s.folder, nil
	}
	f, err := openFolder(ctx, o.DataDir, unprivileged())
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	s.folder = f
	return f, nil
}

// newPassword returns a random password that needs no quoting anywhere.
func newPassword() string { return rand.Text() }
