package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func (w *world) append(msgs []store.NewMessage) {
	w.prefixes.Written(w.view(), texts(msgs))
	_, _, err := w.st.Append(context.Background(), w.k, "", msgs)
	noError(w.t, err)
	w.note(msgs)
}

// event and nightly queue the session's automatic run as the scheduler does, and
// return 0 where there is none.
func (w *world) event() store.RunID {
	runs := must(w.st.Scheduler.Relay(context.Background(), 0, 0, 10_000, time.Minute))(w.t)
	return w.own(runs)
}

// sweepCount numbers the sweeps of this process.
var sweepCount atomic.Int64

func (w *world) nightly() store.RunID {
	ctx := context.Background()
	n := sweepCount.Add(1)
	must(w.st.Scheduler.FireTick(ctx, fmt.Sprint("sweep-", n), time.Unix(n, 0), "test"))(w.t)
	sweeps, err := w.st.Scheduler.OpenSweeps(ctx)
	if err != nil || len(sweeps) == 0 {
		w.t.Fatalf("open sweeps: %v, %v", sweeps, err)
	}
	var all []store.Delivery
	for done := false; !done; {
		var page []store.Delivery
		if page, done, err = w.st.Scheduler.SweepPage(ctx, sweeps[0].ID, 10_000, time.Minute); err != nil {
			w.t.Fatalf("sweep: %v", err)
		}
		all = append(all, page...)
	}
	return w.own(all)
}

// own returns the run of this session among those of all sessions on the database, of
// which every history leaves one behind: it asks for the session's runs once, not for
// every run.
func (w *world) own(all []store.Delivery) store.RunID {
	runs, err := w.st.Operator.Runs(context.Background(), store.RunFilter{Key: w.k, Limit: 10_000})
	noError(w.t, err)
	for _, d := range all {
		if slices.ContainsFunc(runs, func(r store.RunRow) bool { return r.ID == d.Run }) {
			w.runs = append(w.runs, d.Run)
			return d.Run
		}
	}
	return 0
}

func (w *world) row(id store.RunID) store.RunRow {
	r := must(w.st.Run(context.Background(), id))(w.t)
	return r
}

func (w *world) worker(st Store, c Config) *Worker {
	p := w.planner()
	p.Registry.Summarizer = w.summarizer
	return New(st, p, c)
}

func (w *world) planner() *Planner {
	p := testPlanner(w.policy)
	p.BindsReasoning = func(string) bool { return !w.free }
	return p
}

// deliver hands the run to one or two workers at once, and again until it has
// ended. at is called in front of the first step of that name.
func (w *world) deliver(id store.RunID, workers int, step string, at func()) {
	var once sync.Once
	for tries := 0; ; tries++ {
		if tries == 6 {
			w.t.Fatalf("run %d does not end: %+v", id, w.row(id))
		}
		var all sync.WaitGroup
		errs := make([]error, workers)
		for i := range workers {
			worker := w.worker(w.st.Worker, Config{Name: fmt.Sprint("w", i)})
			if at != nil {
				worker.failpoint = func(s string) {
					if s == step {
						once.Do(at)
					}
				}
			}
			all.Go(func() { errs[i] = worker.execute(context.Background(), id) })
		}
		all.Wait()
		noError(w.t, errors.Join(errs...))
		if r := w.row(id); r.Outcome != "" {
			w.mixed = w.mixed && r.Status != "applied" || w.free && r.Status == "applied"
			return
		}
	}
}

// decides reports whether a run that ended so has looked at the view and left it
// as it should be.
func decides(r store.RunRow) bool {
	switch r.Outcome {
	case OutcomeDryRun, OutcomeWaitingAfterUndo, OutcomeOpenToolLoop, "superseded":
		return false
	}
	return r.Status != "failed"
}

// atOnce reports whether a run is a repair that the database made when the view became invalid.
func atOnce(r store.RunRow) bool { return r.Kind == "repair" && r.Trigger == store.TriggerApplication }

// repairsSince counts the repairs that appends have made since a revision.
func (w *world) repairsSince(revision int64) (n int64) {
	runs, err := w.st.Operator.Runs(context.Background(), store.RunFilter{Key: w.k, Limit: 10_000})
	noError(w.t, err)
	for _, r := range runs {
		if atOnce(r) && r.Revision > revision {
			n++
		}
	}
	return n
}

// execute executes a run under random conditions and checks its invariants.
func (w *world) execute(id store.RunID) {
	t, ctx := w.t, context.Background()
	w.summarizer = drawSummarizer(t)
	w.free = rapid.IntRange(0, 9).Draw(t, "free reasoning") == 9
	before := w.look()
	repair, runPolicy := w.repairAdds(id)
	workers := 1
	var step string
	var during []store.NewMessage
	var at func()
	interfered := false // another caller changed the view meanwhile
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	case 0, 1:
		workers = 2
	case 2, 3, 4:
		step = rapid.SampledFrom([]string{stepClaimed, stepPlanned, stepChecked}).Draw(t, "step")
		during = w.draw(3)
		at = func() { w.append(during) }
	case 5:
		step = rapid.SampledFrom([]string{stepClaimed, stepPlanned, stepChecked}).Draw(t, "step")
		if len(w.ids) > 0 {
			pin := rapid.SampledFrom(w.ids).Draw(t, "pin")
			interfered = true
			at = func() {
				noError(t, w.st.Pin(ctx, w.k, pin))
			}
		}
	case 6: // a worker took it and gave it back
		c := must(w.st.Worker.Claim(ctx, id, "gone", time.Minute))(t)
		noError(t, w.st.Worker.Requeue(ctx, id, c.Fence, 0, rapid.Bool().Draw(t, "failed"), "test", ""))
	case 7: // a worker took it and died
		must(w.st.Worker.Claim(ctx, id, "dead", -time.Second))(t)
	}
	w.deliver(id, workers, step, at)
	after, r := w.look(), w.row(id)
	during = slices.DeleteFunc(during, func(m store.NewMessage) bool { return !slices.Contains(w.ids, m.ID) })
	say := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("run %d (%s, %s %s %s): %s\nbefore %s\nafter  %s", id, r.Trigger, r.Status, r.Outcome, r.Error,
			fmt.Sprintf(format, args...), w.describe(before), w.describe(after))
	}
	if r.Status == "failed" {
		say("failed")
	}
	// I6: one effect, and no other than the ledger has.
	effects := int64(0)
	if r.Status == "applied" {
		effects = 1
	}
	repairs := w.repairsSince(before.row.Revision) // of what was appended meanwhile
	if after.row.Revision != before.row.Revision+effects+repairs {
		say("revision %d became %d", before.row.Revision, after.row.Revision)
	}
	// An open tool loop that holds the view may hold what awaits a repair, too.
	decides := decides(r) && (r.Status == "applied" || chat.OpenReasoning(before.view) == 0)
	// I5, unless the view had to be repaired, so that the run has planned again.
	is := after.included()
	for _, m := range during {
		if meta := m.Meta(1); repairs == 0 && !is[m.ID] && (!meta.Signed() || !meta.ReasoningOnly()) {
			say("%s was appended meanwhile and is not in the view", m.ID)
		}
	}
	// I4: protected messages stay, and excluded ones come back.
	// A replacement may have taken the last user message out of the view; a run that
	// reads the log includes it again, so another message is no longer the last of the view.
	user := ""
	if last := lastUser(before); lastUser(after) <= last {
		user = before.at(last)
	}
	was := before.included()
	for _, m := range before.all {
		switch {
		case m.Kind != chat.KindSource || !was[m.ID] || is[m.ID]:
		case m.ID == user:
			say("the last user message %s is gone", m.ID)
		case m.Role == chat.RoleSystem && w.policy.PreserveSystem && !after.stands(m):
			say("system message %s is gone", m.ID)
		case m.Pinned && w.whole(before.all, m):
			say("pinned message %s is gone", m.ID)
		}
	}
	if decides && !w.replaced && !interfered && r.Outcome != OutcomeCooldown {
		w.kept(after, say)
	}
	// I7: only what a repair must add makes a view larger, and nothing else of its run.
	growth := strings.Contains(string(r.Options), "allow_growth")
	broken := before.awaits() || repairs > 0 || w.pinnedOut(before)
	last := chat.Seq(len(before.all))
	was7, is7 := planned(runPolicy, before.view, last), planned(runPolicy, after.view, last)
	if (!broken || len(during) == 0) && !interfered && !growth && is7 > was7+repair {
		say("the view grew from %d to %d tokens, of which a repair adds %d", was7, is7, repair)
	}
	if r.Status != "applied" && len(during) == 0 && !interfered && !before.equal(after) {
		say("it changed the session")
	}
	if r.Outcome == OutcomeApplied && r.Kind == "repair" && !broken {
		say("repaired what was not broken")
	}
	w.ended[id] = r
}

func newWorld(t *rapid.T, st *store.Store, name string) *world {
	p := testPolicy()
	p.EstimateMargin = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "margin")
	p.PreserveSystem = rapid.IntRange(0, 4).Draw(t, "preserve system") > 0
	if rapid.Bool().Draw(t, "no cooldown") {
		p.Cooldown = 0
	}
	if rapid.IntRange(0, 2).Draw(t, "own pipeline") > 0 {
		p.Pipeline, p.Fallback = nil, rapid.Bool().Draw(t, "fallback")
		for range rapid.IntRange(1, 3).Draw(t, "policy steps") {
			s := drawStep(t, 0)
			p.Pipeline = append(p.Pipeline, policy.Step{Strategy: s.Strategy, Params: s.Params})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "pin tools") == 3 {
		p.PinTools = []string{"do_b"}
	}
	if rapid.IntRange(0, 3).Draw(t, "guards") == 3 {
		waits := rapid.SampledFrom([]string{policy.GuardWait, policy.GuardCompact})
		p.Guards.MidTurn, p.Guards.OpenToolCall = waits.Draw(t, "mid turn"), waits.Draw(t, "open tool call")
		p.Guards.MaxPerDay = rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "runs a day")
	}
	if rapid.IntRange(0, 3).Draw(t, "triggers") == 3 {
		p.Triggers = []policy.Trigger{
			{Name: "budget", When: "tokens > 1000 && turn_completed"}, {Name: "talk", When: "messages_since_run >= 6 && tokens > 700"},
		}
	}
	w := &world{
		t: t, st: st, k: store.Key{Tenant: name, Session: "s"}, other: store.Key{Tenant: name + " other", Session: "s"}, policy: p, summarizer: drawSummarizer(t),
		said: map[string]store.NewMessage{}, ended: map[store.RunID]store.RunRow{},
		signs: rapid.Bool().Draw(t, "signed reasoning"), prefixes: sessiontest.Prefixes{},
	}
	_, _, err := st.Append(context.Background(), w.other, "", w.draw(1))
	noError(t, err)
	w.others = w.lookAt(w.other)
	return w
}

// Half of the histories have no replacements: stricter invariants apply to their views.
func TestInvariantsHoldForRandomHistories(t *testing.T) {
	t.Parallel()
	f := setup(t)
	cases := 0
	outcomes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		cases++
		w := newWorld(t, f.store, fmt.Sprint("s", cases))
		w.append(w.draw(8))
		steps := w.steps()
		if rapid.Bool().Draw(t, "no replacements") {
			delete(steps, "replace")
		}
		t.Repeat(steps)
		w.rewind()
		for _, r := range w.ended {
			outcomes[r.Outcome]++
		}
	})
	f.sound()
	t.Logf("%d cases, runs ended %v", cases, outcomes)
}
