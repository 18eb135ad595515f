package cli

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type undoCmd struct {
	ID      int64 `arg:"" name:"run" help:"The run."`
	Cascade bool  `help:"Also undo the later runs of the session."`
}

func (*undoCmd) Help() string {
	return `Restores the view from before the run, plus everything appended since. An undo is a run itself and can be undone. Automatic runs then wait for a new message.

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

func (c *undoCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	undo, err := st.Undo(ctx, c.ID, c.Cascade, e.by())
	if err != nil {
		return err
	}
	r, err := st.Run(ctx, undo)
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, newRunJSON(r))
	}
	return printRun(e, r)
}
