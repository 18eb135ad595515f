package builtin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// dice makes decisions out of bytes, and the same ones ever after once they are
// used up.
type dice []byte

func (d *dice) roll(n int) int {
	if len(*d) == 0 {
		return 0
	}
	b := (*d)[0]
	*d = (*d)[1:]
	return int(b) % n
}

func pick[T any](d *dice, list ...T) T { return list[d.roll(len(list))] }

// private is in the content of the pinned messages that can stay verbatim, and of
// no other.
const private = "for your eyes only"

// messages makes up to most messages, and says which of them are pinned.
func (d *dice) messages(most int) (out []chat.Message, pinned []bool) {
	add := func(m chat.Message, pin bool) {
		if d.roll(8) == 7 {
			m.SourceID = "camera"
		}
		out, pinned = append(out, m), append(pinned, pin)
	}
	for len(*d) > 0 && len(out) < most {
		w := pick(d, "", " ", "ok", "a b c", "error: no", strings.Repeat("long text ", 30), strings.Repeat("a line\n", 40))
		kind, pin := d.roll(12), d.roll(16) == 15
		arguments := pick(d, "{}", `{"path":"m.go"}`, `{"path":"n.go","x":"`+strings.Repeat("y", 600)+`"}`, `{"path`)
		id := pick(d, "a", "b", "c")
		// What may lack its call or its results has to be repaired, and a line about a
		// result names what is called by the same id.
		if pin && kind < 10 && kind != 6 {
			w, arguments, id = private, `{"path":"`+private+`"}`, fmt.Sprint("pinned", len(out))
		}
		content := chat.TextContent(w)
		if d.roll(6) == 5 {
			content = chat.Content{Parts: []chat.Part{{Type: "text", Text: w}, {Type: "image_url"}}}
		}
		tool := pick(d, "do_a", "do_b", "read_file", "write_file", "terminal")
		switch kind {
		case 0:
			add(sessiontest.Sys(w), pin)
		case 1, 2:
			add(chat.Message{Role: chat.RoleUser, Content: content}, pin)
		case 3:
			add(sessiontest.Says(w), pin)
		case 4:
			add(sessiontest.Thinks("hm"), false)
		case 5:
			add(sessiontest.Text(pick(d, chat.RoleDeveloper, "critic"), w), pin)
		case 6:
			add(toolCalls(id, tool, arguments, pick(d, "a", "b", "c"), "do_b", arguments), pin)
		case 7, 8, 9:
			add(toolCalls(id, tool, arguments), pin)
			add(chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: content}, pin)
		default:
			add(chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: content}, pin)
		}
	}
	return out, pinned
}

// say appends up to most messages to a session.
func (d *dice) say(s *sessiontest.Session, most int) {
	ms, pinned := d.messages(most)
	for i, m := range ms {
		s.Add(m)
		s.Pinned[s.Metas[len(s.Metas)-1].Seq] = pinned[i]
	}
}

var described = sync.OnceValue(func() map[string][]plan.Param {
	out := map[string][]plan.Param{}
	for _, info := range Registry().Describe() {
		out[info.Name] = info.Params
	}
	return out
})

// params makes parameters by the description of a strategy. What comes out need not
// be allowed together.
func (d *dice) params(r *plan.Registry, name string, depth int) plan.Params {
	out := plan.Params{}
	for _, p := range described()[name] {
		if p.Required || d.roll(2) == 1 {
			out[p.Name] = d.param(r, p, depth)
		}
	}
	return out
}

func (d *dice) param(r *plan.Registry, p plan.Param, depth int) any {
	switch p.Type {
	case "integer":
		least := -2
		if _, err := fmt.Sscanf(strings.TrimPrefix(p.Range, "at least "), "%d", &least); err != nil && p.Range != "" {
			panic("integers " + p.Range)
		}
		return least + d.roll(16)*pick(d, 1, 1, 16, 1000)
	case "number":
		return float64(d.roll(11)) / 10
	case "boolean":
		return d.roll(2) == 1
	case "string":
		if choices, ok := strings.CutPrefix(p.Range, "one of "); ok {
			return pick(d, strings.Split(choices, ", ")...)
		}
		return pick(d, "words", "", "{tool_name} {n}")
	case "list of strings":
		names := []string{"do_a", "do_*", "read_file", "camera", "user", "tool", "path"}
		return []string{pick(d, names...), pick(d, names...)}
	case "list of objects": // the rules of attribution
		var rules []any
		for range 1 + d.roll(3) {
			by := pick(d, "role", "source_id", "tool")
			what := map[string]string{"role": pick(d, "user", "assistant", "tool", "system"), "source_id": "cam*", "tool": "do_*"}
			rules = append(rules, plan.Params{by: what[by], "action": pick(d, actionDrop, actionProtect, actionKeep, actionCollapse, actionInclude)})
		}
		return rules
	case "list of strategies":
		steps := []any{}
		for n := d.roll(4); n > 0 && depth < 2; n-- {
			name := pick(d, r.Names()...)
			steps = append(steps, plan.Params{"strategy": name, "params": d.params(r, name, depth+1)})
		}
		return steps
	}
	panic("no values of type " + p.Type)
}

// strategy makes a strategy. The error is that of parameters that are not allowed.
func (d *dice) strategy(r *plan.Registry) (plan.Strategy, error) {
	name := pick(d, r.Names()...)
	return r.New(name, d.params(r, name, 0))
}

// settledAlone are the strategies that find nothing to do where they have just been,
// settled those that do so behind the guard too.
var (
	settledAlone = []string{"truncation", "sliding_window", "selective_tool_call", "tool_result"}
	settled      = append([]string{
		"keep_last_n_turns", "keep_last_n_messages", "compact_tool_results",
		"prune_tool_results", "clamp", "dedupe_reads", "strip_media", "clear_tool_arguments", "protect_head", "preserve_recent_turns", "preserve_user_messages",
	}, settledAlone...)
)

// FuzzStrategies runs any registered strategy with any parameters over any
// messages, and others behind it as the log grows: the view is valid and keeps what
// must be kept, nothing that was said is written to, no summarizer is shown what is
// pinned, and what is settled is settled.
func FuzzStrategies(f *testing.F) {
	registry := Registry()
	registry.Summarizer = answers("")
	random := rand.NewChaCha8([32]byte{})
	for i, name := range registry.Names() {
		made := 0
		for try := 0; try < 100 && made < 4; try++ {
			choices, log := make([]byte, 60), make([]byte, 300)
			_, _ = random.Read(choices)
			_, _ = random.Read(log)
			choices[0] = byte(i)
			d := dice(choices)
			if _, err := d.strategy(registry); err == nil {
				made++
				f.Add(choices, log)
			}
		}
		if made == 0 {
			f.Errorf("no seed makes %s", name)
		}
	}
	f.Fuzz(tryStrategies)
}

func tryStrategies(t *testing.T, choices, log []byte) {
	d, l := dice(choices), dice(log)
	answer := pick(&l, "what was said", " \n", "")
	registry := Registry()
	registry.Summarizer = plan.Func(func(_ context.Context, r plan.Request) (string, error) {
		if strings.Contains(r.System+r.User, private) {
			t.Errorf("a summarizer is shown what is pinned: %s", r.User)
		}
		if answer == "" {
			return "", errors.New("the model fails")
		}
		return answer, nil
	})
	strategy, err := d.strategy(registry)
	if err != nil {
		return // parameters that are not allowed
	}
	s, same := sessiontest.New(), sessiontest.New()
	again := slices.Clone(l)
	l.say(s, 24)
	again.say(same, 24)
	for range 3 {
		if slices.Contains(settled, strategy.Name()) {
			checkSettled(t, s, strategy)
		}
		p := pipeline.Pipeline{Steps: []plan.Strategy{strategy}, FromLog: d.roll(4) == 3}
		whole := p.FromLog || d.roll(2) == 1
		if d.roll(4) == 3 {
			p.Target, p.Fallback = chat.Tokens(1+d.roll(200)), d.roll(2) == 1
		}
		if r := s.Run(t, p, whole); r.Rejected > 0 {
			t.Fatalf("%s plans %d additions that no view can hold\n%s", strategy.Name(), r.Rejected, s.Describe(true))
		}
		if err := s.Invariants(true); err != nil {
			t.Fatalf("%s: %v\nview %s\nlog %s", strategy.Name(), err, s.Describe(false), s.Describe(true))
		}
		for q, m := range same.Messages {
			if !reflect.DeepEqual(m, s.Messages[q]) {
				t.Fatalf("%s changes %d: %+v became %+v", strategy.Name(), q, m, s.Messages[q])
			}
		}
		if strategy, err = d.strategy(registry); err != nil {
			return
		}
		l.say(s, 6)
	}
}

// checkSettled runs a strategy once more where it has been, without the guard and
// behind it.
func checkSettled(t *testing.T, s *sessiontest.Session, strategy plan.Strategy) {
	t.Helper()
	if slices.Contains(settledAlone, strategy.Name()) {
		checkUnguarded(t, s, strategy)
	}
	s.Run(t, pipeline.Pipeline{}, false) // a repair may change which message is the newest
	p := pipeline.Pipeline{Steps: []plan.Strategy{strategy}}
	s.Run(t, p, false)
	if r := s.Run(t, p, false); !r.Plan.Empty() {
		t.Fatalf("%s once more plans %+v\n%s", strategy.Name(), r.Plan, s.Describe(true))
	}
}

func checkUnguarded(t *testing.T, s *sessiontest.Session, strategy plan.Strategy) {
	t.Helper()
	d, err := pipeline.NewDraft(s.Transcript(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		changed, err := d.Run(context.Background(), strategy, s.Load)
		if err != nil {
			t.Fatal(err)
		}
		if again && changed {
			t.Fatalf("%s changes what it has left\n%s", strategy.Name(), s.Describe(true))
		}
	}
}
