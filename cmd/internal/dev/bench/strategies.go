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

// StrategyOptions selects the measurements of Strategies, with the tags of their flags.
type StrategyOptions struct {
	Strategy []string `arg:"" optional:"" help:"Strategies to measure; all by default."`
	Messages []int    `default:"1000,10000,100000" help:"Lengths, in messages of 200 characters."`
	Rounds   int      `default:"5" help:"Repetitions of each, of which the fastest is reported."`
}

// StrategyTime holds the time of one strategy, including the guard, for a number of
// messages of strategiestest.Characters each.
type StrategyTime struct {
	Strategy string  `json:"strategy"`
	Messages int     `json:"messages"`
	Seconds  float64 `json:"seconds"`
	// Bytes is the number of bytes of content read, PerSecond the rate.
	Bytes     int64   `json:"bytes_read"`
	PerSecond float64 `json:"bytes_per_second,omitempty"`
	// Ratio is the time relative to grouping the same messages.
	Ratio float64 `json:"ratio_to_grouping"`
	// TokensBefore and TokensAfter are the sizes of the view.
	TokensBefore chat.Tokens `json:"tokens_before"`
	TokensAfter  chat.Tokens `json:"tokens_after"`
}

// Strategies measures strategies in this process, without servers. It calls progress after
// each measurement.
func Strategies(ctx context.Context, o StrategyOptions, progress func(stage string, done, total int)) ([]StrategyTime, error) {
	registry := strategiestest.Registry()
	if len(o.Strategy) == 0 {
		o.Strategy = registry.Names()
	}
	var out []StrategyTime
	logs := map[int]*strategiestest.Log{}
	for _, name := range o.Strategy {
		for _, n := range o.Messages {
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
			out = append(out, m)
			progress("strategies", len(out), len(o.Strategy)*len(o.Messages))
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
		m.Bytes = l.Loaded() - loaded
		m.TokensBefore, m.TokensAfter = r.Before.IncludedTokens, r.After.IncludedTokens
	}
	m.PerSecond = float64(m.Bytes) / m.Seconds
	m.Ratio = m.Seconds / grouping
	return m, nil
}
