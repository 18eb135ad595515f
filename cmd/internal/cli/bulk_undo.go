package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// bulkUndoCmd holds the commands for undos of many runs.
type bulkUndoCmd struct {
	Start  bulkUndoStartCmd  `cmd:"" help:"Undo the compactions that match, after a look at what that is about."`
	List   bulkUndoListCmd   `cmd:"" help:"List the latest bulk undos."`
	Show   bulkUndoShowCmd   `cmd:"" help:"Show the progress of a bulk undo, and what it left in force."`
	Resume bulkUndoResumeCmd `cmd:"" help:"Go on with a bulk undo that was interrupted."`
	Cancel bulkUndoCancelCmd `cmd:"" help:"End a bulk undo before its time."`
}

func (*bulkUndoCmd) Help() string {
	return `Each run is undone in a transaction of its own, the newest first, so that an interrupted bulk undo goes on where it was, and holds up no writer. The undos are runs themselves and can be undone. Automatic runs of a session then wait for a new message.

Examples:

    compactor bulk-undo start --writer gpt-5-mini --since 12h --dry-run
    compactor bulk-undo start --policy support@3 --cascade --note "lost the order ids"
    compactor bulk-undo resume 7`
}

type bulkUndoStartCmd struct {
	bulkFilter

	Cascade bool `help:"Also undo later runs of the same sessions."`
	bulkStart
}

func (c *bulkUndoStartCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	tenant, of := c.tenant(cfg)
	m := c.match(e.now())
	p, err := st.Operator.PreviewBulkUndo(ctx, tenant, m)
	if err != nil {
		return err
	}
	if !e.JSON {
		later := ""
		switch {
		case p.Later > 0 && c.Cascade:
			later = term.Count(p.Later) + " on top of these, undone with them"
		case p.Later > 0:
			later = term.Count(p.Later) + " on top of these stay, with those below (--cascade undoes all)"
		}
		if err := e.Out.Pairs(
			[2]any{"runs", fmt.Sprintf("%s in force, %s", term.Count(p.Runs), of)},
			[2]any{"sessions", term.Count(p.Sessions)},
			[2]any{"tokens back", term.Count(int64(p.Tokens))},
			[2]any{"later runs", later},
		); err != nil {
			return err
		}
	}
	if ok, err := c.agreed(e, p.Runs, "Undo them?", p); err != nil || !ok {
		return err
	}
	id, err := st.Operator.StartBulkUndo(ctx, tenant, m, c.Cascade, c.Note, e.by())
	if err != nil {
		return err
	}
	return runBulkUndo(ctx, e, st, id)
}

// runBulkUndo does what is left of a bulk undo and shows it.
func runBulkUndo(ctx context.Context, e *Env, st *store.Store, id int64) error {
	b, err := st.Operator.Bulk(ctx, store.BulkUndo, id)
	if err != nil {
		return err
	}
	progress := e.Err.Progress(fmt.Sprintf("bulk undo %d, runs", id), b.Matched)
	progress.Add(b.Done + b.Refused)
	for {
		step, err := st.Operator.NextBulkUndo(ctx, id)
		if err != nil {
			progress.Done("")
			if errors.Is(err, store.ErrNotApplicable) { // it says what to do instead
				return err
			}
			return fmt.Errorf("%w; `compactor bulk-undo resume %d%s` goes on", err, id, e.at())
		}
		if step.Run == 0 {
			break
		}
		progress.Add(1)
	}
	progress.Done("")
	return showBulk(ctx, e, st, store.BulkUndo, id)
}

type bulkUndoResumeCmd struct{ bulkArg }

func (c *bulkUndoResumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return runBulkUndo(ctx, e, st, c.ID)
}

type bulkUndoCancelCmd struct{ bulkArg }

func (c *bulkUndoCancelCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return c.cancel(ctx, e, st, store.BulkUndo)
}

type bulkUndoShowCmd struct{ bulkArg }

func (c *bulkUndoShowCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return showBulk(ctx, e, st, store.BulkUndo, c.ID)
}

type bulkUndoListCmd struct{ bulkList }

func (c *bulkUndoListCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return c.list(ctx, e, st, store.BulkUndo)
}
