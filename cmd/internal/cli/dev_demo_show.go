//go:build !nodev

package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sessionstore/compactor/store"
)

// onScreen is the size of a summary, in tokens, that a screen holds.
const onScreen = 600

// showSummary prints a summary that a screen holds: that of the run that saved the most.
func (d *demo) showSummary(ctx context.Context) error {
	runs, err := d.app.Store.Runs(ctx, store.RunFilter{Key: store.Key{Tenant: d.app.Config.Tenant}, Status: "applied", Limit: 10_000})
	if err != nil {
		return err
	}
	slices.SortStableFunc(runs, func(a, b store.RunRow) int {
		return cmp.Compare(b.TokensBefore-b.TokensAfter, a.TokensBefore-a.TokensAfter)
	})
	for _, r := range runs {
		ids, err := d.app.Store.SummariesOf(ctx, r.ID)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			continue
		}
		sample, err := loadSummary(ctx, d.app.Store, ids[0])
		if err != nil {
			return err
		}
		if sample.InView && sample.Tokens <= onScreen {
			d.env.say("\n%s\n", d.out.Bold("one of the summaries, as `compactor summary show "+ids[0]+"` prints it"))
			return sample.print(d.env)
		}
	}
	return nil
}

// next prints the commands to continue with.
func (d *demo) next() {
	d.env.say("\nnext: `compactor compact-file FILE --explain` does the same to a conversation of yours, without a server;")
	d.env.say("`compactor doctor` checks your own Postgres and Redis, `compactor serve --migrate` runs on them.")
}

// show prints what follows the figures of the demo.
func (d *demo) show(ctx context.Context) error {
	err := errors.Join(d.showSummary(ctx), d.result.verdict())
	if err == nil {
		d.next()
	}
	return err
}
