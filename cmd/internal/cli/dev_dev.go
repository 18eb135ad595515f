//go:build !nodev

package cli

import (
	"context"
	"errors"
	"syscall"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/stack"
)

type devCmd struct {
	DataDir string `placeholder:"DIR" help:"Keep the data in this folder instead of one in your cache folder."`
	NoFetch bool   `help:"Download no server that is not installed, as with COMPACTOR_NO_FETCH=1."`
}

func (*devCmd) Help() string {
	return `Starts a private Postgres, whose data stay in a folder, and a Redis in this process; creates or updates the tables; runs scheduler, worker and HTTP API with the dashboard until Ctrl-C. It prints the addresses, and the DATABASE_URL and REDIS_URL for commands and applications in another shell. The API listens to this machine alone, on api.listen or, where that is not set and its port is in use, on a free one.

The variables DATABASE_URL and REDIS_URL are not used. Summaries are written by the configured models; without models they are extracts.

Examples:

    compactor dev
    compactor dev --data-dir ./compactor-data`
}

// devAddresses is where the parts of compactor dev are.
type devAddresses struct {
	Dashboard   string `json:"dashboard"`
	API         string `json:"api"`
	DatabaseURL string `json:"database_url"`
	RedisURL    string `json:"redis_url"`
	DataDir     string `json:"data_dir"`
}

func (c *devCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	if len(cfg.Databases) > 0 {
		return wrong("several databases are configured: dev has one of its own, want a configuration without databases")
	}
	if cfg.API.Listen == config.APIOff {
		return wrong("api.listen is %s: there would be no dashboard", config.APIOff)
	}
	at := devAddresses{DataDir: c.DataDir}
	if at.DataDir == "" {
		if at.DataDir = stack.DefaultDir("dev"); at.DataDir == "" {
			return wrong("this user has no cache folder: want --data-dir")
		}
	}
	started := e.waiting("starting servers")
	defer started()
	st, err := stack.Start(ctx, stack.Options{
		DataDir: at.DataDir, Durable: true, NoFetch: c.NoFetch, Notice: func(line string) { e.note("%s", line) },
	})
	if err != nil {
		return err
	}
	defer func() { _ = st.Stop() }()
	if cfg.Database.URL != "" || cfg.Redis.URL != "" {
		e.note("dev has servers of its own: the configured database.url and redis.url are not used")
	}
	cfg.Database.URL, cfg.Redis.URL, cfg.API.Dashboard = config.Secret(st.DatabaseURL), config.Secret(st.RedisURL), true
	level := cfg.Log.Level
	if cfg.Origin("log.level").Source == config.FromDefault {
		level = "warn"
	}
	logger := e.Err.Logger(level, cfg.Log.Format)
	tracer, flush, err := startTraces(ctx, cfg, logger)
	if err != nil {
		return err
	}
	defer flush()
	app, err := NewApp(ctx, cfg, logger, AppOptions{
		Wait: openTimeout, Migrate: true, Roles: true, Environ: e.Environ, Registry: e.Registry, Tracer: tracer,
	})
	if err != nil {
		return err
	}
	defer app.Close()
	return app.keep(ctx, func(base string) {
		started()
		at.Dashboard, at.API, at.DatabaseURL, at.RedisURL = base+api.PagesPath, base+"/v1", st.DatabaseURL, st.RedisURL
		e.wrote(e.show(at, func() {
			e.say("dashboard  %s", e.Out.Bold(at.Dashboard))
			e.say("API        %s  (its operations: %s/docs)", at.API, base)
			e.say("export DATABASE_URL='%s'", at.DatabaseURL)
			e.say("export REDIS_URL='%s'", at.RedisURL)
			e.note("running until Ctrl-C; sessions stay in %s", at.DataDir)
		}))
	})
}

// keep runs scheduler, worker and API until ctx is done. ready gets the address of the API.
func (a *App) keep(ctx context.Context, ready func(base string)) error {
	schedules, err := a.SchedulerRole(a)
	if err != nil {
		return err
	}
	s, err := a.listen(ctx)
	if errors.Is(err, syscall.EADDRINUSE) && a.Config.Origin("api.listen").Source == config.FromDefault {
		a.Config.API.Listen = "127.0.0.1:0"
		s, err = a.listen(ctx)
	}
	if err != nil {
		return err
	}
	scheme := "http://"
	if a.Config.API.TLSCert != "" {
		scheme = "https://"
	}
	ready(scheme + s.Address())
	return RunRoles(ctx, Role{"api", s.Run}, schedules, a.WorkerRole())
}
