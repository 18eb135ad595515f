package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// How intervals are made: sessions are drawn with replacement, as many as there are,
// and every figure is computed of those drawn; resamples times, from one seed. The
// interval holds the middle 95 % of what came out. It is over sessions: identifiers
// of one session are not independent, so they are drawn together.
//
// A difference of two policies is computed on the same draws for both, which leaves
// out what sessions have in common, their difficulty above all.
const (
	resamples  = 2000
	confidence = 0.95
	seed       = 0x5eed
	// minVerdict is the least number of sessions on which a difference can be more
	// than noise: with fewer, even one that all of them agree on happens by chance more
	// often than one time in twenty (2 × 0.5^5 = 6 %).
	minVerdict = 6
)

// Interval is where a figure lies with 95 % confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// series is a figure of which every session has a part: the sum of over, divided by
// the sum of under.
type series struct{ over, under []float64 }

func newSeries(n int) series { return series{make([]float64, n), make([]float64, n)} }

// value returns the figure of all sessions; ok is false where there is nothing to divide by.
func (s series) value() (v float64, ok bool) {
	var over, under float64
	for i := range s.over {
		over += s.over[i]
		under += s.under[i]
	}
	return over / under, under > 0
}

// draw computes every series on the same resamples of n sessions: one row for each
// resample, with NaN where there was nothing to divide by.
func draw(n int, all []series) [][]float64 {
	r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // the same every time, on purpose
	out := make([][]float64, resamples)
	cells := make([]float64, resamples*len(all))
	times := make([]float64, n)
	for b := range out {
		clear(times)
		for range n {
			times[r.IntN(n)]++
		}
		out[b] = cells[b*len(all) : (b+1)*len(all)]
		for k, s := range all {
			var over, under float64
			for i, t := range times {
				over += t * s.over[i]
				under += t * s.under[i]
			}
			out[b][k] = over / under
		}
	}
	return out
}

// middle returns the interval that holds the middle of values; nil where there are none.
func middle(values []float64) *Interval {
	values = slices.DeleteFunc(values, math.IsNaN)
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	tail := (1 - confidence) / 2
	return &Interval{quantile(values, tail), quantile(values, 1-tail)}
}

// quantile returns the value below which the share q of sorted values lies, between two of
// them in proportion.
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

// verdict says what a difference over n sessions tells: nothing where 0 is in its
// interval.
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
