package cli

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type undoCmd struct {
	ID      int64 `arg:"" name:"run" range:"1," want:"the number of a run" help:"The run."`
	Cascade bool  `help:"Also undo the later runs of the session."`
}

func (c *undoCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	r, err := st.Run(ctx, c.ID)
	if err != nil {
		return err
	}
	if r.Tenant != cfg.Tenant {
		return fmt.Errorf("run %d is of tenant %s, not %s (--tenant): %w", c.ID, r.Tenant, cfg.Tenant, store.ErrNotApplicable)
	}
	undo, err := st.Undo(ctx, key(cfg, r.Session), c.ID, c.Cascade, e.by())
	if err != nil {
		return err
	}
	if r, err = st.Run(ctx, undo); err != nil {
		return err
	}
	out, pairs := reports.NewRun(r), runPairs(e, r)
	return e.show(out, func() { e.pairs(pairs...) })
}

// pinTarget holds the arguments that name a message.
type pinTarget struct {
	Session string `arg:"" help:"The session."`
	Message string `arg:"" help:"The message's id, as view --json shows it."`
}

type pinCmd struct{ pinTarget }

func (c *pinCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	return c.done(e, true, st.Pin(ctx, key(cfg, c.Session), c.Message))
}

type unpinCmd struct{ pinTarget }

func (c *unpinCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	return c.done(e, false, st.Unpin(ctx, key(cfg, c.Session), c.Message))
}

// done writes the result of a command about a message, unless it has failed with err.
func (p pinTarget) done(e *Env, pinned bool, err error) error {
	if err != nil {
		return err
	}
	return e.answer(map[string]any{"session": p.Session, "message": p.Message, "pinned": pinned},
		"%spinned message %s of session %s", when(!pinned, "un"), term.Clean(p.Message), term.Clean(p.Session))
}

type forkCmd struct {
	Session string `arg:"" help:"The session."`
	New     string `arg:"" help:"The name of the new session."`
	At      string `placeholder:"MESSAGE" help:"Its last message: the id, or the seq that view shows; default: the last one."`
}

func (c *forkCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	messages, err := st.Fork(ctx, key(cfg, c.Session), c.New, c.At)
	if err != nil {
		return err
	}
	row, err := st.Session(ctx, key(cfg, c.New))
	if err != nil {
		return err
	}
	return e.answer(reports.WithStart(cfg, row), "session %s has %s of %s, %s in its view",
		term.Clean(c.New), plural(messages, "message"), term.Clean(c.Session), term.Count(row.LiveMessages))
}

type setModelCmd struct {
	Session string `arg:"" help:"The session."`
	Model   string `arg:"" help:"The model's name, as the application calls it."`
}

func (c *setModelCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if err := st.SetModel(ctx, key(cfg, c.Session), c.Model); err != nil {
		return err
	}
	return e.answer(map[string]any{"session": c.Session, "model": c.Model}, "session %s has the model %s", term.Clean(c.Session),
		term.Clean(c.Model))
}

type setParentCmd struct {
	Session string `arg:"" help:"The session; one that does not exist is created."`
	Parent  string `arg:"" optional:"" help:"Its parent, a session of the same tenant; none takes the parent away."`
}

func (c *setParentCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if err := st.SetParent(ctx, key(cfg, c.Session), c.Parent); err != nil {
		return err
	}
	relation := "has no parent"
	if c.Parent != "" {
		relation = "is a child of " + term.Clean(c.Parent)
	}
	return e.answer(map[string]any{"session": c.Session, "parent": c.Parent}, "session %s %s", term.Clean(c.Session), relation)
}
