package cli

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

type sessionsCmd struct {
	Due        bool   `help:"Only sessions due for compaction."`
	ChildrenOf string `placeholder:"SESSION" help:"Only children of this session."`
	AllTenants bool   `help:"Sessions of every tenant."`
	Limit      int    `default:"50" help:"Maximum number of sessions."`
	After      int64  `placeholder:"CURSOR" help:"Continue behind this cursor, which the previous page ended with."`
}

func (*sessionsCmd) Help() string {
	return `TOKENS is the size counted against the model's window: the provider's own figure where the application reported one, or else an estimate by what it reported for other sessions of the model, or else the count of the messages, with the margin of the policy (estimate_margin) on what is estimated. OF START is that size as a share of the threshold above which the session is compacted. PARENT and CHILDREN are shown where there are any.

Examples:

    compactor sessions
    compactor sessions --children-of chat-42
    compactor sessions --due --json | jq -r '.sessions[].session'`
}

func (c *sessionsCmd) Validate() error { return validLimit(c.Limit) }

func validLimit(n int) error { return inRange("--limit", n, 1, 100_000) }

// inRange returns an error for a flag out of range; most may be math.MaxInt.
func inRange(flag string, n, least, most int) error {
	switch {
	case n >= least && n <= most:
		return nil
	case most == math.MaxInt:
		return fmt.Errorf("%s: %d: want %d or more", flag, n, least)
	}
	return fmt.Errorf("%s: %d: want %d to %d", flag, n, least, most)
}

// withStart returns a session with its start, stored or by policy, and its time in UTC. The
// start is 0 if no size makes it due.
func withStart(c config.Config, r store.SessionRow) store.SessionRow {
	r.LastMessageAt = r.LastMessageAt.UTC()
	switch {
	case r.DueTokens == 0:
		r.DueTokens = c.Policy.Limits(r.Model, c.Models.Window).Start
	case r.DueTokens >= policy.Never:
		r.DueTokens = 0
	}
	return r
}

func (c *sessionsCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	f := store.SessionFilter{Tenant: cfg.Tenant, Due: c.Due, ChildrenOf: c.ChildrenOf, After: c.After, Limit: c.Limit}
	if c.AllTenants {
		f.Tenant = ""
	}
	rows, err := st.Operator.Sessions(ctx, f)
	if err != nil {
		return err
	}
	for i, r := range rows {
		rows[i] = withStart(cfg, r)
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"sessions": rows})
	}
	if len(rows) == 0 {
		e.note("no sessions")
		return nil
	}
	columns := []term.Column{
		term.Text("SESSION"), term.Text("MODEL"), term.Num("IN VIEW"), term.Num("TOKENS"), term.Num("OF START"),
		term.Text("DUE"), term.Num("IDLE"), term.Num("MESSAGES").IfRoom(), term.ID("REVISION").IfRoom(),
	}
	family := slices.ContainsFunc(rows, func(r store.SessionRow) bool { return r.Parent != "" || r.Children > 0 })
	if family {
		columns = append(columns, term.Text("PARENT").IfRoom(), term.Num("CHILDREN").IfRoom())
	}
	if c.AllTenants {
		columns = append([]term.Column{term.Text("TENANT")}, columns...)
	}
	t := e.Out.Table(columns...)
	for _, r := range rows {
		due, ofStart := term.Styled{Value: "", As: e.Out.Yellow}, any(nil)
		if r.DueTokens > 0 {
			ofStart = term.Percent(r.ContextTokens, r.DueTokens)
		}
		switch {
		case r.Suspect && r.Due:
			due.Value = "repair"
		case r.Due:
			due.Value = "due"
		}
		cells := []any{
			r.Session, r.Model, r.LiveMessages, term.Tokens(r.ContextTokens), ofStart,
			due, e.since(r.LastMessageAt), r.Messages, r.Revision,
		}
		if family {
			cells = append(cells, term.Clean(r.Parent), r.Children)
		}
		if c.AllTenants {
			cells = append([]any{r.Tenant}, cells...)
		}
		t.Row(cells...)
	}
	if err := t.Write(); err != nil {
		return err
	}
	if len(rows) == c.Limit {
		e.note("there may be more: --after %d", rows[len(rows)-1].SID)
	}
	return nil
}
