package api

import (
	"context"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

type compactSessionsIn struct {
	Preview
	SessionsFilter
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The most sessions of a request, the oldest first."`
	Body  *struct {
		All bool `json:"all,omitempty" doc:"Sessions of all tenants."`
	}
}

// Compactions are runs of sessions that were asked for together, or would be.
type Compactions struct {
	DryRun   bool                  `json:"dry_run"`
	Sessions int                   `json:"sessions"`
	Tokens   chat.Tokens           `json:"tokens"` // of their contexts
	Paused   int                   `json:"paused"` // of the sessions; they are left out
	First    []reports.SessionItem `json:"first,omitempty" doc:"The first of them."`
	Runs     []store.RunID         `json:"runs,omitempty"`
	Refused  []RefusedSession      `json:"refused,omitempty"`
	More     bool                  `json:"more,omitempty" doc:"There may be more than limit that match."`
}

// RefusedSession is a session for which no run was asked, and why.
type RefusedSession struct {
	Tenant  string `json:"tenant"`
	Session string `json:"session"`
	Code    string `json:"code"`
}

// manyPages bounds the pages of sessions that a request looks at.
const manyPages = 20

// compactSessions asks for a run of each session, as an operator.
func compactSessions(ctx context.Context, c *caller, in *compactSessionsIn) (*body[Compactions], error) {
	if err := c.whom(in.Body != nil && in.Body.All); err != nil {
		return nil, err
	}
	f, err := in.filter(c)
	if err != nil {
		return nil, err
	}
	var found []store.SessionRow
	out := Compactions{DryRun: in.only(), More: true}
	for range manyPages {
		f.Limit = in.Limit - len(found)
		rows, next, err := c.store.Operator.Sessions(ctx, f)
		if err != nil {
			return nil, err
		}
		found, f.After, out.More = append(found, rows...), next, next > 0
		if next == 0 || len(found) == in.Limit {
			break
		}
	}
	sids := make([]int64, len(found))
	for i, r := range found {
		sids[i] = r.SID
	}
	paused, err := c.store.Reader.Paused(ctx, sids)
	if err != nil {
		return nil, err
	}
	for i, r := range found {
		out.Sessions++
		out.Tokens += r.ContextTokens
		if i < shownFirst {
			out.First = append(out.First, reports.SessionItem{SessionRow: reports.WithStart(c.server.o.Config, r)})
		}
		if paused[r.SID] {
			out.Paused++
		}
		if paused[r.SID] || out.DryRun {
			continue
		}
		k := store.Key{Tenant: r.Tenant, Session: r.Session}
		id, err := c.all().Request(ctx, k, store.TriggerOperator, c.by(), store.Options{})
		if err != nil {
			out.Refused = append(out.Refused, RefusedSession{r.Tenant, r.Session, problemOf(err).Code})
			continue
		}
		out.Runs = append(out.Runs, id)
	}
	return answer(out, nil)
}
