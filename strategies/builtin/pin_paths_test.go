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
		if diff := cmp.Diff(c.want, inView(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The text of a skill, which Claude Code passes on as a message of the user, stays with the call
// that loads it.
func TestPinsKeepTheTextOfASkill(t *testing.T) {
	t.Parallel()
	messages := []chat.Message{
		toolCalls("a", "Skill", `{"skill":"review"}`), sessiontest.Result("a", "Launching skill: review"), // 1, 2
		sessiontest.User(chat.SkillPrefix + "/home/u/.claude/skills/review\n\n" + strings.Repeat("Read the whole diff. ", 20)),
		toolCalls("b", "read", `{"path":"a.go"}`), sessiontest.Result("b", strings.Repeat("code ", 50)),
		sessiontest.User("and now the tests"), // 6
		sessiontest.User("go on"),
	}
	all := sessiontest.Strategy(t, Registry(), "sliding_window", plan.Params{"keep_last_groups": 1})
	for name, c := range map[string]struct {
		pipeline pipeline.Pipeline
		want     []chat.Seq
	}{
		"nothing is pinned": {pipeline.Pipeline{}, []chat.Seq{7}},
		"the tool":          {pipeline.Pipeline{PinTools: []string{"Skill"}}, []chat.Seq{1, 2, 3, 7}},
		"its folder":        {pipeline.Pipeline{PinPaths: []string{"skills/*"}}, []chat.Seq{1, 2, 3, 7}},
		"other paths":       {pipeline.Pipeline{PinPaths: []string{"AGENTS.md"}}, []chat.Seq{7}},
		"a small target":    {pipeline.Pipeline{PinPaths: []string{"skills/*"}, Target: 200}, []chat.Seq{7}},
	} {
		s := sessiontest.Of(messages...)
		c.pipeline.Steps = []plan.Strategy{all}
		s.Run(t, c.pipeline, false)
		if diff := cmp.Diff(c.want, inView(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// inView returns the numbers of the messages in the view.
func inView(s *sessiontest.Session) []chat.Seq {
	var out []chat.Seq
	for q, in := range s.Included {
		if in {
			out = append(out, q)
		}
	}
	slices.Sort(out)
	return out
}
