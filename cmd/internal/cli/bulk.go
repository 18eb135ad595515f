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
	Since      instant   `placeholder:"TIME" help:"Only runs that ended then or later: 12h, 2026-11-20 or 2026-11-20T22:00:00Z."`
	Until      instant   `placeholder:"TIME" help:"Only runs that ended before."`
	Writer     string    `placeholder:"MODEL" help:"Only runs with a summary by models whose name begins so."`
	Model      string    `placeholder:"MODEL" help:"Only sessions with models whose name begins so."`
	Policy     policyRef `placeholder:"NAME[@VERSION]" help:"Only runs under this policy."`
	Strategy   string    `placeholder:"NAME" help:"Only runs with this strategy among their steps."`
	Trigger    string    `placeholder:"NAME" help:"Only runs with this trigger: sweep (or nightly), event, operator, application or bulk."`
	Outcome    string    `placeholder:"CODE" help:"Only runs with this outcome, such as no_summary."`
	AllTenants bool      `help:"Runs of every tenant."`
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

// tenant returns the tenant that is selected, empty for all, and its description.
func (f *bulkFilter) tenant(cfg config.Config) (tenant, of string) {
	if f.AllTenants {
		return "", "of all tenants"
	}
	return cfg.Tenant, "of tenant " + term.Clean(cfg.Tenant)
}

// bulkStart holds the other flags of a start.
type bulkStart struct {
	Note string `help:"Why, for those who look later."`
	confirmFlags
}

// agreed reports whether to start after a look at what matches. Without, it writes the preview
// for --json.
func (c bulkStart) agreed(e *Env, matched int64, question string, preview any) (bool, error) {
	ok, err := c.confirmed(e, int(matched), question)
	if err == nil && !ok && e.JSON {
		err = term.JSON(e.Out.W, map[string]any{"preview": preview})
	}
	return ok, err
}

// bulkArg names a bulk operation.
type bulkArg struct {
	ID int64 `arg:"" name:"number" help:"The number that start and list show."`
}

func (a bulkArg) Validate() error {
	if a.ID <= 0 {
		return fmt.Errorf("%d: want the number of a bulk operation", a.ID)
	}
	return nil
}

func (a bulkArg) cancel(ctx context.Context, e *Env, st *store.Store, kind string) error {
	if err := st.Operator.CancelBulk(ctx, kind, a.ID); err != nil {
		return err
	}
	return showBulk(ctx, e, st, kind, a.ID)
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
	if e.JSON {
		return term.JSON(e.Out.W, struct {
			store.BulkOperation
			Refusals []store.BulkRefusal `json:"refusals,omitempty"`
			Outcomes []store.RunOutcome  `json:"outcomes,omitempty"`
		}{b, left, outcomes})
	}
	status, because := b.Status, "LEFT IN FORCE BECAUSE"
	progress := [2]any{"runs", fmt.Sprintf("%s matched: %s undone, %s left in force", term.Count(b.Matched), term.Count(b.Done), term.Count(b.Refused))}
	var runs int64
	if kind == store.BulkCompact {
		runs, because = b.Done-b.Waiting-b.Running, "LEFT OUT BECAUSE"
		progress = [2]any{"sessions", fmt.Sprintf("%s matched: %s recompacted, %s waiting, %s running, %s left out",
			term.Count(b.Matched), term.Count(runs), term.Count(b.Waiting), term.Count(b.Running), term.Count(b.Refused))}
	}
	if b.Status == "stopped" {
		status += ", as too many of its runs failed"
	}
	if b.Status == "open" || b.Status != "done" && kind == store.BulkCompact {
		status += fmt.Sprintf(" (`compactor bulk-%s resume %d` goes on)", kind, b.ID)
	}
	held, limit := "", ""
	if b.Status == "open" && kind == store.BulkCompact {
		if held, err = pauseOfAll(ctx, st, b.Tenant); err != nil {
			return err
		}
		if _, limit, err = runLimit(ctx, e, st, b.Tenant); err != nil {
			return err
		}
	}
	if err := e.Out.Pairs(
		[2]any{"bulk " + kind, strconv.FormatInt(b.ID, 10)},
		[2]any{"status", status},
		[2]any{"waits", held},
		[2]any{"limit", limit},
		progress,
		[2]any{"matched", matchText(b)},
		[2]any{"requested by", b.RequestedBy},
		[2]any{"requested", b.RequestedAt},
		[2]any{"note", b.Note},
	); err != nil {
		return err
	}
	if len(outcomes) > 0 {
		e.say("")
		if err := writeOutcomes(e, outcomes, runs); err != nil {
			return err
		}
	}
	if len(left) == 0 {
		return nil
	}
	e.say("")
	t := e.Out.Table(term.ID("RUN"), term.Text("SESSION"), term.Text(because))
	for _, r := range left {
		t.Row(r.Run, term.Clean(r.Session), refusals[r.Code])
	}
	if err := t.Write(); err != nil {
		return err
	}
	if b.Refused > maxRefusals {
		e.note("%s more", term.Count(b.Refused-maxRefusals))
	}
	return nil
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

type bulkList struct {
	Limit int `default:"20" help:"Maximum number of lines."`
}

func (c bulkList) Validate() error { return validLimit(c.Limit) }

func (c bulkList) list(ctx context.Context, e *Env, st *store.Store, kind string) error {
	rows, err := st.Operator.Bulks(ctx, kind, c.Limit)
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"bulk_" + kind + "s": append([]store.BulkOperation{}, rows...)})
	}
	if len(rows) == 0 {
		e.note("no bulk %ss", kind)
		return nil
	}
	done := map[string]string{store.BulkUndo: "UNDONE", store.BulkCompact: "QUEUED"}[kind]
	t := e.Out.Table(term.ID("BULK "+strings.ToUpper(kind)), term.Text("STATUS"), term.Num(done), term.Num("LEFT"), term.Num("AGE"), term.Text("MATCHED").IfRoom())
	for _, b := range rows {
		t.Row(b.ID, b.Status, b.Done, b.Refused, e.since(b.RequestedAt), matchText(b))
	}
	return t.Write()
}
