package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func provider(t *testing.T, c ProviderConfig) *Provider {
	t.Helper()
	p, err := NewProvider(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReadCompactsAndStoresNothing(t *testing.T) {
	t.Parallel()
	h := sessiontest.NewHistory(t, sessiontest.Sys("be good"), sessiontest.User("a"), sessiontest.Calls("x"), sessiontest.Result("x", "data"), sessiontest.Says("b"), sessiontest.User("c"))
	p := provider(t, ProviderConfig{
		Sources: []Source{NewSource("chat", h)}, Context: []string{"memory"},
		Before: sessiontest.Strategy(t, builtin.Registry(), "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), Options: strategies.Options{Counter: sessiontest.Equal(10)},
	})
	note := sessiontest.Says("remember")
	note.SourceID = "memory"
	for range 2 { // the second time as the first
		got, err := p.Read(t.Context(), note)
		if err != nil {
			t.Fatal(err)
		}
		if want := "be good|a|[Tool results: do_x: data]|b|c|remember"; sessiontest.Texts(got.Messages) != want {
			t.Errorf("read %q, want %q: a summary made on read is read", sessiontest.Texts(got.Messages), want)
		}
		if len(got.Excluded) != 2 || len(got.Written) != 1 || got.Messages[0].SourceID != "chat" || got.Messages[5].SourceID != "memory" {
			t.Errorf("%+v", got)
		}
	}
	if len(h.Writes) > 0 || h.Metas[0].Kind != chat.KindSource || h.Messages[1].SourceID != "" {
		t.Errorf("stored: %+v", h.Writes)
	}
}

func TestSourcesFollowTheirSettings(t *testing.T) {
	t.Parallel()
	memory, web := sessiontest.Says("memory"), sessiontest.Says("web")
	memory.SourceID, web.SourceID = "memory", "web"
	x := Exchange{Context: []chat.Message{memory, web}, Inputs: []chat.Message{sessiontest.User("in")}, Outputs: []chat.Message{sessiontest.Says("out")}}
	for name, c := range map[string]struct {
		set          func(*Source)
		stored, read string
	}{
		"as they are made":     {func(*Source) {}, "old|in|out", "old|in|out"},
		"no inputs":            {func(s *Source) { s.StoreInputs = false }, "old|out", "old|out"},
		"no outputs":           {func(s *Source) { s.StoreOutputs = false }, "old|in", "old|in"},
		"context messages":     {func(s *Source) { s.StoreContextMessages = true }, "old|memory|web|in|out", "old|memory|web|in|out"},
		"some of them":         {func(s *Source) { s.StoreContextMessages, s.StoreContextFrom = true, []string{"web"} }, "old|web|in|out", "old|web|in|out"},
		"written, not read":    {func(s *Source) { s.LoadMessages = false }, "old|in|out", ""},
		"nothing":              {func(s *Source) { s.StoreInputs, s.StoreOutputs = false, false }, "old", "old"},
		"read what was hidden": {func(s *Source) { s.SkipExcluded = false }, "old|in|out", "hidden|old|in|out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := sessiontest.NewHistory(t, sessiontest.User("hidden"), sessiontest.User("old"))
			h.Included[1] = false
			s := NewSource("chat", h)
			c.set(&s)
			p := provider(t, ProviderConfig{Sources: []Source{s}, Context: []string{"memory", "web"}})
			if _, err := p.Write(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			got, err := p.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.stored, c.read}, []string{h.Texts(), sessiontest.Texts(got.Messages)}); diff != "" {
				t.Errorf("stored and read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEverySourceIsReadAndWritten(t *testing.T) {
	t.Parallel()
	a, b := sessiontest.NewHistory(t, sessiontest.User("a")), sessiontest.NewHistory(t, sessiontest.User("b"))
	audit := NewSource("audit", b)
	audit.LoadMessages = false
	p := provider(t, ProviderConfig{
		Sources: []Source{NewSource("chat", a), audit}, Compacts: "chat", After: sessiontest.Strategy(t, builtin.Registry(), "sliding_window", plan.Params{"keep_last_groups": 1}),
	})
	if _, err := p.Write(t.Context(), Exchange{Inputs: []chat.Message{sessiontest.User("c")}}); err != nil {
		t.Fatal(err)
	}
	got, err := p.Read(t.Context())
	if err != nil || sessiontest.Texts(got.Messages) != "c" || a.Texts() != "c" || b.Texts() != "b|c" {
		t.Errorf("read %q, chat %q, audit %q, %v", sessiontest.Texts(got.Messages), a.Texts(), b.Texts(), err)
	}
}

func TestNewMessagesAreCompactedBeforeTheyAreWritten(t *testing.T) {
	t.Parallel()
	in := Exchange{
		Inputs:  []chat.Message{sessiontest.User("go on")},
		Outputs: []chat.Message{sessiontest.Calls("y"), sessiontest.Result("y", "much"), sessiontest.Says("done")},
	}
	for name, c := range map[string]struct {
		excluded bool
		after    plan.Strategy
		log, end string
	}{
		"what is excluded is stored": {true, nil, "a||old||much|go on|done|[Tool results: do_y: much]", "a||old|go on|[Tool results: do_y: much]|done"},
		"it is not":                  {false, nil, "a||old|go on|[Tool results: do_y: much]|done", "a||old|go on|[Tool results: do_y: much]|done"},
		"with an after as well": {
			true, sessiontest.Strategy(t, builtin.Registry(), "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), "",
			"a|[Tool results: do_x: old]|go on|[Tool results: do_y: much]|done",
		},
		"both, and nothing kept": {
			false, sessiontest.Strategy(t, builtin.Registry(), "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), "",
			"a|[Tool results: do_x: old]|go on|[Tool results: do_y: much]|done",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := sessiontest.NewHistory(t, sessiontest.User("a"), sessiontest.Calls("x"), sessiontest.Result("x", "old"))
			s := NewSource("chat", h)
			s.StoreExcluded = c.excluded
			p := provider(t, ProviderConfig{
				Sources: []Source{s}, New: sessiontest.Strategy(t, builtin.Registry(), "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), After: c.after, Options: strategies.Options{Counter: sessiontest.Equal(10)},
			})
			r, err := p.Write(t.Context(), in)
			if err != nil || len(r.Steps) == 0 || r.Steps[0].Strategy != "tool_result" || !r.Changed() {
				t.Fatalf("%v, %+v", err, r)
			}
			if h.Texts() != c.end {
				t.Errorf("view %q, want %q", h.Texts(), c.end)
			}
			if err := h.Invariants(true); err != nil {
				t.Error(err)
			}
			var log []string
			for _, m := range h.Metas {
				log = append(log, h.Messages[m.Seq].Content.Text)
			}
			slices.Sort(log)
			want := strings.Split(c.log, "|")
			slices.Sort(want)
			if c.log != "" && !slices.Equal(log, want) {
				t.Errorf("log %q, want %q", log, want)
			}
		})
	}
}

// A store refuses a plan that excludes messages that were pinned since it was made, so the write
// names the pins that the plan knew.
func TestWriteNamesThePinsOfItsPlan(t *testing.T) {
	t.Parallel()
	s := sessiontest.NewHistory(t, sessiontest.User("0"), sessiontest.Says("1"), sessiontest.User("2"), sessiontest.Says("3"))
	s.Pinned[2], s.Pinned[3] = true, true
	p := provider(t, ProviderConfig{
		Sources: []Source{NewSource("s", s)}, After: sessiontest.Strategy(t, builtin.Registry(), "sliding_window", plan.Params{"keep_last_groups": 1}),
	})
	if _, err := p.Write(t.Context(), Exchange{Inputs: []chat.Message{sessiontest.User("4")}}); err != nil {
		t.Fatal(err)
	}
	if got := s.Writes[0].Pinned.String(); got != "{[2,4)}" || s.Texts() != "1|2|4" {
		t.Errorf("pins %s, view %s", got, s.Texts())
	}
}

// A result without its call answers a call that is stored already.
func TestNewResultsAnswerCallsOfTheHistory(t *testing.T) {
	t.Parallel()
	h := sessiontest.NewHistory(t, sessiontest.User("a"), sessiontest.Calls("x", "y"), sessiontest.Result("x", "1"))
	p := provider(t, ProviderConfig{Sources: []Source{NewSource("chat", h)}, New: sessiontest.Strategy(t, builtin.Registry(), "sliding_window", plan.Params{"keep_last_groups": 5})})
	if r, err := p.Write(t.Context(), Exchange{Outputs: []chat.Message{sessiontest.Result("y", "2")}}); err != nil || r.Changed() || h.Texts() != "a||1|2" {
		t.Errorf("%v, %+v, %q", err, r, h.Texts())
	}
}

func TestWriteStoresWhereAStrategyFails(t *testing.T) {
	t.Parallel()
	h := sessiontest.NewHistory(t, sessiontest.User("a"))
	fails := sessiontest.StrategyFunc(func(*plan.Transcript) (chat.Plan, error) { return sessiontest.Excludes(1), errors.New("no") })
	p := provider(t, ProviderConfig{Sources: []Source{NewSource("chat", h)}, After: fails, Before: fails})
	var failed *pipeline.StrategyError
	if _, err := p.Write(t.Context(), Exchange{Inputs: []chat.Message{sessiontest.User("b")}}); !errors.As(err, &failed) || h.Texts() != "a|b" {
		t.Errorf("%v, %q", err, h.Texts())
	}
	if got, err := p.Read(t.Context()); !errors.As(err, &failed) || sessiontest.Texts(got.Messages) != "a|b" {
		t.Errorf("%v, %q", err, sessiontest.Texts(got.Messages))
	}
}

func TestUnknownSourcesAreNamed(t *testing.T) {
	t.Parallel()
	h := sessiontest.NewHistory(t)
	from := NewSource("b", h)
	from.StoreContextFrom = []string{"memory", "web"}
	_, err := NewProvider(ProviderConfig{Sources: []Source{NewSource("a", h), from, {Name: "a"}, {}}, Context: []string{"memory"}, Compacts: "c"})
	for _, want := range []string{
		`source b: store_context_from: unknown source "web", want one of a, b, a, , memory`, "goes with store_context_messages",
		`source "a": the name is taken`, "source 3: want a name", `compacts: unknown source "c", want one of a, b`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if _, err := NewProvider(ProviderConfig{}); err == nil || !strings.Contains(err.Error(), "at least one source") {
		t.Errorf("no source: %v", err)
	}
	if _, err := NewProvider(ProviderConfig{Sources: []Source{NewSource("a", h), NewSource("b", h)}, After: sessiontest.StrategyFunc(nil)}); err == nil || !strings.Contains(err.Error(), "compacts: want one of a, b") {
		t.Errorf("which one: %v", err)
	}
	if _, err := NewProvider(ProviderConfig{Sources: []Source{{Name: "a"}}}); err == nil || !strings.Contains(err.Error(), `source "a": want a history`) {
		t.Errorf("no history: %v", err)
	}
	p := provider(t, ProviderConfig{Sources: []Source{NewSource("chat", h)}})
	m := sessiontest.User("x")
	m.SourceID = "typo"
	if _, err := p.Write(t.Context(), Exchange{Outputs: []chat.Message{m}}); !errors.Is(err, ErrUnknownSource) || !strings.Contains(err.Error(), `"typo", want one of chat`) {
		t.Errorf("write: %v", err)
	}
	if _, err := p.Read(t.Context(), m); !errors.Is(err, ErrUnknownSource) || len(h.Metas) > 0 {
		t.Errorf("read: %v", err)
	}
}

// The view stays valid where an excluded message separates a call from others, whether it is in the
// log or is not stored.
func TestExcludedMessagesSeparateCalls(t *testing.T) {
	t.Parallel()
	call := func(id string) chat.Message {
		return chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: id, Name: "do"}}}
	}
	thought := chat.Message{Role: chat.RoleAssistant, Reasoning: "hm"}
	for name, test := range map[string]struct {
		log, fresh []chat.Message
		out        []int // of the log
		plan       chat.Plan
	}{
		"in the log": {
			log: []chat.Message{call("b"), thought, sessiontest.Result("a", "late")}, out: []int{3},
			fresh: []chat.Message{call("a"), sessiontest.Result("a", "done")},
		},
		"not stored": {
			log:   []chat.Message{sessiontest.User("go"), call("a"), thought},
			fresh: []chat.Message{sessiontest.User("on"), call("b"), sessiontest.Result("b", "done"), sessiontest.User("and")},
			plan: chat.Plan{
				Exclude:   []chat.Exclusion{{Seqs: chat.RangesOf(2, 4), Reason: "old"}},
				Additions: []chat.Addition{{Kind: chat.KindSummary, Reason: "sum", Covers: chat.RangesOf(1), Position: 4, Message: sessiontest.User("sum")}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := sessiontest.NewHistory(t, test.log...)
			for _, q := range test.out {
				h.Included[chat.Seq(q)] = false
			}
			source := NewSource("chat", h)
			source.StoreExcluded = false
			p := provider(t, ProviderConfig{
				Sources: []Source{source}, After: pipeline.Fixed("fixed", test.plan),
				Options: strategies.Options{Counter: sessiontest.Quarter{}, AllowGrowth: true},
			})
			if _, err := p.Write(t.Context(), Exchange{Inputs: test.fresh}); err != nil {
				t.Fatal(err)
			}
			if faults := chat.Check(h.View()); len(faults) > 0 {
				t.Errorf("%v in%s", faults, h.Describe(true))
			}
		})
	}
}
