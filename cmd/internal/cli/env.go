package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Env holds the streams and settings of one command. It is not safe for concurrent use.
type Env struct {
	Stdin io.Reader
	// Out receives results; Err receives progress, notes, logs and errors.
	Out, Err term.Output
	Environ  []string
	// Registry holds the strategies that policies and flags may name.
	Registry *plan.Registry
	// JSON selects one JSON object on Out instead of text.
	JSON bool

	file     string // --config
	database string // --database
	// The settings of the command line, and the names of their flags, by key.
	command          string // as kong names it
	flags, flagNames map[string]string

	loaded  *config.Config
	store   *store.Store // that Open has connected
	secrets []string
	unknown []string // models that noteUnknown has noted
	now     func() time.Time
	asks    bool // Stdin is a terminal, so a person can be asked

	unwritten error // the first of writes to Out
}

// Config loads the configuration on the first call. The error lists all invalid settings.
func (e *Env) Config() (config.Config, error) {
	if e.loaded != nil {
		return *e.loaded, nil
	}
	c, err := config.Load(config.LoadOptions{
		Path: e.file, Environ: e.Environ, Flags: e.flags, FlagNames: e.flagNames,
		Registry: summarizing(e.Registry),
	})
	e.secrets = append(e.secrets, c.Database.URL.Reveal(), c.Redis.URL.Reveal())
	for _, d := range c.Databases {
		e.secrets = append(e.secrets, d.URL.Reveal())
	}
	if err == nil && e.database != "" {
		c, err = c.On(e.database)
	}
	if err != nil {
		return c, &exitError{exitUsage, err}
	}
	e.loaded = &c
	return c, nil
}

// Require returns Config, or an error if one of the keys is not set.
func (e *Env) Require(keys ...string) (config.Config, error) {
	c, err := e.Config()
	if err == nil && len(c.Databases) > 0 && slices.Contains(keys, "database.url") {
		return c, wrong("several databases are configured: --database NAME says which one it is about [%s]", names(c.Fleet()))
	}
	if err == nil {
		if err = c.Require(keys...); err != nil {
			err = &exitError{exitUsage, err}
		}
	}
	return c, err
}

// openTimeout bounds connecting in interactive commands.
const openTimeout = 10 * time.Second

// Open connects to the store, which run closes. Roles wait for the database: see NewApp.
func (e *Env) Open(ctx context.Context) (*store.Store, error) {
	c, err := e.Require("database.url")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer within %s", openTimeout))
	defer cancel()
	sc := StoreConfig(c)
	sc.By = e.by()
	if e.store, err = store.Open(ctx, sc); err == nil {
		e.warnOfTenant(ctx)
	}
	return e.store, err
}

// creators are the commands for which a tenant that has no sessions yet is none of the kind.
var creators = []string{"import", "serve", "worker", "scheduler", "fork", "demo", "dev", "bench", "migrate", "config", "key"}

// warnOfTenant says that the tenant of the flag has no sessions, which may be meant for later.
func (e *Env) warnOfTenant(ctx context.Context) {
	tenant := e.flags["tenant"]
	if command, _, _ := strings.Cut(e.command, " "); tenant == "" || slices.Contains(creators, command) {
		return
	}
	// A login without the right to look gets no warning.
	if known, some, err := e.store.Operator.HasTenant(ctx, tenant, 8); err == nil && !known {
		e.note("warning: tenant %s has no sessions (%s)", term.Clean(tenant), someNames("tenants", some))
	}
}

// someNames returns "KIND in use: a, b", and "no KIND in use" without any.
func someNames(kind string, names []string) string {
	if len(names) == 0 {
		return "no " + kind + " in use"
	}
	return term.Clean(kind + " in use: " + strings.Join(names, ", "))
}

// key returns the key of a session of the configured tenant.
func key(c config.Config, session string) store.Key {
	return store.Key{Tenant: c.Tenant, Session: session}
}

// by returns the requester that runs record, from the variable USER.
func (e *Env) by() string {
	if user, ok := variables(e.Environ)("USER"); ok {
		return "cli:" + user
	}
	return "cli"
}

// since returns how long ago a time of the database's clock was, which may be ahead.
func (e *Env) since(t time.Time) time.Duration { return max(0, e.now().Sub(t)) }

// ask asks a question on Err and reports whether the answer is yes.
func (e *Env) ask(question string) (bool, error) {
	fmt.Fprintf(e.Err.W, "%s [y/N] ", question)
	line, err := bufio.NewReader(e.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}
