package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// Sibling is another database of the fleet.
type Sibling struct {
	// Installation distinguishes it, Name is that in the configuration.
	Installation, Name string
	Store              SiblingStore
}

// SiblingStore is implemented by store.Scheduler.
type SiblingStore interface {
	LimitedUse(ctx context.Context, l store.Limited) ([]store.LimitedUse, error)
}

const (
	// siblingInterval is the pause between readings of the use of a sibling while there are
	// limits; after one that takes long, for many limits, it is siblingShare times as long as
	// that, up to maxSiblingInterval. Without limits they are looked for every noLimitInterval.
	siblingInterval    = time.Second
	siblingShare       = 20
	maxSiblingInterval = 20 * time.Second // of use that is older, starts of runs are not counted
	noLimitInterval    = 5 * time.Second
	// siblingTimeout bounds a reading.
	siblingTimeout = 5 * time.Second
)

// runSibling counts the use of a sibling for the limits of this database.
func (s *Scheduler) runSibling(ctx context.Context, b Sibling) error {
	outage := backoff.NewOutage(s.log.With("sibling", b.Name), "use of limits in another database")
	for {
		limited, err := retry(ctx, s, "read limits", s.store.Limited)
		if err != nil {
			return err
		}
		pause := noLimitInterval
		if len(limited.Tenants) > 0 {
			began := time.Now()
			if err := s.countSibling(ctx, b, limited, outage); err != nil {
				return err
			}
			pause = min(max(siblingInterval, siblingShare*time.Since(began)), maxSiblingInterval)
		}
		if err := backoff.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// countSibling reads the use of a sibling and counts it. The error is that of ctx.
func (s *Scheduler) countSibling(ctx context.Context, b Sibling, limited store.Limited, outage *backoff.Outage) error {
	callCtx, cancel := context.WithTimeout(ctx, siblingTimeout)
	defer cancel()
	use, err := b.Store.LimitedUse(callCtx, limited)
	if err != nil {
		if ctx.Err() == nil {
			outage.Failed(err.Error())
		}
		return ctx.Err()
	}
	outage.Succeeded()
	_, err = retry(ctx, s, "count what is used elsewhere", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.store.CountElsewhere(ctx, b.Installation, b.Name, use)
	})
	return err
}
