package strategies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// A conversation that grows and compacts by turns is, at each moment, what a store
// has that everything was written to.
func TestAConversationIsWhatAStoreWouldKeep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, c := newModel(), NewConversation(Options{Counter: quarter{}, AllowGrowth: true})
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for _, m := range drawMessages(t, 6) {
				s.append(m)
				c.Append(m)
				if rapid.IntRange(0, 9).Draw(t, "pin") == 9 {
					q := chat.Seq(len(s.metas))
					s.pinned[q] = true
					if err := c.Pin(true, q); err != nil {
						t.Fatalf("%v", err)
					}
				}
			}
			p := drawPipeline(t, func() plan.Strategy {
				if rapid.Bool().Draw(t, "hostile") {
					return hostile{seed: rapid.Uint64().Draw(t, "seed")} // it reads everything: so does a conversation
				}
				return drawStrategy(t, 0)
			})
			before := c.Totals()
			want := s.run(t, p, true)
			got, err := c.Compact(t.Context(), p)
			if err != nil {
				t.Fatalf("%v", err)
			}
			whole := s.transcript(true)
			if diff := cmp.Diff(chat.Groups(metasOf(whole)), c.groups.Groups(), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("groups (-want +got):\n%s", diff)
			}
			totals := whole.Totals()
			if diff := cmp.Diff([]plan.Totals{want.Before, totals, totals}, []plan.Totals{before, got.After, c.Totals()}); diff != "" {
				t.Fatalf("totals (-want +got):\n%s", diff)
			}
			if n, size := c.Size(); n != totals.IncludedMessages || size != totals.IncludedTokens {
				t.Fatalf("size is %d, %d, want %d, %d", n, size, totals.IncludedMessages, totals.IncludedTokens)
			}
			var view []chat.Message
			for _, m := range s.view() {
				view = append(view, *s.messages[m.Seq])
			}
			if diff := cmp.Diff(texts(view), texts(c.View())); diff != "" {
				t.Fatalf("view (-want +got):\n%s", diff)
			}
			wantExplained(t, s, c)
		}
	})
}

func metasOf(t *plan.Transcript) []chat.Meta {
	out := make([]chat.Meta, len(t.Entries))
	for i := range t.Entries {
		out[i] = t.Entries[i].Meta
	}
	return out
}

func texts(ms []chat.Message) []string {
	out := make([]string, len(ms))
	for i := range ms {
		out[i] = string(ms[i].AppendJSON(nil))
	}
	return out
}

// wantExplained fails unless every message that is out has a reason, and what is
// said to stand for it is in the view.
func wantExplained(t *rapid.T, s *model, c *Conversation) {
	n := 0
	for _, x := range c.Excluded() {
		n++
		if s.included[x.Seq] || x.Reason == "" {
			t.Fatalf("%d is out for %q, in the view: %v", x.Seq, x.Reason, s.included[x.Seq])
		}
		if x.By > 0 && (!s.included[x.By] || s.metas[x.By-1].Kind == chat.KindSource) {
			t.Fatalf("%d stands for %d, and is in the view: %v", x.By, x.Seq, s.included[x.By])
		}
	}
	for _, in := range s.included {
		if !in {
			n--
		}
	}
	if n != 0 {
		t.Fatalf("%d excluded messages too many", n)
	}
}

func TestCompactReports(t *testing.T) {
	t.Parallel()
	given := append([]chat.Message{sys("be good")}, talk()...)
	got, err := Compact(t.Context(), given, mustNew(t, "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), Options{Counter: equal(10)})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, x := range got.Excluded {
		lines = append(lines, fmt.Sprintf("%d %s %s by %d", x.Seq, x.Role, x.Reason, x.By))
	}
	for _, w := range got.Written {
		lines = append(lines, fmt.Sprintf("%d %s %s of %s: %s", w.Seq, w.Kind, w.Reason, w.Covers, w.Message.Content.Text))
	}
	for _, m := range got.Messages {
		lines = append(lines, string(m.Role))
	}
	lines = append(lines, fmt.Sprint(got.Before.IncludedMessages, got.After.IncludedMessages, got.Gain(), len(got.Steps), got.Changed()))
	want := `4 assistant tool_result_compaction by 13
5 tool tool_result_compaction by 13
6 tool tool_result_compaction by 13
9 assistant tool_result_compaction by 14
10 assistant tool_result_compaction by 14
11 tool tool_result_compaction by 14
13 summary tool_result_compaction of {[4,7)}: [Tool results: do_a: ra; do_b: rb]
14 summary tool_result_compaction of {[9,12)}: [Tool results: do_c: RC]
system
system
user
assistant
assistant
user
assistant
assistant
12 8 40 1 true`
	if diff := cmp.Diff(want, strings.ReplaceAll(strings.Join(lines, "\n"), " \x1crc", "RC")); diff != "" {
		t.Error(diff)
	}
}

func TestCompactKeepsPins(t *testing.T) {
	t.Parallel()
	given := []chat.Message{user("0"), says("1"), user("2"), says("3"), user("4"), says("5")}
	given[1].ID, given[5].ID = "x", "y"
	window := mustNew(t, "sliding_window", plan.Params{"keep_last_groups": 1})
	for name, c := range map[string]struct {
		o    Options
		want string
		err  string
	}{
		"nothing is pinned":      {Options{}, "4 5", ""},
		"by index":               {Options{Pins: []int{0}}, "0 4 5", ""},
		"by id":                  {Options{PinIDs: []string{"x"}}, "1 4 5", ""},
		"both":                   {Options{Pins: []int{3}, PinIDs: []string{"x", "y"}}, "1 3 4 5", ""},
		"an index that is none":  {Options{Pins: []int{6}}, "0 1 2 3 4 5", "index 6 of 6"},
		"an index below 0":       {Options{Pins: []int{-1}}, "0 1 2 3 4 5", "index -1 of 6"},
		"an id that nobody has":  {Options{PinIDs: []string{"x", "z"}}, "0 1 2 3 4 5", `"z"`},
		"a target that is met":   {Options{Target: 1000}, "0 1 2 3 4 5", ""},
		"a target and fallback":  {Options{Counter: equal(10), Target: 30, Fallback: true}, "4 5", ""},
		"a target that is given": {Options{Counter: equal(10), Target: 50}, "4 5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Compact(t.Context(), given, window, c.o)
			var said []string
			for _, m := range got.Messages {
				said = append(said, m.Content.Text)
			}
			if s := strings.Join(said, " "); s != c.want {
				t.Errorf("view %q, want %q", s, c.want)
			}
			if (err != nil) != (c.err != "") || err != nil && (!errors.Is(err, ErrUnknownMessage) || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want one with %q", err, c.err)
			}
		})
	}
}

func TestCompactTakesPipelinesAndPipelinesNest(t *testing.T) {
	t.Parallel()
	given := []chat.Message{user("0"), says("1"), user("2"), says("3"), user("4"), says("5")}
	window := func(n int) plan.Strategy { return mustNew(t, "sliding_window", plan.Params{"keep_last_groups": n}) }
	inner := pipeline.Pipeline{Steps: []plan.Strategy{window(5), window(2)}, Target: 40}
	for name, p := range map[string]plan.Strategy{
		"alone": inner, "as a step": pipeline.Pipeline{Steps: []plan.Strategy{inner}}, "in a step of a step": pipeline.Pipeline{Steps: []plan.Strategy{pipeline.Pipeline{Steps: []plan.Strategy{inner}}}},
		"falling back": pipeline.Pipeline{Steps: []plan.Strategy{pipeline.Pipeline{Target: 20, Fallback: true}}},
	} {
		got, err := Compact(t.Context(), given, p, Options{Counter: equal(10)})
		if err != nil || len(got.Messages) != 2 || got.Messages[0].Content.Text != "4" {
			t.Errorf("%s: %v, %d messages", name, err, len(got.Messages))
		}
	}
	d, err := pipeline.Pipeline{Steps: inner.Steps}.Plan(t.Context(), session(given...).transcript(false))
	if err != nil || len(d.Exclude) != 1 {
		t.Errorf("planned alone: %+v, %v", d, err)
	}
}

func TestCompactDiscardsGrowth(t *testing.T) {
	t.Parallel()
	given := []chat.Message{user("a"), says("b"), user("c")}
	grows := wants(summarizes(1, 1, 2))
	for _, allow := range []bool{false, true} {
		c := NewConversation(Options{Counter: quarter{}, AllowGrowth: allow})
		c.Append(given...)
		before := c.View()
		r, err := c.Compact(t.Context(), spy(func(*plan.Transcript) (chat.Plan, error) {
			p, err := grows.Plan(t.Context(), nil)
			p.Additions[0].Message.Content.Text = strings.Repeat("long ", 100)
			return p, err
		}))
		if err != nil || r.Grew == allow || r.Changed() != allow || (len(c.View()) == len(before)) == allow {
			t.Errorf("allowed %v: %+v, %v, view of %d", allow, r, err, len(c.View()))
		}
	}
}

func TestCompactLeavesEverythingWhereAStrategyFails(t *testing.T) {
	t.Parallel()
	given := []chat.Message{user("a"), says("b")}
	for name, s := range map[string]plan.Strategy{
		"an error": spy(func(*plan.Transcript) (chat.Plan, error) { return excludes(1), errors.New("no") }),
		"a panic":  spy(func(*plan.Transcript) (chat.Plan, error) { panic("no") }),
	} {
		got, err := Compact(t.Context(), given, s, Options{})
		var failed *pipeline.StrategyError
		if !errors.As(err, &failed) || len(got.Messages) != 2 {
			t.Errorf("%s: %v, view of %d", name, err, len(got.Messages))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compact(ctx, given, mustNew(t, "tool_result", nil), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got, err := Compact(t.Context(), nil, nil, Options{}); err != nil || len(got.Messages) != 0 {
		t.Errorf("nothing: %v", err)
	}
}

func TestConversationPins(t *testing.T) {
	t.Parallel()
	c := NewConversation(Options{})
	first := c.Append(user("a"), says("b"), user("c"))
	window := mustNew(t, "sliding_window", plan.Params{"keep_last_groups": 1})
	if _, err := c.Compact(t.Context(), window); err != nil || first != 1 || len(c.View()) != 1 {
		t.Fatalf("%v, view of %d", err, len(c.View()))
	}
	if err := c.Pin(true, 1, 4); !errors.Is(err, ErrUnknownMessage) {
		t.Errorf("pin of a message to come: %v", err)
	}
	if err := c.Pin(true, 2); err != nil {
		t.Fatal(err)
	}
	r, err := c.Compact(t.Context(), window)
	if err != nil || len(c.View()) != 2 || r.Restored.String() != "{[2,3)}" {
		t.Errorf("%v, view of %d, restored %s: a pinned message that is out comes back", err, len(c.View()), r.Restored)
	}
}

// counts counts what it is asked.
type counts struct{ asked *int }

func (counts) Name() string { return "counts" }

func (c counts) Message(*chat.Message) chat.Tokens { *c.asked++; return 1 }

// toolRound returns one round of a tool loop.
func toolRound(i int) []chat.Message {
	id := fmt.Sprint(i)
	return []chat.Message{calls(id), result(id, "data")}
}

// appending returns the rounds of a tool loop being appended to a conversation.
func appending(n int, o Options) func() {
	messages := make([][]chat.Message, n)
	for i := range messages {
		messages[i] = toolRound(i)
	}
	return func() {
		c := NewConversation(o)
		c.Append(user("go"))
		for _, m := range messages {
			c.Append(m[0])
			c.Append(m[1])
		}
	}
}

// Not parallel: what others allocate would count.
func TestAppendingCostsWhatIsAppended(t *testing.T) {
	const small, factor = 2_000, 16
	asked := 0
	appending(small, Options{Counter: counts{&asked}})()
	if asked != 2*small+1 {
		t.Errorf("%d messages were counted %d times", 2*small+1, asked)
	}
	allocated := func(n int) float64 {
		do := appending(n, Options{Counter: equal(1)})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	if got := math.Log(allocated(small*factor)/allocated(small)) / math.Log(factor); got > 1.15 {
		t.Errorf("the octets allocated grow with the power %.2f of the messages, want 1", got)
	}
}

func BenchmarkAppendGrowth(b *testing.B) {
	growth.Report(b, 2_000, 16, func(n int) func() { return appending(n, Options{Counter: equal(1)}) })
}

// A single batch that gets its results one by one is one group that grows.
func TestAppendingToALargeBatchKeepsOneGroup(t *testing.T) {
	t.Parallel()
	c := NewConversation(Options{})
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	c.Append(user("go"), calls(ids...))
	for _, id := range ids {
		c.Append(result(id, "x"))
	}
	if got := c.Totals(); got.Groups != 2 || got.ToolCalls != 500 || got.Messages != 502 {
		t.Errorf("%+v", got)
	}
}

func BenchmarkConversationAppend(b *testing.B) {
	for _, n := range []int{0, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := NewConversation(Options{Counter: equal(1)})
			c.Append(user("go"))
			for i := range n / 2 {
				c.Append(toolRound(i)...)
			}
			m := toolRound(n)
			b.ReportAllocs()
			for b.Loop() {
				c.Append(m...)
			}
		})
	}
}

func TestCompactKeepsWhatALoopHasNotRead(t *testing.T) {
	t.Parallel()
	loop := []chat.Message{user("go"), calls("a"), result("a", "old"), calls("b", "c"), result("b", "new"), result("c", "newer")}
	dropAll := mustNew(t, "selective_tool_call", plan.Params{"keep_last_tool_call_groups": 0})
	for name, c := range map[string]struct {
		given []chat.Message
		mid   bool
		want  string
	}{
		"under way":                 {loop, true, "go||new|newer"},
		"not looked at":             {loop, false, "go"},
		"waiting for a result":      {loop[:5], true, "go||new"},
		"with thoughts before":      {slices.Insert(slices.Clone(loop), 3, thinks("hm")), true, "go|||new|newer"},
		"over, with a user message": {append(slices.Clone(loop), says("done"), user("thanks")), true, "go|done|thanks"},
		"nothing called":            {[]chat.Message{user("a"), user("b")}, true, "a|b"},
	} {
		conv := NewConversation(Options{MidLoop: c.mid})
		conv.Append(c.given...)
		for range 2 { // again: nothing more, and nothing stays pinned
			if _, err := conv.Compact(t.Context(), dropAll); err != nil {
				t.Fatal(err)
			}
			if got := viewText(conv.View()); got != c.want {
				t.Errorf("%s: view %q, want %q", name, got, c.want)
			}
		}
		for _, r := range conv.Records() {
			if r.Pinned {
				t.Errorf("%s: %d is still pinned", name, r.Seq)
			}
		}
	}
	// Once it has been read it is like anything else.
	conv := NewConversation(Options{MidLoop: true})
	conv.Append(loop...)
	conv.Append(says("read"))
	if _, err := conv.Compact(t.Context(), dropAll); err != nil || viewText(conv.View()) != "go|read" {
		t.Errorf("%v, view %q", err, viewText(conv.View()))
	}
}
