package cli

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type undoCmd struct {
	ID      int64 `arg:"" name:"run" help:"The run."`
	Cascade bool  `help:"Also undo the later runs of the session."`
}

func (*undoCmd) Help() string {
	return `Restores the view from before the run, plus everything appended since. An undo is a run itself and can be undone. Automatic runs then wait for a new message. The run must be of the configured tenant (--tenant).

Examples:

    compactor undo 4711
    compactor undo 4711 --cascade`
}

func (c *undoCmd) Validate() error {
	if c.ID <= 0 {
		return fmt.Errorf("%d: want the number of a run", c.ID)
	}
	return nil
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
	if e.JSON {
		return term.JSON(e.Out.W, newRunJSON(r))
	}
	return printRun(e, r)
}
