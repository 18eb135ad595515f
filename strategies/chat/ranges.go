package chat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Open is the upper bound of an unbounded range.
const Open Seq = math.MaxInt64

// Range is the half-open interval [Lo, Hi).
type Range struct{ Lo, Hi Seq }

// Ranges is a set of seqs: sorted, disjoint, non-adjacent, non-empty ranges.
// Methods return new values and never write to their receiver.
type Ranges []Range

// RangesOf returns the set of the given seqs, in any order.
func RangesOf(seqs ...Seq) Ranges {
	s := slices.Clone(seqs)
	slices.Sort(s)
	var out Ranges
	for _, q := range s {
		out = out.extend(Range{q, q + 1})
	}
	return out
}

// Merged returns the set of the seqs in the given ranges, in any order.
func Merged(ranges []Range) Ranges {
	s := slices.Clone(ranges)
	slices.SortFunc(s, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	var out Ranges
	for _, x := range s {
		out = out.extend(x)
	}
	return out
}

// extend appends a range that does not start before the last one.
func (r Ranges) extend(x Range) Ranges {
	if x.Lo >= x.Hi {
		return r
	}
	if n := len(r); n > 0 && x.Lo <= r[n-1].Hi {
		r[n-1].Hi = max(r[n-1].Hi, x.Hi)
		return r
	}
	return append(r, x)
}

// Has reports whether q is in the set, in logarithmic time.
func (r Ranges) Has(q Seq) bool {
	_, found := slices.BinarySearchFunc(r, q, func(x Range, q Seq) int {
		switch {
		case q < x.Lo:
			return 1
		case q >= x.Hi:
			return -1
		}
		return 0
	})
	return found
}

// Union returns the set of seqs in r or s.
func (r Ranges) Union(s Ranges) Ranges {
	out := make(Ranges, 0, len(r)+len(s))
	i, j := 0, 0
	for i < len(r) || j < len(s) {
		if j == len(s) || i < len(r) && r[i].Lo <= s[j].Lo {
			out = out.extend(r[i])
			i++
		} else {
			out = out.extend(s[j])
			j++
		}
	}
	return out
}

// Minus returns the set of seqs in r and not in s.
func (r Ranges) Minus(s Ranges) Ranges {
	var out Ranges
	j := 0
	for _, x := range r {
		for j < len(s) && s[j].Hi <= x.Lo {
			j++
		}
		for k := j; k < len(s) && s[k].Lo < x.Hi; k++ {
			out = out.extend(Range{x.Lo, s[k].Lo})
			x.Lo = max(x.Lo, s[k].Hi)
		}
		out = out.extend(x)
	}
	return out
}

// Intersect returns the set of seqs in both r and s.
func (r Ranges) Intersect(s Ranges) Ranges { return r.Minus(r.Minus(s)) }

// Len returns the number of seqs in the set, math.MaxInt64 if it is unbounded.
func (r Ranges) Len() int64 {
	var n int64
	for _, x := range r {
		if x.Hi == Open {
			return math.MaxInt64
		}
		n += int64(x.Hi - x.Lo)
	}
	return n
}

// Seqs returns the members in order. The set must be bounded.
func (r Ranges) Seqs() []Seq {
	var out []Seq
	for _, x := range r {
		for q := x.Lo; q < x.Hi; q++ {
			out = append(out, q)
		}
	}
	return out
}

// String returns the set as a Postgres multirange literal: "{[1,5),[7,)}".
func (r Ranges) String() string {
	parts := make([]string, len(r))
	for i, x := range r {
		if x.Hi == Open {
			parts[i] = fmt.Sprintf("[%d,)", x.Lo)
		} else {
			parts[i] = fmt.Sprintf("[%d,%d)", x.Lo, x.Hi)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// ParseRanges reads the canonical form that String writes.
func ParseRanges(s string) (Ranges, error) {
	inner, ok := strings.CutPrefix(s, "{")
	inner, ok2 := strings.CutSuffix(inner, "}")
	if !ok || !ok2 {
		return nil, fmt.Errorf("multirange %q: want {[lo,hi),…}", s)
	}
	var out Ranges
	for inner != "" {
		body, rest, found := strings.Cut(inner, ")")
		lo, hi, comma := strings.Cut(strings.TrimPrefix(body, "["), ",")
		if !found || !comma || !strings.HasPrefix(body, "[") {
			return nil, fmt.Errorf("multirange %q: want {[lo,hi),…}", s)
		}
		x := Range{Hi: Open}
		n, err := strconv.ParseInt(lo, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("multirange %q: %w", s, err)
		}
		x.Lo = Seq(n)
		if hi != "" {
			if n, err = strconv.ParseInt(hi, 10, 64); err != nil {
				return nil, fmt.Errorf("multirange %q: %w", s, err)
			}
			x.Hi = Seq(n)
		}
		out = out.extend(x)
		inner = strings.TrimPrefix(rest, ",")
	}
	return out, nil
}
