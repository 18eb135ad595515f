//go:build !nodev

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// maxSummaryLines bounds the lines of a summary that does not fit a screen.
const maxSummaryLines = 60

// onScreen is the size of a summary, in tokens, that a screen holds.
const onScreen = 700

// showSummary prints a summary that a screen holds, of the runs that saved the most: the one that
// covers the most.
func (d *demo) showSummary(ctx context.Context) error {
	runs, err := d.app.Store.Operator.Runs(ctx, store.RunFilter{Key: store.Key{Tenant: d.app.Config.Tenant}, Status: "applied", Limit: 10_000})
	if err != nil {
		return err
	}
	slices.SortStableFunc(runs, func(a, b store.RunRow) int {
		return cmp.Compare(b.TokensBefore-b.TokensAfter, a.TokensBefore-a.TokensAfter)
	})
	var most, smallest reports.Summary
	for _, r := range runs {
		if most.ID != "" && r.TokensBefore-r.TokensAfter < most.CoveredTokens/2 {
			break
		}
		ids, err := d.app.Store.Reader.SummariesOf(ctx, r.ID)
		if err != nil {
			return err
		}
		for _, id := range ids {
			x, err := reports.LoadSummary(ctx, d.app.Store, store.Key{}, id)
			if err != nil {
				return err
			}
			if x.InView && len(x.References) > 0 && x.Tokens <= onScreen && x.CoveredTokens > most.CoveredTokens {
				most = x
			}
			if smallest.ID == "" || x.Tokens < smallest.Tokens {
				smallest = x
			}
		}
	}
	if most.ID == "" {
		most = smallest // such as the only one of a file, whose run was undone
	}
	if most.ID == "" {
		return nil
	}
	var text strings.Builder
	e := *d.env
	e.Out.W = &text
	d.env.say("\n%s\n", d.out.Bold("one of the summaries, as `compactor summary show "+most.ID+"` prints it"))
	printSummary(&e, &most)
	lines := strings.SplitAfter(text.String(), "\n")
	fmt.Fprint(d.env.Out.W, strings.Join(lines[:min(maxSummaryLines, len(lines))], ""))
	if n := len(lines) - maxSummaryLines; n > 0 {
		d.env.say("… %s", term.Plural(n, "more line", "more lines"))
	}
	return nil
}

// next prints the commands to continue with.
func (d *demo) next() {
	if d.cmd.Keep {
		return
	}
	d.env.say("\nnext: `compactor demo --keep` leaves the dashboard open, to look at all of this; `compactor dev` starts an empty one;")
	d.env.say("`compactor compact-file FILE --explain` does the same to a conversation of yours, without a server;")
	d.env.say("`compactor doctor` checks your own Postgres and Redis, `compactor serve --migrate` runs on them.")
}

// show prints what follows the figures of the demo.
func (d *demo) show(ctx context.Context) error {
	err := errors.Join(d.showSummary(ctx), d.explain(ctx), d.result.verdict())
	if err == nil {
		d.next()
	}
	return err
}
