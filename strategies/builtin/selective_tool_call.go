package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// selectiveToolCall drops all but the newest tool call groups.
type selectiveToolCall struct{ keep int64 }

func newSelectiveToolCall(a *plan.Args) (plan.Strategy, error) {
	s := &selectiveToolCall{keep: keepLastToolCallGroups(a, 1)}
	if f := newToolFilter(a); !f.empty() {
		return &filteredToolCall{s, f}, nil
	}
	return s, nil
}

func keepLastToolCallGroups(a *plan.Args, def int64) int64 {
	return a.Int(plan.Int{
		Name: "keep_last_tool_call_groups", Default: def, Min: 0,
		Doc: "how many of the newest tool call groups stay as they are; pinned ones stay too and do not count",
	})
}

// Name implements plan.Strategy.
func (*selectiveToolCall) Name() string { return "selective_tool_call" }

// Plan implements plan.Strategy.
func (s *selectiveToolCall) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	return dropToolCalls(t, olderToolCalls(t, s.keep)), nil
}

func dropToolCalls(t *plan.Transcript, groups []int) chat.Plan {
	var out plan.SeqSet
	for _, i := range groups {
		t.GroupSeqs(&out, i)
	}
	return out.Exclude("tool_call_compaction")
}

// filteredToolCall is a selectiveToolCall with a filter by tool or source, which requires
// content.
type filteredToolCall struct {
	*selectiveToolCall
	filter toolFilter
}

// Reads implements plan.Reader.
func (s *filteredToolCall) Reads(t *plan.Transcript) []chat.Seq { return s.filter.reads(t, s.keep) }

// Plan implements plan.Strategy.
func (s *filteredToolCall) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	older, dropped, err := s.filter.apply(t, s.keep)
	if err != nil {
		return chat.Plan{}, err
	}
	return dropToolCalls(t, append(older, dropped...)), nil
}

// olderToolCalls returns the included tool call groups except the newest keep, oldest
// first. Pinned groups are neither returned nor counted.
func olderToolCalls(t *plan.Transcript, keep int64) []int {
	var calls []int
	for i, g := range t.Groups() {
		if g.Kind == chat.GroupToolCall && t.GroupIncluded(i) && !t.GroupPinned(i) {
			calls = append(calls, i)
		}
	}
	return calls[:max(int64(len(calls))-keep, 0)]
}
