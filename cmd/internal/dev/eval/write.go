package eval

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// object is the JSON form of a figure.
type object struct {
	Figure
	Compared []Comparison `json:"compared,omitempty"`
	Samples  []Sample     `json:"samples,omitempty"`
}

// WriteJSON writes one object per line for each policy and setting, with the comparisons
// and samples that belong to it, over all sessions and then of each corpus.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, f := range r.Figures {
		o := object{Figure: f}
		for _, c := range r.Comparisons {
			if c.A == f.Policy && c.Setting == f.Setting {
				o.Compared = append(o.Compared, c)
			}
		}
		for _, s := range r.Samples {
			if s.Policy == f.Policy && s.Setting == f.Setting {
				o.Samples = append(o.Samples, s)
			}
		}
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	for _, one := range r.Corpora {
		if err := one.WriteJSON(w); err != nil {
			return err
		}
	}
	return nil
}

// csvColumns are keys of the JSON form of a figure; _low and _high are ends of intervals.
var csvColumns = slices.Concat([]string{
	"policy", "cut", "budget", "sessions", "skipped", "failed", "tokens_kept_share", "tokens_kept_share_low", "tokens_kept_share_high", "tokens_kept_share_pooled",
	"loose", "loose_low", "loose_high", "keyed", "keyed_low", "keyed_high", "strict", "strict_low", "strict_high",
	"loose_macro", "keyed_macro", "strict_macro", "identifiers", "strict_identifiers", "tokens_before", "tokens_after",
	"calls", "failed_calls", "input_tokens", "output_tokens", "cost",
}, withEnds(identifierMeasures), withEnds(textMeasures), []string{"budget_tokens", "rounds"})

// withEnds returns the keys of measures, each followed by those of its interval.
func withEnds(group []int) []string {
	var out []string
	for _, k := range group {
		key := strings.ReplaceAll(measureNames[k].of, " ", "_")
		out = append(out, key, key+"_low", key+"_high")
	}
	return out
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
