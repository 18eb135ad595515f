package builtin

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// toolFilter holds the rules of the tool strategies for single tools and sources.
type toolFilter struct{ excludeTools, protectSources, dropSources []string }

func newToolFilter(a *plan.Args) toolFilter {
	return toolFilter{
		excludeTools:   a.Strings("exclude_tools", nil, "tools whose calls stay as they are; a name may end in *"),
		protectSources: a.Strings("protect_sources", nil, "source_ids of messages whose tool call groups stay as they are; a name may end in *"),
		dropSources: a.Strings("drop_sources", nil,
			"source_ids of messages whose tool call groups are dropped without a replacement, even the newest; a name may end in *"),
	}
}

// empty reports whether the filter has no rules, so that it needs no content.
func (f *toolFilter) empty() bool {
	return len(f.excludeTools)+len(f.protectSources)+len(f.dropSources) == 0
}

// reads returns the messages that the filter needs of all tool call groups but the newest
// keep.
func (f *toolFilter) reads(t *plan.Transcript, keep int64) []chat.Seq {
	if f.empty() {
		return nil
	}
	candidates := olderToolCalls(t, keep)
	if len(f.dropSources) > 0 {
		candidates = olderToolCalls(t, 0)
	}
	sources := len(f.protectSources)+len(f.dropSources) > 0
	var out []chat.Seq
	for _, i := range candidates {
		g := t.Groups()[i]
		call := callsTool(t, g)
		for k := g.Start; k < g.End; k++ {
			if sources || namesTool(&t.Entries[k], call) {
				out = append(out, t.Entries[k].Seq)
			}
		}
	}
	return out
}

// apply returns the groups of olderToolCalls that pass the filter, and those to drop
// without a replacement.
func (f *toolFilter) apply(t *plan.Transcript, keep int64) (older, dropped []int, err error) {
	older = olderToolCalls(t, keep)
	if f.empty() {
		return older, nil, nil
	}
	candidates := older
	if len(f.dropSources) > 0 {
		candidates = olderToolCalls(t, 0)
	}
	passed := make([]int, 0, len(older))
	for n, i := range candidates {
		g := t.Groups()[i]
		stays, err := f.protects(t, g)
		if err != nil {
			return nil, nil, err
		}
		if stays {
			continue
		}
		drop, err := anySource(t, g, f.dropSources)
		switch {
		case err != nil:
			return nil, nil, err
		case drop && !t.GroupPinned(i):
			dropped = append(dropped, i)
		case n < len(older):
			passed = append(passed, i)
		}
	}
	return passed, dropped, nil
}

func (f *toolFilter) protects(t *plan.Transcript, g chat.Group) (bool, error) {
	if ok, err := anyTool(t, g, f.excludeTools); ok || err != nil {
		return ok, err
	}
	return anySource(t, g, f.protectSources)
}

// anySource reports whether a message of the group has one of the sources.
func anySource(t *plan.Transcript, g chat.Group, sources []string) (bool, error) {
	for k := g.Start; k < g.End && len(sources) > 0; k++ {
		m, err := t.Read(k)
		if err != nil {
			return false, err
		}
		if m.SourceID != "" && named(sources, m.SourceID) {
			return true, nil
		}
	}
	return false, nil
}

// anyTool reports whether the group calls one of the tools. The name of a result counts
// only if the group has no call.
func anyTool(t *plan.Transcript, g chat.Group, tools []string) (bool, error) {
	call := callsTool(t, g)
	for k := g.Start; k < g.End && len(tools) > 0; k++ {
		if !namesTool(&t.Entries[k], call) {
			continue
		}
		m, err := t.Read(k)
		if err != nil {
			return false, err
		}
		calls := func(c chat.ToolCall) bool { return named(tools, c.Name) }
		if slices.ContainsFunc(m.ToolCalls, calls) || !call && m.Name != "" && named(tools, m.Name) {
			return true, nil
		}
	}
	return false, nil
}

// callsTool reports whether the group contains a call.
func callsTool(t *plan.Transcript, g chat.Group) bool {
	for k := g.Start; k < g.End; k++ {
		if plan.MakesCalls(&t.Entries[k]) {
			return true
		}
	}
	return false
}

// namesTool reports whether a message names the tool of its group; call tells whether the
// group contains a call.
func namesTool(e *plan.Entry, call bool) bool {
	return plan.MakesCalls(e) || !call && e.Role == chat.RoleTool
}

// named reports whether s matches one of the names, which may end in *. No names match
// everything.
func named(names []string, s string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(n string) bool {
		prefix, open := strings.CutSuffix(n, "*")
		return n == s || open && strings.HasPrefix(s, prefix)
	})
}
