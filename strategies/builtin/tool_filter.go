package builtin

import (
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

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
