package trajectory

import "slices"

// region returns the range of turns to summarize: from the first unprotected turn on, as
// many as necessary to reach the target. It is empty if there are no unprotected turns.
func (o *Options) region(turns []Turn, costs []int, total int) (start, end int) {
	start, end = o.unprotected(turns)
	if !o.SplitCalls {
		// Keep the responses to a kept call after it.
		for start < end && isResponse(turns[start]) {
			start++
		}
		// Keep the call of a kept response before it.
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

// unprotected returns the range of turns after the last protected turn of the first half
// and before the first protected turn of the second half.
func (o *Options) unprotected(turns []Turn) (start, end int) {
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

// isResponse reports whether a turn is the response to a preceding call.
func isResponse(t Turn) bool {
	switch t.From {
	case Tool, "function_response", "observation":
		return true
	}
	return false
}
