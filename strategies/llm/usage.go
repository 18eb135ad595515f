package llm

import (
	"cmp"
	"math"
)

// Usage holds the tokens of calls, as reported by the servers or else estimated.
type Usage struct {
	// Input includes Cached, the tokens from the server's cache.
	Input, Cached int
	// Output includes Reasoning, the tokens that are not in the answer.
	Output, Reasoning int
	// Estimated counts attempts that may have been billed without reported usage: the server
	// reports none, or the response was cut off or late. They are in the other fields with
	// counts of their prompts and of the text that came.
	Estimated int
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
		Estimated: u.Estimated + v.Estimated,
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
