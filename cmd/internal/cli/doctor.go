package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/worker/jobs"
)

type doctorCmd struct {
	Deep   bool `help:"Check all sessions, however many there are." xor:"sessions"`
	Sample int  `placeholder:"N" range:"1,100000000" help:"Check N sessions, chosen at random." xor:"sessions"`
	Fix    bool `help:"Set right what follows from the log and the ledger."`
}

// sampleSize is the number of sessions up to which all are checked, and of more the size of
// the sample.
const sampleSize = 10_000

// The states of a check. Only checkFail sets the exit code.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
	checkSkip = "skip"
)

// check is one line of the report.
type check struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Detail  string `json:"detail,omitempty"`
	// Advice suggests a remedy.
	Advice string `json:"advice,omitempty"`
}

// doctorReport collects checks.
type doctorReport struct {
	env      *Env
	checks   []check
	findings []store.Finding      // at most maxKept of each check
	causes   map[string][][]cause // the same, of each session under the first check that found something
	fixed    []store.Finding
}

func (x *doctorReport) add(section, name, status, detail, advice string) {
	if status == checkOK {
		advice = ""
	}
	x.checks = append(x.checks, check{section, name, status, x.env.scrub(detail), advice})
}

// failed adds a check that could not be made, if err is not nil.
func (x *doctorReport) failed(section, name string, err error) {
	if err != nil {
		x.add(section, name, checkFail, err.Error(), "")
	}
}

func (c *doctorCmd) Run(ctx context.Context, e *Env) error {
	cfg, err := e.Config()
	if err != nil {
		return err
	}
	x := &doctorReport{env: e, findings: []store.Finding{}, causes: map[string][][]cause{}, fixed: []store.Finding{}}
	var cooldowns []store.ModelCooldown
	var calls []store.SummaryCallRow
	var name jobs.Installation
	var st *store.Store
	if cfg.Database.URL != "" {
		st, err = e.Open(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case cfg.Database.URL == "":
		x.add("postgres", "connection", checkFail, "not configured", "set DATABASE_URL or --database-url")
	case err != nil:
		x.add("postgres", "connection", checkFail, err.Error(), "check --database-url and that the server runs")
	default:
		through := ""
		if st.Pooled() {
			through = ", through a pooler: settings are those of each transaction, and the scheduler polls instead of being notified"
		}
		x.add("postgres", "connection", checkOK, cfg.Database.URL.String()+through, "")
		if x.migrations(ctx, cfg) {
			x.failed("postgres", "settings", x.settings(ctx, st))
			x.failed("postgres", "disk budget", x.disk(ctx, st, cfg.Scheduler))
			x.failed(sectionData, "sessions", x.data(ctx, st, c))
			x.failed("api", "keys", x.keys(ctx, st))
			x.failed("work", "erasures", x.erasures(ctx, st))
			x.failed("models", "counting", x.counting(ctx, cfg, st))
			x.failed("policies", "in force", x.policies(ctx, st))
			cooldowns, err = st.Worker.Cooldowns().All(ctx)
			x.failed("models", "cooldowns", err)
			calls, err = st.Operator.LastCalls(ctx)
			x.failed("models", "last calls", err)
			name, err = installation(ctx, cfg, st)
			x.failed("redis", "installation", err)
			x.failed("work", "held back", x.heldBack(ctx, st))
			x.failed("work", "pauses", x.pauses(ctx, st))
			x.failed("work", "limits", x.limits(ctx, cfg, st))
			x.failed("work", "paused schedules", x.pausedSchedules(ctx, st, cfg))
		}
	}
	x.schedules(cfg)
	x.redis(ctx, cfg, name)
	x.models(cfg, cooldowns, calls)
	x.traces(ctx, cfg)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return x.report()
}

// migrations checks the schema and reports whether it is complete.
func (x *doctorReport) migrations(ctx context.Context, cfg config.Config) bool {
	all, pending, err := migrationStatus(ctx, cfg)
	if err != nil {
		x.add("postgres", "migrations", checkFail, err.Error(), "")
		return false
	}
	if len(pending) > 0 {
		x.add("postgres", "migrations", checkFail, "pending: "+strings.Join(pending, ", "), "compactor migrate up")
		return false
	}
	x.add("postgres", "migrations", checkOK, fmt.Sprintf("all %d applied, schema %s", len(all), cfg.Database.Schema), "")
	return true
}

func (x *doctorReport) settings(ctx context.Context, st *store.Store) error {
	settings, err := st.Admin.Settings(ctx)
	if err != nil {
		return err
	}
	for _, s := range settings {
		status := checkOK
		switch {
		case s.OK:
		case s.Name == "server version", s.Name == "autovacuum", s.Name == "track_counts":
			status = checkFail
		default:
			status = checkWarn
		}
		x.add("postgres", s.Name, status, s.Value, s.Advice)
	}
	return nil
}

// redis checks the server and, if its name is known, the queues of the installation.
func (x *doctorReport) redis(ctx context.Context, cfg config.Config, name jobs.Installation) {
	if cfg.Redis.URL == "" {
		x.add("redis", "connection", checkFail, "not configured", "set REDIS_URL or --redis-url")
		return
	}
	o, err := ParseRedis(cfg)
	if err != nil {
		x.add("redis", "connection", checkFail, err.Error(), "")
		return
	}
	client := newRedis(o)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := pingRedis(ctx, client); err != nil {
		x.add("redis", "connection", checkFail, err.Error(), "check --redis-url and that the server runs; no run is lost, queued runs wait in Postgres")
		return
	}
	x.add("redis", "connection", checkOK, cfg.Redis.URL.String(), "")

	for _, s := range []struct{ name, setting, want, otherwise, advice string }{
		{"maxmemory-policy", "maxmemory-policy", "noeviction", checkFail, "set it to noeviction: an evicted key is a lost task or lock"},
		{"persistence", "appendonly", "yes", checkWarn, "after a restart of Redis queued runs wait until the scheduler finds them in Postgres"},
	} {
		got, err := client.ConfigGet(ctx, s.setting).Result()
		text := strings.TrimPrefix(s.setting+" "+got[s.setting], s.name+" ")
		switch value := got[s.setting]; {
		case err != nil || value == "":
			x.add("redis", s.name, checkSkip, "not reported", "managed and embedded servers may not report it")
		case value == s.want:
			x.add("redis", s.name, checkOK, text, "")
		default:
			x.add("redis", s.name, s.otherwise, text, s.advice)
		}
	}
	if name != "" {
		x.queues(client, name)
	}
}

// models lists the models that write summaries, whether their keys are found here, how the last
// call of each ended, and which are in cooldown after a failure. It sends no request to them.
func (x *doctorReport) models(cfg config.Config, cooldowns []store.ModelCooldown, calls []store.SummaryCallRow) {
	const section = "models"
	if len(cfg.LLM.Models) == 0 {
		x.add(section, "configured", checkOK, "none: summaries are extracts", "")
	}
	for i, p := range cfg.LLM.Models {
		if err := p.CheckKey(variables(x.env.Environ)); err != nil {
			x.add(section, p.ID(), checkFail, fmt.Sprintf("llm.models[%d].%v", i, err), "workers do not start without it")
			continue
		}
		key := "no key required"
		switch {
		case p.KeyEnv != "":
			key = "key in the variable " + p.KeyEnv
		case p.KeyFile != "":
			key = "key in the file " + p.KeyFile
		}
		status, hint := checkSkip, "doctor calls no model, and no worker has for a day"
		if at := slices.IndexFunc(calls, func(c store.SummaryCallRow) bool { return c.Model == p.Name }); at >= 0 {
			status, hint = checkOK, "" // it has answered
			if c := calls[at]; c.State == "failed" {
				status, key = checkWarn, key+"; the last call failed: "+joined(c.Code, c.ServerError)
			}
		}
		if at := slices.IndexFunc(cooldowns, func(r store.ModelCooldown) bool { return r.Model == p.ID() }); at >= 0 {
			r := cooldowns[at]
			status, key = checkWarn, fmt.Sprintf("%s; in cooldown until %s after %s", key, r.Until.UTC().Format(time.DateTime+"Z"), r.Code)
			hint = "automatic runs do not call it until then, runs requested by an operator do"
		}
		x.add(section, p.ID(), status, key, hint)
	}
}

// limits lists the limits of models that are reached, and the sessions that wait for limits of runs.
func (x *doctorReport) limits(ctx context.Context, cfg config.Config, st *store.Store) error {
	rows, err := st.Operator.Spending(ctx, "")
	if err != nil {
		return err
	}
	for _, r := range rows {
		of := "of tenant " + cmp.Or(r.Tenant, "(all)")
		if r.Reached() {
			x.add("work", "limits", checkWarn, of+" is reached: no model is asked", "compactor limit list")
		}
		if r.Throttled > 0 {
			x.add("work", "limits", checkWarn, fmt.Sprintf("%s: %s for one of the %g runs that start in a second",
				of, term.Plural(r.Throttled, "session waits", "sessions wait"), *r.RunsPerSecond), "compactor limit list")
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return x.elsewhere(ctx, cfg, st)
}

// elsewhere checks that limits count the use in the other databases of the fleet.
func (x *doctorReport) elsewhere(ctx context.Context, cfg config.Config, st *store.Store) error {
	counted, err := st.Admin.Elsewhere(ctx)
	if err != nil {
		return err
	}
	ages := map[string]time.Duration{}
	for _, c := range counted {
		ages[c.Database] = c.Age
		if c.Age < 3*store.ElsewhereWritten && !slices.Contains(cfg.Siblings(), c.Database) {
			x.add("work", "limits", checkWarn, "a scheduler counts what is used in the database "+c.Database+", which this configuration lacks",
				"all processes and commands of a fleet want the same databases in their configuration")
		}
	}
	for _, name := range cfg.Siblings() {
		const fix = "is a scheduler running whose configuration has all databases, and does that database answer?"
		switch age, ok := ages[name]; {
		case !ok:
			x.add("work", "limits", checkWarn, "what is used in the database "+name+" is not counted", fix)
		case age >= 3*store.ElsewhereWritten:
			x.add("work", "limits", checkWarn, fmt.Sprintf("what is used in the database %s was last read %s ago", name,
				term.Duration(age)), fix)
		default:
			x.add("work", "limits", checkOK, "what is used in the database "+name+" counts", "")
		}
	}
	return nil
}

// heldBack lists the reasons for which due sessions do not run, but for pauses and limits, which have lines of
// their own. A fault fails, unless it is retried automatically.
func (x *doctorReport) heldBack(ctx context.Context, st *store.Store) error {
	held, err := st.Operator.HeldBack(ctx, "")
	if err != nil {
		return err
	}
	if len(held) == 0 {
		x.add("work", "held back", checkOK, "nothing", "")
	}
	for _, h := range held {
		status := checkFail
		switch {
		case h.Reason == store.CodePaused || h.Reason == store.CodeRunLimit:
			continue
		case h.Decided || h.Reason == store.HeldPostponed || h.Reason == store.HeldFailed || h.Since != nil && seconds(h.Seconds) < heldBriefly:
			status = checkWarn
		}
		x.add("work", "held back: "+h.Reason, status, fmt.Sprintf("%s%s: %s", plural(h.Sessions, "session"), heldTimes(h),
			h.Text()), "ended by: "+h.EndsBy)
	}
	return nil
}

// heldBriefly is how long a fault may hold sessions back without a failed check:
// while a process restarts, or another one takes over.
const heldBriefly = time.Minute

// pauses lists the pauses of operators.
func (x *doctorReport) pauses(ctx context.Context, st *store.Store) error {
	pauses, err := st.Operator.Pauses(ctx)
	if err != nil {
		return err
	}
	if len(pauses) == 0 {
		x.add("work", "pauses", checkOK, "none", "")
	}
	for _, p := range pauses {
		x.add("work", "pauses", checkWarn, pauseText(p), "compactor resume")
	}
	return nil
}

// errFindings sets the exit code when a check failed; the report is already written.
var errFindings = &exitError{code: exitFindings}

func (x *doctorReport) report() error {
	section := map[string]int{} // in the order of their first checks
	for _, c := range x.checks {
		if _, known := section[c.Section]; !known {
			section[c.Section] = len(section)
		}
	}
	slices.SortStableFunc(x.checks, func(a, b check) int { return section[a.Section] - section[b.Section] })
	failed := 0
	for _, c := range x.checks {
		if c.Status == checkFail {
			failed++
		}
	}
	if x.env.JSON {
		if err := term.JSON(x.env.Out.W, map[string]any{
			"ok": failed == 0, "failed": failed, "checks": x.checks, "findings": x.findings, "fixed": x.fixed,
		}); err != nil {
			return err
		}
	} else {
		x.lines(failed)
	}
	if failed > 0 {
		return errFindings
	}
	return nil
}

func (x *doctorReport) lines(failed int) {
	marks := map[string]string{
		checkOK: x.env.Out.Green("✓"), checkWarn: x.env.Out.Yellow("!"), checkFail: x.env.Out.Red("✗"), checkSkip: x.env.Out.Dim("–"),
	}
	section := ""
	for _, c := range x.checks {
		if c.Section != section {
			section = c.Section
			x.env.say("%s", x.env.Out.Bold(section))
		}
		line := fmt.Sprintf("  %s %s", marks[c.Status], c.Name)
		if c.Detail != "" {
			line += ": " + term.Clean(c.Detail)
		}
		if c.Advice != "" {
			line += x.env.Out.Dim(" (" + c.Advice + ")")
		}
		x.env.say("%s", line)
		x.listFindings(c.Name, marks)
	}
	if failed > 0 {
		x.env.say("%s", x.env.Out.Red(term.Plural(failed, "check failed", "checks failed")))
		return
	}
	x.env.say("%s", x.env.Out.Green("all checks passed"))
}
