//go:build !nodev

package cli

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
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
	API        benchAPICmd        `cmd:"" name:"api" help:"Views and appends per second through the HTTP API, from another process, beside a sweep."`
	Pages      benchPagesCmd      `cmd:"" help:"Time and bytes of each page of the dashboard."`
	Client     benchClientCmd     `cmd:"" hidden:"" help:"Client process of bench api."`
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
    compactor bench tokens --json
    compactor bench api --json
    compactor bench pages --sessions 1000000 --json`
}

// measure runs a benchmark on servers that it starts, and writes the result.
func measure[O, R any](ctx context.Context, e *Env, cfg config.Config, o O, run func(context.Context, bench.Env, O) (R, error)) error {
	setCollector(e.Environ) // as the worker role does
	logger := e.Err.Logger("warn", cfg.Log.Format)
	st, err := stack.Start(ctx, stack.Options{
		DatabaseURL: cfg.Database.URL.Reveal(), RedisURL: cfg.Redis.URL.Reveal(), RealRedis: true, Durable: true, Notice: func(line string) { e.note("%s", line) },
		// Buffers for the data of a benchmark, and no checkpoints but requested ones.
		Settings: map[string]string{"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"},
	})
	if err != nil {
		return err
	}
	defer func() { _ = st.Stop() }()
	progress := benchProgress{out: e.Err}
	result, err := run(ctx, bench.Env{
		DatabaseURL: st.DatabaseURL, RedisURL: st.RedisURL, Concurrency: cfg.Worker.Concurrency, Connections: cfg.PoolSize(),
		Progress: progress.show, Logger: logger,
	}, o)
	progress.done()
	if err != nil {
		return err
	}
	return e.showFigures(result)
}

// showFigures writes the figures of a benchmark by the names that they have with --json, and lists
// of them as tables.
func (e *Env) showFigures(result any) error {
	return e.show(result, func() {
		if v := reflect.ValueOf(result); v.Kind() == reflect.Slice {
			e.figureTable(v)
		} else {
			names, values, lists := figures(v)
			pairs := make([]pair, len(names))
			for i := range names {
				pairs[i] = pair{names[i], values[i]}
			}
			e.pairs(pairs...)
			for _, list := range lists {
				e.say("")
				e.figureTable(list)
			}
		}
	})
}

// figureTable writes a list of structs as a table.
func (e *Env) figureTable(list reflect.Value) {
	names, values, _ := figures(reflect.Zero(list.Type().Elem()))
	heads := make([]term.Column, len(names))
	for i, name := range names {
		heads[i] = term.Num(strings.ToUpper(name))
		if values[i] == "" {
			heads[i].Right = false
		}
	}
	t := e.Out.Table(heads...)
	for i := range list.Len() {
		_, values, _ := figures(list.Index(i))
		t.Row(values...)
	}
	e.wrote(t.Write())
}

// figures returns the names and the values of the fields of a struct, and those that are lists.
func figures(v reflect.Value) (names []string, values []any, lists []reflect.Value) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		name = strings.ReplaceAll(name, "_", " ")
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			inner, more, _ := figures(f)
			for i := range inner {
				names, values = append(names, name+" "+inner[i]), append(values, more[i])
			}
		case reflect.Slice:
			lists = append(lists, f)
		case reflect.Float64:
			text := strconv.FormatFloat(f.Float(), 'g', 3, 64)
			if math.Abs(f.Float()) >= 100 {
				text = term.Count(int64(math.Round(f.Float())))
			}
			names, values = append(names, name), append(values, text)
		default:
			names, values = append(names, name), append(values, f.Interface())
		}
	}
	return names, values, lists
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
	return measure(ctx, e, cfg, c.CompactOptions, bench.Compact)
}

type benchMemoryCmd struct{ bench.MemoryOptions }

func (c *benchMemoryCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.MemoryOptions, bench.Memory)
}

type benchLatencyCmd struct{ bench.LatencyOptions }

func (c *benchLatencyCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.LatencyOptions, bench.Latency)
}

type benchStormCmd struct{ bench.StormOptions }

func (c *benchStormCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.StormOptions, bench.Storm)
}

type benchSweepCmd struct{ bench.SweepOptions }

func (c *benchSweepCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.SweepOptions, bench.Sweep)
}

type benchFleetCmd struct{ bench.FleetOptions }

func (c *benchFleetCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.FleetOptions, bench.Fleet)
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
	return e.showFigures(rows)
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
	return e.showFigures(r)
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

type benchPagesCmd struct{ bench.PagesOptions }

// Validate implements the interface of kong.
func (c *benchPagesCmd) Validate() error {
	if c.Sessions < 1 || c.Due < 2 || c.Messages < 10 || c.Reads < 1 {
		return errors.New("want --sessions and --reads of 1 or more, --due of 2 or more, and --messages of 10 or more")
	}
	return nil
}

func (c *benchPagesCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.PagesOptions, bench.Pages)
}

type benchAPICmd struct{ bench.APIOptions }

// Validate implements the interface of kong.
func (c *benchAPICmd) Validate() error {
	if c.Sessions < 1 || c.Seconds < 1 || c.Clients < 1 || c.Compact < 0 || c.Compact > 100 || c.Sweep < 1 || c.Size < 1 {
		return errors.New("want --sessions, --seconds, --clients, --sweep and --size of 1 or more, and --compact of 0 to 100")
	}
	return nil
}

func (c *benchAPICmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return measure(ctx, e, cfg, c.APIOptions, bench.API)
}

// benchClientCmd is started by bench api with a key in the environment.
type benchClientCmd struct {
	Sessions, Seconds, Clients int
}

func (c *benchClientCmd) Run(ctx context.Context, e *Env) error {
	get := variables(e.Environ)
	url, _ := get(bench.EnvURL)
	secret, _ := get(bench.EnvKey)
	if url == "" || secret == "" {
		return wrong("bench client is started by bench api")
	}
	r, err := bench.ClientMain(ctx, url, secret, bench.ClientOptions(*c))
	if err != nil {
		return err
	}
	return term.JSON(e.Out.W, r)
}
