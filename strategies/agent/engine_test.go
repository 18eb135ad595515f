package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// engineOn returns an engine with a clock that can be moved, and short handoffs.
func engineOn(t *testing.T, main, auxiliary plan.Summarizer, more plan.Params) (*Engine, *time.Time) {
	t.Helper()
	now := time.Unix(1e9, 0)
	e, err := NewEngine(EngineOptions{
		Main: main, Auxiliary: auxiliary, Now: func() time.Time { return now },
		New: func(s plan.Summarizer, _ builtin.Thresholds) (plan.Strategy, error) {
			r := builtin.Registry()
			r.Summarizer = s
			p := plan.Params{
				"summary_prefix": "NOTES", "end_marker": "END", "compaction_note": "NOTE",
				"fallback_text": "LOST {n}", "tail_token_budget": 30, "protect_last_n": 3,
			}
			maps.Copy(p, more)
			return r.New("handoff", p)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, &now
}

func compress(t *testing.T, e *Engine, ms []chat.Message, r CompressRequest) Compression {
	t.Helper()
	c, err := e.Compress(t.Context(), ms, r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func bigDay() []chat.Message {
	day := sessiontest.Workday()
	day[4].Content = chat.TextContent(strings.Repeat("words of a file ", 300))
	return day
}

func TestEngineDecidesWhenToCompress(t *testing.T) {
	t.Parallel()
	e, _ := engineOn(t, &sessiontest.Notes{}, nil, nil)
	e.OnSessionStart("a")
	if e.ShouldCompress(63_999) || !e.ShouldCompress(64_000) || e.ShouldCompress(0) {
		t.Error("the threshold is 64,000")
	}
	e.UpdateFromResponse(Usage{PromptTokens: 96_000, CompletionTokens: 10})
	s := e.Status()
	if !e.ShouldCompress(0) || s.UsagePercent != 75 || s.LastPromptTokens != 96_000 || s.Threshold != 64_000 || s.Window != 128_000 || s.Session != "a" {
		t.Errorf("%+v", s)
	}
	if n, should := e.Preflight(bigDay()); should || n < 1200 || n > 1800 {
		t.Errorf("%d tokens, %v", n, should)
	}
	if n, should := e.Preflight([]chat.Message{sessiontest.User(strings.Repeat("x", 300_000))}); !should {
		t.Errorf("%d tokens, %v", n, should)
	}
	if err := e.UpdateModel(32_000); err != nil || !e.ShouldCompress(27_200) || e.ShouldCompress(27_199) {
		t.Errorf("a threshold above the window: %+v, %v", e.Status(), err)
	}
	if err := e.UpdateModel(0); err == nil {
		t.Error("a window of nothing")
	}
	if !e.HasContent(bigDay()) || e.HasContent(nil) {
		t.Error("what has content")
	}
}

func TestEngineInASmallWindow(t *testing.T) {
	t.Parallel()
	e, err := NewEngine(EngineOptions{Window: 8000, Main: &sessiontest.Notes{}})
	if err != nil {
		t.Fatal(err)
	}
	var ms []chat.Message
	for range 20 {
		ms = append(ms, sessiontest.User("please"), sessiontest.Says(strings.Repeat("words ", 230)))
	}
	if _, should := e.Preflight(ms); !should || !e.HasContent(ms) {
		t.Errorf("nothing to compress: %+v", e.Status())
	}
	if c := compress(t, e, ms, CompressRequest{}); c.After > 6800 || !c.Compressed {
		t.Errorf("%d tokens", c.After)
	}
	if e.HasContent(ms[:7]) {
		t.Error("content in what is too short")
	}
}

func TestEngineNamesAllInvalidOptions(t *testing.T) {
	t.Parallel()
	_, err := NewEngine(EngineOptions{Window: -1, ThresholdPercent: 50, SummaryTargetRatio: math.NaN()})
	for _, want := range []string{"window", "ThresholdPercent 50", "SummaryTargetRatio NaN"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// Usage reported before a compression does not apply to the prompt after it.
func TestEngineForgetsThePromptThatItCompressed(t *testing.T) {
	t.Parallel()
	e, _ := engineOn(t, &sessiontest.Notes{}, nil, nil)
	e.UpdateFromResponse(Usage{PromptTokens: 90_000})
	if c := compress(t, e, sessiontest.Workday(), CompressRequest{}); c.Before != 90_000 || !c.Compressed {
		t.Errorf("%+v", c)
	}
	if s := e.Status(); e.ShouldCompress(0) || s.LastPromptTokens != 0 {
		t.Errorf("%+v", s)
	}
	if c := compress(t, e, sessiontest.Workday(), CompressRequest{}); c.Before != tokens.Rough(sessiontest.Workday()) {
		t.Errorf("%+v", c)
	}
}

func TestEngineCompresses(t *testing.T) {
	t.Parallel()
	model := &sessiontest.Notes{}
	e, _ := engineOn(t, model, nil, nil)
	c := compress(t, e, bigDay(), CompressRequest{Focus: "the build"})
	if !c.Compressed || c.NoSummary != "" || c.Savings < 50 || c.After >= c.Before || len(c.Messages) != 9 {
		t.Errorf("%+v", c)
	}
	if model.Asked[0].Focus != "the build" {
		t.Errorf("focus %q", model.Asked[0].Focus)
	}
	if violations := chat.Check(chat.Describe(c.Messages)); len(violations) > 0 {
		t.Errorf("violations %v", violations)
	}
	if s := e.Status(); s.Compressions != 1 || s.Ineffective != 0 || s.LastSavings != c.Savings {
		t.Errorf("%+v", s)
	}
}

func TestEngineGivesUpOnCompressionsThatGainNothing(t *testing.T) {
	t.Parallel()
	e, _ := engineOn(t, &sessiontest.Notes{Answer: func(int) (string, error) { return strings.Repeat("long notes ", 400), nil }}, nil, nil)
	for range 2 {
		if !e.ShouldCompress(64_000) {
			t.Fatal("given up too early")
		}
		compress(t, e, sessiontest.Workday(), CompressRequest{})
	}
	if e.ShouldCompress(64_000) || e.Status().Ineffective != 2 {
		t.Errorf("%+v", e.Status())
	}
	e.OnSessionReset()
	if !e.ShouldCompress(64_000) {
		t.Error("a reset starts anew")
	}
}

func TestEngineHasACooldownAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err      error
		cooldown time.Duration
	}{
		"a failure":       {errors.New("overloaded"), time.Minute},
		"no model":        {plan.ErrNoModel, 10 * time.Minute},
		"an empty answer": {nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := &sessiontest.Notes{Answer: func(n int) (string, error) {
				if n > 1 {
					return "better", nil
				}
				return "", test.err
			}}
			e, now := engineOn(t, model, nil, nil)
			c := compress(t, e, bigDay(), CompressRequest{})
			s := e.Status()
			if c.Compressed || len(c.Messages) != len(bigDay()) || c.NoSummary == "" || s.Cooldown != test.cooldown || s.LastError == "" || e.ShouldCompress(64_000) {
				t.Errorf("%+v, %+v", c.NoSummary, s)
			}
			*now = now.Add(test.cooldown - time.Second)
			if compress(t, e, bigDay(), CompressRequest{}); len(model.Asked) != 1 {
				t.Error("asked too soon")
			}
			*now = now.Add(time.Second)
			if c := compress(t, e, bigDay(), CompressRequest{}); !c.Compressed || !e.ShouldCompress(64_000) {
				t.Errorf("%+v", c)
			}
		})
	}
	t.Run("unless it is forced", func(t *testing.T) {
		t.Parallel()
		model := &sessiontest.Notes{Answer: func(n int) (string, error) { return "fine", []error{errors.New("no"), nil}[n-1] }}
		e, _ := engineOn(t, model, nil, nil)
		compress(t, e, bigDay(), CompressRequest{})
		if c := compress(t, e, bigDay(), CompressRequest{Force: true}); !c.Compressed {
			t.Errorf("%+v", c)
		}
	})
}

func TestEngineTurnsToTheMainModel(t *testing.T) {
	t.Parallel()
	main := &sessiontest.Notes{}
	auxiliary := &sessiontest.Notes{Answer: func(int) (string, error) { return "", errors.New(strings.Repeat("bad ", 100)) }}
	e, _ := engineOn(t, main, auxiliary, nil)
	c := compress(t, e, bigDay(), CompressRequest{})
	s := e.Status()
	if !c.Compressed || s.Cooldown != 0 || len(s.AuxiliaryError) != 220 || !strings.HasSuffix(s.AuxiliaryError, "...") {
		t.Errorf("%+v, %+v", c, s)
	}
	compress(t, e, bigDay(), CompressRequest{})
	if len(auxiliary.Asked) != 1 || len(main.Asked) != 2 {
		t.Errorf("asked %d and %d times", len(auxiliary.Asked), len(main.Asked))
	}
	if err := e.UpdateModel(200_000); err != nil {
		t.Fatal(err)
	}
	if compress(t, e, bigDay(), CompressRequest{}); len(auxiliary.Asked) != 2 {
		t.Error("a new model means a new try")
	}
}

func TestEngineForgetsOtherSessions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Engine){
		"another session":    func(e *Engine) { e.OnSessionStart("b") },
		"the end of it":      func(e *Engine) { e.OnSessionEnd() },
		"a reset":            func(e *Engine) { e.OnSessionReset() },
		"an end and a start": func(e *Engine) { e.OnSessionEnd(); e.OnSessionStart("a") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := &sessiontest.Notes{Answer: func(n int) (string, error) {
				if n == 2 {
					return "", errors.New("no")
				}
				return "what session a was about", nil
			}}
			e, _ := engineOn(t, model, nil, plan.Params{"on_failure": "fallback"})
			e.OnSessionStart("a")
			e.UpdateFromResponse(Usage{PromptTokens: 99_000})
			compress(t, e, sessiontest.Workday(), CompressRequest{Tokens: 10})
			compress(t, e, sessiontest.Workday(), CompressRequest{Tokens: 10})
			if s := e.Status(); s.Compressions != 2 || s.Ineffective != 2 || s.Cooldown == 0 || s.LastError == "" {
				t.Fatalf("%+v", s)
			}
			change(e)
			fresh := Status{Session: e.Status().Session, Threshold: 64_000, Window: 128_000}
			if s := e.Status(); s != fresh {
				t.Errorf("%+v", s)
			}
			compress(t, e, sessiontest.Workday(), CompressRequest{})
			if asked := model.Asked[2].User; strings.Contains(asked, "session a") {
				t.Errorf("asked\n%s", asked)
			}
		})
	}
	t.Run("starting the same again changes nothing", func(t *testing.T) {
		t.Parallel()
		e, _ := engineOn(t, &sessiontest.Notes{}, nil, nil)
		e.OnSessionStart("a")
		compress(t, e, bigDay(), CompressRequest{})
		if e.OnSessionStart("a"); e.Status().Compressions != 1 {
			t.Errorf("%+v", e.Status())
		}
	})
}

func TestEngineRemembersItsSummaryThroughAFallback(t *testing.T) {
	t.Parallel()
	model := &sessiontest.Notes{Answer: func(n int) (string, error) {
		return "the first notes", []error{nil, errors.New("no"), nil}[n-1]
	}}
	e, now := engineOn(t, model, nil, plan.Params{"on_failure": "fallback"})
	ms := sessiontest.Workday()
	for range 3 {
		ms = append(compress(t, e, ms, CompressRequest{}).Messages, sessiontest.User("more"), sessiontest.Says(strings.Repeat("done ", 40)), sessiontest.User("thanks"), sessiontest.Says("welcome"))
		*now = now.Add(time.Hour)
	}
	if asked := model.Asked[2].User; !strings.Contains(asked, " 0 notes written so far\nthe first notes\n") {
		t.Errorf("asked\n%s", asked)
	}
}

func TestEngineACompressionThatOutlivesItsSessionCountsForNone(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	e, _ := engineOn(t, plan.Func(func(context.Context, plan.Request) (string, error) {
		close(asked)
		<-answer
		return "", errors.New("too late")
	}), nil, plan.Params{"on_failure": "fallback"})
	e.OnSessionStart("a")
	var wait sync.WaitGroup
	wait.Go(func() { compress(t, e, bigDay(), CompressRequest{}) })
	<-asked
	e.OnSessionStart("b") // nothing is locked while a model is asked
	close(answer)
	wait.Wait()
	if s := e.Status(); s.Compressions != 0 || s.Cooldown != 0 || s.LastError != "" {
		t.Errorf("%+v", s)
	}
}

// For the race detector.
func TestEngineIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	e, _ := engineOn(t, plan.Func(func(context.Context, plan.Request) (string, error) { return "fine", nil }),
		plan.Func(func(context.Context, plan.Request) (string, error) { return "", errors.New("no") }), nil)
	ms := bigDay()
	var wait sync.WaitGroup
	for _, use := range []func(){
		func() { compress(t, e, ms, CompressRequest{Focus: "the build"}) },
		func() { e.OnSessionStart("a"); e.OnSessionReset() },
		func() { e.OnSessionStart("b"); e.OnSessionEnd() },
		func() { e.UpdateFromResponse(Usage{PromptTokens: 70_000}); e.Preflight(ms) },
		func() {
			if err := e.UpdateModel(200_000); err != nil {
				t.Error(err)
			}
		},
		func() { e.HasContent(ms); e.Status() },
	} {
		wait.Go(func() {
			for range 20 {
				use()
			}
		})
	}
	wait.Wait()
}

func TestEngineWithoutAModelKeepsEverything(t *testing.T) {
	t.Parallel()
	e, err := NewEngine(EngineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ms []chat.Message
	for range 40 {
		ms = append(ms, sessiontest.User("please"), sessiontest.Says(strings.Repeat("words ", 2000)))
	}
	c := compress(t, e, ms, CompressRequest{})
	if c.Compressed || len(c.Messages) != len(ms) || !strings.Contains(c.NoSummary, plan.ErrNoModel.Error()) {
		t.Errorf("%v, %q", c.Compressed, c.NoSummary)
	}
}

func TestEngineStrategyThatFails(t *testing.T) {
	t.Parallel()
	e, err := NewEngine(EngineOptions{New: func(plan.Summarizer, builtin.Thresholds) (plan.Strategy, error) { return failing{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.Compress(t.Context(), sessiontest.Workday(), CompressRequest{})
	if failed := (*pipeline.StrategyError)(nil); !errors.As(err, &failed) || len(c.Messages) != len(sessiontest.Workday()) || e.Status().Compressions != 0 {
		t.Errorf("%v, %+v", err, e.Status())
	}
}

type failing struct{}

func (failing) Name() string { return "failing" }

func (failing) Plan(context.Context, *plan.Transcript) (chat.Plan, error) { panic("no") }

// An interrupted summary is not a failure: no other model is called, and no cooldown begins.
func TestEngineDoesNotCountAnInterruption(t *testing.T) {
	t.Parallel()
	main := &sessiontest.Notes{}
	auxiliary := &sessiontest.Notes{Answer: func(int) (string, error) { return "", fmt.Errorf("%w: away", plan.ErrInterrupted) }}
	e, _ := engineOn(t, main, auxiliary, nil)
	day := bigDay()
	for range 2 {
		c, err := e.Compress(t.Context(), day, CompressRequest{})
		if !errors.Is(err, plan.ErrInterrupted) || len(c.Messages) != len(day) {
			t.Errorf("%d messages, %v", len(c.Messages), err)
		}
	}
	if len(main.Asked) > 0 || len(auxiliary.Asked) != 2 {
		t.Errorf("asked %d and %d times", len(main.Asked), len(auxiliary.Asked))
	}
}
