package cli

import (
	"context"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type setParentCmd struct {
	Session string `arg:"" help:"The session; one that does not exist is created."`
	Parent  string `arg:"" optional:"" help:"Its parent, a session of the same tenant; none takes the parent away."`
}

func (*setParentCmd) Help() string {
	return `A conversation that an agent starts for a part of its work, such as a search, is a child of the one that it works on. For keys that a child has no label for, policies match the label of its parent. When labels of a parent change, a scheduler takes that to the sessions below it, page by page. Parents form no circle, and a line of them has at most 100 sessions.

Examples:

    compactor set-parent chat-42-search chat-42
    compactor sessions --children-of chat-42`
}

func (c *setParentCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if err := st.SetParent(ctx, key(cfg, c.Session), c.Parent); err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"session": c.Session, "parent": c.Parent})
	}
	if c.Parent == "" {
		e.say("session %s has no parent", term.Clean(c.Session))
		return nil
	}
	e.say("session %s is a child of %s", term.Clean(c.Session), term.Clean(c.Parent))
	return nil
}
