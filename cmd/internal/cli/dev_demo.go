//go:build !nodev

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/backlog"
	"github.com/sessionstore/compactor/cmd/internal/dev/stack"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

type demoCmd struct {
	From     []string `name:"from" sep:"none" placeholder:"FILE" help:"Import real histories instead of generated ones; further files may follow."`
	Files    []string `arg:"" optional:"" help:"More files for --from."`
	Sessions int      `default:"400" help:"Number of sessions to generate."`
	Seed     uint64   `default:"1" help:"Seed of the generated backlog."`
	Script   string   `name:"model-script" placeholder:"FILE" help:"Write summaries with a scripted model in this process, which answers and fails as the file defines."`
	DataDir  string   `placeholder:"DIR" help:"Keep the private Postgres in this folder instead of a temporary folder."`
	Keep     bool     `help:"Go on after it: serve the dashboard on a free port until Ctrl-C."`
	NoFetch  bool     `help:"Download no server that is not installed, as with COMPACTOR_NO_FETCH=1."`
}

func (*demoCmd) Help() string {
	return `Starts an in-process Redis and a private Postgres, imports a backlog, and runs the main job on it: a nightly sweep through the real scheduler, queue and worker; compactions after writes; a re-compaction by an operator, and its undo; a sweep under a policy of its own, with its forecast and its report. Then it verifies that every view is valid and that every imported message is unchanged.

DATABASE_URL and REDIS_URL are used where set, with the schema compactor_demo, which is dropped at the end. Summaries are written by the configured models; without models they are extracts. All servers it started are stopped and removed at the end or on Ctrl-C; with --data-dir the data are kept. With --keep that end is your Ctrl-C: until then the dashboard shows the sessions at the address that is printed last.

A script of --model-script is YAML, with a step for each request to the model: the name of a behaviour, or a map that says more of it. After the last one all answers are normal, or with loop they begin again.

    loop: true
    steps:
      - rate_limited
      - {behaviour: slow, delay: 2s}
      - {behaviour: normal, times: 5}

The behaviours are ` + behaviours() + `.

Examples:

    compactor demo
    compactor demo --keep
    compactor demo --from history.jsonl --start 8000 --target 6000
    compactor demo --sessions 60 --model-script script.yaml`
}

// demoSchema separates the demo from other data of a given database.
const demoSchema = "compactor_demo"

func (c *demoCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	if len(c.From) == 0 && len(c.Files) > 0 {
		return wrong("files are given without --from: want --from %s", c.Files[0])
	}
	logger := e.Err.Logger("warn", cfg.Log.Format)
	played, err := readScript(c.Script)
	if err != nil {
		return err
	}
	d := &demo{cmd: c, env: e, began: time.Now(), out: e.Out}
	if e.JSON {
		d.out = term.Output{W: io.Discard}
	}
	started := e.waiting("starting servers")
	defer started()
	st, err := stack.Start(ctx, stack.Options{
		DatabaseURL: cfg.Database.URL.Reveal(), RedisURL: cfg.Redis.URL.Reveal(),
		DataDir: c.DataDir, Durable: c.DataDir != "", NoFetch: c.NoFetch, Notice: func(line string) { e.note("%s", line) },
	})
	if err != nil {
		return err
	}
	defer func() { _ = st.Stop() }() // the outcome is printed already
	cfg.Database.URL, cfg.Redis.URL = config.Secret(st.DatabaseURL), config.Secret(st.RedisURL)
	if st.Postgres.Kind == stack.Given {
		cfg.Database.Schema = demoSchema
	}
	if c.Script != "" {
		model, err := startScript(played, &cfg) //nolint:contextcheck // it is closed below
		if err != nil {
			return err
		}
		defer func() { _ = model.Close() }()
		d.step("model", "plays %s", c.Script)
	} else if len(cfg.LLM.Models) > 0 {
		d.step("models", "%s (yours)", modelNames(cfg))
	}
	// Shorten the debounce, so that the demo does not wait.
	cfg.Policy.Debounce, cfg.Policy.MaxDelay = 100*time.Millisecond, time.Second
	if err := d.choose(ctx, &cfg); err != nil {
		return err
	}
	d.step("servers", "%s, %s", server("postgres", st.Postgres), server("redis", st.Redis))

	app, err := NewApp(ctx, cfg, logger, AppOptions{
		Wait: openTimeout, Migrate: true, Roles: st.Postgres.Kind != stack.Given, Environ: e.Environ, Registry: e.Registry,
	})
	if err != nil {
		return err
	}
	defer app.Close()
	if st.Postgres.Kind == stack.Given {
		defer func() {
			drop, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
			defer cancel()
			_ = app.Store.Admin.DropSchema(drop)
		}()
	}
	d.app = app
	if d.scheduler, err = app.Scheduler(); err != nil {
		return err
	}
	started()
	if err := d.fill(ctx); err != nil {
		return err
	}
	worked := errors.New("the demo is over")
	work := func(ctx context.Context) error { return cmp.Or(d.work(ctx), worked) }
	err = RunRoles(ctx, Role{"demo", work}, Role{"scheduler", d.scheduler.Run}, app.WorkerRole())
	if !errors.Is(err, worked) {
		return cmp.Or(err, ctx.Err())
	}
	if err := d.finish(ctx); err != nil || !c.Keep {
		return err
	}
	app.Config.API.Listen = "127.0.0.1:0"
	return app.keep(ctx, func(base string) {
		if e.JSON { // whose one object is that of the figures
			e.note("dashboard, until Ctrl-C: %s", base+api.PagesPath)
			return
		}
		e.say("\ndashboard, until Ctrl-C: %s", d.out.Bold(base+api.PagesPath))
	})
}

// demo holds the state of a demonstration.
type demo struct {
	cmd       *demoCmd
	env       *Env
	out       term.Output
	app       *App
	scheduler *scheduler.Scheduler
	began     time.Time

	imported map[int64]imported // by sid
	backlog  struct {
		messages int64
		tokens   chat.Tokens
	}
	result demoResult
}

// imported holds the state of a session after its import.
type imported struct {
	seq  chat.Seq
	sum  string
	over bool // above its start
}

type demoResult struct {
	Sessions         int                  `json:"sessions"`
	Messages         int64                `json:"messages"`
	OverStart        int                  `json:"over_start"`
	WithinTarget     int                  `json:"within_target"`
	CodedReason      int                  `json:"with_coded_reason"`
	Unexplained      int                  `json:"unexplained"`
	TokensBefore     int64                `json:"tokens_before"`
	TokensAfter      int64                `json:"tokens_after"`
	Outcomes         []store.OutcomeRow   `json:"outcomes"`
	Summaries        []store.SummaryTally `json:"summaries"`
	ViewsValid       int                  `json:"views_valid"`
	SourcesUnchanged int                  `json:"sources_unchanged"`
	SweepSeconds     float64              `json:"sweep_seconds"`
	Seconds          float64              `json:"seconds"`
}

func server(name string, s stack.Server) string {
	switch s.Kind {
	case stack.Given:
		return name + " (yours)"
	case stack.InProcess:
		return name + " (in this process)"
	default:
		return cmp.Or(name+" "+s.Version, name) + " (private)"
	}
}

// step prints a line of output.
func (d *demo) step(name, format string, args ...any) {
	fmt.Fprintf(d.out.W, "%s %s\n", d.out.Bold(fmt.Sprintf("%-9s", name)), fmt.Sprintf(format, args...))
}

// fill imports the backlog and prints it.
func (d *demo) fill(ctx context.Context) error {
	if err := d.scheduler.SyncPolicy(ctx); err != nil { // store thresholds before sessions exist
		return err
	}
	im := &Importer{Store: d.app.Store, Tenant: d.app.Config.Tenant, Models: d.app.Config.Models, ImportOptions: ImportOptions{SameOwner: true}}
	var items iter.Seq[Item]
	var progress *term.Progress
	if from := append(slices.Clone(d.cmd.From), d.cmd.Files...); len(from) > 0 {
		all, size, err := openSources(ctx, from, d.env.Stdin, formats.Auto)
		if err != nil {
			return err
		}
		defer all.close()
		progress = d.env.Err.Progress("importing, bytes", size)
		items = all.items(progress.Add)
	} else {
		progress = d.env.Err.Progress("importing, sessions", int64(d.cmd.Sessions))
		im.Done = func(Item) { progress.Add(1) }
		items = d.made()
	}
	result, err := im.Run(ctx, items)
	progress.Done("")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return inputError(err)
	}
	d.step("import", "%s, %s, counted by %v, in %s", term.Plural(result.Sessions, "session", "sessions"),
		term.Plural(result.Messages, "message", "messages"), result.Counters, term.Duration(time.Duration(result.Seconds*float64(time.Second))))
	if err := d.app.Store.Admin.Analyze(ctx); err != nil {
		return err
	}
	return d.look(ctx)
}

// made yields the generated backlog.
func (d *demo) made() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		for s := range backlog.Generate(backlog.Options{Seed: d.cmd.Seed, Sessions: d.cmd.Sessions, End: time.Now()}) {
			if !yield(Item{Session: chat.Session{ID: s.ID, Model: s.Model, Messages: s.Messages}}) {
				return
			}
		}
	}
}

// rows returns all sessions of the demo.
func (d *demo) rows(ctx context.Context) ([]store.SessionRow, error) {
	rows, _, err := d.app.Store.Operator.Sessions(ctx, store.SessionFilter{Tenant: d.app.Config.Tenant, Limit: 1 << 30})
	return rows, err
}

// look records the imported sessions and prints the backlog by model.
func (d *demo) look(ctx context.Context) error {
	rows, err := d.rows(ctx)
	if err != nil {
		return err
	}
	d.imported = map[int64]imported{}
	type kind struct {
		sessions, over, invalid int
		tokens                  chat.Tokens
	}
	kinds := map[string]*kind{}
	for _, r := range rows {
		sum, n, err := d.app.Store.Admin.Checksum(ctx, r.SID, chat.Open-1)
		if err != nil {
			return err
		}
		if n != r.Messages {
			return fmt.Errorf("session %s has %d messages, its row says %d", r.Session, n, r.Messages)
		}
		limits := d.app.Config.Policy.Limits(r.Model, d.app.Planner.Window)
		name := fmt.Sprintf("%s, start %s, target %s", cmp.Or(r.Model, "(no model)"), term.Tokens(limits.Start), term.Tokens(limits.Target))
		k := kinds[name]
		if k == nil {
			k = &kind{}
			kinds[name] = k
		}
		k.sessions++
		k.tokens += r.LiveTokens
		d.backlog.messages += r.Messages
		d.backlog.tokens += r.LiveTokens
		over := limits.Over(r.ContextTokens)
		if over {
			k.over++
			d.result.OverStart++
		}
		d.imported[r.SID] = imported{chat.Seq(n), sum, over}
		if r.Suspect {
			k.invalid++
		}
	}
	t := d.out.Table(term.Text("MODEL AND POLICY"), term.Num("SESSIONS"), term.Num("TOKENS"), term.Num("OVER START"), term.Num("TO REPAIR"))
	for _, name := range sortedKeys(kinds) {
		k := kinds[name]
		t.Row(name, k.sessions, term.Tokens(k.tokens), k.over, k.invalid)
	}
	fmt.Fprintln(d.out.W)
	if err := t.Write(); err != nil {
		return err
	}
	fmt.Fprintln(d.out.W)
	d.step("backlog", "over their start: %d of %s", d.result.OverStart, term.Plural(len(rows), "session", "sessions"))
	return nil
}

// waiting writes a line to Err, and another one every two seconds until stop is called, which
// may be called again.
func (e *Env) waiting(what string) (stop func()) {
	began, done := time.Now(), make(chan struct{})
	e.note("%s …", what)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(waitLine)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				e.note("%s … %s", what, term.Duration(time.Since(began)))
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

// waitLine is the interval of the lines of waiting.
const waitLine = 2 * time.Second

// choose sets a target for files of which no session is above its start: a third of the largest.
// Standard input is not read twice.
func (d *demo) choose(ctx context.Context, cfg *config.Config) error {
	from := append(slices.Clone(d.cmd.From), d.cmd.Files...)
	if len(from) == 0 || slices.Contains(from, "-") || sized(*cfg) {
		return nil
	}
	all, _, err := openSources(ctx, from, d.env.Stdin, formats.Auto)
	if err != nil {
		return err
	}
	defer all.close()
	largest := chat.Tokens(0)
	for item := range all.items(func(int64) {}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		size, counter := chat.Tokens(0), cfg.Models.ForModel(item.Model)
		for i := range item.Messages {
			size += counter.Message(&item.Messages[i])
		}
		if cfg.Policy.Limits(item.Model, cfg.Models.Window).Over(cfg.Policy.Margin(size)) {
			return nil
		}
		largest = max(largest, size)
	}
	if third := largest / 3; third > 1 {
		cfg.Policy.StartTokens, cfg.Policy.TargetTokens = third+third/2, third
		cfg.Policy = cfg.Policy.Fit(func(string) bool { return false })
		d.step("target", "no session is above the policy's start: sessions above %s tokens are compacted to %s, a third of the largest (--start and --target set others)",
			term.Count(cfg.Policy.StartTokens), term.Count(third))
	}
	return nil
}

// finish verifies views and messages and prints the closing table.
func (d *demo) finish(ctx context.Context) error {
	rows, err := d.rows(ctx)
	if err != nil {
		return err
	}
	verified := d.env.waiting("verifying views and messages")
	defer verified()
	r := &d.result
	r.Sessions, r.Messages, r.TokensBefore = len(rows), d.backlog.messages, int64(d.backlog.tokens)
	for _, row := range rows {
		r.TokensAfter += int64(row.LiveTokens)
		faults, err := d.app.Store.Admin.Violations(ctx, row.SID)
		if err != nil {
			return err
		}
		if len(faults) == 0 {
			r.ViewsValid++
		}
		was := d.imported[row.SID]
		sum, n, err := d.app.Store.Admin.Checksum(ctx, row.SID, was.seq)
		if err != nil {
			return err
		}
		if sum == was.sum && n == int64(was.seq) {
			r.SourcesUnchanged++
		}
	}
	if r.Outcomes, err = d.app.Store.Operator.Outcomes(ctx, 0); err != nil {
		return err
	}
	if r.Summaries, err = d.app.Store.Operator.SummaryTallies(ctx, 0); err != nil {
		return err
	}
	verified()
	t := d.out.Table(term.Text("TRIGGER"), term.Text("OUTCOME"), term.Num("RUNS"), term.Num("TOKENS BEFORE"), term.Num("AFTER"), term.Num("SAVED"))
	for _, o := range r.Outcomes {
		saved := "" // an undo saves nothing
		if o.TokensAfter <= o.TokensBefore {
			saved = term.Percent(o.TokensBefore-o.TokensAfter, o.TokensBefore)
		}
		t.Row(triggerName(o.Trigger), o.Outcome, o.Runs, o.TokensBefore, o.TokensAfter, saved)
	}
	r.Seconds = time.Since(d.began).Seconds()
	if d.env.JSON {
		if err := term.JSON(d.env.Out.W, r); err != nil {
			return err
		}
		return r.verdict()
	}
	d.env.say("")
	if err := t.Write(); err != nil {
		return err
	}
	d.env.say("")
	all := func(n, of int) term.Styled {
		as := d.out.Green
		if n != of {
			as = d.out.Red
		}
		return term.Styled{Value: fmt.Sprintf("%s of %s", term.Count(n), term.Count(of)), As: as}
	}
	calls := r.tally("call")
	if calls == "none" && d.cmd.Script == "" {
		calls = ""
	}
	err = d.out.Pairs(
		[2]any{"sessions", r.Sessions},
		[2]any{"messages", r.Messages},
		[2]any{"tokens", change(r.TokensBefore, r.TokensAfter)},
		[2]any{"summaries", r.tally("summary")},
		[2]any{"model calls", calls},
		[2]any{"views valid", all(r.ViewsValid, r.Sessions)},
		[2]any{"source messages unchanged", all(r.SourcesUnchanged, r.Sessions)},
		[2]any{"time", time.Since(d.began)},
	)
	if err != nil {
		return err
	}
	return d.show(ctx)
}

// tally returns the counts of one kind in one line.
func (r *demoResult) tally(kind string) string {
	var parts []string
	cost := int64(0)
	for _, x := range r.Summaries {
		if x.Kind == kind {
			parts = append(parts, fmt.Sprintf("%s %s", term.Count(x.Count), x.Code))
			cost += x.CostMicros
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	if cost > 0 {
		parts = append(parts, fmt.Sprintf("cost %.4f", float64(cost)/1e6))
	}
	return strings.Join(parts, ", ")
}

// verdict returns an error if a check of the demo failed.
func (r *demoResult) verdict() error {
	var faults []error
	if n := r.Sessions - r.ViewsValid; n > 0 {
		faults = append(faults, fmt.Errorf("%d views are not valid", n))
	}
	if n := r.Sessions - r.SourcesUnchanged; n > 0 {
		faults = append(faults, fmt.Errorf("the source messages of %d sessions have changed", n))
	}
	if r.Unexplained > 0 {
		faults = append(faults, fmt.Errorf("%d sessions are above their target without a coded reason", r.Unexplained))
	}
	if len(faults) > 0 {
		return &exitError{exitFindings, errors.Join(faults...)}
	}
	return nil
}
