package cli

import (
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/summary"
)

// authorOf describes in words how a summary was written, "" without one.
func authorOf(r *summary.Provenance) string {
	var by string
	switch r.WrittenBy {
	case "":
		return ""
	case summary.ByModel:
		by = "model " + r.Model
	case summary.ByExtract:
		by = "no model: an extract"
	case summary.ByMarker:
		by = "no model: a marker"
	case summary.ByOperator:
		by = strings.TrimSpace("operator " + r.Operator)
	default:
		by = r.WrittenBy
	}
	if r.Failure != "" {
		by += " (the model failed: " + r.Failure + ")"
	}
	return by
}

// callText returns a call of a model on one line.
func callText(c summary.Call) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case c.Reused:
		add("stored answer")
	case c.Input > 0 || c.Output > 0 || c.Failed == "":
		cached := ""
		if c.Cached > 0 {
			cached = fmt.Sprintf(" (%d cached)", c.Cached)
		}
		add("%d tokens in%s, %d out, cost %.4f", c.Input, cached, c.Output, float64(c.CostMicros)/1e6)
	}
	if c.Estimated > 0 {
		add("estimated: the server reports no usage")
	}
	if c.Attempts > 1 {
		add("%d attempts", c.Attempts)
	}
	if c.Repair {
		add("repair of the previous answer")
	}
	if c.Rejected != "" {
		add("rejected: %s", c.Rejected)
	}
	if c.Failed != "" {
		add("failed: %s", c.Failed)
	}
	add("prompt %s", c.PromptHash)
	return strings.Join(parts, ", ")
}
