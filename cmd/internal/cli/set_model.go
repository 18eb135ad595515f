package cli

import (
	"context"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type setModelCmd struct {
	Session string `arg:"" help:"The session."`
	Model   string `arg:"" help:"The model's name, as the application calls it."`
}

func (*setModelCmd) Help() string {
	return `An application that appends with another model's name has the same effect.

Examples:

    compactor set-model chat-42 claude-sonnet-5`
}

func (c *setModelCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if err := st.SetModel(ctx, key(cfg, c.Session), c.Model); err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"session": c.Session, "model": c.Model})
	}
	e.say("session %s has the model %s", term.Clean(c.Session), term.Clean(c.Model))
	return nil
}
