package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// pauseScope selects what a pause holds; with --tenant, which is a setting.
type pauseScope struct {
	All   bool   `help:"All sessions."`
	Model string `placeholder:"PREFIX" help:"Sessions whose model begins with this; with --tenant, those of the tenant."`
}

// scope returns tenant and model, empty ones for all.
func (p pauseScope) scope(e *Env) (tenant, model string, err error) {
	tenant, model = e.flags["tenant"], strings.TrimSpace(p.Model)
	switch {
	case p.All && (tenant != "" || model != ""):
		return "", "", wrong("give --all, or --tenant and --model")
	case !p.All && tenant == "" && model == "":
		return "", "", wrong("give --tenant, --model or --all: what to pause or resume has no default")
	}
	return tenant, model, nil
}

type pauseCmd struct {
	pauseScope

	Note string `placeholder:"TEXT" help:"Why: shown by everything that the pause holds back."`
	List bool   `help:"List what is paused."`
}

func (*pauseCmd) Help() string {
	return `Holds back all runs of the selected sessions at once, in Postgres, whether Redis can be reached or not: sweeps leave the sessions out (or wait, if all is paused), messages queue nothing, queued automatic runs end as "paused", requested ones wait. Runs that are being executed are not interrupted. "compact --force" and undo work meanwhile. "resume" with the same flags ends the pause; what is due is then found within scheduler.reconcile_interval.

Examples:

    compactor pause --tenant acme --note "migrating their agents"
    compactor pause --model claude-fable --note "400s after the update"
    compactor pause --all --note "incident 4711"
    compactor pause --list`
}

func (c *pauseCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	if c.List {
		if c.All || c.Model != "" || c.Note != "" || e.flags["tenant"] != "" {
			return wrong("give --list alone")
		}
		return listPauses(ctx, e, st)
	}
	tenant, model, err := c.scope(e)
	if err == nil {
		err = st.PauseRuns(ctx, tenant, model, c.Note, e.by())
	}
	if err != nil {
		return err
	}
	return listPauses(ctx, e, st)
}

type resumeCmd struct{ pauseScope }

func (*resumeCmd) Help() string {
	return `Ends the pause that was made with the same flags ("compactor pause --list" shows all). What another pause holds stays held.`
}

func (c *resumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	tenant, model, err := c.scope(e)
	if err == nil {
		err = st.ResumeRuns(ctx, tenant, model, e.by())
	}
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w (`compactor pause --list`)", err)
	}
	if err != nil {
		return err
	}
	return listPauses(ctx, e, st)
}

func listPauses(ctx context.Context, e *Env, st *store.Store) error {
	pauses, err := st.Pauses(ctx)
	if err != nil {
		return err
	}
	if e.JSON {
		if pauses == nil {
			pauses = []store.Pause{}
		}
		return term.JSON(e.Out.W, map[string]any{"pauses": pauses})
	}
	if len(pauses) == 0 {
		e.say("nothing is paused")
		return nil
	}
	t := e.Out.Table(term.Text("PAUSED TENANT"), term.Text("MODEL"), term.Num("AGE"), term.Text("BY"), term.Text("NOTE"))
	for _, p := range pauses {
		t.Row(cmp.Or(p.Tenant, "all"), cmp.Or(p.Model, "all"), e.since(p.PausedAt), p.RequestedBy, p.Note)
	}
	return t.Write()
}

// pauseText describes a pause in a line.
func pauseText(p store.Pause) string {
	var parts []string
	if p.Tenant != "" {
		parts = append(parts, "tenant "+p.Tenant)
	}
	if p.Model != "" {
		parts = append(parts, "model "+p.Model)
	}
	of := cmp.Or(strings.Join(parts, " with "), "everything")
	return joined(fmt.Sprintf("%s is paused since %s by %s", of, p.PausedAt.UTC().Format("2006-01-02 15:04:05Z"), p.RequestedBy), p.Note)
}
