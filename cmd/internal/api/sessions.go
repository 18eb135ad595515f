package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/sessionstore/compactor/store"
)

// sessions registers the operations on sessions.
func (a *api) sessions() {
	register(a, operation{scope: reads, method: http.MethodGet, path: "/v1/sessions", id: "list-sessions", summary: "List sessions with their size and whether they are due"}, listSessions)
	register(a, operation{scope: reads, method: http.MethodGet, path: "/v1/sessions/{session}", id: "get-session", summary: "The state of a session, and why it is, or is not, due"}, getSession)
}

type listSessionsIn struct {
	Page
	Due   bool   `query:"due" doc:"Only those that are due."`
	After string `query:"after" doc:"next of the page before."`
}

func listSessions(ctx context.Context, c *caller, in *listSessionsIn) (*body[list[store.SessionRow]], error) {
	limit, err := in.limit(c)
	if err != nil {
		return nil, err
	}
	after, err := strconv.ParseInt("0"+in.After, 10, 64)
	if err != nil {
		return nil, invalid("query.after", "after: want next of the page before")
	}
	rows, next, err := c.store.Operator.Sessions(ctx, store.SessionFilter{Tenant: c.tenant, Due: in.Due, After: after, Limit: limit})
	out := list[store.SessionRow]{Items: rows}
	if next > 0 {
		out.Next = strconv.FormatInt(next, 10)
	}
	return answer(out, err)
}

func getSession(ctx context.Context, c *caller, in *SessionPath) (*body[store.SessionRow], error) {
	st, k := c.of(in.Session)
	return answer(st.Session(ctx, k))
}
