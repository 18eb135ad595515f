package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sessionstore/compactor/cmd/internal/config"
)

// roleFlags holds the flags of the long-running commands.
type roleFlags struct {
	Migrate     bool          `help:"Apply pending migrations and create missing roles first, as migrate up does."`
	WaitTimeout time.Duration `default:"2m" help:"Maximum time to wait for Postgres at start; 0 tries once."`
}

func (f roleFlags) Validate() error {
	if f.WaitTimeout < 0 {
		return errors.New("--wait-timeout: want 0 or more")
	}
	return nil
}

// roles are the roles of a process.
type roles struct{ scheduler, worker, api bool }

type serveCmd struct{ roleFlags }

func (c *serveCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return c.run(ctx, e, cfg, roles{scheduler: true, worker: true, api: true})
}

type workerCmd struct{ roleFlags }

func (c *workerCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return c.run(ctx, e, cfg, roles{worker: true})
}

type schedulerCmd struct{ roleFlags }

func (c *schedulerCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return c.run(ctx, e, cfg, roles{scheduler: true})
}

func (f roleFlags) run(ctx context.Context, e *Env, cfg config.Config, parts roles) error {
	for _, c := range cfg.Fleet() { // before anything is logged
		if err := c.Require("database.url", "redis.url"); err != nil {
			return &exitError{exitUsage, err}
		}
	}
	logger := e.Err.Logger(cfg.Log.Level, cfg.Log.Format)
	// It is open until all roles have ended, so that it reports the start and the end.
	monitor, err := startMonitor(ctx, cfg, logger)
	if err != nil {
		return err
	}
	tracer, flush, err := startTraces(ctx, cfg, logger)
	if err != nil {
		return errors.Join(err, monitor.close()) //nolint:contextcheck // as below
	}
	err = f.runRoles(ctx, e, cfg, logger, monitor, tracer, parts)
	flush()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // stopped during the start, too
		err = nil
	}
	return errors.Join(err, monitor.close()) //nolint:contextcheck // ctx is done by then
}

// runRoles runs the roles, on each database of the fleet.
func (f roleFlags) runRoles(ctx context.Context, e *Env, cfg config.Config, logger *slog.Logger, monitor *monitor, tracer trace.TracerProvider, parts roles,
) (err error) {
	var apps []*App
	defer func() {
		for _, app := range apps {
			err = errors.Join(err, app.Close())
		}
	}()
	var running []Role
	for i, c := range cfg.Fleet() {
		logger := logger
		if c.Name() != "" {
			logger = logger.With("database", c.Name())
		}
		app, err := NewApp(ctx, c, logger, AppOptions{
			Wait: f.WaitTimeout, Migrate: f.Migrate, Roles: f.Migrate, Environ: e.Environ, Registry: e.Registry, Metrics: monitor.of(i),
			Tracer: tracer,
		})
		if err != nil {
			return err
		}
		apps = append(apps, app)
	}
	if parts.api {
		role, ok, err := apiRole(ctx, apps, !parts.worker, f.WaitTimeout)
		if err != nil {
			return err
		}
		if ok {
			running = append(running, role)
		}
	}
	for _, app := range apps {
		if parts.scheduler {
			role, err := app.SchedulerRole(apps...)
			if err != nil {
				return err
			}
			running = append(running, role)
		}
		if parts.worker {
			running = append(running, app.WorkerRole())
		}
	}
	if parts.worker {
		setCollector(e.Environ)
	}
	monitor.start(ctx, apps, e.scrub, parts)
	apps[0].checkRedis(ctx)
	for _, r := range running {
		logger.InfoContext(ctx, "role started", "role", r.Name)
	}
	err = RunRoles(ctx, running...)
	logger.InfoContext(context.WithoutCancel(ctx), "stopped", "ok", err == nil)
	return err
}

// checkRedis logs a warning if Redis cannot be reached. The roles wait for it.
func (a *App) checkRedis(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := pingRedis(ctx, a.client); err != nil && ctx.Err() == nil {
		a.Logger.LogAttrs(ctx, slog.LevelWarn, "redis is unavailable: runs wait in postgres", slog.String("error", err.Error()))
	}
}
