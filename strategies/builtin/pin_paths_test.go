package builtin

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// The newest reading of each file with instructions stays, not a write to it, nor what does
// not fit.
func TestPinPathsKeepTheNewestReadingOfInstructions(t *testing.T) {
	t.Parallel()
	rules := func(id, text string) chat.Message { return sessiontest.Result(id, strings.Repeat(text+" ", 20)) }
	messages := []chat.Message{
		sessiontest.User("go"), // 1
		toolCalls("a", "read", `{"path":"/r/AGENTS.md"}`), rules("a", "old rules"),
		toolCalls("b", "bash", `{"command":"cat \"skills/go/SKILL.md\" | head"}`), rules("b", "skill"),
		toolCalls("c", "read", `{"path":"/r/AGENTS.md"}`), rules("c", "rules"),
		toolCalls("d", "write", `{"path":"/r/AGENTS.md","content":"`+strings.Repeat("more ", 50)+`"}`), sessiontest.Result("d", "written"),
		toolCalls("e", "read", `{"path":"/r/AGENTS.md.bak"}`), rules("e", "a backup"),
		toolCalls("f", "search", `{}`), sessiontest.Result("f", "found"),
	}
	all := sessiontest.Strategy(t, Registry(), "selective_tool_call", plan.Params{"keep_last_tool_call_groups": 0})
	for name, c := range map[string]struct {
		paths  []string
		target chat.Tokens
		want   []chat.Seq
	}{
		"none":                        {nil, 0, []chat.Seq{1}},
		"by name":                     {[]string{"AGENTS.md"}, 0, []chat.Seq{1, 6, 7}},
		"in a command":                {[]string{"skills/*/SKILL.md"}, 0, []chat.Seq{1, 4, 5}},
		"two":                         {[]string{"AGENTS.md", "SKILL.md"}, 0, []chat.Seq{1, 4, 5, 6, 7}},
		"the newest, if both fit not": {[]string{"AGENTS.md", "SKILL.md"}, 200, []chat.Seq{1, 6, 7}},
		"no directory":                {[]string{"r"}, 0, []chat.Seq{1}},
	} {
		s := sessiontest.Of(messages...)
		s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{all}, PinPaths: c.paths, Target: c.target}, false)
		var got []chat.Seq
		for q, in := range s.Included {
			if in {
				got = append(got, q)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
