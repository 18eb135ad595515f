package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// bulkUndoCmd holds the commands for undos of many runs.
type bulkUndoCmd struct {
	Start  bulkUndoStartCmd  `cmd:"" help:"Undo the compactions that match, after a look at what that is about."`
	List   bulkUndoListCmd   `cmd:"" help:"List the latest bulk undos."`
	Show   bulkUndoShowCmd   `cmd:"" help:"Show the progress of a bulk undo, and what it left in force."`
	Resume bulkUndoResumeCmd `cmd:"" help:"Go on with a bulk undo that was interrupted."`
	Cancel bulkUndoCancelCmd `cmd:"" help:"End a bulk undo before its time."`
}

func (*bulkUndoCmd) Help() string {
	return `Each run is undone in a transaction of its own, the newest first, so that an interrupted bulk undo goes on where it was, and holds up no writer. The undos are runs themselves and can be undone. Automatic runs of a session then wait for a new message.

Examples:

    compactor bulk-undo start --writer gpt-5-mini --since 12h --dry-run
    compactor bulk-undo start --policy support@3 --cascade --note "lost the order ids"
    compactor bulk-undo resume 7`
}

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

type bulkUndoStartCmd struct {
	Since      instant   `placeholder:"TIME" help:"Only runs that ended then or later: 12h, 2026-11-20 or 2026-11-20T22:00:00Z."`
	Until      instant   `placeholder:"TIME" help:"Only runs that ended before."`
	Writer     string    `placeholder:"MODEL" help:"Only runs with a summary by models whose name begins so."`
	Model      string    `placeholder:"MODEL" help:"Only sessions with models whose name begins so."`
	Policy     policyRef `placeholder:"NAME[@VERSION]" help:"Only runs under this policy."`
	Strategy   string    `placeholder:"NAME" help:"Only runs with this strategy among their steps."`
	Trigger    string    `placeholder:"NAME" help:"Only runs with this trigger: nightly, event, operator or application."`
	AllTenants bool      `help:"Runs of every tenant."`
	Cascade    bool      `help:"Also undo later runs of the same sessions."`
	Note       string    `help:"Why, for those who look later."`
	confirmFlags
}

func (c *bulkUndoStartCmd) Validate() error {
	triggers := []string{"", store.TriggerNightly, store.TriggerEvent, store.TriggerOperator, store.TriggerApplication}
	if !slices.Contains(triggers, c.Trigger) {
		return fmt.Errorf("--trigger: %s: want %s", c.Trigger, strings.Join(triggers[1:], ", "))
	}
	if c.match(time.Now()) == (store.RunMatch{}) {
		return errors.New("want at least one of --since, --until, --writer, --model, --policy, --strategy and --trigger")
	}
	return nil
}

func (c *bulkUndoStartCmd) match(now time.Time) store.RunMatch {
	return store.RunMatch{
		Since: c.Since.time(now), Until: c.Until.time(now), Trigger: c.Trigger, Strategy: c.Strategy,
		Policy: c.Policy.Name, Version: c.Policy.Version, Model: c.Model, Writer: c.Writer,
	}
}

func (c *bulkUndoStartCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	tenant, of := cfg.Tenant, "of tenant "+term.Clean(cfg.Tenant)
	if c.AllTenants {
		tenant, of = "", "of all tenants"
	}
	m := c.match(e.now())
	p, err := st.PreviewBulkUndo(ctx, tenant, m)
	if err != nil {
		return err
	}
	if !e.JSON {
		later := ""
		switch {
		case p.Later > 0 && c.Cascade:
			later = term.Count(p.Later) + " on top of these, undone with them"
		case p.Later > 0:
			later = term.Count(p.Later) + " on top of these stay, with those below (--cascade undoes all)"
		}
		if err := e.Out.Pairs(
			[2]any{"runs", fmt.Sprintf("%s in force, %s", term.Count(p.Runs), of)},
			[2]any{"sessions", term.Count(p.Sessions)},
			[2]any{"tokens back", term.Count(int64(p.Tokens))},
			[2]any{"later runs", later},
		); err != nil {
			return err
		}
	}
	ok, err := c.confirmed(e, int(p.Runs), "Undo them?")
	if err != nil {
		return err
	}
	if !ok {
		if e.JSON {
			return term.JSON(e.Out.W, map[string]any{"preview": p})
		}
		return nil
	}
	id, err := st.StartBulkUndo(ctx, tenant, m, c.Cascade, c.Note, e.by())
	if err != nil {
		return err
	}
	return runBulkUndo(ctx, e, st, id)
}

// runBulkUndo does what is left of a bulk undo and shows it.
func runBulkUndo(ctx context.Context, e *Env, st *store.Store, id int64) error {
	b, err := st.BulkUndo(ctx, id)
	if err != nil {
		return err
	}
	progress := e.Err.Progress(fmt.Sprintf("bulk undo %d, runs", id), b.Matched)
	progress.Add(b.Undone + b.Refused)
	for {
		step, err := st.NextBulkUndo(ctx, id)
		if err != nil {
			progress.Done("")
			return fmt.Errorf("%w; `compactor bulk-undo resume %d` goes on", err, id)
		}
		if step.Run == 0 {
			break
		}
		progress.Add(1)
	}
	progress.Done("")
	return showBulkUndo(ctx, e, st, id)
}

type bulkUndoArg struct {
	ID int64 `arg:"" name:"bulk-undo" help:"The number of the bulk undo."`
}

func (a bulkUndoArg) Validate() error {
	if a.ID <= 0 {
		return fmt.Errorf("%d: want the number of a bulk undo", a.ID)
	}
	return nil
}

type bulkUndoResumeCmd struct{ bulkUndoArg }

func (c *bulkUndoResumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return runBulkUndo(ctx, e, st, c.ID)
}

type bulkUndoCancelCmd struct{ bulkUndoArg }

func (c *bulkUndoCancelCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	if err := st.CancelBulkUndo(ctx, c.ID); err != nil {
		return err
	}
	return showBulkUndo(ctx, e, st, c.ID)
}

type bulkUndoShowCmd struct{ bulkUndoArg }

func (c *bulkUndoShowCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return showBulkUndo(ctx, e, st, c.ID)
}

// maxRefusals is the number of runs left in force that are shown.
const maxRefusals = 20

// refusals explains the codes of runs that a bulk undo leaves in force.
var refusals = map[string]string{
	"later_runs":     "later runs are on top of it (--cascade)",
	"in_use":         "a tool loop with signed reasoning is open",
	"locked":         "a writer held the session for longer than 2 s",
	"not_applicable": "it was undone meanwhile",
}

func showBulkUndo(ctx context.Context, e *Env, st *store.Store, id int64) error {
	b, err := st.BulkUndo(ctx, id)
	if err != nil {
		return err
	}
	left, err := st.BulkUndoRefusals(ctx, id, maxRefusals)
	if err != nil {
		return err
	}
	b.RequestedAt = b.RequestedAt.UTC()
	if e.JSON {
		return term.JSON(e.Out.W, struct {
			store.BulkUndo
			Refusals []store.BulkUndoRefusal `json:"refusals,omitempty"`
		}{b, left})
	}
	status := b.Status
	if b.Status == "open" {
		status += fmt.Sprintf(" (`compactor bulk-undo resume %d` goes on)", b.ID)
	}
	if err := e.Out.Pairs(
		[2]any{"bulk undo", b.ID},
		[2]any{"status", status},
		[2]any{"runs", fmt.Sprintf("%s matched: %s undone, %s left in force", term.Count(b.Matched), term.Count(b.Undone), term.Count(b.Refused))},
		[2]any{"matched", matchText(b)},
		[2]any{"requested by", b.RequestedBy},
		[2]any{"requested", b.RequestedAt},
		[2]any{"note", b.Note},
	); err != nil || len(left) == 0 {
		return err
	}
	e.say("")
	t := e.Out.Table(term.Num("RUN"), term.Text("SESSION"), term.Text("LEFT IN FORCE BECAUSE"))
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

// matchText returns the filter of a bulk undo in the words of the flags.
func matchText(b store.BulkUndo) string {
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
	add("trigger", b.Match.Trigger)
	if b.Cascade {
		parts = append(parts, "with later runs")
	}
	return strings.Join(parts, ", ")
}

type bulkUndoListCmd struct {
	Limit int `default:"20" help:"Maximum number of bulk undos."`
}

func (c *bulkUndoListCmd) Validate() error { return validLimit(c.Limit) }

func (c *bulkUndoListCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	rows, err := st.BulkUndos(ctx, c.Limit)
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"bulk_undos": append([]store.BulkUndo{}, rows...)})
	}
	if len(rows) == 0 {
		e.note("no bulk undos")
		return nil
	}
	t := e.Out.Table(term.Num("BULK UNDO"), term.Text("STATUS"), term.Num("UNDONE"), term.Num("LEFT"), term.Num("AGE"), term.Text("MATCHED").IfRoom())
	for _, b := range rows {
		t.Row(b.ID, b.Status, b.Undone, b.Refused, e.since(b.RequestedAt), matchText(b))
	}
	return t.Write()
}
