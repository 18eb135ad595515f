// Package stack finds or fetches, starts and stops a private Postgres and a Redis for the
// demo, the benchmarks and the tests. Servers run from the binaries of this machine or of a cache. It runs no
// migration and reads no table.
package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Options selects the servers to start. The zero value starts a Postgres without fsync in a
// temporary folder and an in-process Redis.
type Options struct {
	// DatabaseURL and RedisURL name running servers, which are not managed.
	DatabaseURL string
	RedisURL    string
	// DataDir keeps the data between starts; one process at a time may use it. If empty,
	// the data is in a temporary folder, which Stop removes.
	DataDir string
	// NoFetch forbids to fetch servers that are not installed, as does the environment
	// variable NoFetch. They are unpacked into a cache folder of the user.
	NoFetch bool
	// Notice is called before a fetch with a line about source, size and folder; may be nil.
	Notice func(line string)
	// RealRedis starts a redis-server instead of the in-process server.
	RealRedis bool
	// Durable enables fsync in Postgres.
	Durable bool
	// Settings holds additional Postgres settings, which override the built-in ones.
	Settings map[string]string

	find *finder // tests search other folders
}

func (o Options) withDefaults() Options {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.find == nil {
		o.find = newFinder(o.NoFetch, o.Notice)
	}
	return o
}

// Kind is the origin of a server.
type Kind string

// The kinds of a server.
const (
	Given     Kind = "given"      // running already and not managed by the stack
	Private   Kind = "private"    // a child process
	InProcess Kind = "in-process" // part of this process
)

// Server describes a server. For a given one only Kind is set.
type Server struct {
	Kind    Kind
	Version string
	Dir     string // holds the data
	PID     int
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

// Start starts the servers that are not given and returns when they accept connections.
// They run in process groups of their own, so that a Ctrl-C in the terminal does not reach
// them. On Linux they end with this process, however it ends. After an error or the end of
// ctx, no process and no temporary folder is left.
func Start(ctx context.Context, o Options) (*Stack, error) {
	return start(ctx, o, startPostgres, startRedis)
}

// StartPostgres starts only Postgres.
func StartPostgres(ctx context.Context, o Options) (*Stack, error) {
	return start(ctx, o, startPostgres)
}

// StartRedis starts only Redis.
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

// Stop stops the started servers in reverse order, waits for their end, for seconds at
// most, and removes the temporary folder. It may be called repeatedly and concurrently; all
// calls return the same error.
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

// open returns the folder of the stack, which it creates on first use.
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
