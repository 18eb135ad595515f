package eval

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Result holds the figures of a run.
type Result struct {
	// Corpus names the sessions if they are those of one of several corpora.
	Corpus string
	// Sessions is the number of sessions read.
	Sessions int
	Cuts     []Cut
	// Figures is ordered by settings and policies.
	Figures []Figure
	// Comparisons is ordered by pairs and settings.
	Comparisons []Comparison
	// Advise is that of Options.
	Advise string
	// Corpora holds the result of each corpus, without samples, where there are several and one
	// policy is to advise on.
	Corpora []*Result
	Samples []Sample
	// Recorded holds the figure of summaries that agents wrote in these sessions (see
	// retention.RecordedSummaries), without intervals and setting; nil if there are
	// none.
	Recorded *Figure
	// Failures maps names of policies to their first error.
	Failures map[string]error
}

// Cut counts the sessions measured at a cut and those skipped for lack of identifiers.
type Cut struct {
	Cut               float64
	Sessions, Skipped int
}

// Figure holds the retention of a policy in one setting. Shares are 0 to 1.
type Figure struct {
	// Corpus is that of the Result.
	Corpus string `json:"corpus,omitempty"`
	Policy string `json:"policy"`
	Setting
	// Sessions counts measured sessions, Skipped those without identifiers to retain, and
	// Failed those that the policy could not compact.
	Sessions int `json:"sessions"`
	Skipped  int `json:"skipped"`
	Failed   int `json:"failed"`
	// OverBudget counts measured sessions of which more was kept than the budget allows, as messages
	// that must stay take more.
	OverBudget int `json:"over_budget"`
	// TokensKept is the mean share over sessions. Loose, Keyed and Strict are pooled over
	// sessions. A figure is nil if there is nothing to measure.
	Measures[*float64]
	// TokensPooled is the share of all tokens.
	TokensPooled float64 `json:"tokens_kept_share_pooled"`
	// The macro figures are means over sessions.
	LooseMacro  *float64 `json:"loose_macro"`
	KeyedMacro  *float64 `json:"keyed_macro"`
	StrictMacro *float64 `json:"strict_macro"`
	// Identifiers counts the identifiers to retain, StrictIdentifiers the strict ones.
	Identifiers       int `json:"identifiers"`
	StrictIdentifiers int `json:"strict_identifiers"`
	// Intervals holds the 95 % confidence intervals of the pooled figures; nil where they
	// cannot be computed, as with fewer than two sessions.
	Intervals Measures[*Interval] `json:"intervals"`
	// TokensBefore and TokensAfter are totals over sessions.
	TokensBefore float64 `json:"tokens_before"`
	TokensAfter  float64 `json:"tokens_after"`
	Usage
}

// Comparison holds the differences of two policies on the same sessions, A minus B.
type Comparison struct {
	A string `json:"policy"`
	B string `json:"against"`
	Setting
	// Sessions counts the sessions measured under both policies.
	Sessions int `json:"sessions"`
	Measures[Difference]
}

// Difference is the difference of one figure between two policies.
type Difference struct {
	Value    *float64  `json:"difference"`
	Interval *Interval `json:"interval"`
	// Verdict is Better or Worse if the interval excludes 0, else Noise.
	Verdict string `json:"verdict"`
}

// Sample holds the text that a policy kept of a session.
type Sample struct {
	Session string `json:"session"`
	Policy  string `json:"policy"`
	Setting
	Tokens float64 `json:"tokens"`
	Text   string  `json:"text"`
}

// results computes the figures of all measured sessions and of each corpus.
func (r *runner) results() *Result {
	out := r.result("", r.done)
	out.Recorded = recorded(r.done)
	if r.Advise == "" {
		return out
	}
	corpora := map[string][]*measured{}
	for _, m := range r.done {
		corpora[m.corpus] = append(corpora[m.corpus], m)
	}
	for _, name := range slices.Sorted(maps.Keys(corpora)) {
		if len(corpora) > 1 {
			one := r.result(name, corpora[name])
			one.Samples = nil
			out.Corpora = append(out.Corpora, one)
		}
	}
	return out
}

// result computes the figures of measured sessions.
func (r *runner) result(corpus string, done []*measured) *Result {
	out := &Result{Corpus: corpus, Sessions: len(done), Failures: r.failures, Advise: r.Advise}
	for i, cut := range r.Cuts {
		var sessions []*measured
		for _, m := range done {
			if m.cuts[i] != nil {
				sessions = append(sessions, m)
			}
		}
		for _, m := range sessions {
			if _, wanted := slices.BinarySearch(r.sampled, m.index); wanted {
				out.sample(m.cuts[i])
			}
		}
		// Draws and sums depend on this order, so it must not depend on the input order.
		slices.SortStableFunc(sessions, compare)
		c := Cut{Cut: cut, Sessions: len(sessions), Skipped: len(done) - len(sessions)}
		out.Cuts = append(out.Cuts, c)
		r.figures(out, i, c, sessions)
	}
	// Group the comparisons of each pair.
	slices.SortStableFunc(out.Comparisons, func(a, b Comparison) int {
		at := func(c Comparison) int { return slices.Index(r.Compare, [2]string{c.A, c.B}) }
		return at(a) - at(b)
	})
	return out
}

// compare orders sessions by name and hash.
func compare(a, b *measured) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.hash, b.hash))
}

// recorded returns the figure of summaries found in sessions, or nil without any.
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

// sample adds the texts of rows to the samples.
func (r *Result) sample(rows []*Row) {
	for _, row := range rows {
		if row != nil && row.Text != nil {
			r.Samples = append(r.Samples, Sample{row.Session, row.Policy, row.Setting, row.Kept, *row.Text})
		}
	}
}

// figures adds the figures and comparisons of one cut to out.
func (r *runner) figures(out *Result, cut int, c Cut, sessions []*measured) {
	var all []series
	first := len(out.Figures)
	settings := r.settings(c.Cut)
	rows := make([][]*Row, len(settings)*len(r.Policies))
	for k := range rows {
		rows[k] = make([]*Row, len(sessions))
		for i, m := range sessions {
			if row := m.cuts[cut][k]; row != nil {
				row.Rare, row.Words = r.corpus.Rare(m.needs[cut], row.Held), r.corpus.Rare(m.words[cut], row.HeldWords)
				rows[k][i] = row
			}
		}
		f := newFigure(rows[k], c)
		f.Corpus, f.Policy, f.Setting = out.Corpus, r.Policies[k%len(r.Policies)].Name, settings[k/len(r.Policies)]
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
		for k, setting := range settings {
			one, other := rows[k*len(r.Policies)+a], rows[k*len(r.Policies)+b]
			p := pair{Comparison{A: names[0], B: names[1], Setting: setting}, len(all)}
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
		for i, to := range f.Intervals.all() {
			if f.Sessions > 1 {
				*to = middle(column(draws, k*measures+i, -1))
			}
		}
	}
	for _, p := range pairs {
		for i, to := range p.all() {
			*to = difference(p.Sessions, all, draws, p.at+i, p.at+measures+i)
		}
		// Fewer tokens are better.
		p.TokensKept.Verdict = map[string]string{Better: Worse, Worse: Better, Noise: Noise}[p.TokensKept.Verdict]
		out.Comparisons = append(out.Comparisons, p.Comparison)
	}
}

// policy returns the index of the policy with a name.
func (r *runner) policy(name string) int {
	return slices.IndexFunc(r.Policies, func(p Policy) bool { return p.Name == name })
}

// column returns the values of series k in each draw, less those of minus unless it is -1.
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

// difference returns the difference of series a and b over n sessions.
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

// overBudget is the share of the budget above which a session counts as over it: policies that fit
// texts of four characters a token into it may miss it by a few.
const overBudget = 1.1

// newFigure returns the sums of rows and the means over sessions.
func newFigure(rows []*Row, c Cut) Figure {
	f := Figure{Skipped: c.Skipped}
	var macro [measures]float64
	var sessions [measures]int
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
		if !row.own() && row.Kept > overBudget*row.tokens(row.Before) {
			f.OverBudget++
		}
		f.add(row.Usage)
		over, under := row.parts()
		for k := range macro {
			if under[k] > 0 {
				sessions[k]++
				macro[k] += over[k] / under[k]
			}
		}
	}
	if f.Sessions == 0 {
		return f
	}
	f.TokensPooled = f.TokensAfter / f.TokensBefore
	mean := func(k int) *float64 {
		if sessions[k] == 0 {
			return nil
		}
		v := macro[k] / float64(sessions[k])
		return &v
	}
	f.LooseMacro, f.KeyedMacro, f.StrictMacro = mean(loose), mean(keyed), mean(strict)
	return f
}

// pooled sets the pooled figures from their series.
func (f *Figure) pooled(own []series) {
	for k, to := range f.all() {
		if v, ok := own[k].value(); ok {
			*to = &v
		}
	}
}
