package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/metrics"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/attach"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/llm/redislimit"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
	"github.com/sessionstore/compactor/worker/jobs"
)

// App holds the store, the queue and the planner that concurrent roles share.
type App struct {
	Config   config.Config
	Logger   *slog.Logger
	Store    *store.Store
	Redis    asynq.RedisConnOpt
	Planner  *worker.Planner
	Enqueuer *jobs.Enqueuer

	installation jobs.Installation

	client  redis.UniversalClient // for rate limits of models
	metrics *metrics.Metrics      // may be nil
	tracer  trace.TracerProvider  // may be nil

	attached *attach.Drainer
}

// AppOptions configures NewApp.
type AppOptions struct {
	// Wait is how long to wait for Postgres; 0 tries once.
	Wait time.Duration
	// Migrate applies pending migrations; without it they are an error.
	Migrate bool
	// Roles creates the group roles of the schema that are missing, before Migrate.
	Roles bool
	// Registry holds the strategies that policies may name.
	Registry *plan.Registry
	// Environ holds the API keys of models, in the form of os.Environ.
	Environ []string
	// Metrics observe the store, the worker and the scheduler; nil for none.
	Metrics *metrics.Metrics
	// Tracer makes the spans of all roles; nil for none.
	Tracer trace.TracerProvider
}

// NewApp waits for Postgres, checks that the schema is up to date, and returns an App that
// the caller closes. It does not connect to Redis; the roles wait for it.
func NewApp(ctx context.Context, c config.Config, logger *slog.Logger, o AppOptions) (*App, error) {
	if err := c.Require("database.url", "redis.url"); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	queue, err := ParseRedis(c)
	if err != nil {
		return nil, err
	}
	sc := StoreConfig(c)
	if o.Metrics != nil {
		queue, sc.Observe = o.Metrics.Redis(queue), o.Metrics.Database
	}
	var st *store.Store
	var name jobs.Installation
	err = waitForPostgres(ctx, logger, o.Wait, func(attempt context.Context) (err error) {
		if st, err = store.Open(attempt, sc); err != nil {
			return err
		}
		if o.Migrate {
			err = migrate(ctx, c, logger, o.Roles)
			var cancel context.CancelFunc
			attempt, cancel = newAttempt(ctx) // that one may be over
			defer cancel()
		} else {
			err = checkMigrated(attempt, c)
		}
		if err == nil {
			name, err = installation(attempt, c, st)
		}
		if err != nil {
			st.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.Policy.ModelTable = c.Models.Version()
	app := &App{
		Config: c, Logger: logger, Store: st, Redis: queue, installation: name, metrics: o.Metrics, tracer: o.Tracer, attached: attach.NewDrainer(st),
		Planner:  newPlanner(c, o.Registry, logger),
		Enqueuer: jobs.NewEnqueuer(queue, name, c.Worker.JobTimeout), client: newRedis(queue),
	}
	app.Enqueuer.Tracer = o.Tracer
	// All workers share the rate limits and cooldowns of models.
	app.Planner.Model, err = openModels(c, o.Environ, logger, redislimit.New(app.client, logger), st.Worker.Cooldowns())
	if err != nil {
		return nil, errors.Join(err, app.Close())
	}
	return app, nil
}

// newPlanner returns a planner without models that writes extracts.
func newPlanner(c config.Config, registry *plan.Registry, logger *slog.Logger) *worker.Planner {
	return &worker.Planner{
		Policy: c.Policy, Registry: registry, Window: c.Models.Window, Logger: logger, BindsReasoning: tokens.BindsReasoning,
		Counter: func(model string) plan.Counter { return c.Models.ForModel(model) },
	}
}

// newRedis returns a client of a Redis, which connects on first use.
func newRedis(o asynq.RedisConnOpt) redis.UniversalClient {
	return o.MakeRedisClient().(redis.UniversalClient) // as all options of asynq do
}

// pingRedis returns an error if Redis does not answer, or is a node of a cluster and was
// classified as a single server. Managed servers may not report that.
func pingRedis(ctx context.Context, client redis.UniversalClient) error {
	if err := client.Ping(ctx).Err(); err != nil {
		return err
	}
	if single, ok := client.(*redis.Client); ok && strings.Contains(single.Info(ctx, "cluster").Val(), "cluster_enabled:1") {
		return errors.New("the server is a node of a cluster: write redis-cluster:// or rediss-cluster:// in redis.url")
	}
	return nil
}

// Close closes the connections. All roles must have ended.
func (a *App) Close() error {
	err := errors.Join(a.Enqueuer.Close(), a.client.Close())
	a.Store.Close()
	return err
}

// WorkerRole returns the role that runs a worker.
func (a *App) WorkerRole() Role {
	c := a.Config.Worker
	c.Logger, c.Tracer = a.Logger, a.tracer
	if a.metrics != nil {
		c.Observer = a.metrics
	}
	c.Refresh = a.attached.DrainKey
	w := worker.New(a.Store.Worker, a.Planner, c)
	return Role{"worker", func(ctx context.Context) error { return w.Run(ctx, a.Redis, a.installation) }}
}

// Scheduler returns a scheduler with the configured settings. fleet holds the databases whose
// use counts for limits.
func (a *App) Scheduler(fleet ...*App) (*scheduler.Scheduler, error) {
	c := a.Config.SchedulerConfig()
	c.Window, c.BindsReasoning, c.Logger = a.Config.Models.Window, tokens.BindsReasoning, a.Logger
	c.Truncation = func(ctx context.Context, k store.SessionKind) (store.Truncation, error) {
		return a.Planner.Truncation(ctx, a.Store.Worker, k)
	}
	c.Models, c.Attached = policies.ModelPrefixes(a.Config), a.attached.Drain
	for _, b := range fleet {
		if b.installation != a.installation {
			c.Siblings = append(c.Siblings, scheduler.Sibling{
				Installation: string(b.installation), Name: b.Config.Name(),
				Store: b.Store.Scheduler,
			})
		}
	}
	if a.metrics != nil {
		c.Observer = a.metrics
	}
	return scheduler.New(a.Store.Scheduler, a.Enqueuer, c)
}

// SchedulerRole returns the role that runs a scheduler of a fleet.
func (a *App) SchedulerRole(fleet ...*App) (Role, error) {
	s, err := a.Scheduler(fleet...)
	if err != nil {
		return Role{}, &exitError{exitUsage, err}
	}
	return Role{"scheduler", s.Run}, nil
}

// StoreConfig returns the store's part of the configuration.
func StoreConfig(c config.Config) store.Config {
	return store.Config{URL: c.Database.URL.Reveal(), Schema: c.Database.Schema, MaxConns: c.PoolSize()}
}

// ParseRedis parses redis.url.
func ParseRedis(c config.Config) (asynq.RedisConnOpt, error) {
	o, err := jobs.ParseRedis(c.Redis.URL.Reveal())
	if err != nil {
		return nil, wrong("redis.url: %s: %w", c.Redis.URL, err)
	}
	return o, nil
}

// installation returns the configured name of the installation in its schema, or the name
// that the store has for it.
func installation(ctx context.Context, c config.Config, st *store.Store) (jobs.Installation, error) {
	if c.Redis.Installation != "" {
		return jobs.Installation(c.Database.Schema + ":" + c.Redis.Installation), nil
	}
	name, err := st.Installation(ctx)
	return jobs.Installation(name), err
}

// migrate applies pending migrations. It is not to be tried again: the error has an exit code.
func migrate(ctx context.Context, c config.Config, logger *slog.Logger, roles bool) error {
	if roles {
		created, missing, err := migrations.CreateRoles(ctx, c.Database.URL.Reveal(), c.Database.Schema)
		if err != nil {
			return &exitError{exitInternal, err}
		}
		for _, role := range created {
			logger.InfoContext(ctx, "role created", "name", role)
		}
		if len(missing) > 0 {
			logger.WarnContext(ctx, "the login may not create roles; `compactor migrate up` prints the statements", "missing", len(missing))
		}
	}
	done, err := migrations.Up(ctx, c.Database.URL.Reveal(), c.Database.Schema)
	for _, m := range done {
		logger.InfoContext(ctx, "migration applied", "version", m.Version, "name", m.Name)
	}
	if err != nil {
		return &exitError{exitInternal, err}
	}
	return nil
}

// checkMigrated returns an error if migrations are pending.
func checkMigrated(ctx context.Context, c config.Config) error {
	all, pending, err := migrationStatus(ctx, c)
	if len(pending) > 0 {
		return &exitError{exitInternal, fmt.Errorf("schema %s: %d of %d migrations are not applied: run `compactor migrate up`, or serve with --migrate",
			c.Database.Schema, len(pending), len(all))}
	}
	return err
}

// migrationStatus returns all migrations and the names of those that are not applied.
func migrationStatus(ctx context.Context, c config.Config) (all []migrations.Migration, pending []string, err error) {
	all, err = migrations.Status(ctx, c.Database.URL.Reveal(), c.Database.Schema)
	for _, m := range all {
		if m.AppliedAt.IsZero() {
			pending = append(pending, m.Name)
		}
	}
	return all, pending, err
}

const (
	waitAttempt  = 5 * time.Second        // timeout of one attempt to connect
	waitPause    = 500 * time.Millisecond // between attempts
	waitLogEvery = 5 * time.Second
)

// waitForPostgres calls try until it succeeds, for at most limit, and logs that it is
// waiting. An invalid setting and a refused login are returned at once.
func waitForPostgres(ctx context.Context, logger *slog.Logger, limit time.Duration, try func(context.Context) error) error {
	start := time.Now()
	var logged time.Time
	for {
		attempt, cancel := newAttempt(ctx)
		err := try(attempt)
		cancel()
		var exit *exitError
		switch {
		case err == nil && !logged.IsZero():
			logger.InfoContext(ctx, "connected to postgres", "waited", time.Since(start).Round(time.Millisecond))
			return nil
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &exit), errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrLogin):
			return err
		case limit == 0:
			return err
		case time.Since(start) >= limit:
			return fmt.Errorf("gave up waiting for postgres after %s: %w", limit, err)
		}
		if time.Since(logged) >= waitLogEvery {
			logged = time.Now()
			logger.WarnContext(ctx, "waiting for postgres", "error", err.Error(),
				"waited", time.Since(start).Round(time.Millisecond), "limit", limit)
		}
		if err := backoff.Wait(ctx, min(waitPause, limit-time.Since(start))); err != nil {
			return err
		}
	}
}

// newAttempt returns the context of an attempt to connect.
func newAttempt(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, waitAttempt, fmt.Errorf("no answer within %s", waitAttempt))
}

// Role is a part of the system that runs until its context is cancelled.
type Role struct {
	Name string
	Run  func(ctx context.Context) error
}

// RunRoles runs roles until ctx is cancelled or one of them ends. It then stops them one
// after the other in the given order, so that callers list producers of work before its
// consumers. It returns the error of the role that ended, or of the first one that failed
// to stop.
func RunRoles(ctx context.Context, roles ...Role) error {
	ended := make(chan int, len(roles))
	errs := make([]error, len(roles))
	stops := make([]func(), len(roles))
	for i, r := range roles {
		// Detached from ctx, as this function stops the roles in order.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		go func() {
			defer close(done)
			errs[i] = r.Run(own)
			ended <- i
		}()
		stops[i] = func() {
			cancel()
			<-done
		}
	}
	order := make([]int, 0, len(roles)+1)
	select {
	case <-ctx.Done():
	case i := <-ended:
		if errs[i] == nil && ctx.Err() == nil {
			errs[i] = errors.New("ended unexpectedly")
		}
		order = append(order, i)
	}
	for i, stop := range stops {
		stop()
		order = append(order, i)
	}
	for _, i := range order {
		if errs[i] != nil && !errors.Is(errs[i], context.Canceled) {
			return fmt.Errorf("%s: %w", roles[i].Name, errs[i])
		}
	}
	return nil
}
