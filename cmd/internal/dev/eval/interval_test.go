package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// direct returns the interval of a pooled figure, and of the difference of two, computed
// from lists of sessions that are really put together.
func direct(n int, figure func(sessions []int) float64) Interval {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	var values []float64
	for range resamples {
		var drawn []int
		for range n {
			drawn = append(drawn, r.IntN(n))
		}
		if v := figure(drawn); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	at := func(q float64) float64 {
		i := q * float64(len(values)-1)
		low, high := values[int(math.Floor(i))], values[int(math.Ceil(i))]
		return low + (i-math.Floor(i))*(high-low)
	}
	return Interval{at(0.025), at(0.975)}
}

func near(a, b Interval) bool {
	return math.Abs(a.Low-b.Low) < 1e-12 && math.Abs(a.High-b.High) < 1e-12
}

func TestIntervalsAreThoseOfADirectComputation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{2, 3, 6, 47} {
		a, b := newSeries(n), newSeries(n)
		for i := range n {
			a.under[i] = float64(r.IntN(30)) // some sessions may have nothing
			b.under[i] = a.under[i]
			if a.under[i] > 0 {
				a.over[i], b.over[i] = float64(r.IntN(int(a.under[i]))), float64(r.IntN(int(a.under[i])))
			}
		}
		ratio := func(s series, sessions []int) float64 {
			var over, under float64
			for _, i := range sessions {
				over += s.over[i]
				under += s.under[i]
			}
			return over / under
		}
		draws := draw(n, []series{a, b})
		if got, want := middle(column(draws, 0, -1)), direct(n, func(s []int) float64 { return ratio(a, s) }); !near(*got, want) {
			t.Errorf("%d sessions: %+v, want %+v", n, *got, want)
		}
		if got, want := middle(column(draws, 0, 1)), direct(n, func(s []int) float64 { return ratio(a, s) - ratio(b, s) }); !near(*got, want) {
			t.Errorf("difference over %d sessions: %+v, want %+v", n, *got, want)
		}
	}
}

// The mean of many values lies within about two standard errors.
func TestIntervalsHaveTheWidthOfStandardErrors(t *testing.T) {
	t.Parallel()
	const n = 400
	r := rand.New(rand.NewPCG(8, 8))
	s := newSeries(n)
	var sum, squares float64
	for i := range n {
		s.over[i], s.under[i] = r.NormFloat64(), 1
		sum += s.over[i]
		squares += s.over[i] * s.over[i]
	}
	mean := sum / n
	half := 1.96 * math.Sqrt((squares/n-mean*mean)/n)
	got := middle(column(draw(n, []series{s}), 0, -1))
	if math.Abs(got.Low-(mean-half)) > half/8 || math.Abs(got.High-(mean+half)) > half/8 {
		t.Errorf("%+v, want %v ± %v", *got, mean, half)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		n    int
		i    *Interval
		want string
	}{
		"above":            {6, &Interval{0.01, 0.2}, Better},
		"below":            {100, &Interval{-0.2, -0.01}, Worse},
		"around":           {100, &Interval{-0.2, 0.3}, Noise},
		"touching":         {100, &Interval{0, 0.3}, Noise},
		"the same":         {100, &Interval{0, 0}, Noise},
		"too few sessions": {5, &Interval{0.5, 0.9}, Noise},
		"nothing known":    {9, nil, Noise},
	} {
		if got := verdict(tc.n, tc.i); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if middle([]float64{math.NaN(), math.NaN()}) != nil {
		t.Error("an interval of nothing")
	}
}

func TestTicksAreRound(t *testing.T) {
	t.Parallel()
	for end, want := range map[float64]float64{0: 0.01, 0.01: 0.002, 0.047: 0.01, 0.084: 0.02, 0.1: 0.02, 0.29: 0.1, 0.5: 0.1, 1: 0.2} {
		if got := niceStep(end); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", end, got, want)
		}
	}
}
