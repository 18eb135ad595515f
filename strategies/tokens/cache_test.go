package tokens

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestPricesOfCaches(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]Cache{
		"us.anthropic.claude-opus-5-5":  {0.05, 1.25},
		"anthropic/claude-fable-5.1":    {0.025, 1.25},
		"o3":                            {0.25, 1},
		"o3-mini":                       {0.5, 1},
		"gpt-5.6-sol":                   {0.1, 1.25},
		"gpt-6.1-terra":                 {0.05, 1.25},
		"gpt-4":                         {},
		"":                              {},
		"deepseek/deepseek-v4-pro-0813": {1. / 30, 1},
		"a-model-without-a-price":       {},
	} {
		if got, known := CacheOf(model); got != want || known != (want != Cache{}) {
			t.Errorf("%s: %+v, known %t; want %+v", model, got, known, want)
		}
	}
	for _, f := range caches {
		if f.ReadPrice <= 0 || f.ReadPrice >= 1 || f.WritePrice < 1 || f.WritePrice > 2 {
			t.Errorf("%s: %+v", f.prefix, f.Cache)
		}
	}
}

func TestARewriteIsPaidBack(t *testing.T) {
	t.Parallel()
	claude, free := Cache{0.1, 1.25}, Cache{0.1, 1}
	for name, tt := range map[string]struct {
		cache                  Cache
		before, after, written chat.Tokens
		want                   int64
	}{
		// 1,000 × 0.1 + 4,000 × 1.25 − 10,000 × 0.1 = 4,100, at 500 for each later request: 8.2
		"after several":             {claude, 10_000, 5000, 4000, 10},
		"without a price of writes": {free, 10_000, 5000, 4000, 8},  // 3,100 / 500
		"exactly":                   {free, 10_000, 5000, 5000, 9},  // 4,000 / 500
		"a token more":              {free, 10_000, 5001, 5001, 10}, // 4,001 / 499.9
		"little is left":            {claude, 10_000, 500, 400, 1},  // 510 instead of 1,000
		"at the limit":              {claude, 10_000, 800, 800, 1},  // 1,000 instead of 1,000
		"above it":                  {claude, 10_000, 801, 801, 2},  // 1,001.25, and 919.9 saved
		"only the end is new":       {claude, 10_000, 9000, 0, 1},   // the end is cut off
		"little is saved":           {claude, 10_000, 9999, 9999, 114_989},
		"nothing":                   {claude, 10_000, 10_000, 10_000, 0},
		"more":                      {claude, 10_000, 12_000, 12_000, 0},
	} {
		got := tt.cache.Rewrite(tt.before, tt.after, tt.written)
		if got.Requests != tt.want || got.Read != tt.after-tt.written || got.Written != tt.written || got.Before != tt.before {
			t.Errorf("%s: %+v, want %d requests", name, got, tt.want)
		}
		sum := func(n int64) (with, without float64) {
			first := float64(got.Read)*tt.cache.ReadPrice + float64(got.Written)*tt.cache.WritePrice
			return first + float64(n-1)*float64(tt.after)*tt.cache.ReadPrice, float64(n) * float64(tt.before) * tt.cache.ReadPrice
		}
		const imprecise = 1e-3
		if n := got.Requests; n > 0 {
			if with, without := sum(n); with > without+imprecise {
				t.Errorf("%s: %f is more than %f", name, with, without)
			}
			if with, without := sum(n - 1); n > 1 && with <= without-imprecise {
				t.Errorf("%s: it is paid back one request earlier: %f and %f", name, with, without)
			}
		}
	}
}
