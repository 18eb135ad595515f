package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/store"
)

// reports registers the operations by which an application says more of a session than its messages.
func (a *api) reports() {
	register(a, operation{
		scope: appends, method: http.MethodPost, path: "/v1/sessions/{session}/pins/{message}", id: "pin-message",
		summary: "Keep a message in the view", more: fails(http.StatusRequestTimeout, http.StatusGone),
	}, pin)
	register(a, operation{
		scope: appends, method: http.MethodDelete, path: "/v1/sessions/{session}/pins/{message}", id: "unpin-message",
		summary: "End the pin of a message",
	}, unpin)
	register(a, operation{
		scope: appends, method: http.MethodPost, path: "/v1/sessions/{session}/usage", id: "report-usage",
		summary: "Report the provider's count of a prompt, and what its cache had of it", more: fails(http.StatusRequestTimeout),
	}, reportUsage)
	register(a, operation{
		scope: appends, method: http.MethodPost, path: "/v1/sessions/{session}/state", id: "report-state",
		summary: "Report the state of a session, for the triggers of policies", more: fails(http.StatusRequestTimeout),
	}, reportState)
	register(a, operation{
		scope: appends, method: http.MethodPost, path: "/v1/sessions/{session}/fork", id: "fork-session",
		summary: "Create a session that goes on from a message of this one",
		more: func(op *huma.Operation) {
			op.DefaultStatus = http.StatusCreated
			fails(http.StatusRequestTimeout, http.StatusGone)(op)
		},
	}, fork)
}

type pinIn struct {
	SessionPath
	Message string `path:"message" minLength:"1" doc:"The message's id, percent-encoded."`
}

func pin(ctx context.Context, c *caller, in *pinIn) (*struct{}, error) {
	st, k := c.of(in.Session)
	return nil, st.Pin(ctx, k, in.Message)
}

func unpin(ctx context.Context, c *caller, in *pinIn) (*struct{}, error) {
	st, k := c.of(in.Session)
	return nil, st.Unpin(ctx, k, in.Message)
}

type usageIn struct {
	SessionPath
	Body store.Usage
}

// Counted is the answer to a report of usage.
type Counted struct {
	Counted bool `json:"counted" doc:"False for a prompt from before the last compaction: it has no effect but on the sums of its revision."`
}

func reportUsage(ctx context.Context, c *caller, in *usageIn) (*body[Counted], error) {
	st, k := c.of(in.Session)
	counted, err := st.ReportCache(ctx, k, in.Body)
	return answer(Counted{counted}, err)
}

type stateIn struct {
	SessionPath
	Body store.State
}

func reportState(ctx context.Context, c *caller, in *stateIn) (*struct{}, error) {
	st, k := c.of(in.Session)
	return nil, st.ReportState(ctx, k, in.Body)
}

type forkIn struct {
	SessionPath
	Body struct {
		Session string `json:"session" minLength:"1" doc:"The id of the new session."`
		At      string `json:"at,omitempty" doc:"The id, or else the seq, of the last message that it takes over; by default the last one."`
	}
}

// Forked is the answer to a fork.
type Forked struct {
	Session  string `json:"session"`
	Messages int64  `json:"messages" doc:"Messages that it took over."`
}

func fork(ctx context.Context, c *caller, in *forkIn) (*body[Forked], error) {
	st, k := c.of(in.Session)
	n, err := st.Fork(ctx, k, in.Body.Session, in.Body.At)
	return answer(Forked{in.Body.Session, n}, err)
}
