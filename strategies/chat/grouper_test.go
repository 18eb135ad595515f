package chat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// groupsBySpec implements the documented rule of Groups by looking ahead from each message for
// the members of its group.
func groupsBySpec(ms []Meta) []Group {
	run := func(i int, is func(Meta) bool) int {
		for i < len(ms) && is(ms[i]) {
			i++
		}
		return i
	}
	isResult := func(m Meta) bool { return m.Role == RoleTool }
	groups := []Group{}
	for i := 0; i < len(ms); {
		g := Group{Kind: GroupAssistantText, Start: i, End: i + 1, HasReasoning: ms[i].Has(HasReasoning), Call: -1}
		call := run(i, Meta.ReasoningOnly)
		switch {
		case ms[i].Role == RoleSystem:
			g.Kind, g.HasReasoning = GroupSystem, false
		case ms[i].Role == RoleUser:
			g.Kind, g.HasReasoning = GroupUser, false
		case ms[i].Role == RoleTool:
			g.Kind, g.HasReasoning, g.End = GroupToolCall, false, run(i, isResult)
		case call < len(ms) && isCall(&ms[call]):
			g.Calls = ms[call].Calls
			behind := run(call+1, func(m Meta) bool {
				parallel := isCall(&m) && m.Has(Parallel)
				if parallel {
					g.Calls += m.Calls
				}
				g.HasReasoning = g.HasReasoning || (parallel || m.ReasoningOnly()) && m.Has(HasReasoning)
				return parallel || m.ReasoningOnly()
			})
			g.Kind, g.Call, g.End = GroupToolCall, call, run(behind, isResult)
			for _, m := range ms[behind:g.End] {
				if m.Has(Paired) {
					g.Answers++
				}
			}
			g.HasReasoning = g.HasReasoning || ms[call].Has(HasReasoning) || call > i
		}
		groups = append(groups, g)
		i = g.End
	}
	return groups
}

func TestGrouperFollowsTheRule(t *testing.T) {
	t.Parallel()
	kinds := []Meta{
		{Role: RoleSystem},
		{Role: RoleUser, Flags: HasReasoning},
		{Role: RoleDeveloper},
		{Role: "critic", Calls: 1},
		{Role: RoleTool},
		{Role: RoleTool, Flags: Paired},
		{Role: RoleTool, Flags: HasReasoning},
		{Role: RoleAssistant, Flags: HasText},
		{Role: RoleAssistant, Flags: HasText | HasReasoning},
		{Role: RoleAssistant, Flags: HasReasoning},
		{Role: RoleAssistant, Flags: HasReasoning, Kind: KindSummary},
		{Role: RoleAssistant, Calls: 2},
		{Role: RoleAssistant, Calls: 1, Flags: HasReasoning},
		{Role: RoleAssistant, Calls: 1, Flags: Parallel},
		{Role: RoleAssistant, Calls: 2, Flags: Parallel | HasReasoning},
	}
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOfN(rapid.SampledFrom(kinds), 0, 30).Draw(t, "messages")
		var g Grouper
		for i := range ms {
			g.Add(&ms[i])
			if diff := cmp.Diff(groupsBySpec(ms[:i+1]), g.Groups()); diff != "" {
				t.Fatalf("after %d messages (-rule +got):\n%s", i+1, diff)
			}
		}
		if diff := cmp.Diff(groupsBySpec(ms), Groups(ms)); diff != "" {
			t.Fatal(diff)
		}
	})
}
