package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// ArchiveOldest moves 300 bytes of rows into 100 of segments, once for a page.
func (f *fakeStore) ArchiveOldest(ctx context.Context, _ int64, _ int) (store.ArchiveStats, bool, error) {
	if err := f.enter(ctx, "archive oldest"); err != nil {
		return store.ArchiveStats{}, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.oldest < 300 {
		return store.ArchiveStats{}, false, nil
	}
	f.oldest -= 300
	f.disk.Bytes += 100
	f.disk.Freed += 300
	return store.ArchiveStats{Sessions: 1, Messages: 2, Segments: 1, Stored: 300, Archived: 100}, true, nil
}

func (f *fakeStore) DiskUse(ctx context.Context) (store.DiskUse, error) {
	if err := f.enter(ctx, "disk use"); err != nil {
		return store.DiskUse{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	use := f.disk
	use.More = f.oldest >= 300
	return use, nil
}

func TestADiskBudgetHasWordsArchivedUntilTheirSpaceIsBelowTheMark(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.disk.Bytes, b.store.oldest = 900_000, 1<<40
		o := &watcher{taken: map[string]int{}}
		cfg := b.config("a")
		cfg.Observer, cfg.DiskBudget = o, 1e6
		stop := b.start(b.new(cfg))
		b.pass(time.Second)
		b.check(b.store.count("archive oldest") == 0, "archived at the mark")

		b.store.with(func() { b.store.disk.Bytes = 900_500 })
		b.pass(purgeInterval)
		b.check(b.store.count("archive oldest") == 3, "%d pages of 200 bytes for 500", b.store.count("archive oldest"))
		b.check(o.disk == store.DiskUse{Bytes: 900_800, Freed: 900, More: true} && o.archived == 6, "the observer was told of %+v and %d messages", o.disk, o.archived)
		b.check(len(b.log.lines("words archived for the disk budget")) == 1, "it is not logged once")
		b.check(len(b.log.lines("table_bytes=900800 freed_bytes=900 budget_bytes=1000000")) == 1, "without the sizes")

		b.pass(3 * purgeInterval)
		stop()
		stop = b.start(b.new(cfg)) // which has the state of the one before
		b.pass(3 * purgeInterval)
		b.check(b.store.count("archive oldest") == 3, "archived again, though nothing grew")

		b.store.with(func() { b.store.disk.Bytes += 300 })
		b.pass(purgeInterval)
		b.check(b.store.count("archive oldest") == 4, "%d pages after it grew", b.store.count("archive oldest"))
		stop()
	})
}

func TestADiskBudgetThatCannotBeKeptIsToldOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.disk.Bytes, b.store.oldest = 1_000_500, 300
		cfg := b.config("a")
		cfg.DiskBudget, cfg.DiskHighWater = 1e6, 1
		b.start(b.new(cfg))
		b.pass(3 * purgeInterval)
		b.check(len(b.log.lines("disk budget exceeded")) == 1, "it is not told once")
		b.store.with(func() { b.store.disk.Bytes = 900_000 })
		b.pass(purgeInterval)
		b.store.with(func() { b.store.disk.Bytes = 2_000_000 })
		b.pass(purgeInterval)
		b.check(len(b.log.lines("disk budget exceeded")) == 2, "it is not told again")
	})
}

func TestWithoutADiskBudgetNothingIsMeasured(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		b.pass(purgeInterval)
		b.check(b.store.count("disk use")+b.store.count("archive oldest") == 0, "%v", b.store.calls)
	})
}

func TestSizesHaveUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]policy.Bytes{
		"0": 0, "200GB": 200e9, "1.5TB": 1.5e12, "1 TiB": 1 << 40, "512MiB": 512 << 20, "0.5kB": 500,
		"200": -1, "200 G": -1, "1e9B": -1, "-1GB": -1, "GB": -1, "": -1, "200gb": -1, "2PB": -1,
	} {
		got, err := policy.ParseBytes(text)
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for b, want := range map[policy.Bytes]string{0: "0", 200e9: "200GB", 1.5e12: "1500GB", 3 << 39: "1536GiB", 1 << 40: "1TiB", 999: "999B"} {
		got := b.String()
		if got != want {
			t.Errorf("%d is %q, want %q", b, got, want)
		}
		if back, err := policy.ParseBytes(got); b%1000 == 0 && (err != nil || back != b) {
			t.Errorf("%q is read as %d, %v", got, back, err)
		}
	}
}
