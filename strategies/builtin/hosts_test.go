package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/agent"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// A conversation that grows and compacts by turns is, at each moment, what a store
// has that everything was written to.
func TestAConversationIsWhatAStoreWouldKeep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, c := sessiontest.New(), strategies.NewConversation(strategies.Options{Counter: sessiontest.Quarter{}, AllowGrowth: true})
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for _, m := range builtin.DrawMessages(t, 6) {
				s.Add(m)
				c.Append(m)
				if rapid.IntRange(0, 9).Draw(t, "pin") == 9 {
					q := chat.Seq(len(s.Metas))
					s.Pinned[q] = true
					if err := c.Pin(true, q); err != nil {
						t.Fatalf("%v", err)
					}
				}
			}
			p := builtin.DrawPipeline(t, func() plan.Strategy {
				if rapid.Bool().Draw(t, "hostile") {
					return builtin.Hostile(rapid.Uint64().Draw(t, "seed")) // it reads everything: so does a conversation
				}
				return builtin.DrawStrategy(t)
			})
			before := c.Totals()
			s.Originals = c.Transcript().Originals // a store has them too, and tests of its own
			want := s.Run(t, p, true)
			got, err := c.Compact(t.Context(), p)
			if err != nil {
				t.Fatalf("%v", err)
			}
			whole := s.Transcript(true)
			if diff := cmp.Diff(chat.Groups(metasOf(whole)), c.Transcript().Groups(), cmpopts.EquateEmpty()); diff != "" {
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
			for _, m := range s.View() {
				view = append(view, *s.Messages[m.Seq])
			}
			if diff := cmp.Diff(bodies(chat.Merge(s.View(), view)), bodies(c.View())); diff != "" {
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

// wantExplained fails unless every message that is out has a reason, and what is
// said to stand for it is in the view.
func wantExplained(t *rapid.T, s *sessiontest.Session, c *strategies.Conversation) {
	n := 0
	for _, x := range c.Excluded() {
		n++
		if s.Included[x.Seq] || x.Reason == "" {
			t.Fatalf("%d is out for %q, in the view: %v", x.Seq, x.Reason, s.Included[x.Seq])
		}
		if x.By > 0 && (!s.Included[x.By] || s.Metas[x.By-1].Kind == chat.KindSource) {
			t.Fatalf("%d stands for %d, and is in the view: %v", x.By, x.Seq, s.Included[x.By])
		}
	}
	for _, in := range s.Included {
		if !in {
			n--
		}
	}
	if n != 0 {
		t.Fatalf("%d excluded messages too many", n)
	}
}

func TestProvidersKeepTheInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &sessiontest.History{Session: sessiontest.New(), T: t}
		s := agent.NewSource("chat", h)
		s.StoreExcluded = rapid.Bool().Draw(t, "store excluded")
		strategy := func(name string) plan.Strategy {
			switch rapid.IntRange(0, 3).Draw(t, name) {
			case 0:
				return nil
			case 1:
				return builtin.Hostile(rapid.Uint64().Draw(t, "seed"))
			case 2:
				return builtin.DrawPipeline(t, func() plan.Strategy { return builtin.DrawStrategy(t) })
			}
			return builtin.DrawStrategy(t)
		}
		p, err := agent.NewProvider(agent.ProviderConfig{
			Sources: []agent.Source{s}, New: strategy("new"), After: strategy("after"), Before: strategy("before"),
			Options: strategies.Options{Counter: sessiontest.Quarter{}, AllowGrowth: rapid.Bool().Draw(t, "growth")},
		})
		if err != nil {
			t.Fatalf("%v", err)
		}
		given := 0
		for range 3 {
			x := agent.Exchange{Inputs: builtin.DrawMessages(t, 3), Outputs: builtin.DrawMessages(t, 3)}
			given += len(x.Inputs) + len(x.Outputs)
			if _, err := p.Write(t.Context(), x); err != nil {
				t.Fatalf("%v", err)
			}
			var kept int
			for _, m := range h.Metas {
				if m.Kind == chat.KindSource {
					kept++
				}
			}
			if s.StoreExcluded && kept != given {
				t.Fatalf("%d of %d messages are stored", kept, given)
			}
			if faults := chat.Check(h.View()); len(faults) > 0 && (p.New != nil || p.After != nil) && p.Options.AllowGrowth {
				t.Fatalf("faults %v in%s", faults, h.Describe(true))
			}
			got, err := p.Read(t.Context())
			if err != nil {
				t.Fatalf("%v", err)
			}
			if p.Before != nil && p.Options.AllowGrowth {
				if faults := chat.Check(chat.Describe(got.Messages)); len(faults) > 0 {
					t.Fatalf("read %v: %s", faults, fmt.Sprint(bodies(got.Messages)))
				}
			}
		}
	})
}

// The vectors of Hermes and Timbal test functions of package agent together with the
// strategies.
func init() {
	builtin.Hosts.Engine = func(o builtin.HostOptions) (builtin.EngineHost, error) {
		e, err := agent.NewEngine(agent.EngineOptions{
			Window: o.Window, Main: o.Main, Auxiliary: o.Auxiliary, Now: o.Now, Estimate: o.Estimate, DuringCooldown: true,
			New: func(s plan.Summarizer, _ builtin.Thresholds) (plan.Strategy, error) {
				return o.New(s)
			},
			Compact: unguarded,
		})
		return engineHost{e}, err
	}
	builtin.Hosts.Feedback = func(before, after []chat.Message, beforeTokens, afterTokens chat.Tokens) builtin.HostFeedback {
		return builtin.HostFeedback(agent.FeedbackOn(before, after, beforeTokens, afterTokens))
	}
	builtin.Hosts.Trigger = func(ratio float64, window, used chat.Tokens) (bool, float64, bool) {
		return agent.Trigger{Ratio: ratio, Window: window}.Fires(used)
	}
	builtin.Hosts.Used, builtin.Hosts.Estimate = agent.UsedTokens, agent.EstimateTokens
	builtin.Hosts.Split, builtin.Hosts.Join = agent.SplitMidLoop, agent.JoinMidLoop
}

// unguarded applies the plan of a strategy as it is.
func unguarded(ctx context.Context, c *strategies.Conversation, s plan.Strategy) (strategies.Report, error) {
	planned, err := s.Plan(ctx, c.Transcript())
	step := pipeline.StepResult{Changed: !planned.Empty()}
	if errors.Is(err, plan.ErrNoSummary) {
		step.NoSummary, step.Err, err = pipeline.NoSummaryCode(err), err, nil
	}
	var r strategies.Report
	if err == nil {
		r = c.Apply(planned)
	}
	r.Steps = []pipeline.StepResult{step}
	return r, err
}

// engineHost is an engine in the types of the vectors.
type engineHost struct{ *agent.Engine }

func (e engineHost) Compress(messages []chat.Message, focus string, known chat.Tokens) (builtin.HostCompression, error) {
	c, err := e.Engine.Compress(context.Background(), messages, agent.CompressRequest{Focus: focus, Tokens: known})
	return builtin.HostCompression(c), err
}

func (e engineHost) Status() builtin.EngineStatus {
	s := e.Engine.Status()
	return builtin.EngineStatus{
		Threshold: s.Threshold, Compressions: s.Compressions, Ineffective: s.Ineffective, Cooldown: s.Cooldown, LastError: s.LastError,
	}
}
