package scheduler

import (
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Observer receives the events of a scheduler, for metrics. Its methods are called concurrently
// and must return at once.
type Observer interface {
	// Leading is called when a lead begins and when it ends.
	Leading(leading bool)
	// Took is called for the runs that were taken from Postgres to be enqueued.
	Took(reason string, runs int)
	// Truncated is called for the runs of sweeps that the database has ended by itself.
	Truncated(runs int)
	// Expired is called for the runs that ended because no worker attempted them.
	Expired(runs int)
	// Archived is called for the words that were moved to the archive.
	Archived(store.ArchiveStats)
	// DiskUsed is called for the disk space of the tables, if there is a budget.
	DiskUsed(use store.DiskUse, budget policy.Bytes)
	// Purged is called for the segments of the archive whose words are gone.
	Purged(segments int64)
}

// The reasons for which runs are enqueued.
const (
	ReasonSweep     = "sweep"     // a sweep came to their session
	ReasonBulk      = "bulk"      // a bulk recompaction came to their session
	ReasonEvent     = "event"     // a write made their session due
	ReasonDelivery  = "delivery"  // their delivery is due: requested in SQL, postponed, retried, or lost
	ReasonOrphaned  = "orphaned"  // the lease of their worker has expired
	ReasonForgotten = "forgotten" // their session was due and nothing else had a run for it
)

// noObserver is the Observer of a scheduler that has none.
type noObserver struct{}

func (noObserver) Leading(bool)                         {}
func (noObserver) Took(string, int)                     {}
func (noObserver) Expired(int)                          {}
func (noObserver) Archived(store.ArchiveStats)          {}
func (noObserver) DiskUsed(store.DiskUse, policy.Bytes) {}
func (noObserver) Purged(int64)                         {}
func (noObserver) Truncated(int)                        {}
