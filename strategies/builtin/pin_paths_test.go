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

// The newest reading of each file with instructions stays, not a write to it, nor what the view has
// no room for.
func TestPinPathsKeepTheNewestReadingOfInstructions(t *testing.T) {
	t.Parallel()
	rules := func(id, text string) chat.Message { return sessiontest.Result(id, strings.Repeat(text+" ", 20)) }
	messages := []chat.Message{
		sessiontest.User(strings.Repeat("go ", 160)), // 1
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
		"its file":          {pipeline.Pipeline{PinPaths: []string{"SKILL.md"}}, []chat.Seq{1, 2, 3, 7}},
		"its folder":        {pipeline.Pipeline{PinPaths: []string{"skills/*"}}, []chat.Seq{1, 2, 3, 7}},
		"other paths":       {pipeline.Pipeline{PinPaths: []string{"AGENTS.md"}}, []chat.Seq{7}},
		"a small target":    {pipeline.Pipeline{PinPaths: []string{"skills/*"}, Target: 100}, []chat.Seq{7}},
	} {
		s := sessiontest.Of(messages...)
		c.pipeline.Steps = []plan.Strategy{all}
		s.Run(t, c.pipeline, false)
		if diff := cmp.Diff(c.want, inView(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A later reading of a part, a search or an answer without the text does not take the place of a
// reading of the whole; without such a one, all parts stay.
func TestPinPathsKeepTheWholeReading(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Always follow the convention. ", 20)
	read := func(args, text string) []chat.Message {
		return []chat.Message{toolCalls("a", "Read", args), sessiontest.Result("a", text)}
	}
	whole := read(`{"file_path":"/r/AGENTS.md"}`, long)
	part := read(`{"file_path":"/r/AGENTS.md","offset":3,"limit":"9"}`, long[:400])
	grep := []chat.Message{toolCalls("a", "Grep", `{"pattern":"Rule","path":"/r/AGENTS.md"}`), sessiontest.Result("a", long)}
	shell := func(command string) []chat.Message {
		return []chat.Message{toolCalls("a", "Bash", `{"command":"`+command+`","timeout":9000}`), sessiontest.Result("a", long)}
	}
	batch := []chat.Message{
		{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: "x", Name: "Read", Arguments: `{"file_path":"/r/AGENTS.md"}`}, {ID: "y", Name: "Read", Arguments: `{"file_path":"/r/a.go"}`}}},
		sessiontest.Result("x", long), sessiontest.Result("y", strings.Repeat(long, 9)),
	}
	all := sessiontest.Strategy(t, Registry(), "selective_tool_call", plan.Params{"keep_last_tool_call_groups": 0})
	for name, c := range map[string]struct {
		messages [][]chat.Message
		want     []chat.Seq // the user's message is the first
	}{
		"a part later":          {[][]chat.Message{whole, part}, []chat.Seq{1, 2, 3}},
		"a search later":        {[][]chat.Message{whole, grep}, []chat.Seq{1, 2, 3}},
		"a search only":         {[][]chat.Message{grep}, []chat.Seq{1}},
		"a search in a shell":   {[][]chat.Message{shell("cat /r/AGENTS.md | grep -n Rule")}, []chat.Seq{1}},
		"unchanged":             {[][]chat.Message{whole, read(`{"file_path":"/r/AGENTS.md"}`, "File unchanged since the last read.")}, []chat.Seq{1, 2, 3}},
		"the newer of two":      {[][]chat.Message{whole, whole}, []chat.Seq{1, 4, 5}},
		"by a shell":            {[][]chat.Message{whole, shell("cd /r; cat /r/AGENTS.md")}, []chat.Seq{1, 4, 5}},
		"a part by a shell":     {[][]chat.Message{whole, shell("sed -n 1,9p /r/AGENTS.md")}, []chat.Seq{1, 2, 3}},
		"not shown by a shell":  {[][]chat.Message{shell("git commit -m x /r/AGENTS.md")}, []chat.Seq{1}},
		"parts only, one again": {[][]chat.Message{part, read(`{"file_path":"/r/AGENTS.md","offset":12}`, long), part}, []chat.Seq{1, 4, 5, 6, 7}},
		"beside a large file":   {[][]chat.Message{batch, whole}, []chat.Seq{1, 5, 6}},
		"in a list":             {[][]chat.Message{{toolCalls("a", "shell", `{"command":["bash","-lc","cat /r/AGENTS.md"],"timeout":9}`), sessiontest.Result("a", long)}}, []chat.Seq{1, 2, 3}},
		"searched in a list":    {[][]chat.Message{{toolCalls("a", "shell", `{"command":["rg","Rule","/r/AGENTS.md"]}`), sessiontest.Result("a", long)}}, []chat.Seq{1}},
		"a loaded policy":       {[][]chat.Message{{toolCalls("a", "load_policy", `{"name":"refunds"}`), sessiontest.Result("a", long)}}, []chat.Seq{1, 2, 3}},
		"a skill in a result":   {[][]chat.Message{{toolCalls("a", "Skill", `{"skill":"review"}`), sessiontest.Result("a", long)}}, []chat.Seq{1, 2, 3}},
	} {
		s := sessiontest.Of(slices.Concat(append([][]chat.Message{{sessiontest.User("go")}}, c.messages...)...)...)
		s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{all}, PinPaths: []string{"AGENTS.md", "SKILL.md", "load_policy()"}}, false)
		if diff := cmp.Diff(c.want, inView(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Instructions that an earlier run has excluded come back with a run on the log, and those that are too
// large to be pinned are shown where the target has room left.
func TestInstructionsAreShownAgain(t *testing.T) {
	t.Parallel()
	messages := []chat.Message{
		sessiontest.User("go"), // 1
		toolCalls("a", "read", `{"path":"/r/AGENTS.md"}`), sessiontest.Result("a", strings.Repeat("rules ", 100)),
		toolCalls("b", "read", `{"path":"/r/a.go"}`), sessiontest.Result("b", strings.Repeat("code ", 2000)),
		sessiontest.User("on"),
	}
	all := sessiontest.Strategy(t, Registry(), "selective_tool_call", plan.Params{"keep_last_tool_call_groups": 0})
	for name, c := range map[string]struct {
		earlier bool // an earlier run has excluded them
		target  chat.Tokens
		want    []chat.Seq
	}{
		"excluded before":              {true, 2000, []chat.Seq{1, 2, 3, 6}},
		"more than a quarter":          {false, 400, []chat.Seq{1, 2, 3, 6}},
		"excluded before, and as much": {true, 400, []chat.Seq{1, 2, 3, 6}},
		"no room":                      {false, 150, []chat.Seq{1, 6}},
	} {
		s := sessiontest.Of(messages...)
		if c.earlier {
			s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Plans(sessiontest.Excludes(2, 3))}}, false)
		}
		s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{all}, PinPaths: []string{"AGENTS.md"}, Target: c.target}, true)
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
