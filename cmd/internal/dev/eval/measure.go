package eval

import (
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
)

// Measures holds a value for each measure.
type Measures[T any] struct {
	TokensKept T `json:"tokens_kept_share"`
	Loose      T `json:"loose"`
	Keyed      T `json:"keyed"`
	Strict     T `json:"strict"`
	// The following are explained in package retention.
	Rare               T `json:"rare"`
	Words              T `json:"words"`
	Next10             T `json:"next10"`
	Asks               T `json:"asks"`
	Asks3              T `json:"asks3"`
	Constraints        T `json:"constraints"`
	Errors             T `json:"errors"`
	Facts              T `json:"facts"`
	ReferencePrecision T `json:"reference_precision"`
	ReferenceShare     T `json:"reference_share"`
}

// all returns the values by the indexes of the measures.
func (m *Measures[T]) all() [measures]*T {
	return [measures]*T{
		tokensKept: &m.TokensKept, loose: &m.Loose, keyed: &m.Keyed, strict: &m.Strict, rare: &m.Rare, words: &m.Words,
		counted + retention.Next10: &m.Next10,
		counted + retention.Asks:   &m.Asks, counted + retention.Asks3: &m.Asks3, counted + retention.Constraints: &m.Constraints,
		counted + retention.Errors: &m.Errors, counted + retention.Facts: &m.Facts,
		counted + retention.ReferencePrecision: &m.ReferencePrecision, counted + retention.ReferenceShare: &m.ReferenceShare,
	}
}

// Indexes of the measures of a row in the series of a figure.
const (
	tokensKept = iota
	loose
	keyed
	strict
	rare
	words
	counted  // the first of the measures of retention.Detail
	measures = counted + int(retention.Measures)
)

// parts returns the terms of a row for each measure; a nil row has zero terms.
func (r *Row) parts() (over, under [measures]float64) {
	if r == nil {
		return over, under
	}
	over[tokensKept], under[tokensKept] = r.Kept/r.Before, 1
	for k, n := range [counted]retention.Count{
		loose: {Kept: r.Loose, Of: r.Needs}, keyed: {Kept: r.Keyed, Of: r.Needs}, strict: {Kept: r.Strict, Of: r.StrictNeeds}, rare: r.Rare, words: r.Words,
	} {
		if k != tokensKept {
			over[k], under[k] = float64(n.Kept), float64(n.Of)
		}
	}
	for k, n := range r.Counts {
		over[counted+k], under[counted+k] = float64(n.Kept), float64(n.Of)
	}
	return over, under
}

// measureNames holds the name of each measure in comparisons and its heading in tables.
var measureNames = [measures]struct{ of, heading string }{
	tokensKept: {"tokens kept", "TOKENS KEPT"}, keyed: {"keyed", "KEYED"}, loose: {"loose", "LOOSE"}, strict: {"strict", "STRICT"},
	rare: {"rare", "RARE"}, words: {"words", "WORDS"}, counted + retention.Next10: {"next10", "NEXT10"},
	counted + retention.Asks: {"asks", "ASKS"}, counted + retention.Asks3: {"asks3", "ASKS3"},
	counted + retention.Constraints: {"constraints", "CONSTRAINTS"},
	counted + retention.Errors:      {"errors", "ERRORS"}, counted + retention.Facts: {"facts", "FACTS"},
	counted + retention.ReferencePrecision: {"reference precision", "REF USED"}, counted + retention.ReferenceShare: {"reference share", "REF SHARE"},
}

// Groups of measures that make a table of 80 columns.
var (
	identifierMeasures = []int{rare, int(counted + retention.Next10), int(counted + retention.ReferencePrecision), int(counted + retention.ReferenceShare)}
	textMeasures       = []int{
		int(counted + retention.Asks), int(counted + retention.Asks3), int(counted + retention.Constraints), words, int(counted + retention.Errors), int(counted + retention.Facts),
	}
)

// known returns those of group that any of the figures has.
func known(group []int, figures []Figure) []int {
	var out []int
	for _, k := range group {
		if slices.ContainsFunc(figures, func(f Figure) bool { return *f.all()[k] != nil }) {
			out = append(out, k)
		}
	}
	return out
}

// seriesOf returns the series of the measures of rows. If also is not nil, rows whose
// counterpart in also is nil are left out.
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
