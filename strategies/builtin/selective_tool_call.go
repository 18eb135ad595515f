package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// selectiveToolCall drops all but the newest tool call groups.
type selectiveToolCall struct {
	keep   int64
	filter toolFilter
}

func newSelectiveToolCall(a *plan.Args) (plan.Strategy, error) {
	s := selectiveToolCall{keepLastToolCallGroups(a, 1), newToolFilter(a)}
	if len(s.filter.rules) > 0 {
		return filteredToolCall{s}, nil
	}
	return s, nil
}

func keepLastToolCallGroups(a *plan.Args, def int64) int64 {
	return a.Int(plan.Int{
		Name: "keep_last_tool_call_groups", Default: def, Min: 0,
		Doc: "how many of the newest tool call groups stay as they are; pinned ones stay too and do not count",
	})
}

func (selectiveToolCall) Name() string { return "selective_tool_call" }

func (s selectiveToolCall) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	older, dropped, err := s.filter.apply(t, s.keep)
	var out plan.SeqSet
	for _, i := range append(older, dropped...) {
		t.GroupSeqs(&out, i)
	}
	return out.Exclude("tool_call_compaction"), err
}

// filteredToolCall is a selectiveToolCall with rules, which require content.
type filteredToolCall struct{ selectiveToolCall }

func (s filteredToolCall) Reads(t *plan.Transcript) []chat.Seq { return s.filter.reads(t, s.keep) }

// olderToolCalls returns the included tool call groups except the newest keep, oldest first.
// Pinned groups are neither returned nor counted.
func olderToolCalls(t *plan.Transcript, keep int64) []int {
	return olderGroups(t, keep, func(g chat.Group) bool { return g.Kind == chat.GroupToolCall })
}
