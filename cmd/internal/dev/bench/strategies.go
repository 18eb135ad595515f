package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest"
)

// StrategyOptions say what Strategies measures.
type StrategyOptions struct {
	// Names are the strategies; all when empty.
	Names []string
	// Sizes are numbers of messages.
	Sizes []int
	// Rounds is how often each is run; the fastest counts.
	Rounds int
	// Progress is told how many measurements are done; may be nil.
	Progress func(done, total int)
}

// StrategyTime is one strategy, behind the guard, on one number of messages of
// strategiestest.Characters each.
type StrategyTime struct {
	Strategy string  `json:"strategy"`
	Messages int     `json:"messages"`
	Seconds  float64 `json:"seconds"`
	// Octets is the content that the strategy read, PerSecond in octets.
	Octets    int64   `json:"octets_read"`
	PerSecond float64 `json:"octets_per_second,omitempty"`
	// Ratio is the time against grouping the same messages in the same round, which
	// every compaction begins with.
	Ratio float64 `json:"ratio_to_grouping"`
	// TokensBefore and TokensAfter are what the view holds.
	TokensBefore chat.Tokens `json:"tokens_before"`
	TokensAfter  chat.Tokens `json:"tokens_after"`
}

// Strategies measures strategies in this process; it needs no server.
func Strategies(ctx context.Context, o StrategyOptions) ([]StrategyTime, error) {
	registry := strategiestest.Registry()
	if len(o.Names) == 0 {
		o.Names = registry.Names()
	}
	var out []StrategyTime
	logs := map[int]*strategiestest.Log{}
	for _, name := range o.Names {
		for _, n := range o.Sizes {
			if logs[n] == nil {
				logs[n] = strategiestest.Agent(n)
			}
			s, err := logs[n].Default(registry, name)
			if err != nil {
				return nil, err
			}
			m, err := measure(ctx, logs[n], s, max(1, o.Rounds))
			if err != nil {
				return nil, fmt.Errorf("%s on %d messages: %w", name, n, err)
			}
			m.Strategy, m.Messages = name, n
			if out = append(out, m); o.Progress != nil {
				o.Progress(len(out), len(o.Names)*len(o.Sizes))
			}
		}
	}
	return out, nil
}

func measure(ctx context.Context, l *strategiestest.Log, s plan.Strategy, rounds int) (StrategyTime, error) {
	m := StrategyTime{Seconds: math.Inf(1)}
	grouping := math.Inf(1)
	pipeline := pipeline.Pipeline{Steps: []plan.Strategy{s}}
	for range rounds {
		start := time.Now()
		l.Transcript().Groups()
		grouping = min(grouping, time.Since(start).Seconds())
		loaded := l.Loaded()
		start = time.Now()
		r, err := pipeline.Run(ctx, l.Transcript(), l.Load)
		if err != nil {
			return m, err
		}
		m.Seconds = min(m.Seconds, time.Since(start).Seconds())
		m.Octets = l.Loaded() - loaded
		m.TokensBefore, m.TokensAfter = r.Before.IncludedTokens, r.After.IncludedTokens
	}
	m.PerSecond = float64(m.Octets) / m.Seconds
	m.Ratio = m.Seconds / grouping
	return m, nil
}
