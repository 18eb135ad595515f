package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
)

// StormOptions holds the sizes of the storm, with the tags of their flags.
type StormOptions struct {
	Rate     int    `default:"1000" help:"Appends per second."`
	Sessions int    `default:"500" help:"Sessions that are appended to."`
	Seconds  int    `default:"20" help:"Duration of the storm without a sweep; with one it lasts as long as the sweep."`
	Sweep    int    `default:"50000" help:"Due sessions of the sweep, of which ten are of a small tenant."`
	Seed     uint64 `default:"1" help:"Seed of the order of sessions and of their sizes."`
}

// StormResult holds the measurements of Storm. The time of an event runs from the append
// that made a session due to the end of its run, by the clock of the database.
type StormResult struct {
	AppendsPerSecond float64 `json:"appends_per_second"`
	EventP50         float64 `json:"event_p50_ms"`
	EventP99         float64 `json:"event_p99_ms"`
	SweepEventP50    float64 `json:"event_p50_ms_in_sweep"`
	SweepEventP95    float64 `json:"event_p95_ms_in_sweep"`
	// RunTwice counts the sessions that were run again without a message in between.
	RunTwice int64 `json:"sessions_run_twice"`
	// IdleCPU is the share of one core that Postgres, Redis and this process use without
	// work; of servers on another machine Redis alone.
	IdleCPU float64 `json:"idle_cpu_share"`

	Events       int     `json:"events"`
	SweepEvents  int     `json:"events_in_sweep"`
	SweepSeconds float64 `json:"sweep_seconds"`
	SweepRuns    int64   `json:"sweep_runs"`
	// SmallSeconds is how long the sweep took to the end of the small tenant's last run.
	SmallSeconds float64 `json:"small_tenant_seconds"`
	Seed         uint64  `json:"seed"`
}

const (
	stormStart, stormTarget = 30_000, 20_000
	stormTokens             = 500 // of each message
	stormWriters            = 32
	stormTenant             = "storm"
	smallSessions           = 10
	idleTime                = 3 * time.Second
)

// Storm measures the latency of events while many sessions are appended to, without a sweep
// and during one.
func Storm(ctx context.Context, env Env, o StormOptions) (StormResult, error) {
	if o.Rate < 1 || o.Sessions < 1 || o.Seconds < 1 || o.Sweep <= smallSessions {
		return StormResult{}, fmt.Errorf("storm: want --rate, --sessions and --seconds of 1 or more, and --sweep of more than %d", smallSessions)
	}
	r := StormResult{Seed: o.Seed}
	s, closeAll, err := open(ctx, env, truncating(stormStart, stormTarget))
	if err != nil {
		return r, err
	}
	defer closeAll()
	if s.db, err = openDatabase(ctx, env.DatabaseURL, 4, s.store); err != nil {
		return r, err
	}
	defer s.db.pool.Close()
	if r.IdleCPU, err = s.idle(ctx); err != nil {
		return r, err
	}
	if err := s.fillStorm(ctx, o); err != nil {
		return r, err
	}
	err = s.work(ctx, func(ctx context.Context) error {
		if err := s.untilLeading(ctx); err != nil {
			return err
		}
		begin := time.Now()
		appends, err := s.write(ctx, o, func(ctx context.Context) error { return backoff.Wait(ctx, time.Duration(o.Seconds)*time.Second) })
		if err != nil {
			return err
		}
		r.AppendsPerSecond = float64(appends) / time.Since(begin).Seconds()
		calm, err := s.events(ctx, 0)
		if err != nil {
			return err
		}
		var sweep int64
		_, err = s.write(ctx, o, func(ctx context.Context) error {
			if _, err := s.db.pool.Exec(ctx, `DELETE FROM sweeps WHERE entry = 'storm'`); err != nil {
				return err
			}
			if sweep, err = s.store.Operator.StartSweep(ctx, "", 0, "bench", "bench"); err != nil {
				return err
			}
			return poll(ctx, 100*time.Millisecond, func() (bool, error) {
				row, err := s.store.Operator.Sweep(ctx, sweep)
				if row.Due != nil {
					env.Progress("sweep", int(*row.Due-row.Remaining-row.Waiting-row.Running), int(*row.Due))
				}
				return row.Settled(), err
			})
		})
		if err != nil {
			return err
		}
		swept, err := s.events(ctx, sweep)
		if err != nil {
			return err
		}
		if len(calm) == 0 || len(swept) == 0 {
			return errors.New("storm: no session became due: give it more --seconds, or a larger --sweep")
		}
		r.Events, r.EventP50, r.EventP99 = len(calm), quantile(calm, 0.50), quantile(calm, 0.99)
		r.SweepEvents, r.SweepEventP50, r.SweepEventP95 = len(swept), quantile(swept, 0.50), quantile(swept, 0.95)
		return s.sweepResult(ctx, sweep, &r)
	})
	return r, err
}

// quantile returns a quantile of sorted values.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// fillStorm imports the sessions of the sweep, and those of the storm with sizes from the
// target to the start. The small tenant's are the last.
func (s *system) fillStorm(ctx context.Context, o StormOptions) error {
	random := rand.New(rand.NewPCG(o.Seed, 0)) //nolint:gosec // reproducible
	limits := s.planner.Policy.Limits("", s.planner.Window)
	const sweepMessages = 20
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	var done atomic.Int64
	fill := func(k store.Key, messages int, each chat.Tokens) {
		g.Go(func() error {
			_, _, err := s.store.Import(gctx, k, "job", session(messages, 60, each, true))
			s.env.Progress("filling", int(done.Add(1)), o.Sweep+o.Sessions)
			return err
		})
	}
	for i := range o.Sessions {
		most := int(limits.Start) / stormTokens
		fill(stormKey(i), most-random.IntN((stormStart-stormTarget)/stormTokens), stormTokens)
	}
	for i := range o.Sweep {
		tenant := "fleet"
		if i >= o.Sweep-smallSessions {
			tenant = "small"
		}
		fill(store.Key{Tenant: tenant, Session: fmt.Sprintf("s%d", i)}, sweepMessages, limits.Start/sweepMessages+100)
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// The reconciler would not wait for the sweep, which takes the place of this one.
	const hold = `INSERT INTO sweeps (entry, tick, status) VALUES ('storm', now(), 'paused')`
	if _, err := s.db.pool.Exec(ctx, hold); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return s.db.vacuum(ctx)
}

func stormKey(i int) store.Key {
	return store.Key{Tenant: stormTenant, Session: fmt.Sprintf("s%d", i)}
}

// write appends messages at the rate of the storm, in seeded order, until during returns,
// and returns their number. A writer that is late appends the rest at once.
func (s *system) write(ctx context.Context, o StormOptions, during func(context.Context) error) (appends int64, err error) {
	writers, err := store.Open(ctx, store.Config{URL: s.env.DatabaseURL, Schema: Schema, MaxConns: stormWriters})
	if err != nil {
		return 0, err
	}
	defer writers.Close()
	g, gctx := errgroup.WithContext(ctx)
	writing, stop := context.WithCancel(gctx)
	defer stop()
	var next atomic.Int64
	begin := time.Now()
	for w := range stormWriters {
		random := rand.New(rand.NewPCG(o.Seed, uint64(w)+1)) //nolint:gosec // reproducible
		g.Go(func() error {
			for {
				due := begin.Add(time.Duration(next.Add(1)) * time.Second / time.Duration(o.Rate))
				if backoff.Wait(writing, time.Until(due)) != nil {
					return nil //nolint:nilerr // the storm is over
				}
				role := []chat.Role{chat.RoleUser, chat.RoleAssistant}[random.IntN(2)]
				m := store.NewMessage{
					Message: chat.Message{Role: role, Content: chat.TextContent("go on")}, Tokens: stormTokens, Counter: "bench",
				}
				if _, _, err := writers.Append(gctx, stormKey(random.IntN(o.Sessions)), "job", []store.NewMessage{m}); err != nil {
					return err
				}
				atomic.AddInt64(&appends, 1)
			}
		})
	}
	g.Go(func() error {
		defer stop()
		return during(gctx)
	})
	err = g.Wait()
	return appends, err
}

// events returns the sorted latencies, in milliseconds, of the storm's compactions since the
// start of a sweep, or of those so far. Messages are of equal size, so the one that made
// the session due follows from the size at the run.
func (s *system) events(ctx context.Context, sweep int64) ([]float64, error) {
	const query = `
		SELECT extract(epoch FROM r.ended_at - m.created_at)::float8 * 1000
		FROM runs r JOIN sessions s ON s.sid = r.sid
		JOIN message_log m ON m.sid = r.sid AND m.seq = r.snapshot_seq + 1 - ceil((r.tokens_before - $2::int)::numeric / $3::int)
		WHERE s.tenant = $1 AND r.status = 'applied' AND r.tokens_before > $2
			AND r.queued_at >= coalesce((SELECT started_at FROM sweeps WHERE id = $4), '-infinity') ORDER BY 1`
	rows, _ := s.db.pool.Query(ctx, query, stormTenant, stormStart, stormTokens, sweep) // rows hold the error
	out, err := pgx.CollectRows(rows, pgx.RowTo[float64])
	if err != nil {
		return nil, fmt.Errorf("latencies: %w", err)
	}
	return slices.Clip(out), nil
}

// sweepResult reads the result of the sweep from the ledger.
func (s *system) sweepResult(ctx context.Context, sweep int64, r *StormResult) error {
	const query = `
		SELECT count(*), extract(epoch FROM max(r.ended_at) - min(w.started_at))::float8,
			coalesce(extract(epoch FROM max(r.ended_at) FILTER (WHERE s.tenant = 'small') - min(w.started_at))::float8, 0),
			(SELECT count(*) FROM (SELECT FROM runs GROUP BY sid, snapshot_seq HAVING count(*) > 1) x)
		FROM sweeps w JOIN runs r ON r.sweep = w.id JOIN sessions s ON s.sid = r.sid WHERE w.id = $1`
	if err := s.db.pool.QueryRow(ctx, query, sweep).Scan(&r.SweepRuns, &r.SweepSeconds, &r.SmallSeconds, &r.RunTwice); err != nil {
		return fmt.Errorf("result of the sweep: %w", err)
	}
	return nil
}
