package eval

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
)

// object is the JSON form of a figure.
type object struct {
	Figure
	Compared []Comparison `json:"compared,omitempty"`
	Samples  []Sample     `json:"samples,omitempty"`
}

// WriteJSON writes one object per line for each policy, cut and budget, with the
// comparisons and samples that belong to it.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, f := range r.Figures {
		o := object{Figure: f}
		for _, c := range r.Comparisons {
			if c.A == f.Policy && c.Cut == f.Cut && c.Budget == f.Budget {
				o.Compared = append(o.Compared, c)
			}
		}
		for _, s := range r.Samples {
			if s.Policy == f.Policy && s.Cut == f.Cut && s.Budget == f.Budget {
				o.Samples = append(o.Samples, s)
			}
		}
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

// csvColumns are keys of the JSON form of a figure; _low and _high are ends of intervals.
var csvColumns = []string{
	"policy", "cut", "budget", "sessions", "skipped", "failed", "tokens_kept_share", "tokens_kept_share_low", "tokens_kept_share_high", "tokens_kept_share_pooled",
	"loose", "loose_low", "loose_high", "keyed", "keyed_low", "keyed_high", "strict", "strict_low", "strict_high",
	"loose_macro", "keyed_macro", "strict_macro", "identifiers", "strict_identifiers", "tokens_before", "tokens_after",
	"calls", "failed_calls", "input_tokens", "output_tokens", "cost",
}

// WriteCSV writes a header and one line per figure. Unknown values are empty.
func (r *Result) WriteCSV(w io.Writer) error {
	lines := [][]string{csvColumns}
	for _, f := range r.Figures {
		raw, err := json.Marshal(f)
		if err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var values map[string]any
		if err := d.Decode(&values); err != nil {
			return err
		}
		intervals, _ := values["intervals"].(map[string]any)
		for name, interval := range intervals {
			ends, _ := interval.(map[string]any)
			for end, v := range ends {
				values[name+"_"+end] = v
			}
		}
		line := make([]string, len(csvColumns))
		for i, name := range csvColumns {
			if v := values[name]; v != nil {
				line[i] = fmt.Sprint(v)
			}
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// WriteTable writes the figures, comparisons, notes and samples as text.
func (r *Result) WriteTable(o term.Output) error {
	t := o.Table(
		term.Text("POLICY"), term.Num("CUT"), term.Num("BUDGET"), term.Num("SESSIONS"), term.Num("TOKENS KEPT"),
		term.Num("KEYED"), term.Text("95 %"), term.Num("LOOSE"), term.Text("95 %"), term.Num("STRICT"), term.Text("95 %"), term.Num("CALLS"), term.Num("COST"),
	)
	for _, f := range r.Figures {
		t.Row(f.Policy, share100(f.Cut), share100(f.Budget), f.Sessions, percent(f.TokensKept),
			percent(f.Keyed), f.Intervals.Keyed, percent(f.Loose), f.Intervals.Loose, percent(f.Strict), f.Intervals.Strict, f.Calls, money(f.Cost))
	}
	if err := t.Write(); err != nil {
		return err
	}
	if err := r.writeComparisons(o); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.W, "\n%s\n", strings.Join(r.Notes(), "\n"))
	if err != nil {
		return err
	}
	for _, s := range r.Samples {
		head := fmt.Sprintf("%s, %s, cut %s, budget %s, %s tokens", s.Session, s.Policy, share100(s.Cut), share100(s.Budget), term.Count(int64(s.Tokens)))
		if _, err := fmt.Fprintf(o.W, "\n%s\n%s\n", o.Bold("── "+term.Clean(head)), term.CleanLines(s.Text)); err != nil {
			return err
		}
	}
	return nil
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
			t.Row(c.A, c.B, share100(c.Cut), share100(c.Budget), d.Of, points(d.Value), signed{d.Interval}, term.Styled{Value: d.Verdict, As: as})
		}
	}
	return t.Write()
}

// NamedDifference is a difference with the name of its measure.
type NamedDifference struct {
	Of string
	Difference
}

// Differences returns the differences of all measures.
func (c Comparison) Differences() []NamedDifference {
	return []NamedDifference{{"tokens kept", c.TokensKept}, {"keyed", c.Keyed}, {"loose", c.Loose}, {"strict", c.Strict}}
}

// Notes returns lines about skipped sessions, recorded summaries and failed policies.
func (r *Result) Notes() []string {
	var out []string
	for _, c := range r.Cuts {
		line := fmt.Sprintf("cut %s: %s measured", share100(c.Cut), term.Plural(c.Sessions, "session", "sessions"))
		if c.Skipped > 0 {
			line += fmt.Sprintf(", %s skipped: no identifier from before the cut is used after it", term.Count(c.Skipped))
		}
		out = append(out, line)
	}
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
	return out
}

// share100 returns a share in percent without trailing zeros: "50 %", "0.5 %".
func share100(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e8)/1e6, 'f', -1, 64) + " %"
}

// percent returns a figure in percent, "–" for nil.
func percent(v *float64) string {
	if v == nil {
		return "–"
	}
	return strconv.FormatFloat(100**v, 'f', 1, 64) + " %"
}

// String returns the interval in percent: "69.1–75.3".
func (i *Interval) String() string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf("%.1f–%.1f", 100*i.Low, 100*i.High)
}

// signed formats the interval of a difference: "−1.2 to +3.4".
type signed struct{ *Interval }

func (s signed) String() string {
	if s.Interval == nil {
		return ""
	}
	return points(&s.Low) + " to " + points(&s.High)
}

// points returns a difference in percentage points.
func points(v *float64) string {
	if v == nil {
		return "–"
	}
	text := strconv.FormatFloat(100**v, 'f', 1, 64)
	switch {
	case text == "0.0" || text == "-0.0":
		return "0.0"
	case text[0] == '-':
		return "−" + text[1:]
	}
	return "+" + text
}

// money returns an amount with four decimals, or "0".
func money(v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// Names returns the names of the policies, separated by commas.
func Names(all []Policy) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// CheckPair returns an error unless names holds two different names of all.
func CheckPair(names []string, all []Policy) error {
	if len(names) != 2 || names[0] == names[1] {
		return errors.New("want two different policies: A,B")
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(p Policy) bool { return p.Name == name }) {
			return fmt.Errorf("%s is not measured: want two of %s", name, Names(all))
		}
	}
	return nil
}
