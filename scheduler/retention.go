package scheduler

import (
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

// runRetention archives and purges words as the policies in force say.
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
		for _, age := range slices.Sorted(maps.Keys(purge)) {
			if err := s.purgeArchive(ctx, age, purge[age]); err != nil {
				return err
			}
		}
		if err := backoff.Wait(ctx, purgeInterval); err != nil {
			return err
		}
	}
}

// retentions returns the names of policies by the age at which they have words archived, and
// purged.
func (s *Scheduler) retentions(ctx context.Context) (archive, purge map[time.Duration][]string, err error) {
	named, err := retry(ctx, s, "read policies", func(ctx context.Context) ([]store.PolicyVersion, error) { return s.store.Policies(ctx, "") })
	if err != nil {
		return nil, nil, err
	}
	archive, purge = map[time.Duration][]string{}, map[time.Duration][]string{}
	add := func(name string, r policy.Retention) {
		if r.ArchiveAfter > 0 {
			archive[r.ArchiveAfter] = append(archive[r.ArchiveAfter], name)
		}
		if r.PurgeAfter > 0 {
			purge[r.PurgeAfter] = append(purge[r.PurgeAfter], name)
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
	var total store.ArchiveStats
	for more := true; more; {
		page, err := retry(ctx, s, "archive", func(ctx context.Context) (page archived, err error) {
			page.ArchiveStats, page.more, err = s.store.Archive(ctx, age, policies, s.cfg.PageSize)
			return page, err
		})
		if err != nil {
			return err
		}
		s.cfg.Observer.Archived(page.ArchiveStats)
		total.Add(page.ArchiveStats)
		if more = page.more; more {
			if err := backoff.Wait(ctx, retentionPause); err != nil {
				return err
			}
		}
	}
	if total.Messages > 0 {
		s.log.InfoContext(ctx, "words archived", "after", policy.Days(age), "sessions", total.Sessions, "messages", total.Messages,
			"stored_bytes", total.Stored, "archived_bytes", total.Archived)
	}
	return nil
}

// archived is a page of the archive.
type archived struct {
	store.ArchiveStats
	more bool
}

func (s *Scheduler) purgeArchive(ctx context.Context, age time.Duration, policies []string) error {
	total := int64(0)
	for n := int64(s.cfg.PageSize); n >= int64(s.cfg.PageSize); {
		var err error
		n, err = retry(ctx, s, "purge the archive", func(ctx context.Context) (int64, error) {
			return s.store.PurgeArchive(ctx, age, policies, s.cfg.PageSize)
		})
		if err != nil {
			return err
		}
		s.cfg.Observer.Purged(n)
		total += n
	}
	if total > 0 {
		s.log.InfoContext(ctx, "archived words purged", "after", policy.Days(age), "segments", total)
	}
	return nil
}
