package strategies

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
)

// selectiveToolCall drops all but the newest tool call groups.
type selectiveToolCall struct{ keep int64 }

func newSelectiveToolCall(a *Args) (Strategy, error) {
	return &selectiveToolCall{keep: keepLastToolCallGroups(a, 1)}, nil
}

func keepLastToolCallGroups(a *Args, def int64) int64 {
	return a.Int(Int{
		Name: "keep_last_tool_call_groups", Default: def, Min: 0,
		Doc: "how many of the newest tool call groups stay as they are; pinned ones stay too and do not count",
	})
}

// Name implements Strategy.
func (*selectiveToolCall) Name() string { return "selective_tool_call" }

// Plan implements Strategy.
func (s *selectiveToolCall) Plan(_ context.Context, t *Transcript) (chat.Plan, error) {
	var out seqSet
	for _, i := range olderToolCalls(t, s.keep) {
		t.seqs(&out, i)
	}
	return out.exclude("tool_call_compaction"), nil
}

// olderToolCalls are the ordinals of the included tool call groups but for the
// newest keep, oldest first. Pinned groups are none of either.
func olderToolCalls(t *Transcript, keep int64) []int {
	var calls []int
	for i, g := range t.Groups() {
		if g.Kind == chat.GroupToolCall && t.GroupIncluded(i) && !t.GroupPinned(i) {
			calls = append(calls, i)
		}
	}
	return calls[:max(int64(len(calls))-keep, 0)]
}
