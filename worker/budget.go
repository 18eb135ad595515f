package worker

import (
	"bytes"
	"context"
	"math"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

const (
	// budgetShare is the part of the memory of this process that the messages which its runs read
	// may have by default: a run takes up to ten times as much as the longest message.
	budgetShare = 20
	leastBudget = 32 << 20
)

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

// reserve takes what the messages of a claimed run need of the budget, and all of it for larger
// ones, which are executed alone. It waits for other runs, which are served in the order of their
// calls. The error is that of ctx, of the store, or ErrStopping.
func (a *attempt) reserve(ctx context.Context) error {
	s := &a.claim.Session
	if a.claim.Fence == 0 || a.reserved > 0 {
		return nil
	}
	seqs := s.Live
	if len(a.metas) != len(a.claim.View) { // from the log
		seqs = chat.Ranges{{Lo: 1, Hi: s.LastSeq + 1}}
	}
	octets, err := a.w.store.Octets(ctx, s.SID, seqs)
	if err != nil {
		return err
	}
	n := min(max(1, octets), int64(a.w.config.ReadBudget))
	if err := a.w.acquire(ctx, a.w.reading, n); err != nil {
		return err
	}
	a.reserved = n
	return nil
}

// release gives back what reserve has taken.
func (a *attempt) release() {
	if a.reserved > 0 {
		a.w.reading.Release(a.reserved)
	}
	a.reserved = 0
}
