package cli

import (
	"context"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// pinTarget holds the arguments that name a message.
type pinTarget struct {
	Session string `arg:"" help:"The session."`
	Message string `arg:"" help:"The message's id, as view --json shows it."`
}

type pinCmd struct{ pinTarget }

func (*pinCmd) Help() string {
	return `A pinned message outside the view is restored, with its group, by the next run; pinning makes the session due.

Examples:

    compactor pin chat-42 msg-17`
}

func (c *pinCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	return c.done(e, true, st.Pin(ctx, key(cfg, c.Session), c.Message))
}

type unpinCmd struct{ pinTarget }

func (*unpinCmd) Help() string {
	return `The message stays in the view until a run excludes it.

Examples:

    compactor unpin chat-42 msg-17`
}

func (c *unpinCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	return c.done(e, false, st.Unpin(ctx, key(cfg, c.Session), c.Message))
}

// done writes the result of a command about a message, unless it has failed with err.
func (p pinTarget) done(e *Env, pinned bool, err error) error {
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"session": p.Session, "message": p.Message, "pinned": pinned})
	}
	word := "unpinned"
	if pinned {
		word = "pinned"
	}
	e.say("%s message %s of session %s", word, term.Clean(p.Message), term.Clean(p.Session))
	return nil
}
