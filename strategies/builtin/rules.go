package builtin

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// The actions of a rule.
const (
	actionDrop     = "drop"
	actionProtect  = "protect"
	actionKeep     = "keep"
	actionCollapse = "collapse"
	actionInclude  = "include"
)

// rule matches groups by their messages; an empty condition matches all.
type rule struct {
	// sources and roles must match the same message of the group, tools its calls.
	sources, roles, tools []string
	action                string
}

// rules apply to groups: the first one that matches decides.
type rules []rule

// first returns the action of the first rule that matches a group, or "".
func (rs rules) first(t *plan.Transcript, g chat.Group) (action string, err error) {
	for _, r := range rs {
		if ok, err := r.matches(t, g); ok || err != nil {
			return r.action, err
		}
	}
	return "", nil
}

// reads adds the messages of a group that the rules need to out: roles need no content,
// sources do, calls name the tools, and groups that may be collapsed are read in full.
func (rs rules) reads(t *plan.Transcript, g chat.Group, out []chat.Seq) []chat.Seq {
	call := callsTool(t, g)
	for k := g.Start; k < g.End; k++ {
		e := &t.Entries[k]
		if slices.ContainsFunc(rs, func(r rule) bool {
			return r.action == actionCollapse && g.Kind == chat.GroupToolCall ||
				len(r.sources) > 0 && named(r.roles, string(e.Role)) ||
				len(r.tools) > 0 && namesTool(e, call)
		}) {
			out = append(out, e.Seq)
		}
	}
	return out
}

func (r *rule) matches(t *plan.Transcript, g chat.Group) (bool, error) {
	if len(r.tools) > 0 {
		if ok, err := anyTool(t, g, r.tools); !ok || err != nil {
			return false, err
		}
	}
	for k := g.Start; k < g.End; k++ {
		if !named(r.roles, string(t.Entries[k].Role)) {
			continue
		}
		if len(r.sources) == 0 {
			return true, nil
		}
		m, err := t.Read(k)
		if err != nil {
			return false, err
		}
		if m.SourceID != "" && named(r.sources, m.SourceID) {
			return true, nil
		}
	}
	return false, nil
}

// anyTool reports whether the group calls one of the tools. The name of a result counts
// only if the group has no call.
func anyTool(t *plan.Transcript, g chat.Group, tools []string) (bool, error) {
	call := callsTool(t, g)
	for k := g.Start; k < g.End; k++ {
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
	return slices.ContainsFunc(t.Entries[g.Start:g.End], func(e plan.Entry) bool { return plan.MakesCalls(&e) })
}

// namesTool reports whether a message names the tool of its group; call reports whether the
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

// toolFilter holds the rules of the tool strategies for single tools and sources.
type toolFilter struct {
	rules
	drops bool // a rule drops groups
}

func newToolFilter(a *plan.Args) toolFilter {
	var f toolFilter
	if tools := a.Strings("exclude_tools", nil, "tools whose calls stay as they are; a name may end in *"); len(tools) > 0 {
		f.rules = append(f.rules, rule{tools: tools, action: actionKeep})
	}
	if sources := a.Strings("protect_sources", nil, "source_ids of messages whose tool call groups stay as they are; a name may end in *"); len(sources) > 0 {
		f.rules = append(f.rules, rule{sources: sources, action: actionKeep})
	}
	if sources := a.Strings("drop_sources", nil,
		"source_ids of messages whose tool call groups are dropped without a replacement, even the newest; a name may end in *"); len(sources) > 0 {
		f.rules, f.drops = append(f.rules, rule{sources: sources, action: actionDrop}), true
	}
	return f
}

// candidates returns the tool call groups that the rules may concern, of which the newest
// keep stay.
func (f *toolFilter) candidates(t *plan.Transcript, keep int64) []int {
	if f.drops {
		keep = 0
	}
	return olderToolCalls(t, keep)
}

// reads returns the messages that the filter needs of all tool call groups but the newest
// keep.
func (f *toolFilter) reads(t *plan.Transcript, keep int64) []chat.Seq {
	var out []chat.Seq
	for _, i := range f.candidates(t, keep) {
		out = f.rules.reads(t, t.Groups()[i], out)
	}
	return out
}

// apply returns the groups of olderToolCalls that pass the filter, and those to drop
// without a replacement.
func (f *toolFilter) apply(t *plan.Transcript, keep int64) (older, dropped []int, err error) {
	n := len(olderToolCalls(t, keep))
	for k, i := range f.candidates(t, keep) {
		switch action, err := f.first(t, t.Groups()[i]); {
		case err != nil:
			return nil, nil, err
		case action == actionDrop:
			dropped = append(dropped, i)
		case action == "" && k < n:
			older = append(older, i)
		}
	}
	return older, dropped, nil
}
