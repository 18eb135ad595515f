package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
)

// roleFlags holds the flags of the long-running commands.
type roleFlags struct {
	Migrate     bool          `help:"Apply pending migrations first."`
	WaitTimeout time.Duration `default:"2m" help:"Maximum time to wait for Postgres at start; 0 tries once."`
}

func (f roleFlags) Validate() error {
	if f.WaitTimeout < 0 {
		return errors.New("--wait-timeout: want 0 or more")
	}
	return nil
}

type serveCmd struct{ roleFlags }

func (*serveCmd) Help() string {
	return `The first SIGINT or SIGTERM stops the scheduler, waits for running jobs (worker.drain_timeout), and exits with 0; a second one exits at once. Another worker resumes runs that did not finish.

Examples:

    compactor serve --migrate
    compactor serve --log-format json --start 90000 --target 60000`
}

func (c *serveCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return c.run(ctx, e, cfg, true, true)
}

type workerCmd struct{ roleFlags }

func (*workerCmd) Help() string {
	return `Any number of workers may run, on any number of machines.

Examples:

    compactor worker --worker-concurrency 32`
}

func (c *workerCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return c.run(ctx, e, cfg, false, true)
}

type schedulerCmd struct{ roleFlags }

func (*schedulerCmd) Help() string {
	return `Of several schedulers one is active; the others are on standby.

Examples:

    compactor scheduler --policy-cron "30 2 * * *" --policy-timezone Europe/Berlin`
}

func (c *schedulerCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return c.run(ctx, e, cfg, true, false)
}

func (f roleFlags) run(ctx context.Context, e *Env, cfg config.Config, scheduler, worker bool) error {
	for _, c := range cfg.Fleet() { // before anything is logged
		if err := c.Require("database.url", "redis.url"); err != nil {
			return &exitError{exitUsage, err}
		}
	}
	logger := e.Err.Logger(cfg.Log.Level, cfg.Log.Format)
	// Open until all has ended, so that it tells of the start and of the end.
	monitor, err := startMonitor(ctx, cfg, logger)
	if err != nil {
		return err
	}
	err = f.runRoles(ctx, e, cfg, logger, monitor, scheduler, worker)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // stopped during the start, too
		err = nil
	}
	return errors.Join(err, monitor.close()) //nolint:contextcheck // ctx is done by then
}

// runRoles runs the roles, on each database of the fleet.
func (f roleFlags) runRoles(ctx context.Context, e *Env, cfg config.Config, logger *slog.Logger, monitor *monitor, scheduler, worker bool) (err error) {
	var apps []*App
	defer func() {
		for _, app := range apps {
			err = errors.Join(err, app.Close())
		}
	}()
	var roles []Role
	for i, c := range cfg.Fleet() {
		logger := logger
		if c.Name() != "" {
			logger = logger.With("database", c.Name())
		}
		app, err := NewApp(ctx, c, logger, AppOptions{
			Wait: f.WaitTimeout, Migrate: f.Migrate, Environ: e.Environ, Registry: e.Registry, Metrics: monitor.of(i),
		})
		if err != nil {
			return err
		}
		apps = append(apps, app)
	}
	for _, app := range apps {
		if scheduler {
			role, err := app.SchedulerRole(apps...)
			if err != nil {
				return err
			}
			roles = append(roles, role)
		}
		if worker {
			roles = append(roles, app.WorkerRole())
		}
	}
	if worker {
		setCollector(e.Environ)
	}
	monitor.start(ctx, apps, e.scrub)
	apps[0].checkRedis(ctx)
	for _, r := range roles {
		logger.InfoContext(ctx, "role started", "role", r.Name)
	}
	err = RunRoles(ctx, roles...)
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
