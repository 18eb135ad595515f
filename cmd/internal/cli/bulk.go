package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// instant is a time: as RFC 3339, a date in UTC, or how long ago it is.
type instant struct {
	at  time.Time
	ago time.Duration
}

// UnmarshalText parses a time.
func (t *instant) UnmarshalText(text []byte) error {
	s := string(text)
	if ago, err := time.ParseDuration(s); err == nil && ago > 0 {
		t.ago = ago
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, s); err == nil {
			t.at = at
			return nil
		}
	}
	return fmt.Errorf("%q: want a time such as 2026-11-20T22:00:00Z, a date, or how long ago, such as 12h", s)
}

func (t instant) time(now time.Time) time.Time {
	if t.ago > 0 {
		return now.Add(-t.ago)
	}
	return t.at
}

// bulkFilter selects the runs that a bulk operation is about; with --tenant, which is a setting.
type bulkFilter struct {
	Since      instant    `placeholder:"TIME" help:"Only runs that ended then or later: 12h, 2026-11-20 or 2026-11-20T22:00:00Z."`
	Until      instant    `placeholder:"TIME" help:"Only runs that ended before."`
	Writer     string     `placeholder:"MODEL" help:"Only runs with a summary by models whose name begins so."`
	Model      string     `placeholder:"MODEL" help:"Only sessions with models whose name begins so."`
	Policy     policyRef  `placeholder:"NAME[@VERSION]" help:"Only runs under this policy."`
	Strategy   string     `placeholder:"NAME" help:"Only runs with this strategy among their steps."`
	Trigger    string     `placeholder:"NAME" help:"Only runs with this trigger: sweep (or nightly), event, operator, application or bulk."`
	Outcome    string     `placeholder:"CODE" help:"Only runs with this outcome, such as no_summary."`
	AllTenants allTenants `help:"Runs of every tenant."`
}

func (f *bulkFilter) Validate() error {
	if f.Trigger == triggerName(store.TriggerNightly) {
		f.Trigger = store.TriggerNightly
	}
	triggers := []string{"", store.TriggerNightly, store.TriggerEvent, store.TriggerOperator, store.TriggerApplication, store.TriggerBulk}
	if !slices.Contains(triggers, f.Trigger) {
		return fmt.Errorf("--trigger: %s: want %s", f.Trigger, strings.Join(triggers[1:], ", "))
	}
	if f.match(time.Now()) == (store.RunMatch{}) {
		return errors.New("want at least one of --since, --until, --writer, --model, --policy, --strategy, --trigger and --outcome")
	}
	return nil
}

func (f *bulkFilter) match(now time.Time) store.RunMatch {
	return store.RunMatch{
		Since: f.Since.time(now), Until: f.Until.time(now), Trigger: f.Trigger, Outcome: f.Outcome, Strategy: f.Strategy,
		Policy: f.Policy.Name, Version: f.Policy.Version, Model: f.Model, Writer: f.Writer,
	}
}

// bulkStart holds the other flags of a start.
type bulkStart struct {
	Note string `help:"Why, for those who look later."`
	confirmFlags
}

// bulkKind is a kind of bulk operations: undoing or compacting.
type bulkKind interface{ kind() string }

type (
	undoing    struct{}
	compacting struct{}
)

func (undoing) kind() string    { return store.BulkUndo }
func (compacting) kind() string { return store.BulkCompact }

// bulkArg names a bulk operation.
type bulkArg struct {
	ID int64 `arg:"" name:"number" range:"1," want:"the number of a bulk operation" help:"The number that start and list show."`
}

type bulkShowCmd[K bulkKind] struct{ bulkArg }

func (c *bulkShowCmd[K]) Run(ctx context.Context, e *Env, st *store.Store) error {
	var k K
	return showBulk(ctx, e, st, k.kind(), c.ID)
}

type bulkCancelCmd[K bulkKind] struct{ bulkArg }

func (c *bulkCancelCmd[K]) Run(ctx context.Context, e *Env, st *store.Store) error {
	var k K
	if err := st.Operator.CancelBulk(ctx, k.kind(), c.ID); err != nil {
		return err
	}
	return showBulk(ctx, e, st, k.kind(), c.ID)
}

type bulkListCmd[K bulkKind] struct {
	Limit int `default:"20" range:"1,100000" help:"Maximum number of lines."`
}

func (c *bulkListCmd[K]) Run(ctx context.Context, e *Env, st *store.Store) error {
	var k K
	kind := k.kind()
	rows, err := st.Operator.Bulks(ctx, kind, c.Limit)
	if err != nil {
		return err
	}
	done := map[string]string{store.BulkUndo: "UNDONE", store.BulkCompact: "QUEUED"}[kind]
	return list(e, "bulk_"+kind+"s", rows, "no bulk "+kind+"s", columns[store.BulkOperation]{
		{"id", term.ID("BULK " + strings.ToUpper(kind)), nil},
		{"status", term.Text("STATUS"), nil},
		{"done", term.Num(done), nil},
		{"refused", term.Num("LEFT"), nil},
		{"requested_at", term.Num("AGE"), func(b store.BulkOperation) any { return e.since(b.RequestedAt) }},
		{"filter", term.Text("MATCHED").IfRoom(), func(b store.BulkOperation) any { return matchText(b) }},
	})
}

// maxRefusals is the number of runs or sessions left alone that are shown.
const maxRefusals = 20

// refusals explains why a bulk operation leaves a run in force, or a session out.
var refusals = map[string]string{
	"later_runs":     "later runs are on top of it (--cascade)",
	"in_use":         "a tool loop with signed reasoning is open",
	"locked":         "a writer held the session for longer than 2 s",
	"not_applicable": "it was undone meanwhile",
	"paused":         "it is paused (`compactor pause --list`)",
	"archived":       "words of the view before it are in the archive (`compactor restore`)",
	"purged":         "words of the view before it were purged",
	"under_way":      "an operator's run of it was queued or running",
}

func showBulk(ctx context.Context, e *Env, st *store.Store, kind string, id int64) error {
	b, err := st.Operator.Bulk(ctx, kind, id)
	if err != nil {
		return err
	}
	left, err := st.Operator.BulkRefusals(ctx, id, maxRefusals)
	if err != nil {
		return err
	}
	outcomes, err := st.Operator.BulkOutcomes(ctx, id)
	if err != nil {
		return err
	}
	b.RequestedAt = b.RequestedAt.UTC()
	status, because := b.Status, "LEFT IN FORCE BECAUSE"
	progress := pair{"runs", fmt.Sprintf("%s matched: %s undone, %s left in force", term.Count(b.Matched), term.Count(b.Done),
		term.Count(b.Refused))}
	ended := int64(0)
	if kind == store.BulkCompact {
		ended, because = b.Done-b.Waiting-b.Running, "LEFT OUT BECAUSE"
		progress = pair{"sessions", fmt.Sprintf("%s matched: %s recompacted, %s waiting, %s running, %s left out",
			term.Count(b.Matched), term.Count(ended), term.Count(b.Waiting), term.Count(b.Running), term.Count(b.Refused))}
	}
	if b.Status == "stopped" {
		status += ", as too many of its runs failed"
	}
	if b.Status == "open" || b.Status != "done" && kind == store.BulkCompact {
		status += fmt.Sprintf(" (`compactor bulk-%s resume %d` goes on)", kind, b.ID)
	}
	held, limit := "", ""
	if b.Status == "open" && kind == store.BulkCompact {
		if held, limit, err = waits(ctx, e, st, b.Tenant); err != nil {
			return err
		}
	}
	return e.show(struct {
		store.BulkOperation
		Refusals []store.BulkRefusal `json:"refusals,omitempty"`
		Outcomes []store.RunOutcome  `json:"outcomes,omitempty"`
	}{b, left, outcomes}, func() {
		e.pairs(
			pair{"bulk " + kind, strconv.FormatInt(b.ID, 10)},
			pair{"status", status},
			pair{"waits", held},
			pair{"limit", limit},
			progress,
			pair{"matched", matchText(b)},
			pair{"requested by", b.RequestedBy},
			pair{"requested", b.RequestedAt},
			pair{"note", b.Note},
		)
		writeOutcomes(e, outcomes, ended)
		if len(left) == 0 {
			return
		}
		e.say("")
		columns[store.BulkRefusal]{
			{"run", term.ID("RUN"), nil},
			{"session", term.Text("SESSION"), nil},
			{"code", term.Text(because), func(r store.BulkRefusal) any { return refusals[r.Code] }},
		}.write(e, left)
		if b.Refused > maxRefusals {
			e.note("%s more", term.Count(b.Refused-maxRefusals))
		}
	})
}

// matchText returns the filter of a bulk operation in the words of the flags.
func matchText(b store.BulkOperation) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+term.Clean(value))
		}
	}
	add("tenant", b.Tenant)
	moment := func(name string, t time.Time) {
		if !t.IsZero() {
			add(name, t.UTC().Format("2006-01-02 15:04:05 MST"))
		}
	}
	moment("since", b.Match.Since)
	moment("until", b.Match.Until)
	add("writer", b.Match.Writer)
	add("model", b.Match.Model)
	if b.Match.Policy != "" {
		add("policy", store.PolicyName(b.Match.Policy, b.Match.Version))
	}
	add("strategy", b.Match.Strategy)
	add("trigger", triggerName(b.Match.Trigger))
	add("outcome", b.Match.Outcome)
	add("from", b.Options.From)
	if b.Cascade {
		parts = append(parts, "with later runs")
	}
	if b.Options.AllowGrowth {
		parts = append(parts, "views may grow")
	}
	return strings.Join(parts, ", ")
}

// bulkCompactCmd holds the commands for recompactions of many sessions.
type bulkCompactCmd struct {
	Start  bulkCompactStartCmd       `cmd:"" help:"Compact the sessions again whose last run matches, after a look at what that is about."`
	List   bulkListCmd[compacting]   `cmd:"" help:"List the latest bulk recompactions."`
	Show   bulkShowCmd[compacting]   `cmd:"" help:"Show the progress of a bulk recompaction, how its runs ended, and what it left out."`
	Resume bulkCompactResumeCmd      `cmd:"" help:"Follow a bulk recompaction; go on with one that was cancelled or stopped."`
	Cancel bulkCancelCmd[compacting] `cmd:"" help:"End a bulk recompaction before its time."`
}

type bulkCompactStartCmd struct {
	bulkFilter

	From        string `enum:"log,view" default:"log" placeholder:"log|view" help:"Plan over the whole log, ignoring earlier runs, or over the present views."`
	AllowGrowth bool   `help:"Apply results by which a view grows, too."`
	stopFlag
	Wait bool `default:"true" negatable:"" help:"Follow it until all runs have ended."`
	bulkStart
}

func (c *bulkCompactStartCmd) Validate() error {
	return errors.Join(c.bulkFilter.Validate(), c.stopFlag.Validate())
}

func (c *bulkCompactStartCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	tenant, m := c.AllTenants.tenant(cfg), c.match(e.now())
	p, err := st.Operator.PreviewBulkCompact(ctx, tenant, m)
	if err != nil {
		return err
	}
	ok, err := c.agreed(e, int(p.Sessions), "Compact them again?", map[string]any{"preview": p}, func() {
		e.pairs(
			pair{"sessions", fmt.Sprintf("%s, of %s", term.Count(p.Sessions), reports.TenantText(tenant))},
			pair{"paused", when(p.Paused > 0, term.Count(p.Paused)+" of them, left out")},
			pair{"tokens", fmt.Sprintf("%s in their views, %s in their logs", term.Count(int64(p.Tokens)), term.Count(int64(p.LogTokens)))},
		)
	})
	if err != nil || !ok {
		return err
	}
	id, err := st.Operator.StartBulkCompact(ctx, tenant, m, store.Options{From: c.From, AllowGrowth: c.AllowGrowth}, c.StopAt,
		c.Note, e.by())
	switch {
	case err != nil:
		return err
	case !c.Wait:
		return showBulk(ctx, e, st, store.BulkCompact, id)
	}
	return followBulkCompact(ctx, e, st, id)
}

// followBulkCompact shows the progress of a bulk recompaction until all of its runs have ended.
func followBulkCompact(ctx context.Context, e *Env, st *store.Store, id int64) error {
	known := false
	err := e.watch(ctx, fmt.Sprintf("bulk compact %d, sessions", id), 200*time.Millisecond,
		func() (total *int64, done int64, ended bool, err error) {
			b, err := st.Operator.Bulk(ctx, store.BulkCompact, id)
			known = known || err == nil
			return &b.Matched, b.Done - b.Waiting - b.Running + b.Refused, b.Settled(), err
		})
	if err != nil {
		if known {
			e.note("it continues in the background; `compactor bulk-compact resume %d%s` follows it", id, e.at())
		}
		return err
	}
	return showBulk(ctx, e, st, store.BulkCompact, id)
}

type bulkCompactResumeCmd struct{ bulkArg }

func (c *bulkCompactResumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	b, err := st.Operator.Bulk(ctx, store.BulkCompact, c.ID)
	if err == nil && b.Status != "done" {
		err = st.Operator.ResumeBulkCompact(ctx, c.ID)
	}
	if err != nil {
		return err
	}
	return followBulkCompact(ctx, e, st, c.ID)
}

// bulkUndoCmd holds the commands for undos of many runs.
type bulkUndoCmd struct {
	Start  bulkUndoStartCmd       `cmd:"" help:"Undo the compactions that match, after a look at what that is about."`
	List   bulkListCmd[undoing]   `cmd:"" help:"List the latest bulk undos."`
	Show   bulkShowCmd[undoing]   `cmd:"" help:"Show the progress of a bulk undo, and what it left in force."`
	Resume bulkUndoResumeCmd      `cmd:"" help:"Go on with a bulk undo that was interrupted."`
	Cancel bulkCancelCmd[undoing] `cmd:"" help:"End a bulk undo before its time."`
}

type bulkUndoStartCmd struct {
	bulkFilter

	Cascade bool `help:"Also undo later runs of the same sessions."`
	bulkStart
}

func (c *bulkUndoStartCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	tenant, m := c.AllTenants.tenant(cfg), c.match(e.now())
	p, err := st.Operator.PreviewBulkUndo(ctx, tenant, m)
	if err != nil {
		return err
	}
	later := " on top of these stay, with those below (--cascade undoes all)"
	if c.Cascade {
		later = " on top of these, undone with them"
	}
	ok, err := c.agreed(e, int(p.Runs), "Undo them?", map[string]any{"preview": p}, func() {
		e.pairs(
			pair{"runs", fmt.Sprintf("%s in force, of %s", term.Count(p.Runs), reports.TenantText(tenant))},
			pair{"sessions", term.Count(p.Sessions)},
			pair{"tokens back", term.Count(int64(p.Tokens))},
			pair{"later runs", when(p.Later > 0, term.Count(p.Later)+later)},
		)
	})
	if err != nil || !ok {
		return err
	}
	id, err := st.Operator.StartBulkUndo(ctx, tenant, m, c.Cascade, c.Note, e.by())
	if err != nil {
		return err
	}
	return runBulkUndo(ctx, e, st, id)
}

// runBulkUndo undoes the remaining runs of a bulk undo and shows it.
func runBulkUndo(ctx context.Context, e *Env, st *store.Store, id int64) error {
	b, err := st.Operator.Bulk(ctx, store.BulkUndo, id)
	if err != nil {
		return err
	}
	progress := e.Err.Progress(fmt.Sprintf("bulk undo %d, runs", id), b.Matched)
	progress.Add(b.Done + b.Refused)
	for {
		step, err := st.Operator.NextBulkUndo(ctx, id)
		if err != nil {
			progress.Done("")
			if errors.Is(err, store.ErrNotApplicable) { // it says what to do instead
				return err
			}
			return fmt.Errorf("%w; `compactor bulk-undo resume %d%s` goes on", err, id, e.at())
		}
		if step.Run == 0 {
			break
		}
		progress.Add(1)
	}
	progress.Done("")
	return showBulk(ctx, e, st, store.BulkUndo, id)
}

type bulkUndoResumeCmd struct{ bulkArg }

func (c *bulkUndoResumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return runBulkUndo(ctx, e, st, c.ID)
}
