package api

import (
	"context"
	"net/http"

	"github.com/sessionstore/compactor/store"
)

// timeline registers the operation that the page of a session is drawn from.
func (a *api) timeline() {
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/sessions/{session}/timeline", id: "get-timeline",
		summary: "The sizes of all messages of a session in columns, and what each run took out of its view",
	}, getTimeline)
}

func getTimeline(ctx context.Context, c *caller, in *SessionPath) (*body[store.Timeline], error) {
	st, k := c.of(in.Session)
	return answer(st.Reader.Timeline(ctx, k))
}
