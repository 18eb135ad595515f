package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Parameters of the bootstrap. Each of resamples rounds draws as many sessions as there
// are, with replacement, and computes every figure from them; the interval holds the
// middle 95 % of the results. Whole sessions are drawn because the identifiers of one
// session are not independent.
//
// A difference of two policies is computed on the same draws for both, which cancels
// variation that they share, such as the difficulty of a session.
const (
	resamples  = 2000
	confidence = 0.95
	seed       = 0x5eed
	// minVerdict is the least number of sessions for a significant difference: with
	// fewer, even a difference of the same sign in all sessions occurs by chance with a
	// probability above 5 % (2 × 0.5^5 = 6 %).
	minVerdict = 6
)

// Interval is a 95 % confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// series holds the terms of a figure by session: the sum of over by the sum of under.
type series struct{ over, under []float64 }

func newSeries(n int) series { return series{make([]float64, n), make([]float64, n)} }

// value returns the figure of all sessions; ok is false if the divisor is 0.
func (s series) value() (v float64, ok bool) {
	var over, under float64
	for i := range s.over {
		over += s.over[i]
		under += s.under[i]
	}
	return over / under, under > 0
}

// draw computes every series on the same resamples of n sessions. It returns one row for
// each resample, with NaN where the divisor is 0.
func draw(n int, all []series) [][]float64 {
	r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // reproducible
	out := make([][]float64, resamples)
	cells := make([]float64, resamples*len(all))
	known := make([]bool, len(all)) // a measure may be of no use for any session
	for k, s := range all {
		_, known[k] = s.value()
	}
	times := make([]float64, n)
	for b := range out {
		clear(times)
		for range n {
			times[r.IntN(n)]++
		}
		out[b] = cells[b*len(all) : (b+1)*len(all)]
		for k, s := range all {
			var over, under float64
			if !known[k] {
				out[b][k] = math.NaN()
				continue
			}
			for i, t := range times {
				over += t * s.over[i]
				under += t * s.under[i]
			}
			out[b][k] = over / under
		}
	}
	return out
}

// middle returns the interval that holds the middle 95 % of values, or nil without any.
func middle(values []float64) *Interval {
	values = slices.DeleteFunc(values, math.IsNaN)
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	tail := (1 - confidence) / 2
	return &Interval{quantile(values, tail), quantile(values, 1-tail)}
}

// quantile returns the q-quantile of sorted values with linear interpolation.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Verdicts about a difference.
const (
	Better = "better"
	Worse  = "worse"
	Noise  = "noise"
)

// verdict classifies a difference over n sessions; it is Noise if the interval contains 0.
func verdict(n int, i *Interval) string {
	switch {
	case n < minVerdict || i == nil:
		return Noise
	case i.Low > 0:
		return Better
	case i.High < 0:
		return Worse
	}
	return Noise
}
