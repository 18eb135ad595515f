package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sessionstore/compactor/cmd/internal/mcp"
)

// maxMCPBody bounds a request to /mcp: a call of a tool is short.
const maxMCPBody = 1 << 20

// mcp serves the tools that read a history. Each request is answered by itself, for the caller and the
// session that it names: there is no session of the protocol, which another key could go on with.
func (a *api) mcp() {
	a.mux.Handle("/mcp", a.s.raw(reads, func(w http.ResponseWriter, r *http.Request, c *caller) error {
		session := r.URL.Query().Get("session")
		if session == "" {
			return invalid("query.session", "session: want the id of the session whose history is read: /mcp?session=ID")
		}
		h := &mcp.History{Logger: a.s.o.Logger, Version: a.s.o.Version, Explain: func(ctx context.Context, err error) error {
			failed(ctx, err)
			p := problemOf(err)
			return errors.New(p.Code + ": " + strings.TrimPrefix(p.Detail, p.Code+": "))
		}}
		h.Store, h.Key = c.of(session)
		server := h.Server()
		sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
			Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxMCPBody, PropagateRequestCancellation: true, Logger: a.s.o.Logger,
		}).ServeHTTP(w, r)
		return nil
	}, "session"))
}
