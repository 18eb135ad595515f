package extract

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// innerObjects returns the objects within the one of a result, one value for each list of them under its key: payments
// first, then other lists, then single objects. Of an action, which tells the rest with its arguments, only payments.
func (c *toolCall) innerObjects(fs []argument.Field) []argument.Field {
	var lists []string
	rows, last := map[string][]string{}, map[string]bool{}
	for i := 0; i < len(fs); {
		from, f := i, fs[i]
		for i < len(fs) && fs[i].Row == f.Row && (f.Row > 1 || fs[i].Object == f.Object) {
			i++
		}
		list, name := f.List, ""
		if f.Row == 1 {
			list, name, _ = strings.Cut(f.Path, " ")
			last[list] = name == ""
		}
		values := slices.DeleteFunc(argument.Short(fs[from:i]), func(v argument.Field) bool { return name != "" && strings.Contains(name, v.Value) })
		row := strings.TrimSpace(name + " " + argument.Format(values, nil, nil, true))
		if list == "" || row == "" || c.acts && !paying().MatchString(list) || last[list] && (len(values) > maxInnerValues || isLinked(fs)) {
			continue
		}
		if _, ok := rows[list]; !ok {
			lists = append(lists, list)
		}
		rows[list] = append(rows[list], row)
	}
	rank := func(list string) int {
		switch {
		case paying().MatchString(list):
			return 0
		case last[list]:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(lists, func(a, b string) int { return rank(a) - rank(b) })
	var out []argument.Field
	room := maxInner
	for _, list := range lists {
		value, all := "", rows[list]
		for i, row := range all {
			if room -= utf8.RuneCountInString(row) + len(rowSeparator); room < 0 {
				if value != "" {
					value += fmt.Sprintf("%sand %d more", rowSeparator, len(all)-i)
				}
				break
			}
			value = strings.TrimPrefix(value+rowSeparator+row, rowSeparator)
		}
		if value != "" {
			out = append(out, argument.Field{Value: value, Path: strings.Clone(list)})
		}
	}
	return out
}

const (
	// maxInner is the number of characters of the objects within a result.
	maxInner = 480
	// maxPaid is the size of payments that are told before all other values.
	maxPaid = 64
	// maxInnerValues is the number of values of a single object that is told: not of an address.
	maxInnerValues = 3
)

// paying is in the keys of lists of payments, and of what one can pay with.
var paying = text.Pattern(`(?i)pay|balance|refund|charge|transaction`)
