package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
)

// LatencyOptions holds the size of the latency benchmark, with the tags of its flag.
type LatencyOptions struct {
	Samples int `default:"100" help:"Number of appends to time."`
}

// LatencyResult holds the quantiles in milliseconds.
type LatencyResult struct {
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
	Max     float64 `json:"max_ms"`
	Samples int     `json:"samples"`
}

// Latency measures the time from the commit of an append that makes a session due until
// its compaction is visible, on an idle system without debounce. It polls every
// millisecond.
func Latency(ctx context.Context, env Env, o LatencyOptions) (LatencyResult, error) {
	const start, target = 30_000, 20_000
	s, closeAll, err := open(ctx, env, truncating(start, target))
	if err != nil {
		return LatencyResult{}, err
	}
	defer closeAll()
	var times []float64
	err = s.work(ctx, func(ctx context.Context) error {
		if err := s.untilLeading(ctx); err != nil {
			return err
		}
		for i := range o.Samples {
			k := store.Key{Session: fmt.Sprintf("s%d", i)}
			if _, _, err := s.store.Append(ctx, k, "job", session(150, 600, 200, true)); err != nil {
				return err
			}
			// Vary the delay so that samples do not align with polling intervals.
			if err := backoff.Wait(ctx, 50*time.Millisecond+time.Duration(i*37%50)*time.Millisecond); err != nil {
				return err
			}
			over := []store.NewMessage{{
				Message: chat.Message{Role: chat.RoleUser, Content: chat.TextContent("go on")}, Tokens: 500, Counter: "bench",
			}}
			if _, _, err := s.store.Append(ctx, k, "job", over); err != nil {
				return err
			}
			begin := time.Now()
			err := poll(ctx, time.Millisecond, func() (bool, error) {
				row, err := s.store.Session(ctx, k)
				return row.Revision > 0, err
			})
			if err != nil {
				return err
			}
			times = append(times, float64(time.Since(begin).Microseconds())/1000)
			env.Progress("measuring", i+1, o.Samples)
		}
		return nil
	})
	if err != nil {
		return LatencyResult{}, err
	}
	slices.Sort(times)
	at := func(q float64) float64 { return times[min(len(times)-1, int(q*float64(len(times))))] }
	return LatencyResult{P50: at(0.50), P95: at(0.95), P99: at(0.99), Max: times[len(times)-1], Samples: len(times)}, nil
}

// untilLeading waits for one compaction to complete, which warms up all components.
func (s *system) untilLeading(ctx context.Context) error {
	k := store.Key{Session: "warm"}
	if _, _, err := s.store.Append(ctx, k, "job", session(200, 600, 200, true)); err != nil {
		return err
	}
	return poll(ctx, 5*time.Millisecond, func() (bool, error) {
		row, err := s.store.Session(ctx, k)
		return row.Revision > 0, err
	})
}
