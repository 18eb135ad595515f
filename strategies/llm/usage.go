package llm

import (
	"cmp"
	"math"
)

// Usage holds the tokens of calls as reported by the servers.
type Usage struct {
	// Input includes Cached, the tokens from the server's cache.
	Input, Cached int
	// Output includes Reasoning, the tokens that are not in the answer.
	Output, Reasoning int
	// Unreported counts attempts that may have been billed without reported usage: the
	// response was cut off, or the server reports none. The other fields do not include
	// them.
	Unreported int
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
		Unreported: u.Unreported + v.Unreported,
	}
}

// micros returns the cost of a call in millionths of the currency, rounded up. A price per
// million tokens is a price in millionths per token.
func (p Price) micros(u Usage) int64 {
	cached := cmp.Or(p.Cached, p.Input)
	cost := float64(u.Input-u.Cached)*p.Input + float64(u.Cached)*cached + float64(u.Output)*p.Output
	const noise = 1e-6 // of the sum of floats, so that an exact price is not rounded up
	return int64(math.Ceil(cost - noise))
}
