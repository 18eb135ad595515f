package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
)

// FleetOptions holds the sizes of the benchmark of a fleet, with the tags of their flags.
type FleetOptions struct {
	Sessions int           `default:"100000" help:"Sessions of the largest fleet, of 21 messages each; others have 10,000, and a tenth of this."`
	Due      int           `default:"2000" help:"Due sessions of each."`
	Idle     time.Duration `default:"10s" help:"How long idling is measured."`
	Seed     uint64        `default:"1" help:"Seed of their sizes."`
}

// FleetResult holds the measurements of Fleet.
type FleetResult struct {
	Sizes []FleetSize `json:"sizes"`
	// Growth is the CPU time of a due session in the largest fleet, as a multiple of that in the smallest.
	Growth float64 `json:"cpu_growth"`
	// A change of the policy, in the largest fleet, by which one of 32 sessions becomes due.
	PolicySeconds  float64 `json:"policy_change_seconds"`
	PolicyWALBytes int64   `json:"policy_change_wal_bytes"`
	PolicyChanged  int64   `json:"policy_change_sessions"`
	// Transactions and buffers a second while the largest fleet is idle.
	IdleTransactions float64 `json:"idle_transactions_per_second"`
	IdleBuffers      float64 `json:"idle_buffers_per_second"`
	IdleCPU          float64 `json:"idle_cpu_share"`
	Seed             uint64  `json:"seed"`
}

// FleetSize holds the measurements of a fleet of a size.
type FleetSize struct {
	Sessions int `json:"sessions"`
	// Found and Claimed are milliseconds, of medians: the next 500 due sessions, and the same with
	// their locks.
	Found   float64 `json:"candidates_found_ms"`
	Claimed float64 `json:"candidates_claimed_ms"`
	// CPUMicros is the CPU time of a due session in a sweep through the queue.
	CPUMicros float64 `json:"cpu_us_per_due_session"`
	WALBytes  float64 `json:"wal_bytes_per_due_session"`
}

const (
	smallFleet = 10_000
	candidates = 500
)

// Fleet measures costs that should not grow with the number of sessions, and the cost of a change of the
// policy.
func Fleet(ctx context.Context, env Env, o FleetOptions) (FleetResult, error) {
	r := FleetResult{Seed: o.Seed}
	if o.Due < 1 || o.Sessions < o.Due {
		return r, errors.New("fleet: want --due of 1 or more, and as many --sessions at least")
	}
	sizes := slices.DeleteFunc([]int{smallFleet, o.Sessions / 10, o.Sessions}, func(n int) bool {
		return n > o.Sessions || n < min(smallFleet, o.Sessions)
	})
	slices.Sort(sizes)
	s, closeAll, err := openFleet(ctx, env, o.Seed)
	if err != nil {
		return r, err
	}
	defer closeAll()
	filled := 0
	for _, n := range slices.Compact(sizes) {
		if err := s.fillFleet(ctx, n-filled, min(o.Due, n-filled)); err != nil {
			return r, err
		}
		filled = n
		size := FleetSize{Sessions: n}
		if size.Found, err = s.candidates(ctx, ""); err != nil {
			return r, err
		}
		if size.Claimed, err = s.candidates(ctx, " FOR NO KEY UPDATE SKIP LOCKED"); err != nil {
			return r, err
		}
		swept, err := s.sweep(ctx)
		if err != nil {
			return r, err
		}
		size.CPUMicros, size.WALBytes = swept.CPUMicros, swept.WALBytes
		r.Sizes = append(r.Sizes, size)
		if err := s.db.vacuum(ctx); err != nil {
			return r, err
		}
	}
	r.Growth = r.Sizes[len(r.Sizes)-1].CPUMicros / r.Sizes[0].CPUMicros
	if err := s.changePolicy(ctx, &r); err != nil {
		return r, err
	}
	return r, s.idleFleet(ctx, o.Idle, &r)
}

// candidates returns how many milliseconds the next due sessions take, at the median.
func (s *system) candidates(ctx context.Context, lock string) (float64, error) {
	const query = `SELECT sid, model, policy FROM sessions WHERE due AND tenant = $1 AND sid > 0 ORDER BY sid LIMIT $2`
	var times []float64
	for range 20 {
		begin := time.Now()
		err := pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, query+lock, fleetTenant, candidates)
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("candidates: %w", err)
		}
		times = append(times, time.Since(begin).Seconds()*1e3)
	}
	slices.Sort(times)
	return quantile(times, 0.5), nil
}

// changePolicy measures how long it takes until all sessions follow another policy, by which
// those of the largest size become due: one of as many as there are templates.
func (s *system) changePolicy(ctx context.Context, r *FleetResult) error {
	scope := store.PauseScope{} // runs of sessions that are due now are not counted
	if err := s.store.Operator.PauseRuns(ctx, scope, "a benchmark", "bench"); err != nil {
		return err
	}
	var largest chat.Tokens
	if err := s.db.pool.QueryRow(ctx, `SELECT max(live_tokens) FROM sessions WHERE tenant = $1`, fleetTenant).Scan(&largest); err != nil {
		return fmt.Errorf("the largest session: %w", err)
	}
	before, err := s.db.walPosition(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if r.PolicyChanged, err = s.follow(ctx, largest-1); err != nil {
		return err
	}
	r.PolicySeconds = time.Since(begin).Seconds()
	after, err := s.db.walPosition(ctx)
	if err != nil {
		return err
	}
	r.PolicyWALBytes = after - before
	if _, err := s.follow(ctx, fleetStart); err != nil {
		return err
	}
	return s.store.Operator.ResumeRuns(ctx, scope, "bench")
}

// follow has a scheduler bring another start into force, and returns the number of sessions
// that it wrote for that.
func (s *system) follow(ctx context.Context, start chat.Tokens) (changed int64, err error) {
	before, err := s.store.PolicyProgress(ctx)
	if err != nil {
		return 0, err
	}
	s.planner.Policy.StartTokens = start
	err = s.work(ctx, func(ctx context.Context) error {
		return poll(ctx, 50*time.Millisecond, func() (bool, error) {
			p, err := s.store.PolicyProgress(ctx)
			if done := p.Revision > before.Revision && !p.Pending; done || err != nil {
				changed = p.Changed
				return done, err
			}
			s.env.Progress("policy", int(p.Percent), 100)
			return false, nil
		})
	})
	return changed, err
}

// idleFleet measures the statements of a scheduler and a worker while there is nothing to do.
func (s *system) idleFleet(ctx context.Context, idle time.Duration, r *FleetResult) error {
	const query = `SELECT xact_commit + xact_rollback, blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()`
	return s.work(ctx, func(ctx context.Context) error {
		if err := s.untilLeading(ctx); err != nil {
			return err
		}
		if err := backoff.Wait(ctx, 2*time.Second); err != nil { // statistics come late
			return err
		}
		var transactions, buffers, transactionsAfter, buffersAfter int64
		if err := s.db.pool.QueryRow(ctx, query).Scan(&transactions, &buffers); err != nil {
			return err
		}
		begin := time.Now()
		used, err := s.cpuOf(ctx, func() error { return backoff.Wait(ctx, idle) })
		if err != nil {
			return err
		}
		passed := time.Since(begin).Seconds()
		if err := s.db.pool.QueryRow(ctx, query).Scan(&transactionsAfter, &buffersAfter); err != nil {
			return err
		}
		r.IdleTransactions, r.IdleBuffers = float64(transactionsAfter-transactions)/passed, float64(buffersAfter-buffers)/passed
		r.IdleCPU = used.sum() / passed
		return nil
	})
}
