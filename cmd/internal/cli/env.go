package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Env is what a command runs in: where it reads and writes, and its settings. It
// is for one command and one goroutine.
type Env struct {
	Stdin io.Reader
	// Out is for results, Err for everything else: progress, notes, logs, errors.
	Out, Err term.Output
	Environ  []string
	// Registry holds the strategies that policies and flags may name.
	Registry *plan.Registry
	// JSON asks for one JSON object on Out in place of text.
	JSON bool

	file    string            // --config
	flags   map[string]string // settings by key
	loaded  *config.Config
	secrets []string
	now     func() time.Time
}

// Config returns the configuration from all sources, loaded once. The error names
// everything that is wrong with it.
func (e *Env) Config() (config.Config, error) {
	if e.loaded != nil {
		return *e.loaded, nil
	}
	c, err := config.Load(config.LoadOptions{Path: e.file, Environ: e.Environ, Flags: e.flags, Registry: summarizing(e.Registry)})
	e.secrets = append(e.secrets, c.Database.URL.Reveal(), c.Redis.URL.Reveal())
	if err != nil {
		return c, &exitError{exitUsage, err}
	}
	for _, notice := range c.Notices() {
		e.note("%s", term.Clean(notice))
	}
	e.loaded = &c
	return c, nil
}

// Require is Config with those keys set.
func (e *Env) Require(keys ...string) (config.Config, error) {
	c, err := e.Config()
	if err == nil {
		if err = c.Require(keys...); err != nil {
			err = &exitError{exitUsage, err}
		}
	}
	return c, err
}

// Logger writes to Err as the configuration says.
func (e *Env) Logger() (*slog.Logger, error) {
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	return e.Err.Logger(c.Log.Level, c.Log.Format)
}

// openTimeout is how long a command that a person waits for tries to connect.
const openTimeout = 10 * time.Second

// Open connects to the store for a command that does one thing; the caller closes
// it. Roles wait for the database instead: see NewApp.
func (e *Env) Open(ctx context.Context) (*store.Store, config.Config, error) {
	c, err := e.Require("database.url")
	if err != nil {
		return nil, c, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer within %s", openTimeout))
	defer cancel()
	st, err := store.Open(ctx, StoreConfig(c))
	return st, c, err
}

// key names a session of the tenant in force.
func key(c config.Config, session string) store.Key {
	return store.Key{Tenant: c.Tenant, Session: session}
}

// by says who asked, for the ledger.
func (e *Env) by() string {
	for _, kv := range e.Environ {
		if user, ok := strings.CutPrefix(kv, "USER="); ok && user != "" {
			return "cli:" + user
		}
	}
	return "cli"
}

// say writes a line of the result.
func (e *Env) say(format string, args ...any) { fmt.Fprintf(e.Out.W, format+"\n", args...) }

// note writes a line that is no result.
func (e *Env) note(format string, args ...any) { fmt.Fprintf(e.Err.W, format+"\n", args...) }
