package strategies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// shelf is a History in memory, strict about what it is given.
type shelf struct {
	*model
	t interface {
		Fatalf(format string, args ...any)
	}
	writes []chat.Write
}

func (s *shelf) Load(_ context.Context, whole bool) (chat.Log, error) {
	log := chat.Log{Last: chat.Seq(len(s.metas)), Revision: int64(len(s.writes))}
	for _, e := range s.transcript(whole).Entries {
		log.Records = append(log.Records, chat.Record{Meta: e.Meta, Message: *s.messages[e.Seq], Included: e.Included, Pinned: e.Pinned})
	}
	return log, nil
}

func (s *shelf) Append(_ context.Context, w chat.Write) error {
	if !w.Plan.Empty() && (w.After != chat.Seq(len(s.metas)) || w.Revision != int64(len(s.writes))) {
		s.t.Fatalf("plan for what is behind %d at revision %d, not %d at %d", w.After, w.Revision, len(s.metas), len(s.writes))
	}
	s.writes = append(s.writes, w)
	s.append(w.Messages...)
	s.apply(s.t, w.Plan)
	return nil
}

func (s *shelf) texts() string { return viewOf(s.view(), s.messages) }

func viewOf(view []chat.Meta, of map[chat.Seq]*chat.Message) string {
	var out []string
	for _, m := range view {
		out = append(out, of[m.Seq].Content.Text)
	}
	return strings.Join(out, "|")
}

func viewText(ms []chat.Message) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Content.Text)
	}
	return strings.Join(out, "|")
}

func shelved(t *testing.T, ms ...chat.Message) *shelf {
	return &shelf{model: session(ms...), t: t}
}

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
	h := shelved(t, sys("be good"), user("a"), calls("x"), result("x", "data"), says("b"), user("c"))
	p := provider(t, ProviderConfig{
		Sources: []Source{NewSource("chat", h)}, Context: []string{"memory"},
		Before: mustNew(t, "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), Options: Options{Counter: equal(10)},
	})
	note := says("remember")
	note.SourceID = "memory"
	for range 2 { // the second time as the first
		got, err := p.Read(t.Context(), note)
		if err != nil {
			t.Fatal(err)
		}
		if want := "be good|a|[Tool results: do_x: data]|b|c|remember"; viewText(got.Messages) != want {
			t.Errorf("read %q, want %q: a summary made on read is read", viewText(got.Messages), want)
		}
		if len(got.Excluded) != 2 || len(got.Written) != 1 || got.Messages[0].SourceID != "chat" || got.Messages[5].SourceID != "memory" {
			t.Errorf("%+v", got)
		}
	}
	if len(h.writes) > 0 || h.metas[0].Kind != chat.KindSource || h.messages[1].SourceID != "" {
		t.Errorf("stored: %+v", h.writes)
	}
}

func TestSourcesTakeWhatTheyAreSetTo(t *testing.T) {
	t.Parallel()
	memory, web := says("memory"), says("web")
	memory.SourceID, web.SourceID = "memory", "web"
	x := Exchange{Context: []chat.Message{memory, web}, Inputs: []chat.Message{user("in")}, Outputs: []chat.Message{says("out")}}
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
			h := shelved(t, user("hidden"), user("old"))
			h.included[1] = false
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
			if diff := cmp.Diff([]string{c.stored, c.read}, []string{h.texts(), viewText(got.Messages)}); diff != "" {
				t.Errorf("stored and read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEverySourceIsReadAndWritten(t *testing.T) {
	t.Parallel()
	a, b := shelved(t, user("a")), shelved(t, user("b"))
	audit := NewSource("audit", b)
	audit.LoadMessages = false
	p := provider(t, ProviderConfig{
		Sources: []Source{NewSource("chat", a), audit}, Compacts: "chat", After: mustNew(t, "sliding_window", plan.Params{"keep_last_groups": 1}),
	})
	if _, err := p.Write(t.Context(), Exchange{Inputs: []chat.Message{user("c")}}); err != nil {
		t.Fatal(err)
	}
	got, err := p.Read(t.Context())
	if err != nil || viewText(got.Messages) != "c" || a.texts() != "c" || b.texts() != "b|c" {
		t.Errorf("read %q, chat %q, audit %q, %v", viewText(got.Messages), a.texts(), b.texts(), err)
	}
}

func TestNewMessagesAreCompactedBeforeTheyAreWritten(t *testing.T) {
	t.Parallel()
	in := Exchange{
		Inputs:  []chat.Message{user("go on")},
		Outputs: []chat.Message{calls("y"), result("y", "much"), says("done")},
	}
	for name, c := range map[string]struct {
		excluded bool
		after    plan.Strategy
		log, end string
	}{
		"what is excluded is stored": {true, nil, "a||old||much|go on|done|[Tool results: do_y: much]", "a||old|go on|[Tool results: do_y: much]|done"},
		"it is not":                  {false, nil, "a||old|go on|[Tool results: do_y: much]|done", "a||old|go on|[Tool results: do_y: much]|done"},
		"with an after as well": {
			true, mustNew(t, "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), "",
			"a|[Tool results: do_x: old]|go on|[Tool results: do_y: much]|done",
		},
		"both, and nothing kept": {
			false, mustNew(t, "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), "",
			"a|[Tool results: do_x: old]|go on|[Tool results: do_y: much]|done",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := shelved(t, user("a"), calls("x"), result("x", "old"))
			s := NewSource("chat", h)
			s.StoreExcluded = c.excluded
			p := provider(t, ProviderConfig{
				Sources: []Source{s}, New: mustNew(t, "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), After: c.after, Options: Options{Counter: equal(10)},
			})
			r, err := p.Write(t.Context(), in)
			if err != nil || len(r.Steps) == 0 || r.Steps[0].Strategy != "tool_result" || !r.Changed() {
				t.Fatalf("%v, %+v", err, r)
			}
			if h.texts() != c.end {
				t.Errorf("view %q, want %q", h.texts(), c.end)
			}
			if err := h.invariants(true); err != nil {
				t.Error(err)
			}
			var log []string
			for _, m := range h.metas {
				log = append(log, h.messages[m.Seq].Content.Text)
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

// A result that comes by itself answers a call that is stored already.
// A store refuses a plan that takes out what was pinned since it was made, so it has
// to be told of the pins that the plan knew.
func TestWriteNamesThePinsOfItsPlan(t *testing.T) {
	t.Parallel()
	s := shelved(t, user("0"), says("1"), user("2"), says("3"))
	s.pinned[2], s.pinned[3] = true, true
	p := provider(t, ProviderConfig{
		Sources: []Source{NewSource("s", s)}, After: mustNew(t, "sliding_window", plan.Params{"keep_last_groups": 1}),
	})
	if _, err := p.Write(t.Context(), Exchange{Inputs: []chat.Message{user("4")}}); err != nil {
		t.Fatal(err)
	}
	if got := s.writes[0].Pinned.String(); got != "{[2,4)}" || s.texts() != "1|2|4" {
		t.Errorf("pins %s, view %s", got, s.texts())
	}
}

func TestNewResultsAnswerCallsOfTheHistory(t *testing.T) {
	t.Parallel()
	h := shelved(t, user("a"), calls("x", "y"), result("x", "1"))
	p := provider(t, ProviderConfig{Sources: []Source{NewSource("chat", h)}, New: mustNew(t, "sliding_window", plan.Params{"keep_last_groups": 5})})
	if r, err := p.Write(t.Context(), Exchange{Outputs: []chat.Message{result("y", "2")}}); err != nil || r.Changed() || h.texts() != "a||1|2" {
		t.Errorf("%v, %+v, %q", err, r, h.texts())
	}
}

func TestWriteStoresWhereAStrategyFails(t *testing.T) {
	t.Parallel()
	h := shelved(t, user("a"))
	fails := spy(func(*plan.Transcript) (chat.Plan, error) { return excludes(1), errors.New("no") })
	p := provider(t, ProviderConfig{Sources: []Source{NewSource("chat", h)}, After: fails, Before: fails})
	var failed *pipeline.StrategyError
	if _, err := p.Write(t.Context(), Exchange{Inputs: []chat.Message{user("b")}}); !errors.As(err, &failed) || h.texts() != "a|b" {
		t.Errorf("%v, %q", err, h.texts())
	}
	if got, err := p.Read(t.Context()); !errors.As(err, &failed) || viewText(got.Messages) != "a|b" {
		t.Errorf("%v, %q", err, viewText(got.Messages))
	}
}

func TestUnknownSourcesAreNamed(t *testing.T) {
	t.Parallel()
	h := shelved(t)
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
	if _, err := NewProvider(ProviderConfig{Sources: []Source{NewSource("a", h), NewSource("b", h)}, After: spy(nil)}); err == nil || !strings.Contains(err.Error(), "compacts: want one of a, b") {
		t.Errorf("which one: %v", err)
	}
	if _, err := NewProvider(ProviderConfig{Sources: []Source{{Name: "a"}}}); err == nil || !strings.Contains(err.Error(), `source "a": want a history`) {
		t.Errorf("no history: %v", err)
	}
	p := provider(t, ProviderConfig{Sources: []Source{NewSource("chat", h)}})
	m := user("x")
	m.SourceID = "typo"
	if _, err := p.Write(t.Context(), Exchange{Outputs: []chat.Message{m}}); !errors.Is(err, ErrUnknownSource) || !strings.Contains(err.Error(), `"typo", want one of chat`) {
		t.Errorf("write: %v", err)
	}
	if _, err := p.Read(t.Context(), m); !errors.Is(err, ErrUnknownSource) || len(h.metas) > 0 {
		t.Errorf("read: %v", err)
	}
}

func TestProvidersKeepTheInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &shelf{model: newModel(), t: t}
		s := NewSource("chat", h)
		s.StoreExcluded = rapid.Bool().Draw(t, "store excluded")
		strategy := func(name string) plan.Strategy {
			switch rapid.IntRange(0, 3).Draw(t, name) {
			case 0:
				return nil
			case 1:
				return hostile{seed: rapid.Uint64().Draw(t, "seed")}
			case 2:
				return drawPipeline(t, func() plan.Strategy { return drawStrategy(t, 0) })
			}
			return drawStrategy(t, 0)
		}
		p, err := NewProvider(ProviderConfig{
			Sources: []Source{s}, New: strategy("new"), After: strategy("after"), Before: strategy("before"),
			Options: Options{Counter: quarter{}, AllowGrowth: rapid.Bool().Draw(t, "growth")},
		})
		if err != nil {
			t.Fatalf("%v", err)
		}
		given := 0
		for range 3 {
			x := Exchange{Inputs: drawMessages(t, 3), Outputs: drawMessages(t, 3)}
			given += len(x.Inputs) + len(x.Outputs)
			if _, err := p.Write(t.Context(), x); err != nil {
				t.Fatalf("%v", err)
			}
			var kept int
			for _, m := range h.metas {
				if m.Kind == chat.KindSource {
					kept++
				}
			}
			if s.StoreExcluded && kept != given {
				t.Fatalf("%d of %d messages are stored", kept, given)
			}
			if faults := chat.Check(h.view()); len(faults) > 0 && (p.New != nil || p.After != nil) && p.Options.AllowGrowth {
				t.Fatalf("faults %v in%s", faults, h.describe(true))
			}
			got, err := p.Read(t.Context())
			if err != nil {
				t.Fatalf("%v", err)
			}
			if p.Before != nil && p.Options.AllowGrowth {
				if faults := chat.Check(chat.Describe(got.Messages)); len(faults) > 0 {
					t.Fatalf("read %v: %s", faults, fmt.Sprint(texts(got.Messages)))
				}
			}
		}
	})
}
