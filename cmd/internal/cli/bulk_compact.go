package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// bulkCompactCmd holds the commands for recompactions of many sessions.
type bulkCompactCmd struct {
	Start  bulkCompactStartCmd  `cmd:"" help:"Compact the sessions again whose last run matches, after a look at what that is about."`
	List   bulkCompactListCmd   `cmd:"" help:"List the latest bulk recompactions."`
	Show   bulkCompactShowCmd   `cmd:"" help:"Show the progress of a bulk recompaction, how its runs ended, and what it left out."`
	Resume bulkCompactResumeCmd `cmd:"" help:"Follow a bulk recompaction; go on with one that was cancelled or stopped."`
	Cancel bulkCompactCancelCmd `cmd:"" help:"End a bulk recompaction before its time."`
}

func (*bulkCompactCmd) Help() string {
	return `Each session whose last compaction matches gets a run like that of "compactor compact": over its whole log, whatever its size, under its present policy. Undos, replacements and dry runs do not count as a last compaction; sessions without any do not match. A scheduler queues the runs in pages, no more than the workers take in a second, behind all others; it goes on when this command is interrupted. Paused sessions are left out, and while all of its sessions are paused it waits. It stops, as sweeps do, when more than --stop-at of its latest runs, a hundred or more, failed, would have made the view larger or got no summary.

Examples:

    compactor bulk-compact start --policy support@3 --all-tenants --dry-run
    compactor bulk-compact start --outcome no_summary --since 12h
    compactor bulk-compact start --writer gpt-5-mini --from view
    compactor bulk-compact resume 7`
}

type bulkCompactStartCmd struct {
	bulkFilter

	From        string `enum:"log,view" default:"log" placeholder:"log|view" help:"Plan over the whole log, ignoring earlier runs, or over the present views."`
	AllowGrowth bool   `help:"Apply results by which a view grows, too."`
	stopFlag
	Wait bool `default:"true" negatable:"" help:"Follow it until all runs have ended."`
	bulkStart
}

func (c *bulkCompactStartCmd) Validate() error {
	return errors.Join(c.bulkFilter.Validate(), c.stopFlag.Validate())
}

func (c *bulkCompactStartCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	tenant, of := c.tenant(cfg)
	m := c.match(e.now())
	p, err := st.Operator.PreviewBulkCompact(ctx, tenant, m)
	if err != nil {
		return err
	}
	if !e.JSON {
		paused := ""
		if p.Paused > 0 {
			paused = term.Count(p.Paused) + " of them, left out"
		}
		if err := e.Out.Pairs(
			[2]any{"sessions", fmt.Sprintf("%s, %s", term.Count(p.Sessions), of)},
			[2]any{"paused", paused},
			[2]any{"tokens", fmt.Sprintf("%s in their views, %s in their logs", term.Count(int64(p.Tokens)), term.Count(int64(p.LogTokens)))},
		); err != nil {
			return err
		}
	}
	if ok, err := c.agreed(e, p.Sessions, "Compact them again?", p); err != nil || !ok {
		return err
	}
	id, err := st.Operator.StartBulkCompact(ctx, tenant, m, store.Options{From: c.From, AllowGrowth: c.AllowGrowth}, c.StopAt, c.Note, e.by())
	switch {
	case err != nil:
		return err
	case !c.Wait:
		return showBulk(ctx, e, st, store.BulkCompact, id)
	}
	return followBulkCompact(ctx, e, st, id)
}

// followBulkCompact shows the progress of a bulk recompaction until all of its runs have ended.
func followBulkCompact(ctx context.Context, e *Env, st *store.Store, id int64) error {
	var progress *term.Progress
	for {
		b, err := st.Operator.Bulk(ctx, store.BulkCompact, id)
		if err != nil {
			return err
		}
		if progress == nil {
			progress = e.Err.Progress(fmt.Sprintf("bulk compact %d, sessions", id), b.Matched)
		}
		progress.Set(b.Done - b.Waiting - b.Running + b.Refused)
		if b.Settled() {
			progress.Done("")
			return showBulk(ctx, e, st, store.BulkCompact, id)
		}
		if err := backoff.Wait(ctx, 200*time.Millisecond); err != nil {
			progress.Done("")
			e.note("it continues in the background; `compactor bulk-compact resume %d%s` follows it", id, e.at())
			return err
		}
	}
}

type bulkCompactResumeCmd struct{ bulkArg }

func (c *bulkCompactResumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	b, err := st.Operator.Bulk(ctx, store.BulkCompact, c.ID)
	if err == nil && b.Status != "done" {
		err = st.Operator.ResumeBulkCompact(ctx, c.ID)
	}
	if err != nil {
		return err
	}
	return followBulkCompact(ctx, e, st, c.ID)
}

type bulkCompactCancelCmd struct{ bulkArg }

func (*bulkCompactCancelCmd) Help() string {
	return `Its runs that no worker has tried end as cancelled; what was recompacted stays so. "resume" goes on behind them.`
}

func (c *bulkCompactCancelCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return c.cancel(ctx, e, st, store.BulkCompact)
}

type bulkCompactShowCmd struct{ bulkArg }

func (c *bulkCompactShowCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return showBulk(ctx, e, st, store.BulkCompact, c.ID)
}

type bulkCompactListCmd struct{ bulkList }

func (c *bulkCompactListCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return c.list(ctx, e, st, store.BulkCompact)
}
