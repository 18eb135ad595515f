package cli

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/cmd/internal/term"
)

// undoCmd takes a run back.
type undoCmd struct {
	ID      int64 `arg:"" name:"run" help:"The run."`
	Cascade bool  `help:"Take back the later runs of the session with it."`
}

// Help documents the command.
func (*undoCmd) Help() string {
	return `The view before the run returns, with everything appended since. An undo is a run itself, and can be undone. Automatic runs then wait for a new message.

Examples:

    compactor undo 4711
    compactor undo 4711 --cascade`
}

// Validate is called by the parser.
func (c *undoCmd) Validate() error {
	if c.ID <= 0 {
		return fmt.Errorf("%d: want the number of a run", c.ID)
	}
	return nil
}

// Run runs the command.
func (c *undoCmd) Run(ctx context.Context, e *Env) error {
	st, _, err := e.Open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
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
