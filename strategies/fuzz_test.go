package strategies

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
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

// messages makes up to most messages.
func (d *dice) messages(most int) []chat.Message {
	words := []string{"", " ", "ok", "a b c", strings.Repeat("long text ", 30)}
	ids := []string{"a", "b", "c"}
	var out []chat.Message
	for len(*d) > 0 && len(out) < most {
		w, id := words[d.roll(len(words))], ids[d.roll(len(ids))]
		switch d.roll(10) {
		case 0:
			out = append(out, sys(w))
		case 1, 2:
			out = append(out, user(w))
		case 3:
			out = append(out, says(w))
		case 4:
			out = append(out, thinks("hm"))
		case 5:
			out = append(out, text("critic", w))
		case 6:
			out = append(out, calls(id, ids[d.roll(len(ids))]))
		case 7:
			out = append(out, calls(id), result(id, w))
		default:
			out = append(out, result(id, w))
		}
	}
	return out
}

// params makes parameters by the description of a strategy; what comes out need
// not be allowed together.
func (d *dice) params(r *Registry, name string, depth int) Params {
	infos := r.Describe()
	info := infos[slices.IndexFunc(infos, func(i Info) bool { return i.Name == name })]
	out := Params{}
	for _, p := range info.Params {
		if !p.Required && d.roll(2) == 0 {
			continue
		}
		switch p.Type {
		case "integer":
			out[p.Name] = d.roll(256) - 2
		case "number":
			out[p.Name] = float64(d.roll(12)) / 10
		case "boolean":
			out[p.Name] = d.roll(2) == 1
		case "string":
			out[p.Name] = "words"
			if choices, ok := strings.CutPrefix(p.Range, "one of "); ok {
				list := strings.Split(choices, ", ")
				out[p.Name] = list[d.roll(len(list))]
			}
		case "list of strategies":
			var steps []any
			for n := d.roll(4); n > 0 && depth < 2; n-- {
				step := d.name(r)
				steps = append(steps, Params{"strategy": step, "params": d.params(r, step, depth+1)})
			}
			out[p.Name] = steps
		}
	}
	return out
}

func (d *dice) name(r *Registry) string {
	names := r.Names()
	return names[d.roll(len(names))]
}

// settled are the strategies that find nothing to do where they have just been.
var settled = []string{"truncation", "sliding_window", "selective_tool_call", "tool_result"}

// FuzzStrategies runs any registered strategy with any parameters over any
// messages: the view is valid and keeps what must be kept, and what is settled is
// settled.
func FuzzStrategies(f *testing.F) {
	registry := Builtin()
	for i := range registry.Names() {
		for _, log := range []string{"\x02\x00\x01\x02\x00\x07\x02\x01\x07\x02\x02\x03", "\x02\x00\x00\x03\x01\x06\x00\x02\x00\x08\x02\x00\x04\x02\x00\x07\x01\x01\x01"} {
			f.Add([]byte{0, byte(i), 1, 8, 1, 6, 1, 1, 1, 1, 1, 2, 4, 7, 1}, []byte(strings.Repeat(log, 3)))
		}
	}
	f.Fuzz(func(t *testing.T, choices, log []byte) {
		d := dice(choices)
		registry := Builtin()
		registry.Summarizer = writes([]string{"what was said", " \n", ""}[d.roll(3)])
		name := d.name(registry)
		strategy, err := registry.New(name, d.params(registry, name, 0))
		if err != nil {
			return // parameters that are not allowed
		}
		l := dice(log)
		s := session(l.messages(60)...)
		for n := d.roll(4); n > 0 && len(s.metas) > 0; n-- {
			s.pinned[s.metas[d.roll(len(s.metas))].Seq] = true
		}
		if slices.Contains(settled, name) {
			checkSettled(t, s, strategy)
		}
		for range 2 {
			s.run(t, Pipeline{Steps: []Strategy{strategy}}, d.roll(2) == 1)
			if err := s.invariants(true); err != nil {
				t.Fatalf("%v\nview %s\nlog %s", err, s.describe(false), s.describe(true))
			}
		}
	})
}

// checkSettled runs a strategy twice on a draft, without the guard.
func checkSettled(t *testing.T, s *model, strategy Strategy) {
	t.Helper()
	d, err := NewDraft(s.transcript(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		changed, err := d.Run(context.Background(), strategy, s.load)
		if err != nil {
			t.Fatal(err)
		}
		if again && changed {
			t.Fatalf("%s changes what it has left\n%s", strategy.Name(), s.describe(true))
		}
	}
}
