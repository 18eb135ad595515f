package tokens

import (
	"math"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Cache holds the prices of a provider's prompt cache, as shares of the price of input that
// is not cached.
type Cache struct {
	ReadPrice  float64 `json:"read_price"`
	WritePrice float64 `json:"write_price"`
}

// cacheFact holds the prices for the models whose names begin with prefix.
type cacheFact struct {
	prefix string
	Cache
}

// caches lists the prices of vendors on 2026-11-23; the longest matching prefix applies. Writes
// are those of the shortest time: platform.claude.com/docs/en/about-claude/pricing (5 minutes),
// developers.openai.com/api/docs/guides/prompt-caching and /pricing (30 minutes; without a
// price before GPT-5.6), api-docs.deepseek.com/quick_start/pricing,
// docs.x.ai/developers/advanced-api-usage/prompt-caching.
var caches = []cacheFact{
	{"claude", Cache{0.1, 1.25}},
	{"claude-opus-5-5", Cache{0.05, 1.25}},
	{"claude-opus-5.5", Cache{0.05, 1.25}},
	{"claude-sonnet-5-5", Cache{0.05, 1.25}},
	{"claude-sonnet-5.5", Cache{0.05, 1.25}},
	{"claude-fable-5-1", Cache{0.025, 1.25}},
	{"claude-fable-5.1", Cache{0.025, 1.25}},
	{"claude-mythos-5-1", Cache{0.025, 1.25}},
	{"claude-mythos-5.1", Cache{0.025, 1.25}},
	{"gpt-4o", Cache{0.5, 1}},
	{"o1", Cache{0.5, 1}},
	{"o3-mini", Cache{0.5, 1}},
	{"gpt-4.1", Cache{0.25, 1}},
	{"o3", Cache{0.25, 1}},
	{"o4-mini", Cache{0.25, 1}},
	{"gpt-5", Cache{0.1, 1}},
	{"gpt-5.6", Cache{0.1, 1.25}},
	{"gpt-6", Cache{0.1, 1.25}},
	{"gpt-6.1", Cache{0.05, 1.25}},
	{"grok-4", Cache{0.25, 1}},
	{"deepseek-flash", Cache{0.02, 1}},
	{"deepseek-v4-flash", Cache{0.02, 1}},
	{"deepseek-v4-pro", Cache{1. / 30, 1}},
}

// CacheOf returns the prices of the prompt cache for a model, if they are known.
func CacheOf(model string) (Cache, bool) {
	f, ok := lookupIn(caches, func(f cacheFact) string { return f.prefix }, model)
	return f.Cache, ok
}

// Rewrite holds the costs and savings of a smaller view at the prompt cache, if that holds the
// view before. Once it has expired, the smaller view is cheaper from the first request on.
type Rewrite struct {
	Cache
	// Before is the number of tokens that the next request would read; instead it reads Read and writes Written.
	Before  chat.Tokens `json:"read_before"`
	Read    chat.Tokens `json:"read"`
	Written chat.Tokens `json:"written"`
	// Requests is after how many requests the sum of their input is no dearer than that of
	// the view before: 1 for the next one, 0 for never.
	Requests int64 `json:"paid_back_after"`
}

// Rewrite returns the costs and savings of a view of after tokens in place of one of before. All
// of its tokens but written are the beginning of the view before.
func (c Cache) Rewrite(before, after, written chat.Tokens) Rewrite {
	r := Rewrite{Cache: c, Before: before, Read: after - written, Written: written}
	const imprecise = 1e-9 // of a quotient of such prices
	extra := float64(r.Read)*c.ReadPrice + float64(written)*c.WritePrice - float64(before)*c.ReadPrice
	saved := float64(before-after) * c.ReadPrice // by each later request
	switch {
	case extra <= 0:
		r.Requests = 1
	case saved > 0:
		r.Requests = 1 + int64(math.Ceil(extra/saved-imprecise))
	}
	return r
}
