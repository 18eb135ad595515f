//go:build !nodev

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/dev/bench"
	"github.com/sessionstore/compactor/cmd/internal/dev/stack"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

type benchCmd struct {
	Compact    benchCompactCmd    `cmd:"" help:"Compactions per second over the whole job path, against a baseline measured in the same run."`
	Memory     benchMemoryCmd     `cmd:"" help:"Peak memory of a worker process on one huge session."`
	Latency    benchLatencyCmd    `cmd:"" help:"Time from the commit of an append to its compaction, on an idle system."`
	Strategies benchStrategiesCmd `cmd:"" help:"Time of each strategy on conversations of several lengths; needs no server."`
	Worker     benchWorkerCmd     `cmd:"" hidden:"" help:"Worker process of bench memory."`
}

func (*benchCmd) Help() string {
	return `All benchmarks except strategies run on real servers: those of DATABASE_URL and REDIS_URL, or a private Postgres with fsync enabled and a private redis-server. They create the schema compactor_bench and drop it. Figures depend on the machine and its load: compare ratios, or figures of one run.

Examples:

    compactor bench compact --json
    compactor bench memory
    compactor bench latency --samples 200
    compactor bench strategies --messages 10000`
}

// benchSettings returns Postgres settings with buffers for the data of a benchmark and
// without checkpoints other than requested ones.
func benchSettings() map[string]string {
	return map[string]string{"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
}

// bench starts the servers of a benchmark; stop stops them.
func (e *Env) bench(ctx context.Context, progress *benchProgress) (env bench.Env, stop func(), err error) {
	cfg, err := e.Config()
	if err != nil {
		return env, nil, err
	}
	logger, err := e.Err.Logger("warn", cfg.Log.Format)
	if err != nil {
		return env, nil, err
	}
	st, err := stack.Start(ctx, stack.Options{
		DatabaseURL: cfg.Database.URL.Reveal(), RedisURL: cfg.Redis.URL.Reveal(), RealRedis: true, Durable: true,
		Settings: benchSettings(), Logger: logger,
	})
	if err != nil {
		return env, nil, err
	}
	if st.Redis.Kind == stack.InProcess {
		_ = st.Stop()
		return env, nil, errors.New("bench: redis-server not found: install it or set REDIS_URL")
	}
	env = bench.Env{
		DatabaseURL: st.DatabaseURL, RedisURL: st.RedisURL, Concurrency: cfg.Worker.Concurrency, Connections: cfg.PoolSize(), Progress: progress.show, Logger: logger,
	}
	return env, func() { progress.done(); _ = st.Stop() }, nil
}

// benchProgress shows one progress bar per benchmark, named after its first stage.
type benchProgress struct {
	out term.Output
	bar *term.Progress
}

func (p *benchProgress) show(stage string, done, total int) {
	if p.bar == nil {
		p.bar = p.out.Progress(stage, int64(total))
	}
	p.bar.Set(int64(done))
}

func (p *benchProgress) done() {
	if p.bar != nil {
		p.bar.Done("")
	}
}

type benchCompactCmd struct {
	Sessions int `default:"4000" help:"Sessions for the job path, and as many for the baseline."`
	Messages int `default:"200" help:"Messages of a session."`
	Tokens   int `default:"40000" help:"Tokens of a session."`
	Rounds   int `default:"4" help:"Alternations of job path and baseline."`
}

func (c *benchCompactCmd) Run(ctx context.Context, e *Env) error {
	progress := &benchProgress{out: e.Err}
	env, stop, err := e.bench(ctx, progress)
	if err != nil {
		return err
	}
	defer stop()
	r, err := bench.Compact(ctx, env, bench.CompactOptions{Sessions: c.Sessions, Messages: c.Messages, Tokens: chat.Tokens(c.Tokens), Rounds: c.Rounds})
	if err != nil {
		return err
	}
	progress.done()
	if e.JSON {
		return term.JSON(e.Out.W, r)
	}
	t := e.Out.Table(term.Num("ROUND"), term.Num("COMPACTIONS/S"), term.Num("BASELINE/S"), term.Num("RATIO"))
	for i, round := range r.Rounds {
		t.Row(i+1, int64(round.CompactionsPerSecond), int64(round.BaselinePerSecond), ratio(round.CompactionsPerSecond/round.BaselinePerSecond))
	}
	t.Row("all", int64(r.CompactionsPerSecond), int64(r.BaselinePerSecond), ratio(r.Ratio))
	if err := t.Write(); err != nil {
		return err
	}
	e.say("")
	return e.Out.Pairs(
		[2]any{"sessions", r.Sessions}, [2]any{"messages each", r.Messages}, [2]any{"tokens each", r.Tokens},
		[2]any{"runs at once", r.Concurrency}, [2]any{"connections", r.Connections}, [2]any{"WAL per compaction", term.Bytes(int64(r.WALBytesPerCompaction))},
		[2]any{"memory at peak", term.Bytes(r.MemoryBytes)},
	)
}

type benchMemoryCmd struct {
	Messages int  `default:"20000" help:"Messages of the session."`
	Megabyte int  `name:"megabytes" default:"100" help:"Its size."`
	Summary  bool `help:"Summarize it without a model instead of truncating it."`
	Model    bool `help:"Summarize it with a scripted model."`
}

func (c *benchMemoryCmd) Run(ctx context.Context, e *Env) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	progress := &benchProgress{out: e.Err}
	env, stop, err := e.bench(ctx, progress)
	if err != nil {
		return err
	}
	defer stop()
	o := bench.MemoryOptions{Messages: c.Messages, Octets: c.Megabyte << 20, Summarize: c.Summary || c.Model, Model: c.Model, Worker: []string{self, "bench", "worker"}}
	if o.Summarize {
		o.Worker = append(o.Worker, "--summary")
	}
	r, err := bench.Memory(ctx, env, o)
	if err != nil {
		return err
	}
	progress.done()
	if e.JSON {
		return term.JSON(e.Out.W, r)
	}
	return e.Out.Pairs(
		[2]any{"session", term.Plural(r.Messages, "message", "messages") + ", " + term.Bytes(r.Octets)},
		[2]any{"tokens", change(r.TokensBefore, r.TokensAfter)},
		[2]any{"worker's memory at peak", term.Bytes(r.PeakBytes)},
	)
}

type benchLatencyCmd struct {
	Samples int `default:"100" help:"Number of appends to time."`
}

func (c *benchLatencyCmd) Run(ctx context.Context, e *Env) error {
	progress := &benchProgress{out: e.Err}
	env, stop, err := e.bench(ctx, progress)
	if err != nil {
		return err
	}
	defer stop()
	r, err := bench.Latency(ctx, env, bench.LatencyOptions{Samples: c.Samples})
	if err != nil {
		return err
	}
	progress.done()
	if e.JSON {
		return term.JSON(e.Out.W, r)
	}
	ms := func(v float64) string { return term.Count(int64(v+0.5)) + " ms" }
	return e.Out.Pairs([2]any{"samples", r.Samples}, [2]any{"p50", ms(r.P50)}, [2]any{"p95", ms(r.P95)}, [2]any{"p99", ms(r.P99)}, [2]any{"max", ms(r.Max)})
}

type benchStrategiesCmd struct {
	Strategy []string `arg:"" optional:"" help:"Strategies to measure; all by default."`
	Messages []int    `default:"1000,10000,100000" help:"Lengths, in messages of 200 characters."`
	Rounds   int      `default:"5" help:"Repetitions of each, of which the fastest is reported."`
}

func (c *benchStrategiesCmd) Run(ctx context.Context, e *Env) error {
	for _, n := range c.Messages {
		if n < 16 {
			return wrong("--messages: got %d, want at least 16", n)
		}
	}
	progress := &benchProgress{out: e.Err}
	rows, err := bench.Strategies(ctx, bench.StrategyOptions{
		Names: c.Strategy, Sizes: c.Messages, Rounds: c.Rounds,
		Progress: func(done, total int) { progress.show("strategies", done, total) },
	})
	if errors.Is(err, plan.ErrUnknownStrategy) {
		return wrong("%v", err)
	}
	if err != nil {
		return err
	}
	progress.done()
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

// benchWorkerCmd runs the worker process of bench memory, which passes the server URLs in
// the environment.
type benchWorkerCmd struct {
	Summary bool
}

func (c *benchWorkerCmd) Run(ctx context.Context, e *Env) error {
	env, model := bench.Env{Concurrency: 4, Connections: 8}, ""
	for _, kv := range e.Environ {
		if v, ok := strings.CutPrefix(kv, bench.EnvDatabase+"="); ok {
			env.DatabaseURL = v
		}
		if v, ok := strings.CutPrefix(kv, bench.EnvRedis+"="); ok {
			env.RedisURL = v
		}
		if v, ok := strings.CutPrefix(kv, bench.EnvModel+"="); ok {
			model = v
		}
	}
	if env.DatabaseURL == "" || env.RedisURL == "" {
		return wrong("bench worker is started by bench memory")
	}
	setCollector(e.Environ) // as the worker role does
	return bench.WorkerMain(ctx, env, c.Summary, model)
}

func ratio(r float64) string { return fmt.Sprintf("%.2f", r) }
