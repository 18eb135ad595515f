package cli

import (
	"context"
	"errors"
	"io"
	"runtime/debug"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/mcp"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type mcpCmd struct {
	Session string `required:"" placeholder:"ID" help:"The session whose history the tools read."`
}

func (c *mcpCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	asOperator, err := st.MayBeOperator(ctx)
	if err != nil {
		return err
	}
	k := key(cfg, c.Session)
	st = st.Bound(k.Tenant, asOperator)
	switch _, err := st.Session(ctx, k); {
	case errors.Is(err, store.ErrNotFound): // an agent may start before its first message
		e.note("warning: tenant %s has no session %s yet", term.Clean(k.Tenant), term.Clean(k.Session))
	case err != nil:
		return err
	}
	h := mcp.History{
		Store: st, Key: k, Logger: e.Err.Logger(cfg.Log.Level, cfg.Log.Format), Version: newBuildVersion(debug.ReadBuildInfo()).Version,
		Explain: func(_ context.Context, err error) error { return errors.New(e.scrub(err.Error())) },
	}
	err = h.Server().Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(e.Stdin), Writer: output{e.Out.W}})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // stopped as meant
		return nil
	}
	return err
}

// output is a writer that stays open.
type output struct{ io.Writer }

func (output) Close() error { return nil }
