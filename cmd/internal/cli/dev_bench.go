//go:build !nodev

package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/bench"
	"github.com/sessionstore/compactor/cmd/internal/dev/stack"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/plan"
)

type benchCmd struct {
	Compact    benchCompactCmd    `cmd:"" help:"Compactions per second over the whole job path, against a baseline measured in the same run."`
	Memory     benchMemoryCmd     `cmd:"" help:"Peak memory of a worker process on one huge session."`
	Latency    benchLatencyCmd    `cmd:"" help:"Time from the commit of an append to its compaction, on an idle system."`
	Storm      benchStormCmd      `cmd:"" help:"Latency of events under 1,000 appends per second, without a sweep and during one."`
	Sweep      benchSweepCmd      `cmd:"" help:"Time of a sweep over a large fleet, through the queue or in the database alone."`
	Fleet      benchFleetCmd      `cmd:"" help:"What grows with a fleet and what does not: candidates, sweeps, a change of the policy, idling."`
	Strategies benchStrategiesCmd `cmd:"" help:"Time of each strategy on conversations of several lengths; needs no server."`
	Tokens     benchTokensCmd     `cmd:"" help:"Megabytes of text per second that the token counters count, beside tiktoken-go; needs no server."`
	Worker     benchWorkerCmd     `cmd:"" hidden:"" help:"Worker process of bench memory."`
}

func (*benchCmd) Help() string {
	return `All benchmarks except strategies and tokens run on real servers: those of DATABASE_URL and REDIS_URL, or a private Postgres with fsync enabled and a private redis-server. They create the schema compactor_bench and drop it. Figures depend on the machine and its load: compare ratios, or figures of one run.

Examples:

    compactor bench compact --json
    compactor bench compact --policy default --json
    compactor bench memory
    compactor bench latency --samples 200
    compactor bench storm --sweep 5000 --json
    compactor bench sweep --sessions 100000 --due all --set-based --json
    compactor bench fleet --sessions 100000 --json
    compactor bench strategies --messages 10000
    compactor bench tokens --json`
}

// measure runs a benchmark on servers that it starts, and writes the result.
func measure[O, R any](ctx context.Context, e *Env, cfg config.Config, o O, run func(context.Context, bench.Env, O) (R, error), write func(R) error) error {
	setCollector(e.Environ) // as the worker role does
	logger := e.Err.Logger("warn", cfg.Log.Format)
	st, err := stack.Start(ctx, stack.Options{
		DatabaseURL: cfg.Database.URL.Reveal(), RedisURL: cfg.Redis.URL.Reveal(), RealRedis: true, Durable: true, Logger: logger,
		// Buffers for the data of a benchmark, and no checkpoints but requested ones.
		Settings: map[string]string{"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"},
	})
	if err != nil {
		return err
	}
	defer func() { _ = st.Stop() }()
	if st.Redis.Kind == stack.InProcess {
		return errors.New("bench: redis-server not found: install it or set REDIS_URL")
	}
	progress := benchProgress{out: e.Err}
	result, err := run(ctx, bench.Env{
		DatabaseURL: st.DatabaseURL, RedisURL: st.RedisURL, Concurrency: cfg.Worker.Concurrency, Connections: cfg.PoolSize(),
		Progress: progress.show, Logger: logger,
	}, o)
	progress.done()
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, result)
	}
	return write(result)
}

// benchProgress shows one progress bar per benchmark, named after its first stage.
type benchProgress struct {
	out   term.Output
	start sync.Once
	bar   *term.Progress
}

func (p *benchProgress) show(stage string, done, total int) {
	p.start.Do(func() { p.bar = p.out.Progress(stage, int64(total)) })
	p.bar.Set(int64(done))
}

func (p *benchProgress) done() {
	if p.bar != nil {
		p.bar.Done("")
	}
}

type benchCompactCmd struct {
	bench.CompactOptions

	Policy string   `placeholder:"NAME" help:"Compact generated sessions of coding agents by this policy, without a model and a baseline: default (that without a configuration), a preset, configured, or strategies as of eval; by default by truncation."`
	From   []string `sep:"none" placeholder:"FILE" help:"With --policy, compact the sessions of this file that have more than --tokens, cut to these; repeatable."`
}

// Validate implements the interface of kong.
func (c *benchCompactCmd) Validate() error {
	if len(c.From) > 0 && c.Policy == "" {
		return errors.New("--from: want --policy, too")
	}
	return nil
}

func (c *benchCompactCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	if c.Policy != "" {
		p, err := namedPolicy(c.Policy, cfg.Policy, e.Registry)
		if err != nil {
			return wrong("--policy %w", err)
		}
		c.By = &p
	}
	if len(c.From) > 0 {
		in, err := (&evalCmd{Format: formats.Auto}).files(ctx, e, c.From)
		if err != nil {
			return err
		}
		defer in.close()
		for s, err := range in.all {
			if err != nil {
				return err
			}
			c.Recorded = append(c.Recorded, s.Messages)
		}
	}
	return measure(ctx, e, cfg, c.CompactOptions, bench.Compact, func(r bench.CompactResult) error {
		t := e.Out.Table(term.Num("ROUND"), term.Num("COMPACTIONS/S"), term.Num("BASELINE/S"), term.Num("RATIO"))
		row := func(round any, perSecond, baseline float64) {
			if baseline == 0 {
				t.Row(round, int64(perSecond), "", "")
				return
			}
			t.Row(round, int64(perSecond), int64(baseline), ratio(perSecond/baseline))
		}
		for i, round := range r.Rounds {
			row(i+1, round.CompactionsPerSecond, round.BaselinePerSecond)
		}
		row("all", r.CompactionsPerSecond, r.BaselinePerSecond)
		if err := t.Write(); err != nil {
			return err
		}
		e.say("")
		cpu := fmt.Sprintf("%.0f µs (worker %.0f, Postgres %.0f, Redis %.0f)", r.CPUMicros, r.CPUMicrosOf.Worker, r.CPUMicrosOf.Postgres, r.CPUMicrosOf.Redis)
		if c.Policy == "" {
			cpu += fmt.Sprintf("; baseline %.0f µs", r.BaselineCPUMicros)
		}
		pairs := [][2]any{
			{"sessions", r.Sessions},
			{"compacted", r.Applied},
			{"messages each", r.Messages},
			{"tokens each", r.Tokens},
			{"tenants", r.Tenants},
			{"CPU per compaction", cpu},
			{"runs at once", r.Concurrency},
			{"connections", r.Connections},
			{"WAL per compaction", term.Bytes(int64(r.WALBytesPerCompaction))},
			{"memory at peak", term.Bytes(r.MemoryBytes)},
		}
		if c.Policy != "" {
			pairs = append(pairs, [2]any{"size each", term.Bytes(r.Bytes)}, [2]any{"tokens after", r.TokensAfter},
				[2]any{"time of a run", fmt.Sprintf("%.1f ms at the median, %.1f ms at 95 %%", r.P50, r.P95)})
		}
		return e.Out.Pairs(pairs...)
	})
}

type benchMemoryCmd struct{ bench.MemoryOptions }

func (c *benchMemoryCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.MemoryOptions, bench.Memory, func(r bench.MemoryResult) error {
		return e.Out.Pairs(
			[2]any{"session", term.Plural(r.Messages, "message", "messages") + ", " + term.Bytes(r.Octets)},
			[2]any{"tokens", change(r.TokensBefore, r.TokensAfter)},
			[2]any{"worker's memory at peak", term.Bytes(r.PeakBytes)},
		)
	})
}

type benchLatencyCmd struct{ bench.LatencyOptions }

func (c *benchLatencyCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.LatencyOptions, bench.Latency, func(r bench.LatencyResult) error {
		ms := func(v float64) string { return term.Count(int64(v+0.5)) + " ms" }
		return e.Out.Pairs([2]any{"samples", r.Samples}, [2]any{"p50", ms(r.P50)}, [2]any{"p95", ms(r.P95)}, [2]any{"p99", ms(r.P99)}, [2]any{"max", ms(r.Max)})
	})
}

type benchStormCmd struct{ bench.StormOptions }

func (c *benchStormCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.StormOptions, bench.Storm, func(r bench.StormResult) error {
		ms := func(v float64) string { return term.Count(int64(v+0.5)) + " ms" }
		return e.Out.Pairs(
			[2]any{"appends per second", int64(r.AppendsPerSecond + 0.5)},
			[2]any{"events", fmt.Sprintf("%s: p50 %s, p99 %s", term.Count(r.Events), ms(r.EventP50), ms(r.EventP99))},
			[2]any{"events in the sweep", fmt.Sprintf("%s: p50 %s, p95 %s", term.Count(r.SweepEvents), ms(r.SweepEventP50), ms(r.SweepEventP95))},
			[2]any{"sweep", fmt.Sprintf("%s runs in %.1fs, those of the small tenant in %.1fs", term.Count(r.SweepRuns), r.SweepSeconds, r.SmallSeconds)},
			[2]any{"sessions run twice", r.RunTwice},
			[2]any{"idle", fmt.Sprintf("%.1f %% of a core", 100*r.IdleCPU)},
		)
	})
}

type benchSweepCmd struct{ bench.SweepOptions }

func (c *benchSweepCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.SweepOptions, bench.Sweep, func(r bench.SweepResult) error {
		return e.Out.Pairs(
			[2]any{"sessions", fmt.Sprintf("%s, %s due", term.Count(r.Sessions), term.Count(r.Due))},
			[2]any{"sweep", fmt.Sprintf("%.1fs, %s sessions per second", r.Seconds, term.Count(int64(r.PerSecond)))},
			[2]any{"truncated by the database alone", r.Truncated},
			[2]any{"sessions run twice", r.RunTwice},
			[2]any{"CPU per session", fmt.Sprintf("%.0f µs (scheduler and worker %.0f, Postgres %.0f, Redis %.0f)", r.CPUMicros, r.CPUMicrosOf.Worker, r.CPUMicrosOf.Postgres, r.CPUMicrosOf.Redis)},
			[2]any{"WAL per session", term.Bytes(int64(r.WALBytes))},
			[2]any{"memory at peak", term.Bytes(r.PeakMemory)},
		)
	})
}

type benchFleetCmd struct{ bench.FleetOptions }

func (c *benchFleetCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.FleetOptions, bench.Fleet, func(r bench.FleetResult) error {
		t := e.Out.Table(term.Num("SESSIONS"), term.Num("FOUND MS"), term.Num("CLAIMED MS"), term.Num("CPU µS"), term.Num("WAL"))
		for _, size := range r.Sizes {
			t.Row(size.Sessions, fmt.Sprintf("%.1f", size.Found), fmt.Sprintf("%.1f", size.Claimed), int64(size.CPUMicros), term.Bytes(int64(size.WALBytes)))
		}
		if err := t.Write(); err != nil {
			return err
		}
		e.say("\nFOUND and CLAIMED are of 500 due sessions, CPU and WAL of one of a sweep.\n")
		return e.Out.Pairs(
			[2]any{"change of the policy", fmt.Sprintf("%s sessions written in %.1fs, %s of WAL", term.Count(r.PolicyChanged), r.PolicySeconds, term.Bytes(r.PolicyWALBytes))},
			[2]any{"idle", fmt.Sprintf("%.1f transactions and %.0f buffers per second, %.1f %% of a core", r.IdleTransactions, r.IdleBuffers, 100*r.IdleCPU)},
		)
	})
}

type benchStrategiesCmd struct{ bench.StrategyOptions }

func (c *benchStrategiesCmd) Run(ctx context.Context, e *Env) error {
	for _, n := range c.Messages {
		if n < 16 {
			return wrong("--messages: got %d, want at least 16", n)
		}
	}
	progress := benchProgress{out: e.Err}
	rows, err := bench.Strategies(ctx, c.StrategyOptions, progress.show)
	progress.done()
	if errors.Is(err, plan.ErrUnknownStrategy) {
		return wrong("%v", err)
	}
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, rows)
	}
	t := e.Out.Table(term.Text("STRATEGY"), term.Num("MESSAGES"), term.Num("MS"), term.Num("× GROUPING"), term.Num("MB/S READ"), term.Num("TOKENS"), term.Num("AFTER"))
	for _, r := range rows {
		read := ""
		if r.Octets > 0 {
			read = term.Count(int64(r.PerSecond / 1e6))
		}
		t.Row(r.Strategy, r.Messages, fmt.Sprintf("%.2f", r.Seconds*1e3), fmt.Sprintf("%.1f", r.Ratio), read, r.TokensBefore, r.TokensAfter)
	}
	return t.Write()
}

type benchTokensCmd struct{ bench.TokensOptions }

func (c *benchTokensCmd) Run(ctx context.Context, e *Env) error {
	if c.Bytes < 1000 {
		return wrong("--bytes: got %d, want at least 1000", c.Bytes)
	}
	progress := benchProgress{out: e.Err}
	r, err := bench.Tokens(ctx, c.TokensOptions, progress.show)
	progress.done()
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, r)
	}
	t := e.Out.Table(term.Text("INPUT"), term.Num("O200K MB/S"), term.Num("CL100K MB/S"))
	for _, in := range r.Inputs {
		t.Row(in.Input, rate(in.O200K), rate(in.CL100K))
	}
	if err := t.Write(); err != nil {
		return err
	}
	e.say("")
	return e.Out.Pairs(
		[2]any{"tiktoken-go (o200k_base)", fmt.Sprintf("%s MB/s of the first input; ratio %s", rate(r.TiktokenGo), ratio(r.Ratio))},
		[2]any{"slowest", r.WorstInput + ", " + rate(r.Worst) + " MB/s"},
		[2]any{"both encodings loaded in", fmt.Sprintf("%.0f ms", r.LoadMillis)},
	)
}

// benchWorkerCmd is started by bench memory with URLs in the environment.
type benchWorkerCmd struct {
	Summary bool
}

func (c *benchWorkerCmd) Run(ctx context.Context, e *Env) error {
	get := variables(e.Environ)
	database, _ := get(bench.EnvDatabase)
	redis, _ := get(bench.EnvRedis)
	model, _ := get(bench.EnvModel)
	if database == "" || redis == "" {
		return wrong("bench worker is started by bench memory")
	}
	env := bench.Env{DatabaseURL: database, RedisURL: redis, Concurrency: 4, Connections: 8}
	setCollector(e.Environ) // as the worker role does
	peak, err := bench.WorkerMain(ctx, env, c.Summary, model)
	if err != nil {
		return err
	}
	return term.JSON(e.Out.W, peak)
}

func rate(mbPerSecond float64) string { return fmt.Sprintf("%.1f", mbPerSecond) }

func ratio(r float64) string { return fmt.Sprintf("%.2f", r) }
