package llm

import "math"

// Usage is what calls took, in tokens, as the servers reported it.
type Usage struct {
	// Input is everything sent, with what came from the server's cache.
	Input int
	// Cached is the part of Input that came from the cache.
	Cached int
	// Output is everything written, reasoning included.
	Output int
	// Reasoning is the part of Output that is not in the answer.
	Reasoning int
	// Unreported counts attempts that the server may have billed without saying how
	// much: it was cut off, or reports no usage. They are in no other number.
	Unreported int
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
		Unreported: u.Unreported + v.Unreported,
	}
}

// micros returns what a call costs, in millionths of the currency's unit, rounded up. A
// price per million tokens is a price in millionths per token.
func (p Price) micros(u Usage) int64 {
	cached := p.Cached
	if cached == 0 {
		cached = p.Input
	}
	cost := float64(u.Input-u.Cached)*p.Input + float64(u.Cached)*cached + float64(u.Output)*p.Output
	const noise = 1e-6 // of the sum of floats, so that an exact price is not rounded up
	return int64(math.Ceil(cost - noise))
}
