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

// pauseScope selects the sessions of a pause; with --tenant, which is a setting.
type pauseScope struct {
	All    bool   `help:"All sessions."`
	Model  string `placeholder:"PREFIX" help:"Sessions whose model begins with this; with --tenant, those of the tenant."`
	Policy string `placeholder:"NAME" help:"Sessions with this policy; with --tenant or --model, those of them."`
}

func (p pauseScope) scope(e *Env) (store.PauseScope, error) {
	scope := store.PauseScope{Tenant: e.flags["tenant"], Model: strings.TrimSpace(p.Model), Policy: strings.TrimSpace(p.Policy)}
	some := scope != store.PauseScope{}
	switch {
	case p.All && some:
		return scope, wrong("give --all, or --tenant, --model and --policy")
	case !p.All && !some:
		return scope, wrong("give --tenant, --model, --policy or --all: what to pause or resume has no default")
	}
	return scope, nil
}

type pauseCmd struct {
	pauseScope

	Note string `placeholder:"TEXT" help:"Why: shown by everything that the pause holds back."`
	List bool   `help:"List what is paused."`
}

func (c *pauseCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	if c.List {
		if c.pauseScope != (pauseScope{}) || c.Note != "" || e.flags["tenant"] != "" {
			return wrong("give --list alone")
		}
		return listPauses(ctx, e, st)
	}
	scope, err := c.scope(e)
	if err == nil && scope.Model != "" {
		err = e.warnOfModel(ctx, st, scope.Model)
	}
	if err == nil {
		err = st.Operator.PauseRuns(ctx, scope, c.Note, e.by())
	}
	if err != nil {
		return err
	}
	return listPauses(ctx, e, st)
}

type resumeCmd struct{ pauseScope }

func (c *resumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	scope, err := c.scope(e)
	if err == nil {
		err = st.Operator.ResumeRuns(ctx, scope, e.by())
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
	pauses, err := st.Operator.Pauses(ctx)
	if err != nil {
		return err
	}
	return list(e, "pauses", pauses, "nothing is paused", columns[store.Pause]{
		{"tenant", term.Text("PAUSED TENANT"), func(p store.Pause) any { return cmp.Or(p.Tenant, "all") }},
		{"model", term.Text("MODEL"), func(p store.Pause) any { return cmp.Or(p.Model, "all") }},
		{"policy", term.Text("POLICY"), func(p store.Pause) any { return cmp.Or(p.Policy, "all") }},
		{"paused_at", term.Num("AGE"), func(p store.Pause) any { return e.since(p.PausedAt) }},
		{"requested_by", term.Text("BY"), nil},
		{"note", term.Text("NOTE"), nil},
	})
}

// pauseOfAll describes a pause of all sessions of a tenant, or of all with an empty one, if there
// is one.
func pauseOfAll(ctx context.Context, st *store.Store, tenant string) (string, error) {
	pauses, err := st.Operator.Pauses(ctx)
	for _, p := range pauses {
		if p.Model == "" && p.Policy == "" && (p.Tenant == "" || p.Tenant == tenant) {
			return pauseText(p), nil
		}
	}
	return "", err
}

// pauseText describes a pause in a line.
func pauseText(p store.Pause) string {
	var parts []string
	for _, part := range [][2]string{{"tenant ", p.Tenant}, {"model ", p.Model}, {"policy ", p.Policy}} {
		if part[1] != "" {
			parts = append(parts, part[0]+part[1])
		}
	}
	of := cmp.Or(strings.Join(parts, " with "), "everything")
	return joined(fmt.Sprintf("%s is paused since %s by %s", of, timeText(p.PausedAt), p.RequestedBy), p.Note)
}
