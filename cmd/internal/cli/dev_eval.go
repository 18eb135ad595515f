//go:build !nodev

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

type evalCmd struct {
	Files   []string  `arg:"" optional:"" name:"file" help:"More files, as with --from."`
	From    []string  `sep:"none" placeholder:"FILE" help:"Replay the sessions of this file; - is standard input. Repeatable."`
	Session []string  `sep:"none" placeholder:"ID" help:"Replay all messages of this stored session; repeatable."`
	Limit   int       `range:"0," placeholder:"N" help:"Replay N sessions at most; without --from and --session, stored ones of the tenant."`
	Format  string    `default:"auto" placeholder:"NAME" help:"Format of the files, else found by their content: ${formats}."`
	Model   string    `placeholder:"NAME" help:"Model of sessions without one."`
	Cut     []float64 `default:"0.5" placeholder:"SHARE" help:"Cut sessions at this share of their tokens, between 0 and 1 (0.5); several are measured one by one."`
	Counter string    `enum:"session,chars4" default:"session" placeholder:"NAME" help:"What counts tokens: session, the counter of each session's model, or chars4, four characters."`
	Budget  []string  `placeholder:"SHARE" help:"Keep at most this share of the tokens before the cut, above 0 and up to 1 (0.05), or this number of tokens (600t), or what the policy itself says (policy, the default for --policy configured alone)."`
	Rounds  int       `default:"1" range:"1,1000" placeholder:"N" help:"Measure sessions that are compacted N times as they grow up to the cut, beside one compaction of the whole."`
	Policy  []string  `sep:"none" placeholder:"NAME,…" help:"Policies to measure; by default the baselines and extractive."`
	Compare []string  `sep:"none" placeholder:"A,B" help:"Compare two of the policies on the same sessions; repeatable. Two policies are always compared."`
	Jobs    int       `range:"0," placeholder:"N" help:"Sessions measured at a time; by default the number of processors."`
	State   string    `placeholder:"FILE" help:"Store measurements in this file and resume from it."`
	Samples int       `range:"0," placeholder:"N" help:"Show the text that each policy kept of the first N sessions."`
	CSV     string    `name:"csv" placeholder:"FILE" help:"Write the figures to this file as CSV."`
	HTML    string    `name:"html" placeholder:"FILE" help:"Write a self-contained report with plots to this file."`
}

func (*evalCmd) Help() string {
	var b strings.Builder
	b.WriteString(`Cuts each session in two, compacts the messages before the cut within a budget under each policy, and counts the identifiers (paths, ids, numbers, quoted names) used after the cut that the result still contains: loose, anywhere; keyed, after a word that labelled them before; strict, of those that the assistant had to remember; rare, of those in at most 5 % of the sessions. Figures are pooled over sessions. A token is what the counter of the session's model says, as for a worker, or with --counter chars4 four characters; system messages are not counted. Sessions are cut by characters.

Beside these, it counts the identifiers that the assistant uses in the next 10 messages (next10), the beginnings of the user's messages (asks; asks3, of the latest three), sentences with constraints of the user, words that few messages and few sessions have and that the user or the assistant uses after the cut (words; of scripts without blanks, sequences of three characters), lines about failures (errors), and the answers that the sessions of a file have under "facts", a list of {"answer", "message"}. Of the block of references of a summary, the precision is the share that is used after the cut.

Results are written only to the named files. Models are called only for the policy "model" and for pipelines that summarize, and only if models are configured.

Policies can be presets, "default" (the pipeline without a configuration, within its limits), "configured" (that of the configuration), and strategies by name, with parameters (tool_result:keep_last_tool_call_groups=2) and joined by + as a pipeline; the budget is their target, and with policy.fallback, which is on by default, the oldest messages are removed until it is met; messages that must stay may take more, as notes say. With --budget policy, sessions grow by one message after the other up to the cut, and each pipeline runs as a worker runs it: at the start of its policy down to the target, in the window of the session's model, by its triggers and guards, and not where it saves less than the minimum; only times and limits of spending have no part. "configured" alone is measured beside the defaults and all presets, over all files and for each, and notes say which of them does better: in some measure, by an interval, and worse in none. Further policies:

`)
	for _, p := range append(eval.Baselines(), evalExtractive()) {
		writeHelpItem(&b, "    ", p.Name, p.Doc)
	}
	writeHelpItem(&b, "    ", modelPolicy, modelDoc)
	b.WriteString(`
With --rounds N, the messages up to 1/N of the tokens are compacted first, then the result with the next part, and so on, each time within the whole budget, as a worker compacts a session that grows: a pipeline gets what it kept, and a summary is made from everything that it covers, of which a model reads the summary before and the new messages. Tables mark these figures with ×N, beside those of one compaction.

Intervals are 95 % bootstrap intervals from 2,000 resamples of the sessions. Policies are compared on the same resamples; the verdict is noise if the interval of the difference contains 0 or fewer than six sessions were compared.

An interrupted run with --state can be resumed with the same result. Measurements are identified by a hash of the session and of the definition of the policy; pipelines and summaries are measured again under another version of this program, and samples if the state does not hold their text.

--json writes one object per line for each policy, cut, budget and number of rounds: "budget" is a share, and "budget_tokens" takes its place for a number of tokens, and neither is there for the limits of the policy. Measures are shares from 0 to 1, null where there is nothing to keep.

Examples:

    compactor eval --from history.jsonl --policy drop_oldest,stub200 --budget 0.01,0.02,0.05
    compactor eval --from runs.jsonl --policy extractive --budget 300t,600t,1200t
    compactor eval --from runs.jsonl --cut 0.5,0.75 --html report.html --samples 3
    compactor eval --from runs.jsonl --policy extractive,default --rounds 8
    compactor eval --limit 500 --policy configured,chat --state eval.state --csv figures.csv
    compactor eval --from runs.jsonl --policy "tool_result+truncation" --json | jq .keyed`)
	return b.String()
}

func (c *evalCmd) Validate() error {
	var faults []error
	files := len(c.From)+len(c.Files) > 0
	switch {
	case files && len(c.Session) > 0:
		faults = append(faults, errors.New("give --from or --session, not both"))
	case !files && len(c.Session) == 0 && c.Limit == 0:
		faults = append(faults, errors.New("give --from FILE, --session ID, or --limit N for stored sessions"))
	}
	for _, s := range c.Cut {
		if !(s > 0 && s < 1) { //nolint:staticcheck // rejects NaN too
			faults = append(faults, fmt.Errorf("--cut: %v: want a number between 0 and 1", s))
		}
	}
	_, _, _, err := evalBudgets(c.budgets())
	faults = append(faults, err)
	return errors.Join(faults...)
}

// ownBudget stands for the limits of each policy.
const ownBudget = "policy"

// budgets returns those given, or else the default.
func (c *evalCmd) budgets() []string {
	switch {
	case len(c.Budget) > 0:
		return c.Budget
	case c.advises():
		return []string{ownBudget}
	}
	return []string{"0.05"}
}

// advises reports whether all is about the configured policy.
func (c *evalCmd) advises() bool { return slices.Equal(c.Policy, []string{configuredPolicy}) }

// evalBudgets returns the distinct budgets that are shares of the tokens and those that are
// numbers of tokens, and whether policies are measured at their own limits, too. The error names
// all that are invalid.
func evalBudgets(texts []string) (shares, tokens []float64, own bool, err error) {
	var faults []error
	for _, text := range texts {
		if text == ownBudget {
			own = true
			continue
		}
		number, absolute := strings.CutSuffix(text, "t")
		n, err := strconv.ParseFloat(number, 64)
		switch {
		case err == nil && absolute && n >= 1 && n <= 1e12 && n == math.Trunc(n):
			tokens = append(tokens, n)
		case err == nil && !absolute && n > 0 && n <= 1:
			shares = append(shares, n)
		default:
			faults = append(faults, fmt.Errorf("--budget: %s: want a share above 0 and up to 1, such as 0.05, a whole number of tokens, such as 600t, or %s", text, ownBudget))
		}
	}
	return distinct(shares), distinct(tokens), own, errors.Join(faults...)
}

func (c *evalCmd) Run(ctx context.Context, e *Env, cfg config.Config) (err error) {
	o, err := c.options(e, cfg)
	if err != nil {
		return err
	}
	if c.State != "" {
		if o.State, err = eval.OpenState(c.State); err != nil {
			return wrong("--state: %w", err)
		}
		defer func() { err = errors.Join(err, o.State.Close()) }()
	}
	csv, finish, err := createFile("--csv", c.CSV, io.Discard, slices.Concat(c.From, c.Files, []string{c.State, c.HTML})...)
	if err != nil {
		return err
	}
	defer finish(&err)
	html, finish, err := createFile("--html", c.HTML, io.Discard, slices.Concat(c.From, c.Files, []string{c.State})...)
	if err != nil {
		return err
	}
	defer finish(&err)
	in, err := c.input(ctx, e, cfg)
	if err != nil {
		return err
	}
	defer in.close()
	progress := e.Err.Progress(in.unit, in.total)
	o.Progress = progress.Add
	r, err := eval.Run(ctx, in.all, o)
	if r != nil {
		progress.Done(plural(r.Sessions, "session") + " replayed")
	}
	if err != nil {
		progress.Done("not all of it")
		if ctx.Err() != nil && c.State != "" {
			e.note("%s are in %s: the same command goes on from there", plural(o.State.Len(), "measurement"), c.State)
		}
		if errors.Is(err, eval.ErrNothing) {
			return &exitError{exitUsage, err}
		}
		return err
	}
	return c.write(e, r, csv, html, in.sources)
}

// write writes the result to the selected files and to the output.
func (c *evalCmd) write(e *Env, r *eval.Result, csv, html io.Writer, sources []string) error {
	if err := errors.Join(r.WriteCSV(csv), r.WriteHTML(html, e.now(), sources)); err != nil {
		return err
	}
	if e.JSON {
		for _, line := range r.Notes() {
			e.note("%s", line)
		}
		return r.WriteJSON(e.Out.W)
	}
	return r.WriteTable(e.Out)
}

// options returns the options that the flags select.
func (c *evalCmd) options(e *Env, cfg config.Config) (eval.Options, error) {
	o := eval.Options{Jobs: c.Jobs, Samples: c.Samples, Rounds: c.Rounds, Cuts: distinct(c.Cut)}
	if c.Counter != "chars4" {
		o.Counter = tokens.ForModel
	}
	var err error
	if o.Budgets, o.TokenBudgets, o.OwnLimits, err = evalBudgets(c.budgets()); err != nil {
		return o, err
	}
	if o.Jobs == 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	logger := e.Err.Logger("warn", cfg.Log.Format)
	open := sync.OnceValues(func() (summary.Model, error) { return openModels(cfg, e.Environ, logger, nil, nil) })
	if o.Policies, err = evalPolicies(c.Policy, cfg, e.Registry, open); err != nil {
		return o, err
	}
	if c.advises() {
		others, err := evalPolicies(append([]string{defaultPolicy}, policy.PresetNames()...), cfg, e.Registry, open)
		if err != nil {
			return o, err
		}
		o.Policies, o.Advise = append(o.Policies, others...), configuredPolicy
	}
	var faults []error
	for _, p := range o.Policies {
		if o.OwnLimits && p.Own == nil {
			faults = append(faults, fmt.Errorf("--budget %s: %s has no limits of its own: want presets, %s, %s or pipelines", ownBudget, p.Name, defaultPolicy, configuredPolicy))
		}
	}
	for _, text := range c.Compare {
		pair := splitPolicies([]string{text})
		if err := eval.CheckPair(pair, o.Policies); err != nil {
			faults = append(faults, fmt.Errorf("--compare %s: %w", text, err))
			continue
		}
		o.Compare = append(o.Compare, [2]string{pair[0], pair[1]})
	}
	if len(faults) > 0 {
		return o, &exitError{exitUsage, errors.Join(faults...)}
	}
	if len(o.Compare) == 0 && len(o.Policies) == 2 {
		o.Compare = [][2]string{{o.Policies[0].Name, o.Policies[1].Name}}
	}
	o.Compare = distinct(o.Compare)
	return o, nil
}

// distinct returns the distinct elements in order of first occurrence.
func distinct[T comparable](all []T) []T {
	var out []T
	for _, v := range all {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
