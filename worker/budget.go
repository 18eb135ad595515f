package worker

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

const (
	// budgetShare is the part of the memory of this process that the messages which its runs read
	// may have by default: a run takes up to ten times as much as the longest message.
	budgetShare = 20
	leastBudget = 32 << 20
	// budgetWait bounds how long a run keeps its place in this worker while it waits for the budget, and
	// at most a quarter of its time is spent so.
	budgetWait = 30 * time.Second
	// budgetDelay is the delay of a run that returns to the queue as the budget was in use.
	budgetDelay = 15 * time.Second
)

// errReadBudget is the error of a run whose messages exceed the free read budget.
var errReadBudget = errors.New("worker.read_budget is in use: the messages of the run do not fit")

// DefaultReadBudget returns a twentieth of the memory that this process may use: the limit of the
// runtime (GOMEMLIMIT) or of its control group, or the memory of the machine.
func DefaultReadBudget() policy.Bytes {
	limit := debug.SetMemoryLimit(-1)
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if raw, err := os.ReadFile(file); err == nil {
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64); err == nil {
				limit = min(limit, n)
			}
		}
	}
	if raw, err := os.ReadFile("/proc/meminfo"); err == nil {
		_, raw, _ = bytes.Cut(raw, []byte("MemTotal:"))
		if fields := bytes.Fields(raw); len(fields) > 0 {
			if kb, err := strconv.ParseInt(string(fields[0]), 10, 64); err == nil {
				limit = min(limit, kb<<10)
			}
		}
	}
	if limit == math.MaxInt64 {
		return leastBudget
	}
	return policy.Bytes(max(leastBudget, limit/budgetShare))
}

// reserve takes the bytes of a claimed run's messages from the read budget. Small runs share half of it and wait
// for each other in the order of their calls. A run that needs more than a quarter of that half is a large
// one: one of them is executed at a time, beside the small ones, so that neither kind waits for the other.
// The error is errReadBudget, that of ctx or of the store, or ErrStopping.
func (a *attempt) reserve(ctx context.Context) error {
	s := &a.claim.Session
	if a.claim.Fence == 0 || a.reserved > 0 {
		return nil
	}
	seqs := s.Live.Union(s.Awaiting).Union(s.Pinned)
	if a.fromLog() {
		seqs = chat.Ranges{{Lo: 1, Hi: s.LastSeq + 1}}
	}
	n, err := a.w.store.Bytes(ctx, s.SID, seqs)
	if err != nil {
		return err
	}
	n = max(1, n)
	if half := int64(a.w.config.ReadBudget / 2); n > half/4 {
		switch {
		case a.w.draining.Err() != nil:
			return ErrStopping
		case !a.w.large.TryAcquire(1):
			return errReadBudget
		}
		a.reserved, a.reservedOf = 1, a.w.large
		return nil
	}
	wait := budgetWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/4)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, wait, errReadBudget)
	defer cancel()
	if err := a.w.acquire(waiting, a.w.small, n); err != nil {
		return err
	}
	a.reserved, a.reservedOf = n, a.w.small
	return nil
}

// release returns the bytes that reserve has taken.
func (a *attempt) release() {
	if a.reserved > 0 {
		a.reservedOf.Release(a.reserved)
	}
	a.reserved = 0
}
