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
	logger := e.Err.Logger(cfg.Log.Level, cfg.Log.Format)
	// Open until all has ended, so that it tells of the start and of the end.
	monitor, err := startMonitor(ctx, cfg, logger)
	if err != nil {
		return err
	}
	err = f.runRoles(ctx, e, cfg, logger, monitor, scheduler, worker)
	return errors.Join(err, monitor.close()) //nolint:contextcheck // ctx is done by then
}

func (f roleFlags) runRoles(ctx context.Context, e *Env, cfg config.Config, logger *slog.Logger, monitor *monitor, scheduler, worker bool) error {
	app, err := NewApp(ctx, cfg, logger, AppOptions{
		Wait: f.WaitTimeout, Migrate: f.Migrate, Environ: e.Environ, Registry: e.Registry, Metrics: monitor.metrics,
	})
	if err != nil {
		return err
	}
	monitor.start(ctx, app, e.scrub)
	var roles []Role
	if scheduler {
		role, err := app.SchedulerRole()
		if err != nil {
			return errors.Join(err, app.Close())
		}
		roles = append(roles, role)
	}
	if worker {
		setCollector(e.Environ)
		roles = append(roles, app.WorkerRole())
	}
	app.checkRedis(ctx)
	for _, r := range roles {
		logger.InfoContext(ctx, "role started", "role", r.Name)
	}
	err = RunRoles(ctx, roles...)
	err = errors.Join(err, app.Close())
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
