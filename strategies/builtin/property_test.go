package builtin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// drawMessages draws messages as agents and hosts write them, faults included.
func drawMessages(t *rapid.T, most int) []chat.Message {
	words := rapid.SampledFrom([]string{"", " ", "ok", "a b c", strings.Repeat("long text ", 30)})
	ids := rapid.SampledFrom([]string{"a", "b", "c", "a"})
	var out []chat.Message
	for range rapid.IntRange(0, most).Draw(t, "steps") {
		w := words.Draw(t, "words")
		switch rapid.IntRange(0, 11).Draw(t, "kind") {
		case 0:
			out = append(out, sessiontest.Sys(w))
		case 1, 2:
			out = append(out, sessiontest.User(w))
		case 3:
			out = append(out, sessiontest.Says(w))
		case 4:
			out = append(out, sessiontest.Thinks("hm"))
		case 5:
			out = append(out, sessiontest.Text(chat.RoleDeveloper, w))
		case 6:
			out = append(out, sessiontest.Result(ids.Draw(t, "id"), w))
		default:
			for range rapid.IntRange(0, 2).Draw(t, "reasoning before") / 2 {
				out = append(out, sessiontest.Thinks("let me see"))
			}
			call := sessiontest.Calls(rapid.SliceOfN(ids, 1, 3).Draw(t, "calls")...)
			call.Content = chat.TextContent(w)
			out = append(out, call)
			for range rapid.IntRange(0, 3).Draw(t, "reasoning behind") / 3 {
				out = append(out, sessiontest.Thinks("so"))
			}
			results := rapid.Permutation(call.CallIDs()).Draw(t, "order")
			switch rapid.IntRange(0, 7).Draw(t, "fault") {
			case 0:
				results = results[:rapid.IntRange(0, len(results)).Draw(t, "answered")]
			case 1:
				results = append(results, ids.Draw(t, "duplicate"))
			case 2:
				results = append([]string{"x"}, results...)
			}
			for _, id := range results {
				out = append(out, sessiontest.Result(id, words.Draw(t, "result")))
			}
		}
	}
	return out
}

// drawSession also reports whether the view is one that a run would leave.
func drawSession(t *rapid.T) (s *sessiontest.Session, sound bool) {
	s, sound = sessiontest.New(), true
	for range rapid.IntRange(0, 3).Draw(t, "leading system messages") {
		s.Add(sessiontest.Sys("be good"))
	}
	s.Add(drawMessages(t, 12)...)
	drawMoved(t, s)
	for i := range s.Metas {
		s.Pinned[s.Metas[i].Seq] = rapid.IntRange(0, 9).Draw(t, "pin") == 9
	}
	switch rapid.IntRange(0, 3).Draw(t, "history") {
	case 0: // a state that no run of this package leaves
		sound = false
		call := true // of a batch no call message leaves alone: a view would not show it (see chat.Check)
		for _, m := range s.Metas {
			in := rapid.IntRange(0, 3).Draw(t, "in") > 0
			if m.Calls > 0 && !m.Has(chat.Parallel) {
				call = in
			} else if m.Calls > 0 {
				in = call
			}
			s.Included[m.Seq] = in
		}
	case 1:
		s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{drawHostile(t)}}, true)
		s.Add(drawMessages(t, 4)...)
	default:
		for q := range s.Pinned {
			s.Included[q] = true
		}
	}
	return s, sound
}

// drawMoved puts messages where an application's replacement can put them: between
// groups, behind the leading system messages.
func drawMoved(t *rapid.T, s *sessiontest.Session) {
	var places []chat.Seq // a moved message stands in front of what is said there
	lead := true
	for _, g := range chat.Groups(s.Metas) {
		if lead = lead && g.Kind == chat.GroupSystem; lead {
			continue
		}
		// A replacement keeps away from reasoning, whose group may change with a repair.
		if g.Start == 0 || !s.Metas[g.Start-1].ReasoningOnly() {
			places = append(places, s.Metas[g.Start].Seq)
		}
	}
	if len(places) == 0 {
		return
	}
	for range rapid.IntRange(0, 8).Draw(t, "moved") / 4 {
		m := rapid.SampledFrom([]chat.Message{sessiontest.User("moved"), sessiontest.Says("moved"), sessiontest.Thinks("moved"), sessiontest.Sys("moved")}).Draw(t, "message")
		meta := m.Meta(chat.Seq(len(s.Metas) + 1))
		meta.Tokens = sessiontest.Quarter{}.Message(&m)
		meta.Position = rapid.SampledFrom(places).Draw(t, "position")
		meta.Kind, meta.Flags = chat.KindSummary, meta.Flags|chat.Moved
		s.Put(meta, m)
	}
}

// hostile wants anything.
type hostile struct {
	seed   uint64
	mangle bool
}

func drawHostile(t *rapid.T) plan.Strategy {
	return hostile{rapid.Uint64().Draw(t, "seed"), rapid.Bool().Draw(t, "mangle")}
}

func (hostile) Name() string { return "hostile" }

func (h hostile) Reads(t *plan.Transcript) []chat.Seq {
	if h.mangle {
		return nil
	}
	var out []chat.Seq
	for _, e := range t.Entries {
		out = append(out, e.Seq)
	}
	return out
}

func (h hostile) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	r := rand.New(rand.NewPCG(h.seed, 1))
	some := func(most int) chat.Ranges {
		var qs []chat.Seq
		for range r.IntN(most + 1) {
			q := chat.Seq(r.IntN(len(t.Entries)+5) - 2)
			for n := r.IntN(6); n >= 0; n-- {
				qs = append(qs, q+chat.Seq(n))
			}
		}
		return chat.RangesOf(qs...)
	}
	p := chat.Plan{Include: some(2)}
	for range r.IntN(3) {
		p.Exclude = append(p.Exclude, chat.Exclusion{Reason: []string{"x", "y", ""}[r.IntN(3)], Seqs: some(4)})
	}
	for range r.IntN(6) {
		a := chat.Addition{
			Kind: chat.KindSummary, Covers: some(2), Position: chat.Seq(r.IntN(len(t.Entries)+8) - 3),
			Message: sessiontest.Text([]chat.Role{"assistant", "user", "system", "tool", "developer"}[r.IntN(5)], "written"),
		}
		if r.IntN(2) == 0 && len(t.Entries) > 0 {
			e := t.Entries[r.IntN(len(t.Entries))]
			a.Kind, a.Covers = chat.KindReplacement, chat.RangesOf(e.Seq)
			if e.Message != nil {
				a.Message = *e.Message
			} else if h.mangle && r.IntN(2) == 0 {
				a.Message = chat.Message{Role: e.Role, ToolCallID: "nobody", Content: chat.TextContent("stub")}
				for range e.Calls {
					a.Message.ToolCalls = append(a.Message.ToolCalls, chat.ToolCall{ID: "nobody"})
				}
			}
			if r.IntN(3) > 0 {
				a.Message.Content = chat.TextContent([]string{"stub", ""}[r.IntN(2)])
			}
			if r.IntN(6) == 0 {
				a.Message.Role = chat.RoleAssistant
			}
		}
		p.Additions = append(p.Additions, a)
	}
	return p, nil
}

func drawPipeline(t *rapid.T, draw func() plan.Strategy) pipeline.Pipeline {
	p := pipeline.Pipeline{FromLog: rapid.Bool().Draw(t, "from log")}
	if rapid.IntRange(0, 3).Draw(t, "pin tools") == 3 {
		p.PinTools = []string{"do_b"}
	}
	for range rapid.IntRange(0, 3).Draw(t, "pipeline") {
		p.Steps = append(p.Steps, draw())
	}
	if rapid.Bool().Draw(t, "with target") {
		p.Target, p.Fallback = chat.Tokens(rapid.IntRange(1, 300).Draw(t, "target")), rapid.Bool().Draw(t, "fallback")
	}
	return p
}

func chained(t *rapid.T, draw func() plan.Strategy) {
	s, sound := drawSession(t)
	whole := rapid.Bool().Draw(t, "whole log")
	sound = sound || whole
	guard := pipeline.Guard{DropSystem: rapid.IntRange(0, 4).Draw(t, "drop system") == 4}
	for range 3 {
		p := drawPipeline(t, draw)
		p.Guard = guard
		r := s.Run(t, p, whole)
		var err error
		if sound {
			err = s.Invariants(!p.Guard.DropSystem)
		} else if faults := chat.Check(s.View()); len(faults) > 0 {
			err = fmt.Errorf("faults %v", faults)
		}
		if err != nil {
			t.Fatalf("%v\nview %s\nlog  %s\nplan %+v\nrepairs %v", err, s.Describe(false), s.Describe(true), r.Plan, r.Repairs)
		}
		if again := s.Run(t, pipeline.Pipeline{Guard: p.Guard}, whole); !again.Plan.Empty() {
			t.Fatalf("a second repair wants %+v\nview %s\nlog %s", again.Plan, s.Describe(false), s.Describe(true))
		}
		s.Add(drawMessages(t, 3)...)
	}
}

// drawAny draws a strategy, or one that plans anything.
func drawAny(t *rapid.T) plan.Strategy {
	if rapid.Bool().Draw(t, "hostile") {
		return drawHostile(t)
	}
	return drawStrategy(t)
}

func TestStrategiesBehindTheGuardKeepTheInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { chained(t, func() plan.Strategy { return drawAny(t) }) })
}

// A view becomes no larger than it was, or than the guard alone would make it (I7).
func TestNoStepMakesTheViewLargerThanItsRepairDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, _ := drawSession(t)
		p := drawPipeline(t, func() plan.Strategy { return drawAny(t) })
		r := s.RunLimited(t, p, true)
		if faults := chat.Check(s.View()); len(faults) > 0 && !r.WouldGrow {
			t.Fatalf("faults %v\nlog %s", faults, s.Describe(true))
		}
	})
}

func TestStrategiesThatOnlyExcludeNeverGrowTheView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, _ := drawSession(t)
		s.Run(t, pipeline.Pipeline{}, false) // what is left to repair would grow it
		name := rapid.SampledFrom([]string{"truncation", "sliding_window", "selective_tool_call"}).Draw(t, "strategy")
		st, err := Registry().New(name, map[string]plan.Params{
			"truncation":          {"max_n": 6, "compact_to": 3},
			"sliding_window":      {"keep_last_groups": 3},
			"selective_tool_call": {},
		}[name])
		if err != nil {
			t.Fatalf("%v", err)
		}
		r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
		if r.Grew() && len(r.Repairs) == 0 {
			t.Fatalf("view grew by %d", -r.Gain())
		}
		if slices.ContainsFunc(r.Plan.Additions, func(a chat.Addition) bool { return a.Reason == name }) {
			t.Fatalf("%s wrote something: %+v", name, r.Plan)
		}
	})
}
