package eval

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/cmd/internal/term"
)

// material is the least difference that matters to anyone.
const material = 0.01

// Verdicts returns the measures in which policy A of a comparison does better than B, and those
// in which it does worse, by a point at least. Tokens do not count within the budget, nor do
// the identifiers that references hold.
func (r *Result) Verdicts(c Comparison) (better, worse []NamedDifference) {
	for _, d := range c.Differences() {
		switch {
		case d.Value == nil || math.Abs(*d.Value) < material,
			d.Of == measureNames[tokensKept].of && r.withinBudget(c),
			d.Of == measureNames[counted+retention.ReferencePrecision].of, d.Of == measureNames[counted+retention.ReferenceShare].of:
		case d.Verdict == Better:
			better = append(better, d)
		case d.Verdict == Worse:
			worse = append(worse, d)
		}
	}
	return better, worse
}

// withinBudget reports whether policy A of a comparison kept to the budget on average.
func (r *Result) withinBudget(c Comparison) bool {
	if c.own() {
		return false
	}
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Policy == c.A && f.Setting == c.Setting })
	f := &r.Figures[i]
	if c.BudgetTokens > 0 {
		return f.TokensAfter <= c.BudgetTokens*float64(f.Sessions)
	}
	return f.TokensKept != nil && *f.TokensKept <= c.Budget
}

// advice returns the policies that do better than the one to advise on and worse in nothing,
// for each setting and with the measures; then those of each corpus.
func (r *Result) advice() []string {
	var out []string
	for i := range r.Figures {
		f := &r.Figures[i]
		if f.Policy != r.Advise {
			continue
		}
		at := fmt.Sprintf("cut %s, budget %s: ", share100(f.Cut), f.Limit())
		if r.Corpus != "" {
			at = term.Clean(r.Corpus) + ", " + at
		}
		none := true
		for _, c := range r.Comparisons {
			if c.B != r.Advise || c.Setting != f.Setting {
				continue
			}
			better, worse := r.Verdicts(c)
			if len(better) == 0 || len(worse) > 0 {
				continue
			}
			var by []string
			for _, d := range better {
				by = append(by, fmt.Sprintf("%s %s points (%s)", d.Of, points(d.Value), signed{d.Interval}))
			}
			out, none = append(out, at+c.A+" does better than "+r.Advise+": "+strings.Join(by, ", ")), false
		}
		switch {
		case f.Sessions < minVerdict:
			out = append(out, at+fmt.Sprintf("fewer than %d sessions tell no difference", minVerdict))
		case none:
			out = append(out, at+"none does better than "+r.Advise+" without being worse in something; "+r.Advise+" keeps "+percent(f.TokensKept)+" of the tokens")
		}
	}
	for _, one := range r.Corpora {
		out = append(out, one.advice()...)
	}
	return out
}
