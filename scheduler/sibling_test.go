package scheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
)

func (f *fakeStore) Limited(ctx context.Context) (store.Limited, error) {
	err := f.enter(ctx, "limited")
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.limited, err
}

func (f *fakeStore) LimitedUse(ctx context.Context, l store.Limited) (use []store.LimitedUse, err error) {
	for _, tenant := range l.Tenants {
		use = append(use, store.LimitedUse{Tenant: tenant, Started: 7})
	}
	var takes time.Duration
	f.with(func() { takes = f.useTakes })
	<-time.After(takes)
	return use, f.enter(ctx, "use")
}

func (f *fakeStore) CountElsewhere(ctx context.Context, installation, database string, use []store.LimitedUse) error {
	return f.enter(ctx, fmt.Sprint("count ", installation, " ", database, " ", use))
}

// The leader counts what its siblings have used once a second, while there are limits.
func TestUseInSiblingsIsCountedWhileThereAreLimits(t *testing.T) {
	bubble(t, func(b *bench) {
		north, west := &fakeStore{}, &fakeStore{}
		cfg := b.config("a")
		cfg.Siblings = []Sibling{{"n", "north", north}, {"w", "west", west}}
		b.start(b.new(cfg))
		const perSibling = 2
		b.pass(20 * time.Second)
		looks := b.store.count("limited")
		b.check(north.count("use")+west.count("use") == 0, "siblings are read without a limit")
		b.check(looks <= perSibling*(20/5+1), "%d looks for limits in 20 seconds", looks)

		b.store.with(func() { b.store.limited = store.Limited{Tenants: []string{"acme"}} })
		b.pass(noLimitInterval)
		began := b.store.count("count w west [{acme 7 0 0 0 0}]")
		b.check(began > 0, "nothing is counted")
		b.pass(10 * time.Second)
		n := b.store.count("count w west [{acme 7 0 0 0 0}]") - began
		b.check(n >= 9 && n <= 10, "counted %d times in ten seconds", n)

		// One that is away does not keep the others from it, and is logged once.
		north.with(func() { north.fail = func(string) error { return errors.New("away") } })
		began = b.store.count("count w west [{acme 7 0 0 0 0}]")
		north.with(func() { north.calls = nil })
		b.pass(10 * time.Second)
		n = b.store.count("count w west [{acme 7 0 0 0 0}]") - began
		b.check(n >= 9 && n <= 10, "counted %d times in ten seconds, with another away", n)
		b.check(north.count("use") >= 9, "the one that is away is not tried again")
		b.check(len(b.log.lines("use of limits in another database unavailable")) == 1, "%v", b.log.lines("unavailable"))

		// Readings of many limits take a twentieth of the time.
		west.with(func() { west.useTakes = 200 * time.Millisecond })
		b.pass(time.Minute)
		began = b.store.count("count w west [{acme 7 0 0 0 0}]")
		b.pass(42 * time.Second)
		n = b.store.count("count w west [{acme 7 0 0 0 0}]") - began
		b.check(n >= 9 && n <= 11, "counted %d times in 42 seconds, where it takes 0.2", n)
	})
}

// A database alone costs no statement more.
func TestADatabaseAloneLooksForNoUseElsewhere(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.with(func() { b.store.limited = store.Limited{Tenants: []string{"acme"}} })
		stop := b.start(b.new(b.config("a")))
		b.pass(time.Minute)
		stop()
		b.check(b.store.count("limited") == 0, "it is")
	})
}
