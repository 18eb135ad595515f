package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// SweepOptions holds the sizes of the benchmark of a sweep, with the tags of their flags.
type SweepOptions struct {
	Sessions int    `default:"100000" help:"Sessions of the fleet, of 21 messages each."`
	Due      string `default:"0.05" placeholder:"SHARE" help:"Share of them that is due, or all; by default 0.05."`
	SetBased bool   `help:"Let the database truncate them by itself, as a sweep does, instead of queueing a run for each."`
	Seed     uint64 `default:"1" help:"Seed of their sizes."`
}

// SweepResult holds the measurements of Sweep.
type SweepResult struct {
	Sessions int `json:"sessions"`
	Due      int `json:"due"`
	// Seconds are those from the first page to the end of the last run.
	Seconds float64 `json:"seconds"`
	// RunTwice counts the sessions that have more than one run.
	RunTwice int64 `json:"sessions_run_twice"`
	// PeakMemory is that of this process, a scheduler and a worker.
	PeakMemory int64 `json:"peak_memory_bytes"`
	// Truncated are those that the database has compacted by itself.
	Truncated   int64   `json:"truncated"`
	PerSecond   float64 `json:"sessions_per_second"`
	CPUMicros   float64 `json:"cpu_us_per_session"`
	CPUMicrosOf CPU     `json:"cpu_us_of"`
	WALBytes    float64 `json:"wal_bytes_per_session"`
	Seed        uint64  `json:"seed"`
}

// Sweep measures a sweep over a fleet of which a share is due.
func Sweep(ctx context.Context, env Env, o SweepOptions) (SweepResult, error) {
	share, err := 1.0, error(nil)
	if o.Due != "all" {
		share, err = strconv.ParseFloat(o.Due, 64)
	}
	due := int(share * float64(o.Sessions))
	if err != nil || due < 1 || due > o.Sessions {
		return SweepResult{}, fmt.Errorf("sweep: want --due all or a share of the sessions such as 0.05, one session at least, and not %q of %d",
			o.Due, o.Sessions)
	}
	s, closeAll, err := openFleet(ctx, env, o.Seed)
	if err != nil {
		return SweepResult{}, err
	}
	defer closeAll()
	s.setBased = o.SetBased
	if err := s.fillFleet(ctx, o.Sessions, due); err != nil {
		return SweepResult{}, err
	}
	r, err := s.sweep(ctx)
	r.Sessions, r.Seed = o.Sessions, o.Seed
	if err == nil && r.Due != due {
		err = fmt.Errorf("sweep: %d runs were applied, want %d", r.Due, due)
	}
	return r, err
}

// openFleet opens a system with the templates of a fleet.
func openFleet(ctx context.Context, env Env, seed uint64) (*system, func(), error) {
	s, closeAll, err := open(ctx, env, truncating(fleetStart, fleetTarget))
	if err != nil {
		return nil, nil, err
	}
	if s.db, err = openDatabase(ctx, env.DatabaseURL, 4, s.store); err != nil {
		closeAll()
		return nil, nil, err
	}
	end := func() { s.db.pool.Close(); closeAll() }
	if err := s.makeTemplates(ctx, seed); err != nil {
		end()
		return nil, nil, err
	}
	return s, end, nil
}

// sweep sweeps once over the fleet and measures that.
func (s *system) sweep(ctx context.Context) (r SweepResult, err error) {
	before, err := s.db.walPosition(ctx)
	if err != nil {
		return r, err
	}
	// It is open before a scheduler leads, whose reconciler then leaves due sessions to it.
	sweep, err := s.store.Operator.StartSweep(ctx, fleetTenant, 0, "bench", "bench")
	if err != nil {
		return r, err
	}
	resetPeak()
	used, err := s.cpuOf(ctx, func() error {
		return s.work(ctx, func(ctx context.Context) error {
			return poll(ctx, 100*time.Millisecond, func() (done bool, err error) {
				// Of store.Sweep, the part that does not count the runs.
				const query = `SELECT ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM runs WHERE sweep = w.id AND status IN ('queued', 'running')),
					queued, coalesce(due, 1) FROM sweeps w WHERE id = $1`
				var queued, due int
				err = s.db.pool.QueryRow(ctx, query, sweep).Scan(&done, &queued, &due)
				s.env.Progress("sweep", queued, due)
				return done, err
			})
		})
	})
	if err != nil {
		return r, err
	}
	r.PeakMemory = peakMemory()
	after, err := s.db.walPosition(ctx)
	if err != nil {
		return r, err
	}
	const query = `
		SELECT count(*) FILTER (WHERE status = 'applied'), count(*) FILTER (WHERE worker = 'bench'), extract(epoch FROM max(ended_at) - min(queued_at))::float8,
			(SELECT count(*) FROM (SELECT FROM runs GROUP BY sid HAVING count(*) > 1) x)
		FROM runs WHERE sweep = $1`
	if err := s.db.pool.QueryRow(ctx, query, sweep).Scan(&r.Due, &r.Truncated, &r.Seconds, &r.RunTwice); err != nil {
		return r, fmt.Errorf("result of the sweep: %w", err)
	}
	n := float64(max(1, r.Due))
	r.PerSecond, r.CPUMicrosOf, r.CPUMicros, r.WALBytes = n/r.Seconds, CPU{}.add(used, 1e6/n), used.sum()/n*1e6, float64(after-before)/n
	return r, nil
}
