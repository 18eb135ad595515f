package eval

import (
	"cmp"
	"slices"
	"strings"
)

// Result is what a run came to.
type Result struct {
	// Sessions is how many were read.
	Sessions int
	Cuts     []Cut
	// Figures are in the order of cuts, budgets and policies.
	Figures []Figure
	// Comparisons are in the order of pairs, cuts and budgets.
	Comparisons []Comparison
	Samples     []Sample
	// Recorded are the summaries that agents wrote in these sessions when they compacted
	// themselves, each taken for what was kept of the messages since the one before it.
	// It is nil where there is none, and has no intervals, cut and budget.
	Recorded *Figure
	// Failures are, for policies that could not compact a session, the first reason.
	Failures map[string]error
}

// Cut says how many sessions could be measured at a cut. The others were skipped:
// nothing behind the cut uses an identifier that stood before it.
type Cut struct {
	Cut               float64
	Sessions, Skipped int
}

// Figure is what a policy retained at one cut and budget, over all sessions that
// could be measured. Shares are between 0 and 1.
type Figure struct {
	Policy string  `json:"policy"`
	Cut    float64 `json:"cut"`
	Budget float64 `json:"budget"`
	// Sessions were measured, Skipped have nothing to measure, Failed are those that
	// the policy could not compact.
	Sessions int `json:"sessions"`
	Skipped  int `json:"skipped"`
	Failed   int `json:"failed"`
	// TokensKept is the mean over sessions, TokensPooled that of all tokens together.
	TokensKept   float64 `json:"tokens_kept_share"`
	TokensPooled float64 `json:"tokens_kept_share_pooled"`
	// Loose, Keyed and Strict are pooled over sessions; nil where there is nothing to
	// retain.
	Loose  *float64 `json:"loose"`
	Keyed  *float64 `json:"keyed"`
	Strict *float64 `json:"strict"`
	// The macro ones are means over sessions.
	LooseMacro  *float64 `json:"loose_macro"`
	KeyedMacro  *float64 `json:"keyed_macro"`
	StrictMacro *float64 `json:"strict_macro"`
	// Identifiers are what was to be retained, StrictIdentifiers those of it that the
	// assistant had to remember.
	Identifiers       int `json:"identifiers"`
	StrictIdentifiers int `json:"strict_identifiers"`
	// Intervals are those of the pooled figures.
	Intervals Intervals `json:"intervals"`
	// TokensBefore and TokensAfter are of all sessions together.
	TokensBefore float64 `json:"tokens_before"`
	TokensAfter  float64 `json:"tokens_after"`
	Usage
}

// Intervals are where figures lie with 95 % confidence; nil where that cannot be
// told, as with fewer than two sessions.
type Intervals struct {
	TokensKept *Interval `json:"tokens_kept_share"`
	Loose      *Interval `json:"loose"`
	Keyed      *Interval `json:"keyed"`
	Strict     *Interval `json:"strict"`
}

// Comparison is the difference of two policies on the same sessions: A minus B.
type Comparison struct {
	A      string  `json:"policy"`
	B      string  `json:"against"`
	Cut    float64 `json:"cut"`
	Budget float64 `json:"budget"`
	// Sessions are those that both policies were measured on.
	Sessions   int        `json:"sessions"`
	TokensKept Difference `json:"tokens_kept_share"`
	Loose      Difference `json:"loose"`
	Keyed      Difference `json:"keyed"`
	Strict     Difference `json:"strict"`
}

// Difference is one figure of one policy minus that of another.
type Difference struct {
	Value    *float64  `json:"difference"`
	Interval *Interval `json:"interval"`
	// Verdict is Better or Worse where the interval is on one side of 0, else Noise. Of
	// tokens, it is what keeps fewer that is better.
	Verdict string `json:"verdict"`
}

// Sample is a text that a policy kept.
type Sample struct {
	Session string  `json:"session"`
	Policy  string  `json:"policy"`
	Cut     float64 `json:"cut"`
	Budget  float64 `json:"budget"`
	Tokens  float64 `json:"tokens"`
	Text    string  `json:"text"`
}

// The measures of a row, as the series of a figure.
const (
	tokensKept = iota
	loose
	keyed
	strict
	measures
)

// parts returns what a row adds to each measure; nil adds nothing.
func (r *Row) parts() (over, under [measures]float64) {
	if r == nil {
		return over, under
	}
	return [measures]float64{r.Kept / r.Before, float64(r.Loose), float64(r.Keyed), float64(r.Strict)},
		[measures]float64{1, float64(r.Needs), float64(r.Needs), float64(r.StrictNeeds)}
}

// seriesOf makes the series of the measures of rows; where also is given, of those
// alone whose counterpart is there, too.
func seriesOf(rows, also []*Row) []series {
	out := make([]series, measures)
	for k := range out {
		out[k] = newSeries(len(rows))
	}
	for i, row := range rows {
		if also != nil && also[i] == nil {
			continue
		}
		over, under := row.parts()
		for k := range out {
			out[k].over[i], out[k].under[i] = over[k], under[k]
		}
	}
	return out
}

// result puts together what was measured.
func (r *runner) result() *Result {
	out := &Result{Sessions: len(r.done), Failures: r.failures}
	for i, cut := range r.Cuts {
		var sessions []*measured
		for _, m := range r.done {
			if m.cuts[i] != nil {
				sessions = append(sessions, m)
			}
		}
		for _, m := range sessions {
			if _, wanted := slices.BinarySearch(r.sampled, m.index); wanted {
				out.sample(m.cuts[i])
			}
		}
		// Draws and sums go by this order, so that it must be of the sessions' own.
		slices.SortStableFunc(sessions, compare)
		c := Cut{Cut: cut, Sessions: len(sessions), Skipped: len(r.done) - len(sessions)}
		out.Cuts = append(out.Cuts, c)
		r.figures(out, i, c, sessions)
	}
	out.Recorded = recorded(r.done)
	// By pairs first: that is how they are read.
	slices.SortStableFunc(out.Comparisons, func(a, b Comparison) int {
		at := func(c Comparison) int { return slices.Index(r.Compare, [2]string{c.A, c.B}) }
		return at(a) - at(b)
	})
	return out
}

// compare orders sessions by what they are themselves.
func compare(a, b *measured) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.hash, b.hash))
}

// recorded returns the figure of the summaries that were found in sessions.
func recorded(done []*measured) *Figure {
	var rows []*Row
	for _, m := range slices.SortedStableFunc(slices.Values(done), compare) {
		for i := range m.recorded {
			rows = append(rows, &m.recorded[i])
		}
	}
	if len(rows) == 0 {
		return nil
	}
	f := newFigure(rows, Cut{})
	f.Policy = "recorded"
	f.pooled(seriesOf(rows, nil))
	return &f
}

// sample adds the texts of rows.
func (r *Result) sample(rows []*Row) {
	for _, row := range rows {
		if row != nil && row.Text != nil {
			r.Samples = append(r.Samples, Sample{row.Session, row.Policy, row.Cut, row.Budget, row.Kept, *row.Text})
		}
	}
}

// figures adds the figures and comparisons of one cut.
func (r *runner) figures(out *Result, cut int, c Cut, sessions []*measured) {
	var all []series
	first := len(out.Figures)
	rows := make([][]*Row, len(r.Budgets)*len(r.Policies))
	for k := range rows {
		rows[k] = make([]*Row, len(sessions))
		for i, m := range sessions {
			rows[k][i] = m.cuts[cut][k]
		}
		f := newFigure(rows[k], c)
		f.Policy, f.Cut, f.Budget = r.Policies[k%len(r.Policies)].Name, c.Cut, r.Budgets[k/len(r.Policies)]
		own := seriesOf(rows[k], nil)
		f.pooled(own)
		all = append(all, own...)
		out.Figures = append(out.Figures, f)
	}
	type pair struct {
		Comparison
		at int
	}
	var pairs []pair
	for _, names := range r.Compare {
		a, b := r.policy(names[0]), r.policy(names[1])
		for k := range r.Budgets {
			one, other := rows[k*len(r.Policies)+a], rows[k*len(r.Policies)+b]
			p := pair{Comparison{A: names[0], B: names[1], Cut: c.Cut, Budget: r.Budgets[k]}, len(all)}
			for i := range one {
				if one[i] != nil && other[i] != nil {
					p.Sessions++
				}
			}
			all = append(append(all, seriesOf(one, other)...), seriesOf(other, one)...)
			pairs = append(pairs, p)
		}
	}
	if len(sessions) == 0 {
		return
	}
	draws := draw(len(sessions), all)
	for k := range rows {
		f := &out.Figures[first+k]
		for i, to := range []**Interval{&f.Intervals.TokensKept, &f.Intervals.Loose, &f.Intervals.Keyed, &f.Intervals.Strict} {
			if f.Sessions > 1 {
				*to = middle(column(draws, k*measures+i, -1))
			}
		}
	}
	for _, p := range pairs {
		for i, to := range []*Difference{&p.TokensKept, &p.Loose, &p.Keyed, &p.Strict} {
			*to = difference(p.Sessions, all, draws, p.at+i, p.at+measures+i)
		}
		// Fewer tokens are better.
		p.TokensKept.Verdict = map[string]string{Better: Worse, Worse: Better, Noise: Noise}[p.TokensKept.Verdict]
		out.Comparisons = append(out.Comparisons, p.Comparison)
	}
}

// policy returns the place of the policy of a name.
func (r *runner) policy(name string) int {
	return slices.IndexFunc(r.Policies, func(p Policy) bool { return p.Name == name })
}

// column returns what one series came to in each draw, or what it came to minus another.
func column(draws [][]float64, k, minus int) []float64 {
	out := make([]float64, len(draws))
	for b, row := range draws {
		out[b] = row[k]
		if minus >= 0 {
			out[b] -= row[minus]
		}
	}
	return out
}

// difference is series a minus series b over n sessions.
func difference(n int, all []series, draws [][]float64, a, b int) Difference {
	va, ok := all[a].value()
	vb, also := all[b].value()
	if !ok || !also {
		return Difference{Verdict: Noise}
	}
	v := va - vb
	d := Difference{Value: &v}
	if n > 1 {
		d.Interval = middle(column(draws, a, b))
	}
	d.Verdict = verdict(n, d.Interval)
	return d
}

// newFigure adds up rows and takes the means over sessions.
func newFigure(rows []*Row, c Cut) Figure {
	f := Figure{Skipped: c.Skipped}
	var macro [measures]float64
	strictSessions := 0
	for _, row := range rows {
		if row == nil {
			f.Failed++
			continue
		}
		f.Sessions++
		f.Identifiers += row.Needs
		f.StrictIdentifiers += row.StrictNeeds
		f.TokensBefore += row.Before
		f.TokensAfter += row.Kept
		f.add(row.Usage)
		macro[loose] += float64(row.Loose) / float64(row.Needs)
		macro[keyed] += float64(row.Keyed) / float64(row.Needs)
		if row.StrictNeeds > 0 {
			strictSessions++
			macro[strict] += float64(row.Strict) / float64(row.StrictNeeds)
		}
	}
	if f.Sessions == 0 {
		return f
	}
	f.TokensPooled = f.TokensAfter / f.TokensBefore
	mean := func(k, n int) *float64 {
		if n == 0 {
			return nil
		}
		v := macro[k] / float64(n)
		return &v
	}
	f.LooseMacro, f.KeyedMacro, f.StrictMacro = mean(loose, f.Sessions), mean(keyed, f.Sessions), mean(strict, strictSessions)
	return f
}

// pooled fills in the figures that intervals are made of.
func (f *Figure) pooled(own []series) {
	if v, ok := own[tokensKept].value(); ok {
		f.TokensKept = v
	}
	for k, to := range map[int]**float64{loose: &f.Loose, keyed: &f.Keyed, strict: &f.Strict} {
		if v, ok := own[k].value(); ok {
			*to = &v
		}
	}
}
