package worker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	truncate := func(to int) []store.Step {
		return []store.Step{{Strategy: "truncation", Params: map[string]any{"max_n": to, "compact_to": to}}}
	}
	cases := map[string]struct {
		// do prepares the session "s" and returns the run to execute.
		do      func(f *fixture) store.RunID
		status  string
		outcome string
		view    string
	}{
		"a session over its start is cut to its target": {
			do:     func(f *fixture) store.RunID { f.append("s", "suauauauauaua"); return f.event() },
			status: "applied", outcome: OutcomeApplied, view: "sauaua",
		},
		"the nightly sweep does the same": {
			do:     func(f *fixture) store.RunID { f.append("s", "suauauauauaua"); return f.sweep()[0] },
			status: "applied", outcome: OutcomeApplied, view: "sauaua",
		},
		"a session that is no longer over its start is left alone": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauauauauaua")
				id := f.event()
				f.run(f.operator("s", store.Options{}))
				return id
			},
			status: "skipped", outcome: OutcomeUnchanged, view: "sauaua",
		},
		"what must stay is above the start, and nothing else is there": {
			do:     func(f *fixture) store.RunID { f.append("s", "sssssssssssu"); return f.event() },
			status: "skipped", outcome: OutcomeFloorAboveTrigger, view: "sssssssssssu",
		},
		"what must stay is above the start, and the rest goes": {
			do:     func(f *fixture) store.RunID { f.append("s", "sssssssssssauau"); return f.event() },
			status: "applied", outcome: OutcomeFloorAboveTrigger, view: "sssssssssssu",
		},
		"what must stay is above the target but not the start": {
			do:     func(f *fixture) store.RunID { f.append("s", "ssssssssauauau"); return f.event() },
			status: "applied", outcome: OutcomeAboveTarget, view: "ssssssssu",
		},
		"an operator's run under the target has nothing to do": {
			do:     func(f *fixture) store.RunID { f.append("s", "sua"); return f.operator("s", store.Options{}) },
			status: "skipped", outcome: OutcomeNothingToCompact, view: "sua",
		},
		"an operator names a strategy": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauaua")
				return f.operator("s", store.Options{Pipeline: truncate(3)})
			},
			status: "applied", outcome: OutcomeApplied, view: "sua",
		},
		"an operator's dry run changes nothing": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauaua")
				return f.operator("s", store.Options{Pipeline: truncate(3), DryRun: true})
			},
			status: "skipped", outcome: OutcomeDryRun, view: "suauaua",
		},
		"a dry run ends as the run would where that changes nothing": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauaua")
				f.run(f.operator("s", store.Options{Pipeline: truncate(3)}))
				return f.operator("s", store.Options{Pipeline: truncate(5), DryRun: true})
			},
			status: "skipped", outcome: OutcomeWouldGrow, view: "sua",
		},
		"an operator plans from the log, and may get more than there was": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauaua")
				f.run(f.operator("s", store.Options{Pipeline: truncate(3)}))
				return f.operator("s", store.Options{Pipeline: truncate(5), AllowGrowth: true})
			},
			status: "applied", outcome: OutcomeApplied, view: "suaua",
		},
		"but not what the application has deleted, be it the last of the user": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauauau")
				f.run(f.operator("s", store.Options{Pipeline: truncate(3)}))
				must(f.store.Exclude(f.t.Context(), store.Key{Session: "s"}, []string{"s-3", "s-8"}, "app"))(f.t)
				return f.operator("s", store.Options{Pipeline: truncate(20), AllowGrowth: true})
			},
			status: "applied", outcome: OutcomeApplied, view: "suuaua",
		},
		"a view that the application has cleared stays empty": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauauau")
				must(f.store.Replace(f.t.Context(), store.Key{Session: "s"}, 0, nil, "app"))(f.t)
				f.run(f.event())
				return f.operator("s", store.Options{Pipeline: truncate(3), AllowGrowth: true})
			},
			status: "skipped", outcome: OutcomeNothingToCompact, view: "",
		},
		"but not unasked": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauaua")
				f.run(f.operator("s", store.Options{Pipeline: truncate(3)}))
				return f.operator("s", store.Options{Pipeline: truncate(5)})
			},
			status: "skipped", outcome: OutcomeWouldGrow, view: "sua",
		},
		"nor because a pinned message has to come back: that is all that comes": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauauauaua")
				f.run(f.operator("s", store.Options{Pipeline: truncate(3)}))
				f.pin("s-3")
				return f.operator("s", store.Options{Pipeline: []store.Step{{Strategy: "clamp", Params: map[string]any{"max_tokens": 2000}}}})
			},
			status: "applied", outcome: OutcomeRepaired, view: "saua",
		},
		"nor because the view has to be repaired": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauauauaua")
				f.run(f.operator("s", store.Options{Pipeline: truncate(3)}))
				f.append("s", "t")
				return f.operator("s", store.Options{Pipeline: []store.Step{{Strategy: "clamp", Params: map[string]any{"max_tokens": 2000}}}})
			},
			status: "applied", outcome: OutcomeRepaired, view: "suaI",
		},
		"a run from the view leaves out what is out": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauaua")
				f.run(f.operator("s", store.Options{Pipeline: truncate(5)}))
				return f.operator("s", store.Options{From: "view", Pipeline: truncate(3)})
			},
			status: "applied", outcome: OutcomeApplied, view: "sua",
		},
		"a result without its call becomes text": {
			do:     func(f *fixture) store.RunID { f.append("s", "sutu"); return f.event() },
			status: "applied", outcome: OutcomeRepaired, view: "suIu",
		},
		"a call that a user has passed by loses its call": {
			do:     func(f *fixture) store.RunID { f.append("s", "sucu"); return f.event() },
			status: "applied", outcome: OutcomeRepaired, view: "suIu",
		},
		"an open call stays with all behind it": {
			do:     func(f *fixture) store.RunID { f.append("s", "suauauauauauc"); return f.event() },
			status: "applied", outcome: OutcomeApplied, view: "sauauc",
		},
		"after an undo automatic runs wait": {
			do: func(f *fixture) store.RunID {
				f.append("s", "suauauauauaua")
				id := f.event()
				f.run(id)
				f.append("s", "uauauauau")
				next := f.event()
				f.undo(id)
				return next
			},
			status: "skipped", outcome: OutcomeWaitingAfterUndo, view: "suauauauauauauauauauau",
		},
		"an unknown strategy fails the run for good": {
			do: func(f *fixture) store.RunID {
				f.append("s", "sua")
				return f.operator("s", store.Options{Pipeline: []store.Step{{Strategy: "no such"}}})
			},
			status: "failed", outcome: "invalid_options", view: "sua",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			row := f.run(c.do(f))
			if row.Status != c.status || row.Outcome != c.outcome {
				t.Errorf("ended %s, %s (%s); want %s, %s", row.Status, row.Outcome, row.Error, c.status, c.outcome)
			}
			if got := f.view("s"); got != c.view {
				t.Errorf("view is %s, want %s", got, c.view)
			}
		})
	}
}

func TestIneffectiveRunCoolsDown(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	p.TargetTokens, p.MinGainTokens = 500, 400
	f := setupWith(t, database(t), p, Config{})
	f.append("s", "sssssssssau") // 1,100 tokens, of which 200 can go
	late := f.late()
	if row := f.run(f.event()); row.Outcome != OutcomeIneffective {
		t.Fatalf("ended %s, want %s", row.Outcome, OutcomeIneffective)
	}
	session := f.session("s")
	if session.Due || session.DueTokens != 1500 {
		t.Errorf("due %t at %d tokens; want it due when there is the minimum to gain, at 1500", session.Due, session.DueTokens)
	}
	f.append("s", "auaua") // 1,600
	if runs, err := f.store.Scheduler.Relay(t.Context(), 0, 0, 10, 0); err != nil || len(runs) != 0 {
		t.Errorf("the relay queued %v, %v while the session cools down", runs, err)
	}
	if ids := f.sweep(); len(ids) != 0 {
		t.Errorf("a sweep queued %v while the session cools down", ids)
	}
	if row := f.run(late); row.Outcome != OutcomeCooldown {
		t.Errorf("ended %s, want %s", row.Outcome, OutcomeCooldown)
	}
}

// A run that would grow the view is not repeated until there is something to gain, and the
// content is not read in the meantime.
func TestARunThatWouldGrowIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	p.Pipeline, p.Fallback = []policy.Step{{Strategy: "tool_result"}}, false
	f := setupWith(t, database(t), p, Config{})
	f.append("s", "sssssssssss") // over the start, and all of it stays
	var small []store.NewMessage
	for i := range 3 {
		id := fmt.Sprint("call-", i)
		small = append(small,
			store.NewMessage{Counter: "test", Message: chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: id, Type: "function", Name: "look"}}}},
			store.NewMessage{Counter: "test", Message: chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent("ok")}})
	}
	f.write("s", small...)
	// A run that a worker gave back stands beside that of an event.
	nightly := f.late()
	if row := f.run(f.event()); row.Outcome != OutcomeWouldGrow {
		t.Fatalf("ended %s, want %s", row.Outcome, OutcomeWouldGrow)
	}
	session := f.session("s")
	if session.Due || session.DueTokens != 1150 {
		t.Errorf("due %t at %d tokens; want it due when there is the minimum to gain, at 1150", session.Due, session.DueTokens)
	}
	st := &reading{Worker: f.store.Worker}
	f.w = New(st, testPlanner(p), Config{})
	if row := f.run(nightly); row.Outcome != OutcomeUnchanged || st.messages.Load() > 0 {
		t.Errorf("ended %s and read content %d times, want %s and none", row.Outcome, st.messages.Load(), OutcomeUnchanged)
	}
}

func TestUtilizationUsesTheReportedUsage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suauaua") // 700 by our count
	must(f.store.ReportUsage(t.Context(), key("s"), 1100, 0))(t)
	// 400 tokens are not ours: to come to 600 only 200 of ours may stay, and the
	// system prompt, the last user message and the newest group have to.
	if row := f.run(f.event()); row.Outcome != OutcomeAboveTarget {
		t.Errorf("ended %s, want %s", row.Outcome, OutcomeAboveTarget)
	}
	if got := f.view("s"); got != "sua" {
		t.Errorf("view is %s, want sua", got)
	}
}

// An application that replaces the view while runs are planned has them planned again at once. Where it
// never pauses, they end and say why; the session stays due.
func TestARunIsPlannedAgainWhileTheViewIsReplaced(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claimed", "not claimed"} {
		for times, want := range map[int]string{1: OutcomeApplied, maxReplans: OutcomeApplied, maxReplans + 1: OutcomeStale} {
			t.Run(fmt.Sprint(name, times), func(t *testing.T) {
				t.Parallel()
				p := testPolicy()
				if name == "not claimed" {
					p.Pipeline = []policy.Step{{Strategy: "truncation"}}
				}
				f := setupWith(t, database(t), p, Config{})
				f.append("s", "suauctauauauauauaua")
				replaced := 0
				f.w.failpoint = func(step string) {
					if step != stepChecked || replaced >= times {
						return
					}
					replaced++
					f.replace(func(view []store.NewMessage) []store.NewMessage { return view })
				}
				row := f.run(f.event())
				if row.Outcome != want || replaced != times || row.Status == "failed" {
					t.Fatalf("%s, %s (%s) after %d changes, want %s", row.Status, row.Outcome, row.Error, replaced, want)
				}
				if want == OutcomeStale {
					if row.ErrorCode != OutcomeStale || !strings.Contains(row.Error, "replace_view") {
						t.Errorf("code %s, error %s", row.ErrorCode, row.Error)
					}
					if row := f.run(f.event()); row.Outcome != OutcomeApplied {
						t.Errorf("the run after it ended %s, %s", row.Status, row.Outcome)
					}
				}
			})
		}
	}
}
