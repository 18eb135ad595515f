package trajectory

import "slices"

// region returns what becomes a summary: of what lies between the protected turns as
// much as it takes to come down to the target, from the front. It is empty when
// nothing lies there.
func (o *Options) region(turns []Turn, costs []int, total int) (start, end int) {
	start, end = o.between(turns)
	if !o.SplitCalls {
		// The responses to a call that stays stay behind it.
		for start < end && isResponse(turns[start]) {
			start++
		}
		// The call of a response that stays stays in front of it.
		for end < len(turns) && end > start && isResponse(turns[end]) {
			end--
		}
	}
	last := end
	need, freed := total-o.Target+o.SummaryTokens, 0
	for end = start; end < last && freed < need; end++ {
		freed += costs[end]
	}
	if !o.SplitCalls {
		for end < last && isResponse(turns[end]) {
			end++
		}
	}
	return start, end
}

// between returns what no protected turn stands in front of in the first half, or
// behind in the second.
func (o *Options) between(turns []Turn) (start, end int) {
	n := len(turns)
	start, end = 0, n
	protect := func(i int) {
		if i < n/2 {
			start = max(start, i+1)
		} else {
			end = min(end, i)
		}
	}
	for _, from := range o.ProtectFirst {
		if i := slices.IndexFunc(turns, func(t Turn) bool { return t.From == from }); i >= 0 {
			protect(i)
		}
	}
	for i := max(0, n-o.ProtectLast); i < n; i++ {
		protect(i)
	}
	return start, end
}

// isResponse reports whether a turn belongs to the call in front of it.
func isResponse(t Turn) bool {
	switch t.From {
	case Tool, "function_response", "observation":
		return true
	}
	return false
}
