package worker

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Sessions of a model whose prompts have 100 tokens of their own and 1.5 for each counted
// one are due by that, and are compacted to it.
func TestARunReachesTheTargetInTheTokensOfTheProvider(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for i, role := range []string{"s", "u", "a", "u", "a"} {
		f.append("taught", role)
		must(f.store.ReportUsage(t.Context(), key("taught"), chat.Tokens(100+150*(i+1)), 0))(t)
	}
	session := func() store.SessionRow {
		t.Helper()
		s := f.session("s")
		return s
	}
	f.append("s", "suauau") // 600 counted: 1,000 in the prompt
	if s := session(); s.Due || s.ContextTokens != 1000 {
		t.Fatalf("%+v", s)
	}
	f.append("s", "aua")
	if s := session(); !s.Due || s.ContextTokens != 1450 {
		t.Fatalf("%+v", s)
	}
	// 300 counted are 550; 400 would be 700.
	row := f.run(f.event())
	if s := session(); row.Outcome != OutcomeApplied || s.LiveTokens != 300 || s.ContextTokens != 550 || s.Due {
		t.Errorf("%s: %+v", row.Outcome, s)
	}
}

func TestLimitsAreThoseOfTheMessagesInAPrompt(t *testing.T) {
	t.Parallel()
	p := testPlanner(testPolicy())
	reported := chat.Tokens(2500)
	for name, tt := range map[string]struct {
		session store.Session
		context chat.Tokens
		target  chat.Tokens
		after   chat.Tokens // once 400 counted tokens are saved
	}{
		"nothing is known":   {store.Session{}, 1000, 600, 600},
		"reports of others":  {store.Session{Line: store.Line{Overhead: 300, Scale: 2}}, 2300, 150, 1500},
		"one of its own":     {store.Session{ReportedPromptTokens: &reported, TokensSinceReport: 10}, 2510, 1, 2110},
		"both":               {store.Session{ReportedPromptTokens: &reported, Line: store.Line{Overhead: 300, Scale: 2}}, 2500, 50, 2100},
		"an overhead of all": {store.Session{Line: store.Line{Overhead: 900, Scale: 1}}, 1900, 1, 1500},
	} {
		c := &store.Claim{Trigger: store.TriggerNightly, Session: tt.session}
		c.Session.LiveTokens = 1000
		rc := p.newRunContext(c, namedPolicy{policy: p.Policy})
		built, _, err := p.pipeline(rc, nil)
		noError(t, err)
		if after := rc.after(400, 400); rc.context != tt.context || built.Target != tt.target || after != tt.after {
			t.Errorf("%s: context %d, target %d, after %d; want %d, %d, %d", name, rc.context, built.Target, after, tt.context, tt.target, tt.after)
		}
	}
}

func TestThereIsNoMarginWhereReportsAreKnown(t *testing.T) {
	t.Parallel()
	pol := testPolicy()
	pol.EstimateMargin = 0.5
	p := testPlanner(pol)
	for _, known := range []bool{false, true} {
		c := &store.Claim{
			Trigger: store.TriggerNightly, View: []chat.Meta{{Seq: 1, Position: 1, Role: chat.RoleUser, Flags: chat.Estimated, Tokens: 100}},
			Session: store.Session{LiveTokens: 100, LiveEstimatedTokens: 100, Live: chat.RangesOf(1)},
		}
		want := chat.Tokens(150)
		if known {
			c.Session.Line, want = store.Line{Scale: 1}, 100
		}
		rc := p.newRunContext(c, namedPolicy{policy: p.Policy})
		noError(t, rc.buildTranscript(t.Context(), nil))
		if rc.context != want || rc.entries[0].Tokens != want || rc.postRunState(want, 0, nil, 1).EstimateMargin != 0.5 {
			t.Errorf("known %t: context %d, planned %d, want %d", known, rc.context, rc.entries[0].Tokens, want)
		}
	}
}

// The real sizes are the highest that are published for these models. What is appended
// without a count is estimated by its length.
func TestASessionOfClaudeIsCompactedWellBeforeItsWindowIsFull(t *testing.T) {
	t.Parallel()
	code := must(os.ReadFile("run.go"))(t)
	exact := tokens.ForModel("gpt-4o")
	for name, tt := range map[string]struct {
		model   string
		real    float64 // tokens for each one of o200k_base
		counter tokens.Counter
	}{
		"counted":                 {"claude-sonnet-4-5-20250929", 1.35, tokens.ForModel("claude-sonnet-4-5-20250929")},
		"counted, of a later one": {"anthropic/claude-opus-4.8", 1.55, tokens.ForModel("anthropic/claude-opus-4.8")},
		"estimated by length":     {"us.anthropic.claude-sonnet-4-5-20250929-v1:0", 1.35, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pol := policy.Default()
			pol.Pipeline = []policy.Step{{Strategy: "truncation"}}
			f := setupWith(t, database(t), pol, Config{})
			limits := pol.Limits(tt.model, tokens.Window)
			f.must(f.store.Scheduler.SavePolicy(t.Context(), pol.FleetHash(), []byte(`{}`), []store.Threshold{{DueTokens: limits.Start, EstimateMargin: pol.EstimateMargin}}))
			f.w.planner.Counter = func(model string) plan.Counter { return tokens.ForModel(model) }
			m := store.NewMessage{Message: chat.Message{Role: chat.RoleUser, Content: chat.TextContent(string(code))}}
			if tt.counter != nil {
				m.Tokens, m.Counter = tt.counter.Message(&m.Message), tt.counter.Name()
			}
			size := func(messages int64) float64 {
				return tt.real * float64(exact.Message(&m.Message)) * float64(messages) / float64(limits.Window)
			}
			var s store.SessionRow
			var err error
			for !s.Due {
				if _, _, err = f.store.Append(t.Context(), key("s"), tt.model, []store.NewMessage{m}); err == nil {
					s, err = f.store.Session(t.Context(), key("s"))
				}
				f.must(err)
			}
			full := size(s.Messages)
			if row := f.run(f.event()); row.Outcome != OutcomeApplied {
				t.Fatal(row.Outcome)
			}
			s = must(f.store.Session(t.Context(), key("s")))(t)
			t.Logf("due with %.0f %% of the window, left with %.0f %%", 100*full, 100*size(s.LiveMessages))
			if full < 0.6 || full > 0.9 || s.Due || size(s.LiveMessages) > 0.65 {
				t.Errorf("due with %.0f %% of the window, left with %.0f %%", 100*full, 100*size(s.LiveMessages))
			}
		})
	}
}

func TestAnUnknownModelIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := testPlanner(testPolicy())
	p.Logger = slog.New(slog.NewTextHandler(&out, nil))
	for range 3 {
		for _, model := range []string{"", "gpt-4o", "claude-opus-5-5", "our-own", "another"} {
			p.forModel(namedKey{}, p.Policy, model)
		}
	}
	log := out.String()
	if strings.Count(log, "\n") != 2 || !strings.Contains(log, "model=our-own window=128000") || !strings.Contains(log, "model=another") {
		t.Error(log)
	}
}
