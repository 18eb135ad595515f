package tokens

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// binding lists, by the beginning of a model's name, whether the model binds signed and
// encrypted reasoning to everything before it, so that a change there invalidates the
// reasoning. The longest prefix applies. See
// platform.claude.com/docs/build-with-claude/preserved-thinking and
// developers.openai.com/api/docs/guides/keep-prefix-unchanged (November 2026).
var binding = func() map[string]bool {
	out := map[string]bool{
		"claude": true, // newer than this table
		"gpt-6":  false,
	}
	for _, old := range []string{
		"1", "2", "3", "4", "v1", "v2", "instant", "opus-3", "opus-4", "sonnet-3", "sonnet-4", "haiku-3", "haiku-4", "mythos-preview",
	} {
		out["claude-"+old] = false
	}
	since := func(version string, minor int) {
		for ; minor <= 9; minor++ {
			out[version+strconv.Itoa(minor)] = true
		}
	}
	since("gpt-6.", 2)
	for model, minor := range map[string]int{"fable": 1, "mythos": 1, "opus": 5, "sonnet": 5, "haiku": 5} {
		version := "claude-" + model + "-5"
		out[version] = false
		out[version+"-20"] = false // a date
		since(version+"-", minor)
		since(version+".", minor)
	}
	return out
}()

// ReasoningModels returns the beginnings of models' names for which BindsReasoning differs
// from that of shorter ones.
func ReasoningModels() []string { return slices.Sorted(maps.Keys(binding)) }

// BindsReasoning reports whether a model binds signed and encrypted reasoning to everything
// before it: providers then reject or drop reasoning of a view that was compacted before it.
// An unknown model counts as one that does, since all models accept a view without.
func BindsReasoning(model string) bool {
	for _, name := range text.ModelNames(model) {
		best := ""
		for prefix := range binding {
			if len(prefix) > len(best) && strings.HasPrefix(name, prefix) {
				best = prefix
			}
		}
		if best != "" {
			return binding[best]
		}
	}
	_, known := lookup(model)
	return !known
}
