package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// The steps of an agent behind what must stay are taken out until that is not worth a run, and
// then the reason is shown.
func TestStepsAboveAFloorEndInACooldown(t *testing.T) {
	t.Parallel()
	f := setupClock(t, func(*policy.Policy) {})
	f.append("s", strings.Repeat("s", 40)+"u")
	f.want("the first run", OutcomeFloorAboveTrigger)
	for i, want := range []string{OutcomeFloorAboveTrigger, OutcomeFloorAboveTrigger, OutcomeIneffective, "", "", "", "", ""} {
		f.append("s", "a")
		f.want(fmt.Sprint("after step ", i+1), want)
	}
	held, err := f.store.Operator.HeldBack(t.Context(), "")
	if err != nil || len(held) == 0 || held[len(held)-1].Reason != OutcomeCooldown {
		t.Errorf("held back: %+v, %v, want a cooldown", held, err)
	}
}

// What makes other compactors run again and again ends in a skip within two runs, after
// which there are no more without news.
func TestWhatLoopsElsewhereEndsInASkip(t *testing.T) {
	t.Parallel()
	only := func(strategy string, params map[string]any) func(p *policy.Policy) {
		return func(p *policy.Policy) {
			p.Pipeline, p.Fallback = []policy.Step{{Strategy: strategy, Params: params}}, false
		}
	}
	tests := map[string]struct {
		change func(p *policy.Policy)
		do     func(f *clocked) // up to the first runs
		want   []string         // how these end, and after each message more
	}{
		"a tail above the start": {
			change: only("keep_last_n_messages", map[string]any{"n": 12}), do: func(f *clocked) { f.append("s", "suauauauauauau") },
			want: []string{OutcomeFloorAboveTrigger, OutcomeIneffective},
		},
		"a floor that cannot be reached": {
			change: func(*policy.Policy) {}, do: func(f *clocked) { f.append("s", "ssssssssssssu") },
			want: []string{OutcomeFloorAboveTrigger},
		},
		"a floor below the start, hardly": {
			change: func(p *policy.Policy) { p.TargetTokens = 400 }, do: func(f *clocked) { f.append("s", "sssssssssuau") },
			want: []string{OutcomeAboveTarget},
		},
		"a summary that is no smaller": {
			change: only("summarize", map[string]any{"threshold": 4, "keep_last_n": 2}),
			do: func(f *clocked) {
				f.w.planner.Registry.Summarizer = plan.Func(func(context.Context, plan.Request) (string, error) {
					return strings.Repeat("long ", 800), nil
				})
				f.append("s", "suauauauauaua")
			},
			want: []string{OutcomeWouldGrow},
		},
		"a report of usage that comes late": {
			change: func(*policy.Policy) {},
			do: func(f *clocked) {
				f.append("s", "suauauauauaua")
				f.want("the run", OutcomeApplied)
				must(f.store.ReportUsage(f.t.Context(), key("s"), 5000, 0))(f.t)
			},
			want: []string{OutcomeUnchanged},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupClock(t, tt.change)
			tt.do(f)
			for i, want := range tt.want {
				if i > 0 {
					f.append("s", "a")
				}
				f.want(fmt.Sprint("after ", i, " messages more"), want)
			}
			f.want("without news", "")
			f.pass(time.Hour)
			f.want("without news, an hour later", "")
		})
	}
}

// Twenty messages a minute for an hour: the policy's limits hold, and each hold is one skip.
func TestAnHourOfAppendsHasAsManyRunsAsThePolicyAllows(t *testing.T) {
	t.Parallel()
	f := setupClock(t, func(p *policy.Policy) { p.Guards.MinInterval, p.Guards.MaxPerHour = 5*time.Minute, 4 })
	f.append("s", "s")
	count := map[string]int{}
	begun, passed := time.Now(), time.Duration(0)
	for i := range 60 {
		f.append("s", strings.Repeat("ua", 10))
		if d := time.Duration(i)*time.Minute - passed - time.Since(begun); d > 0 { // an hour in all, however busy the machine
			f.pass(d)
			passed += d
		}
		f.work()
	}
	for _, outcome := range f.ran {
		count[outcome]++
	}
	if count[OutcomeApplied]+count[OutcomeFloorAboveTrigger] != 4 || count[OutcomeMinInterval] > 4 || count[OutcomeMaxPerHour] != 1 || len(f.ran) > 9 {
		t.Errorf("runs ended as %v", count)
	}
}
