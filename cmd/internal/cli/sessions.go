package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type sessionsCmd struct {
	Due        bool       `help:"Only sessions due for compaction."`
	ChildrenOf string     `placeholder:"SESSION" help:"Only children of this session."`
	AllTenants allTenants `help:"Sessions of every tenant."`
	Limit      int        `default:"50" range:"1,100000" help:"Maximum number of sessions."`
	After      int64      `placeholder:"CURSOR" help:"Continue behind this cursor, which the previous page ended with."`
}

func (c *sessionsCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	rows, next, err := st.Operator.Sessions(ctx, store.SessionFilter{
		Tenant: c.AllTenants.tenant(cfg), Due: c.Due,
		ChildrenOf: c.ChildrenOf, After: c.After, Limit: c.Limit,
	})
	if err != nil {
		return err
	}
	for i, r := range rows {
		rows[i] = reports.WithStart(cfg, r)
	}
	family := slices.ContainsFunc(rows, func(r store.SessionRow) bool { return r.Parent != "" || r.Children > 0 })
	err = list(e, "sessions", rows, "no sessions", sessionColumns(e).without(family, "parent",
		"children").without(bool(c.AllTenants), "tenant"))
	if err == nil && !e.JSON && next > 0 {
		e.note("there may be more: --after %d", next)
	}
	return err
}

func sessionColumns(e *Env) columns[store.SessionRow] {
	return columns[store.SessionRow]{
		{"tenant", term.Text("TENANT"), nil},
		{"session", term.Text("SESSION"), nil},
		{"model", term.Text("MODEL"), nil},
		{"messages_in_view", term.Num("IN VIEW"), nil},
		{"context_tokens", term.Num("TOKENS"), func(r store.SessionRow) any { return term.Tokens(r.ContextTokens) }},
		{"start_tokens", term.Num("OF START"), func(r store.SessionRow) any {
			return when(r.DueTokens > 0,
				term.Percent(r.ContextTokens, r.DueTokens))
		}},
		{"due", term.Text("DUE"), func(r store.SessionRow) any {
			return term.Styled{Value: when(r.Due, cmp.Or(when(r.Suspect, "repair"), "due")), As: e.Out.Yellow}
		}},
		{"last_message_at", term.Num("IDLE"), func(r store.SessionRow) any { return e.since(r.LastMessageAt) }},
		{"messages", term.Num("MESSAGES").IfRoom(), nil},
		{"revision", term.ID("REVISION").IfRoom(), nil},
		{"parent", term.Text("PARENT").IfRoom(), nil},
		{"children", term.Num("CHILDREN").IfRoom(), nil},
	}
}
