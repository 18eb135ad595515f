package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// CompactOptions holds the sizes of the throughput benchmark, with the tags of their flags.
type CompactOptions struct {
	// By is the policy of the job path, nil for truncation of short repeated texts. With one, there is no
	// baseline, and the sessions are Recorded ones, or else generated as those of coding agents.
	By       *policy.Policy   `kong:"-" json:"-"`
	Recorded [][]chat.Message `kong:"-" json:"-"`

	Sessions int         `placeholder:"N" help:"Sessions for the job path, and as many for the baseline; by default 4000, and 800 with --policy."`
	Messages int         `default:"200" help:"Messages of a session; with --policy as many as the tokens take, some 170."`
	Tokens   chat.Tokens `default:"40000" help:"Tokens of a session."`
	Tenants  int         `default:"1" help:"Tenants that have the sessions of the job path; the sweep takes them in turns."`
	// A change in the speed of the machine affects both parts of a round.
	Rounds int `default:"4" help:"Alternations of job path and baseline."`
}

// CompactResult holds the measurements of Compact.
type CompactResult struct {
	CompactionsPerSecond float64 `json:"compactions_per_second"`
	BaselinePerSecond    float64 `json:"baseline_per_second,omitempty"`
	Ratio                float64 `json:"ratio,omitempty"`
	// CPUMicros is the CPU time of Postgres, Redis and this process for a compaction over the job path,
	// and BaselineCPUMicros for one of the baseline.
	CPUMicros             float64 `json:"cpu_us_per_compaction"`
	BaselineCPUMicros     float64 `json:"baseline_cpu_us_per_compaction,omitempty"`
	CPUMicrosOf           CPU     `json:"cpu_us_of"`
	WALBytesPerCompaction float64 `json:"wal_bytes_per_compaction"`
	MemoryBytes           int64   `json:"memory_bytes"`
	Sessions              int     `json:"sessions"`
	Applied               int64   `json:"applied"`
	Messages              int     `json:"messages"`
	Tokens                int64   `json:"tokens"`
	Tenants               int     `json:"tenants"`
	Concurrency           int     `json:"concurrency"`
	Connections           int     `json:"connections"`
	// Bytes is the mean size of a session as JSON, TokensAfter that of its view after the run. They and
	// the times of runs, in milliseconds, are measured of a policy.
	Bytes       int64   `json:"bytes,omitempty"`
	TokensAfter int64   `json:"tokens_after,omitempty"`
	P50         float64 `json:"p50_ms,omitempty"`
	P95         float64 `json:"p95_ms,omitempty"`
	Rounds      []Round `json:"rounds"`
}

// Round holds the throughput of one alternation.
type Round struct {
	CompactionsPerSecond float64 `json:"compactions_per_second"`
	BaselinePerSecond    float64 `json:"baseline_per_second,omitempty"`
}

// Compact measures compactions per second over the whole job path: a sweep enqueues the
// runs, asynq delivers them, and the worker claims, plans, checks and applies them. The
// time of a round runs from the first run enqueued to the last one committed, by the
// clock of the database. The baseline uses as many connections (see database.baseline).
func Compact(ctx context.Context, env Env, o CompactOptions) (CompactResult, error) {
	target := o.Tokens / 2
	if o.Sessions == 0 {
		if o.Sessions = 4000; o.By != nil {
			o.Sessions = 800
		}
	}
	pol := truncating(o.Tokens*3/4, target)
	if o.By != nil {
		truncation := pol
		pol = *o.By
		pol.StartTokens, pol.TargetTokens, pol.Debounce, pol.MaxDelay = truncation.StartTokens, target, 0, 0
	}
	s, closeAll, err := open(ctx, env, pol)
	if err != nil {
		return CompactResult{}, err
	}
	defer closeAll()
	sessions, err := o.sessions(s)
	if err != nil {
		return CompactResult{}, err
	}
	if s.db, err = openDatabase(ctx, env.DatabaseURL, env.Connections, s.store); err != nil {
		return CompactResult{}, err
	}
	defer s.db.pool.Close()

	if o.Sessions < o.Rounds || o.Rounds < 1 || o.Tenants < 1 {
		return CompactResult{}, errors.New("compact: want --rounds and --tenants of 1 or more, and a session for each round")
	}
	perRound := o.Sessions / o.Rounds
	result := CompactResult{
		Sessions: perRound * o.Rounds, Messages: o.Messages, Tokens: int64(o.Tokens), Tenants: o.Tenants,
		Concurrency: env.Concurrency, Connections: env.Connections,
	}
	if o.By != nil {
		result.Messages, result.Bytes = mean(sessions)
	}
	var seconds, baselineSeconds float64
	var cpu, baselineCPU CPU
	var wal int64
	for round := range o.Rounds {
		if err := s.seed(ctx, o, sessions, round, perRound); err != nil {
			return result, err
		}
		var f, d float64
		if o.By == nil {
			used, err := s.cpuOf(ctx, func() (err error) {
				f, err = s.baselineRound(ctx, round, target)
				return err
			})
			if err != nil {
				return result, err
			}
			baselineCPU = baselineCPU.add(used, 1)
		}
		before, err := s.db.walPosition(ctx)
		if err != nil {
			return result, err
		}
		resetPeak()
		used, err := s.cpuOf(ctx, func() (err error) {
			var applied int64
			d, applied, err = s.jobRound(ctx, fmt.Sprintf("round-%d", round), perRound)
			if err == nil && applied != int64(perRound) && o.By == nil {
				err = fmt.Errorf("%d of %d runs were applied", applied, perRound)
			}
			result.Applied += applied
			return err
		})
		if err != nil {
			return result, err
		}
		cpu = cpu.add(used, 1)
		after, err := s.db.walPosition(ctx)
		if err != nil {
			return result, err
		}
		result.MemoryBytes = max(result.MemoryBytes, peakMemory())
		wal += after - before
		seconds += d
		baselineSeconds += f
		r := Round{CompactionsPerSecond: float64(perRound) / d}
		if f > 0 {
			r.BaselinePerSecond = float64(perRound) / f
		}
		result.Rounds = append(result.Rounds, r)
		env.Progress("measuring", round+1, o.Rounds)
	}
	n := float64(result.Sessions)
	result.CompactionsPerSecond = n / seconds
	if o.By == nil {
		result.BaselinePerSecond = n / baselineSeconds
		result.Ratio = result.CompactionsPerSecond / result.BaselinePerSecond
	} else if result.TokensAfter, result.P50, result.P95, err = s.db.runs(ctx); err != nil {
		return result, err
	}
	result.CPUMicrosOf = CPU{}.add(cpu, 1e6/n)
	result.CPUMicros, result.BaselineCPUMicros = cpu.sum()/n*1e6, baselineCPU.sum()/n*1e6
	result.WALBytesPerCompaction = float64(wal) / n
	return result, nil
}

func baselineTenant(round int) string { return fmt.Sprintf("baseline-%d", round) }

// seed imports the sessions of a round for the baseline and the job path, or of a policy for the latter; an
// import enqueues nothing. The threshold of their model keeps baseline sessions from being due.
func (s *system) seed(ctx context.Context, o CompactOptions, sessions [][]store.NewMessage, round, n int) error {
	limits := s.planner.Policy.Limits("", s.planner.Window)
	s.thresholds = []store.Threshold{{ModelPrefix: "", DueTokens: limits.Start}, {ModelPrefix: "baseline", DueTokens: 1 << 40}}
	if err := s.store.Scheduler.SavePolicy(ctx, s.planner.Policy.FleetHash(), []byte(`{}`), s.thresholds); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	var done atomic.Int64
	for i := range 2 * n {
		g.Go(func() error {
			k, model := store.Key{Tenant: baselineTenant(round), Session: fmt.Sprintf("s%d", i)}, "baseline"
			if i%2 == 1 {
				k.Tenant, model = fmt.Sprintf("job-%d-%d", round, i/2%o.Tenants), "job"
			}
			var msgs []store.NewMessage
			switch {
			case o.By == nil:
				msgs = session(o.Messages, 600, o.Tokens/chat.Tokens(o.Messages), true)
			case i%2 == 0:
				return nil
			default:
				msgs, model = sessions[(round*n+i/2)%len(sessions)], sessionModel
			}
			_, _, err := s.store.Import(gctx, k, model, msgs)
			s.env.Progress("filling", int(done.Add(1))+round*2*n, 2*n*o.Rounds)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.db.vacuum(ctx)
}

func (s *system) baselineRound(ctx context.Context, round int, target chat.Tokens) (float64, error) {
	rows, _, err := s.store.Operator.Sessions(ctx, store.SessionFilter{Tenant: baselineTenant(round), Limit: 1 << 30})
	if err != nil {
		return 0, err
	}
	g, gctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	start := time.Now()
	for range s.env.Connections {
		g.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(rows)); i = next.Add(1) - 1 {
				if err := s.db.baseline(gctx, rows[i].SID, target); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = g.Wait()
	return time.Since(start).Seconds(), err
}

func (s *system) jobRound(ctx context.Context, entry string, n int) (seconds float64, applied int64, err error) {
	err = s.work(ctx, func(ctx context.Context) error {
		if _, err := s.store.Scheduler.FireTick(ctx, entry, time.Now(), "bench"); err != nil {
			return err
		}
		sweeps, err := s.store.Scheduler.OpenSweeps(ctx)
		if err != nil {
			return err
		}
		if len(sweeps) != 1 {
			return fmt.Errorf("%d sweeps are open, want 1", len(sweeps))
		}
		return poll(ctx, 200*time.Millisecond, func() (bool, error) {
			var ended int64
			var err error
			seconds, ended, applied, err = s.db.sweepTimes(ctx, sweeps[0].ID)
			return ended >= int64(n), err
		})
	})
	return seconds, applied, err
}
