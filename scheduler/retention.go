package scheduler

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
)

// retentionPause is the pause between two pages of the archive, in which others write.
const retentionPause = 100 * time.Millisecond

// runRetention archives and purges words as the policies in force and the disk budget say.
func (s *Scheduler) runRetention(ctx context.Context) error {
	for {
		archive, purge, err := s.retentions(ctx)
		if err != nil {
			return err
		}
		for _, age := range slices.Sorted(maps.Keys(archive)) {
			if err := s.archive(ctx, age, archive[age]); err != nil {
				return err
			}
		}
		for _, r := range slices.SortedFunc(maps.Keys(purge), func(a, b policy.Retention) int {
			return cmp.Or(cmp.Compare(a.PurgeAfter, b.PurgeAfter), cmp.Compare(a.ArchiveAfter, b.ArchiveAfter))
		}) {
			if err := s.purgeArchive(ctx, r, purge[r]); err != nil {
				return err
			}
		}
		if err := s.keepDiskBudget(ctx); err != nil {
			return err
		}
		if err := backoff.Wait(ctx, purgeInterval); err != nil {
			return err
		}
	}
}

// retentions returns the names of policies by the age at which they have words archived, and
// by the times of those that have them purged.
func (s *Scheduler) retentions(ctx context.Context) (archive map[time.Duration][]string, purge map[policy.Retention][]string, err error) {
	named, err := retry(ctx, s, "read policies", func(ctx context.Context) ([]store.PolicyVersion, error) { return s.store.Policies(ctx, "") })
	if err != nil {
		return nil, nil, err
	}
	archive, purge = map[time.Duration][]string{}, map[policy.Retention][]string{}
	add := func(name string, r policy.Retention) {
		if r.ArchiveAfter > 0 {
			archive[r.ArchiveAfter] = append(archive[r.ArchiveAfter], name)
		}
		if r.PurgeAfter > 0 {
			purge[r] = append(purge[r], name)
		}
	}
	if !slices.ContainsFunc(named, func(v store.PolicyVersion) bool { return v.Name == policy.DefaultName }) {
		add(policy.DefaultName, s.cfg.Policy.Retention)
	}
	for _, v := range named {
		if p, err := policy.ReadSpec(v.Spec); err == nil { // SyncPolicy logs one that cannot be read
			add(v.Name, p.Retention)
		}
	}
	return archive, purge, nil
}

// archive archives page after page until there is no more.
func (s *Scheduler) archive(ctx context.Context, age time.Duration, policies []string) error {
	total, err := s.archivePages(ctx, func(ctx context.Context, _ store.ArchiveStats) (store.ArchiveStats, bool, error) {
		return s.store.Archive(ctx, age, policies, s.cfg.PageSize)
	})
	if total.Messages > 0 {
		s.log.InfoContext(ctx, "words archived", append([]any{"after", policy.Days(age)}, moved(total)...)...)
	}
	return err
}

// archivePages calls page, with the sum of those before, until there is no more.
func (s *Scheduler) archivePages(ctx context.Context, page func(context.Context, store.ArchiveStats) (store.ArchiveStats, bool, error)) (total store.ArchiveStats, err error) {
	for {
		got, err := retry(ctx, s, "archive", func(ctx context.Context) (got archived, err error) {
			got.ArchiveStats, got.more, err = page(ctx, total)
			return got, err
		})
		if err != nil {
			return total, err
		}
		s.cfg.Observer.Archived(got.ArchiveStats)
		if total.Add(got.ArchiveStats); !got.more {
			return total, nil
		}
		if err := backoff.Wait(ctx, retentionPause); err != nil {
			return total, err
		}
	}
}

// moved returns the attributes of a line about archived words.
func moved(a store.ArchiveStats) []any {
	return []any{"sessions", a.Sessions, "messages", a.Messages, "stored_bytes", a.Stored, "archived_bytes", a.Archived}
}

// keepDiskBudget archives words sooner than the policies say, while the tables take more than the
// high-water mark. Moved words count although the tables do not shrink: new rows use the
// space after a vacuum.
func (s *Scheduler) keepDiskBudget(ctx context.Context) error {
	if s.cfg.DiskBudget == 0 {
		return nil
	}
	before, err := s.diskUse(ctx)
	over := before.Bytes - before.Freed - s.cfg.DiskMark()
	if err != nil || over <= 0 {
		s.diskFull = s.diskFull && err != nil
		return err
	}
	total, err := s.archivePages(ctx, func(ctx context.Context, total store.ArchiveStats) (store.ArchiveStats, bool, error) {
		page, more, err := s.store.ArchiveOldest(ctx, over-total.Gain(), s.cfg.PageSize)
		return page, more && total.Gain()+page.Gain() < over, err
	})
	if err != nil {
		return err
	}
	use, err := s.diskUse(ctx)
	if err != nil {
		return err
	}
	sizes := append(moved(total), "table_bytes", use.Bytes, "freed_bytes", use.Freed, "budget_bytes", int64(s.cfg.DiskBudget))
	if total.Messages > 0 {
		s.log.InfoContext(ctx, "words archived for the disk budget: Postgres uses their space again after a vacuum, VACUUM FULL returns it to the disk", sizes...)
	}
	full := !use.More && use.Bytes-use.Freed > s.cfg.DiskMark() && use.Bytes > int64(s.cfg.DiskBudget)
	if full && !s.diskFull {
		s.log.WarnContext(ctx, "disk budget exceeded, and no more words can be archived: see compactor doctor", sizes...)
	}
	s.diskFull = full
	return nil
}

// diskUse reads the disk space of the tables.
func (s *Scheduler) diskUse(ctx context.Context) (store.DiskUse, error) {
	use, err := retry(ctx, s, "measure the disk space", s.store.DiskUse)
	if err == nil {
		s.cfg.Observer.DiskUsed(use, s.cfg.DiskBudget)
	}
	return use, err
}

// archived is a page of the archive.
type archived struct {
	store.ArchiveStats
	more bool
}

func (s *Scheduler) purgeArchive(ctx context.Context, r policy.Retention, policies []string) error {
	total := int64(0)
	for n := int64(s.cfg.PageSize); n >= int64(s.cfg.PageSize); {
		var err error
		n, err = retry(ctx, s, "purge the archive", func(ctx context.Context) (int64, error) {
			return s.store.PurgeArchive(ctx, r.PurgeAfter, r.ArchiveAfter+r.PurgeAfter, policies, s.cfg.PageSize)
		})
		if err != nil {
			return err
		}
		s.cfg.Observer.Purged(n)
		total += n
	}
	if total > 0 {
		s.log.InfoContext(ctx, "archived words purged", "after", policy.Days(r.PurgeAfter), "segments", total)
	}
	return nil
}
