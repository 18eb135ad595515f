package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
)

// WriteTable writes the figures, over all sessions and of each corpus, comparisons, notes and
// samples as text.
func (r *Result) WriteTable(o term.Output) error {
	if err := r.writeFigures(o); err != nil {
		return err
	}
	for _, one := range r.Corpora {
		fmt.Fprintf(o.W, "\n%s\n", o.Bold("── "+term.Clean(one.Corpus)))
		if err := one.writeFigures(o); err != nil {
			return err
		}
	}
	if r.Advise == "" { // the comparisons are many, and the notes sum them up
		if err := r.writeComparisons(o); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(o.W, "\n%s\n", strings.Join(r.Notes(), "\n"))
	if err != nil {
		return err
	}
	for _, s := range r.Samples {
		head := fmt.Sprintf("%s, %s, cut %s, budget %s, %s tokens", s.Session, s.Policy, share100(s.Cut), s.Limit(), term.Count(int64(s.Tokens)))
		if _, err := fmt.Fprintf(o.W, "\n%s\n%s\n", o.Bold("── "+term.Clean(head)), term.CleanLines(s.Text)); err != nil {
			return err
		}
	}
	return nil
}

// writeFigures writes the tables of figures.
func (r *Result) writeFigures(o term.Output) error {
	t := o.Table(
		term.Text("POLICY"), term.Num("CUT"), term.Num("BUDGET"), term.Num("SESSIONS").IfRoom(), term.Num("TOKENS KEPT"),
		term.Num("KEYED"), term.Text("95 %").IfRoom(), term.Num("LOOSE"), term.Text("95 %").IfRoom(), term.Num("STRICT"), term.Text("95 %").IfRoom(),
		term.Num("CALLS").IfRoom(), term.Num("COST").IfRoom(),
	)
	for _, f := range r.Figures {
		t.Row(f.Policy, share100(f.Cut), f.Limit(), f.Sessions, percent(f.TokensKept),
			percent(f.Keyed), f.Intervals.Keyed, percent(f.Loose), f.Intervals.Loose, percent(f.Strict), f.Intervals.Strict, f.Calls, money(f.Cost))
	}
	if err := t.Write(); err != nil {
		return err
	}
	for _, group := range [][]int{identifierMeasures, textMeasures} {
		if err := r.writeMeasures(o, known(group, r.Figures)); err != nil {
			return err
		}
	}
	return nil
}

// writeMeasures writes a table of measures, in percent without the sign.
func (r *Result) writeMeasures(o term.Output, measures []int) error {
	if len(measures) == 0 {
		return nil
	}
	fmt.Fprintln(o.W)
	columns := []term.Column{term.Text("POLICY"), term.Num("CUT"), term.Num("BUDGET")}
	for _, k := range measures {
		columns = append(columns, term.Num(measureNames[k].heading))
	}
	t := o.Table(columns...)
	for _, f := range r.Figures {
		cells := []any{f.Policy, share100(f.Cut), f.Limit()}
		for _, k := range measures {
			cells = append(cells, strings.TrimSuffix(percent(*f.all()[k]), " %"))
		}
		t.Row(cells...)
	}
	return t.Write()
}

func (r *Result) writeComparisons(o term.Output) error {
	if len(r.Comparisons) == 0 {
		return nil
	}
	fmt.Fprintln(o.W)
	t := o.Table(term.Text("POLICY"), term.Text("AGAINST"), term.Num("CUT"), term.Num("BUDGET"), term.Text("OF"), term.Num("POINTS"), term.Text("95 %"), term.Text("VERDICT"))
	for _, c := range r.Comparisons {
		for _, d := range c.Differences() {
			as := map[string]func(string) string{Better: o.Green, Worse: o.Red, Noise: o.Dim}[d.Verdict]
			t.Row(c.A, c.B, share100(c.Cut), c.Limit(), d.Of, points(d.Value), signed{d.Interval}, term.Styled{Value: d.Verdict, As: as})
		}
	}
	return t.Write()
}

// NamedDifference is a difference with the name of its measure.
type NamedDifference struct {
	Of string
	Difference
}

// Differences returns the differences of all measures that both policies have, and of those of
// the first table in any case.
func (c Comparison) Differences() []NamedDifference {
	var out []NamedDifference
	all := c.all()
	for _, k := range slices.Concat([]int{tokensKept, keyed, loose, strict}, identifierMeasures, textMeasures) {
		if d := *all[k]; k < rare || d.Value != nil {
			out = append(out, NamedDifference{measureNames[k].of, d})
		}
	}
	return out
}

// Notes returns lines about skipped sessions, recorded summaries, failed policies and better
// ones.
func (r *Result) Notes() []string {
	var out []string
	for _, c := range r.Cuts {
		line := fmt.Sprintf("cut %s: %s measured", share100(c.Cut), term.Plural(c.Sessions, "session", "sessions"))
		if c.Skipped > 0 {
			line += fmt.Sprintf(", %s skipped: no identifier from before the cut is used after it", term.Count(c.Skipped))
		}
		out = append(out, line)
	}
	if i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Rounds > 1 }); i >= 0 {
		n := r.Figures[i].Rounds
		out = append(out, fmt.Sprintf("×%d: the session up to the cut was compacted in %d rounds as it grew, each within the budget", n, n))
	}
	out = append(out, r.overBudget()...)
	if f := r.Recorded; f != nil {
		out = append(out, fmt.Sprintf("%s written by agents in these sessions, measured on the messages up to the next one: %s of the tokens kept, keyed %s, loose %s, strict %s",
			term.Plural(f.Sessions, "summary", "summaries"), percent(f.TokensKept), percent(f.Keyed), percent(f.Loose), percent(f.Strict)))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Failures)) {
		failed := 0
		for _, f := range r.Figures {
			if f.Policy == name {
				failed = max(failed, f.Failed)
			}
		}
		out = append(out, fmt.Sprintf("%s could not compact %s, which its figures exclude: %s",
			name, term.Plural(failed, "session", "sessions"), term.Clean(r.Failures[name].Error())))
	}
	if r.Advise != "" {
		out = append(out, r.advice()...)
	}
	return out
}

// overBudget returns a line for each budget that policies have exceeded. Their figures are not
// those of others within it.
func (r *Result) overBudget() []string {
	type limit struct {
		cut  float64
		text string
	}
	var limits []limit
	over := map[limit][]string{}
	for _, f := range r.Figures {
		if f.OverBudget == 0 {
			continue
		}
		l := limit{f.Cut, f.Limit()}
		if over[l] == nil {
			limits = append(limits, l)
		}
		over[l] = append(over[l], fmt.Sprintf("%s in %s of %s", f.Policy, term.Count(f.OverBudget), term.Plural(f.Sessions, "session", "sessions")))
	}
	out := make([]string, len(limits))
	for i, l := range limits {
		out[i] = fmt.Sprintf("cut %s, budget %s: more than that is kept by %s", share100(l.cut), l.text, strings.Join(over[l], ", "))
	}
	return out
}
