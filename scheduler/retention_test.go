package scheduler

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

func TestWordsAreArchivedAndPurgedAsThePoliciesInForceSay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		b := newBench(t)
		spec := func(r policy.Retention) []byte {
			p := policy.Default()
			p.Retention = r
			raw, err := policy.Spec(p)
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		b.store.policies = []store.PolicyVersion{
			{Name: "keeps", Version: 1, Spec: spec(policy.Retention{})},
			{Name: "support", Version: 3, Spec: spec(policy.Retention{ArchiveAfter: 30 * day, PurgeAfter: 365 * day})},
		}
		b.store.toArchive = 2
		o := &watcher{taken: map[string]int{}}
		cfg := b.config("a")
		cfg.Observer = o
		cfg.Policy.Retention.ArchiveAfter = 30 * day
		stop := b.start(b.new(cfg))
		b.pass(time.Second)
		page := "archive 720h0m0s of [default support]"
		b.check(slices.Equal(b.store.retained, []string{page, page, "purge 8760h0m0s, 9480h0m0s of [support]"}), "%v", b.store.retained)
		b.check(len(b.log.lines("words archived")) == 1, "it is not logged once")
		b.store.with(func() {
			b.store.policies = append(b.store.policies, store.PolicyVersion{Name: "default", Version: 1, Spec: spec(policy.Retention{})})
			b.store.retained = nil
		})
		b.pass(purgeInterval)
		b.check(len(b.store.retained) == 2 && b.store.retained[0] == "archive 720h0m0s of [support]", "with a version of default: %v", b.store.retained)
		stop()
		b.check(o.archived == 6, "the observer was told of %d messages", o.archived)
	})
}

func TestAFullDiskIsToldOnceAndTheArchiverGoesOnWhenThereIsSpace(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.fail = func(op string) error {
			if op == "archive" {
				return store.ErrNoSpace
			}
			return nil
		}
		cfg := b.config("a")
		cfg.Policy.Retention.ArchiveAfter = 30 * 24 * time.Hour
		b.start(b.new(cfg))
		b.pass(time.Hour)
		b.check(len(b.log.lines("unavailable, retrying")) == 1 && len(b.log.lines("disk space of the database unavailable")) == 1, "it is not told once")
		b.check(len(b.log.lines("is back")) == 0, "it is told to be over")
		b.store.with(func() { b.store.fail = nil })
		b.pass(10 * time.Second)
		b.check(len(b.log.lines("disk space of the database is back")) == 1 && len(b.log.lines("words archived")) == 1, "it does not go on")
	})
}

func (f *fakeStore) Archive(ctx context.Context, age time.Duration, policies []string, _ int) (store.ArchiveStats, bool, error) {
	if err := f.enter(ctx, "archive"); err != nil {
		return store.ArchiveStats{}, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retained = append(f.retained, fmt.Sprintf("archive %s of %v", age, policies))
	f.toArchive--
	return store.ArchiveStats{Sessions: 1, Messages: 2, Segments: 1, Stored: 300, Archived: 100}, f.toArchive > 0, nil
}

func (f *fakeStore) PurgeArchive(ctx context.Context, age, out time.Duration, policies []string, _ int) (int64, error) {
	if err := f.enter(ctx, "purge the archive"); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retained = append(f.retained, fmt.Sprintf("purge %s, %s of %v", age, out, policies))
	return 0, nil
}

func (f *fakeStore) PurgeRuns(ctx context.Context, age time.Duration, from store.RunMark, limit int) (store.RunMark, int64, error) {
	if age != f.keepRuns {
		return from, 0, fmt.Errorf("runs are deleted after %s", age)
	}
	n, err := f.purge(ctx, "purge runs", &f.oldRuns, limit)
	return store.RunMark{Run: from.Run + n}, n, err
}
