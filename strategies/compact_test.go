package strategies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestCompactReports(t *testing.T) {
	t.Parallel()
	given := append([]chat.Message{sessiontest.Sys("be good")}, sessiontest.Talk()...)
	got, err := Compact(t.Context(), given, sessiontest.Strategy(t, builtin.Registry(), "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), Options{Counter: sessiontest.Equal(10)})
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
	given := []chat.Message{sessiontest.User("0"), sessiontest.Says("1"), sessiontest.User("2"), sessiontest.Says("3"), sessiontest.User("4"), sessiontest.Says("5")}
	given[1].ID, given[5].ID = "x", "y"
	window := sessiontest.Strategy(t, builtin.Registry(), "sliding_window", plan.Params{"keep_last_groups": 1})
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
		"a target and fallback":  {Options{Counter: sessiontest.Equal(10), Target: 30, Fallback: true}, "4 5", ""},
		"a target that is given": {Options{Counter: sessiontest.Equal(10), Target: 50}, "4 5", ""},
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
	given := []chat.Message{sessiontest.User("0"), sessiontest.Says("1"), sessiontest.User("2"), sessiontest.Says("3"), sessiontest.User("4"), sessiontest.Says("5")}
	window := func(n int) plan.Strategy {
		return sessiontest.Strategy(t, builtin.Registry(), "sliding_window", plan.Params{"keep_last_groups": n})
	}
	inner := pipeline.Pipeline{Steps: []plan.Strategy{window(5), window(2)}, Target: 40}
	for name, p := range map[string]plan.Strategy{
		"alone": inner, "as a step": pipeline.Pipeline{Steps: []plan.Strategy{inner}}, "in a step of a step": pipeline.Pipeline{Steps: []plan.Strategy{pipeline.Pipeline{Steps: []plan.Strategy{inner}}}},
		"falling back": pipeline.Pipeline{Steps: []plan.Strategy{pipeline.Pipeline{Target: 20, Fallback: true}}},
	} {
		got, err := Compact(t.Context(), given, p, Options{Counter: sessiontest.Equal(10)})
		if err != nil || len(got.Messages) != 2 || got.Messages[0].Content.Text != "4" {
			t.Errorf("%s: %v, %d messages", name, err, len(got.Messages))
		}
	}
	d, err := pipeline.Pipeline{Steps: inner.Steps}.Plan(t.Context(), sessiontest.Of(given...).Transcript(false))
	if err != nil || len(d.Exclude) != 1 {
		t.Errorf("planned alone: %+v, %v", d, err)
	}
}

func TestCompactDiscardsGrowth(t *testing.T) {
	t.Parallel()
	given := []chat.Message{sessiontest.User("a"), sessiontest.Says("b"), sessiontest.User("c")}
	grows := sessiontest.Plans(sessiontest.Summarizes(1, 1, 2))
	for _, allow := range []bool{false, true} {
		c := NewConversation(Options{Counter: sessiontest.Quarter{}, AllowGrowth: allow})
		c.Append(given...)
		before := c.View()
		r, err := c.Compact(t.Context(), sessiontest.StrategyFunc(func(*plan.Transcript) (chat.Plan, error) {
			p, err := grows.Plan(t.Context(), nil)
			p.Additions[0].Message.Content.Text = strings.Repeat("long ", 100)
			return p, err
		}))
		if err != nil || r.Grew == allow || r.Changed() != allow || (len(c.View()) == len(before)) == allow {
			t.Errorf("allowed %v: %+v, %v, view of %d", allow, r, err, len(c.View()))
		}
	}
}

// What a repair adds, such as a pinned message that was out, is no licence for the steps of
// its run to make the view larger too.
func TestARepairExemptsOnlyWhatItAddsFromTheLimitOfGrowth(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 100)
	for name, c := range map[string]struct {
		messages []chat.Message
		pin      chat.Seq
		view     string
	}{
		"a pinned message that is out": {
			[]chat.Message{sessiontest.User("a"), sessiontest.Says("pinned"), sessiontest.Says(long), sessiontest.User("b"), sessiontest.Says("c")}, 2, "pinned|b|c",
		},
		"a result without a call": {
			[]chat.Message{sessiontest.User("a"), sessiontest.Says(long), sessiontest.User("b"), sessiontest.Result("x", "c")},
			0, "b|[Result of a tool whose call is missing]\nc",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, allow := range []bool{false, true} {
				conv := NewConversation(Options{Counter: sessiontest.Quarter{}, AllowGrowth: allow})
				conv.Append(c.messages...)
				n := chat.Seq(len(c.messages))
				conv.Apply(sessiontest.Excludes(1, 2, n-2)) // all but the last two
				if c.pin > 0 {
					if err := conv.Pin(true, c.pin); err != nil {
						t.Fatal(err)
					}
				}
				all := sessiontest.StrategyFunc(func(*plan.Transcript) (chat.Plan, error) {
					return chat.Plan{Include: chat.Ranges{{Lo: 1, Hi: n + 1}}}, nil
				})
				r, err := conv.Compact(t.Context(), all)
				if err != nil {
					t.Fatal(err)
				}
				got := sessiontest.Texts(conv.View())
				if !allow && (got != c.view || r.Grew || r.Steps[len(r.Steps)-1].Discarded != "would_grow" || r.Gain() >= 0) {
					t.Errorf("view %q, want %q; %+v", got, c.view, r)
				}
				if allow && !strings.Contains(got, long) {
					t.Errorf("growth is allowed, and the view is %q", got)
				}
			}
		})
	}
}

func TestCompactLeavesEverythingWhereAStrategyFails(t *testing.T) {
	t.Parallel()
	given := []chat.Message{sessiontest.User("a"), sessiontest.Says("b")}
	for name, s := range map[string]plan.Strategy{
		"an error": sessiontest.StrategyFunc(func(*plan.Transcript) (chat.Plan, error) { return sessiontest.Excludes(1), errors.New("no") }),
		"a panic":  sessiontest.StrategyFunc(func(*plan.Transcript) (chat.Plan, error) { panic("no") }),
	} {
		got, err := Compact(t.Context(), given, s, Options{})
		var failed *pipeline.StrategyError
		if !errors.As(err, &failed) || len(got.Messages) != 2 {
			t.Errorf("%s: %v, view of %d", name, err, len(got.Messages))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compact(ctx, given, sessiontest.Strategy(t, builtin.Registry(), "tool_result", nil), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got, err := Compact(t.Context(), nil, nil, Options{}); err != nil || len(got.Messages) != 0 {
		t.Errorf("nothing: %v", err)
	}
}

func TestConversationPins(t *testing.T) {
	t.Parallel()
	c := NewConversation(Options{})
	first := c.Append(sessiontest.User("a"), sessiontest.Says("b"), sessiontest.User("c"))
	window := sessiontest.Strategy(t, builtin.Registry(), "sliding_window", plan.Params{"keep_last_groups": 1})
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

// counts records how often it is called.
type counts struct{ asked *int }

func (counts) Name() string { return "counts" }

func (c counts) Message(*chat.Message) chat.Tokens { *c.asked++; return 1 }

// appending returns the rounds of a tool loop being appended to a conversation.
func appending(n int, o Options) func() {
	messages := make([]chat.Message, 0, 2*n)
	for i := range n {
		id := fmt.Sprint(i)
		messages = append(messages, sessiontest.Calls(id), sessiontest.Result(id, "data"))
	}
	return func() {
		c := NewConversation(o)
		c.Append(sessiontest.User("go"))
		for _, m := range messages {
			c.Append(m)
		}
	}
}

func TestAppendingCountsEachMessageOnce(t *testing.T) {
	t.Parallel()
	const rounds = 100
	asked := 0
	appending(rounds, Options{Counter: counts{&asked}})()
	if asked != 2*rounds+1 {
		t.Errorf("%d messages were counted %d times", 2*rounds+1, asked)
	}
}

func BenchmarkAppendGrowth(b *testing.B) {
	growth.Report(b, 2_000, 16, func(n int) func() { return appending(n, Options{Counter: sessiontest.Equal(1)}) })
}

func TestCompactKeepsWhatALoopHasNotRead(t *testing.T) {
	t.Parallel()
	loop := []chat.Message{sessiontest.User("go"), sessiontest.Calls("a"), sessiontest.Result("a", "old"), sessiontest.Calls("b", "c"), sessiontest.Result("b", "new"), sessiontest.Result("c", "newer")}
	dropAll := sessiontest.Strategy(t, builtin.Registry(), "selective_tool_call", plan.Params{"keep_last_tool_call_groups": 0})
	for name, c := range map[string]struct {
		given []chat.Message
		mid   bool
		want  string
	}{
		"under way":                 {loop, true, "go||new|newer"},
		"not looked at":             {loop, false, "go"},
		"waiting for a result":      {loop[:5], true, "go||new"},
		"with thoughts before":      {slices.Insert(slices.Clone(loop), 3, sessiontest.Thinks("hm")), true, "go|||new|newer"},
		"over, with a user message": {append(slices.Clone(loop), sessiontest.Says("done"), sessiontest.User("thanks")), true, "go|done|thanks"},
		"nothing called":            {[]chat.Message{sessiontest.User("a"), sessiontest.User("b")}, true, "a|b"},
	} {
		conv := NewConversation(Options{MidLoop: c.mid})
		conv.Append(c.given...)
		for range 2 { // again: nothing more, and nothing stays pinned
			if _, err := conv.Compact(t.Context(), dropAll); err != nil {
				t.Fatal(err)
			}
			if got := sessiontest.Texts(conv.View()); got != c.want {
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
	conv.Append(sessiontest.Says("read"))
	if _, err := conv.Compact(t.Context(), dropAll); err != nil || sessiontest.Texts(conv.View()) != "go|read" {
		t.Errorf("%v, view %q", err, sessiontest.Texts(conv.View()))
	}
}
