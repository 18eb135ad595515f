package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// options draws the options of an operator.
func (w *world) options() store.Options {
	t := w.t
	o := store.Options{
		From:        rapid.SampledFrom([]string{"view", "log", ""}).Draw(t, "from"),
		DryRun:      rapid.IntRange(0, 5).Draw(t, "dry run") == 5,
		AllowGrowth: rapid.IntRange(0, 3).Draw(t, "allow growth") == 3,
	}
	for range rapid.IntRange(0, 2).Draw(t, "steps") {
		o.Pipeline = append(o.Pipeline, drawStep(t, 0))
	}
	return o
}

// steps holds the events of a session.
func (w *world) steps() map[string]func(*rapid.T) {
	ctx := context.Background()
	return map[string]func(*rapid.T){
		"append":      func(*rapid.T) { w.append(w.draw(4)) },
		"append more": func(*rapid.T) { w.append(w.draw(8)) },
		"append again": func(t *rapid.T) {
			if len(w.ids) == 0 {
				t.Skip("nothing was said")
			}
			before := w.look()
			m := w.said[rapid.SampledFrom(w.ids).Draw(t, "message")]
			_, _, err := w.st.Append(ctx, w.k, "", []store.NewMessage{m})
			noError(t, err)
			m.Content = chat.TextContent("something else")
			if _, _, err := w.st.Append(ctx, w.k, "", []store.NewMessage{m}); !errors.Is(err, store.ErrConflict) {
				t.Fatalf("append of other content: %v, want a conflict", err)
			}
			if !before.equal(w.look()) {
				t.Fatalf("it changed the session")
			}
		},
		"event": func(t *rapid.T) {
			id := w.event()
			if id == 0 {
				t.Skip("not due")
			}
			w.execute(id)
		},
		"nightly": func(t *rapid.T) {
			id := w.nightly()
			if id == 0 {
				t.Skip("not due")
			}
			w.execute(id)
		},
		"nightly after an event": w.nothingNew,
		"operator": func(*rapid.T) {
			id := must(w.st.Request(ctx, w.k, store.TriggerOperator, "test", w.options()))(w.t)
			w.runs = append(w.runs, id)
			w.execute(id)
		},
		"any request": w.anyRequest,
		"set model": func(t *rapid.T) {
			noError(t, w.st.SetModel(ctx, w.k, drawModel(t)))
		},
		"another tenant": w.anotherTenant,
		"late delivery": func(t *rapid.T) {
			if len(w.runs) == 0 {
				t.Skip("no run yet")
			}
			before := w.look()
			id := rapid.SampledFrom(w.runs).Draw(t, "run")
			if w.row(id).Outcome == "" {
				t.Fatalf("run %d was left behind", id)
			}
			if err := w.worker(w.st.Worker, Config{}).execute(ctx, id); err != nil {
				t.Fatalf("late delivery of run %d: %v", id, err)
			}
			if !before.equal(w.look()) {
				t.Fatalf("the late delivery of run %d changed the session", id)
			}
		},
		"pin": func(t *rapid.T) {
			noError(t, w.st.Pin(ctx, w.k, rapid.SampledFrom(w.ids).Draw(t, "message")))
		},
		"unpin": func(t *rapid.T) {
			var pinned []string
			for _, m := range w.look().all {
				if m.Pinned {
					pinned = append(pinned, m.ID)
				}
			}
			if len(pinned) == 0 {
				t.Skip("nothing is pinned")
			}
			noError(t, w.st.Unpin(ctx, w.k, rapid.SampledFrom(pinned).Draw(t, "message")))
		},
		"report usage": func(t *rapid.T) {
			n := chat.Tokens(rapid.IntRange(0, 3000).Draw(t, "prompt tokens"))
			must(w.st.ReportUsage(ctx, w.k, n, chat.Seq(rapid.IntRange(0, len(w.ids)).Draw(t, "seq"))))(t)
		},
		"undo":    w.undo,
		"replace": w.replace,
		"":        func(*rapid.T) { w.check() },
	}
}

// anyRequest asks for a run with options that need not make sense. It is refused, or ends.
func (w *world) anyRequest(t *rapid.T) {
	before, o := w.look(), w.options()
	o.Pipeline = append(o.Pipeline, drawAnyStep(t))
	id, err := w.st.Request(context.Background(), w.k, rapid.SampledFrom([]string{store.TriggerOperator, store.TriggerApplication}).Draw(t, "trigger"), "test", o)
	if errors.Is(err, store.ErrInvalid) {
		return
	}
	noError(t, err)
	w.runs = append(w.runs, id)
	w.summarizer = drawSummarizer(t)
	w.deliver(id, 1, "", nil)
	r := w.row(id)
	w.ended[id] = r
	if r.Status == "failed" && (r.Outcome != "invalid_options" || !before.equal(w.look())) {
		t.Fatalf("run %d with options %s failed: %s %s", id, r.Options, r.Outcome, r.Error)
	}
}

// anotherTenant writes to the other tenant's session of the same name, with the ids of this
// one, and tries to reach a run of this one from there.
func (w *world) anotherTenant(t *rapid.T) {
	ctx := context.Background()
	m := w.draw(1)[0]
	if len(w.ids) > 0 {
		m.ID = rapid.SampledFrom(w.ids).Draw(t, "message")
	}
	if _, _, err := w.st.Append(ctx, w.other, "", []store.NewMessage{m}); err != nil && !errors.Is(err, store.ErrConflict) {
		t.Fatalf("append: %v", err)
	}
	if len(w.runs) > 0 {
		run := rapid.SampledFrom(w.runs).Draw(t, "run")
		if _, err := w.st.Undo(ctx, w.other, run, true, "test"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("undo of another tenant's run: %v, want not found", err)
		}
	}
	w.others = w.lookAt(w.other)
}

// nothingNew has two automatic runs queued at once: where the first has decided,
// the second has nothing to do (I8).
func (w *world) nothingNew(t *rapid.T) {
	first, second := w.event(), w.nightly()
	switch {
	case first == 0 && second == 0:
		t.Skip("not due")
	case first == 0 || second == 0:
		w.execute(max(first, second))
		return
	}
	w.summarizer = drawSummarizer(t)
	w.deliver(first, 1, "", nil)
	r, before := w.row(first), w.look()
	w.ended[first] = r
	st := &reading{Worker: w.st.Worker}
	if err := w.worker(st, Config{}).execute(context.Background(), second); err != nil {
		t.Fatalf("run %d: %v", second, err)
	}
	again, after := w.row(second), w.look()
	w.ended[second] = again
	if r.Outcome == OutcomeNoSummary && w.policy.Cooldown == 0 {
		return // that was a failure, and this policy does not wait after one
	}
	if again.Status != "skipped" || !before.equal(after) || st.messages.Load() > 0 || st.logs.Load() > 0 {
		t.Fatalf("after run %d ended %s, run %d found nothing new and ended %s, %s; it read content %d times and the log %d times\nbefore %s\nafter  %s",
			first, r.Outcome, second, again.Status, again.Outcome, st.messages.Load(), st.logs.Load(), w.describe(before), w.describe(after))
	}
}

func (w *world) undo(t *rapid.T) {
	if len(w.runs) == 0 {
		t.Skip("no run yet")
	}
	before := w.look()
	id := rapid.SampledFrom(w.runs).Draw(t, "run")
	r := w.row(id)
	undo, err := w.st.Undo(context.Background(), w.k, id, rapid.Bool().Draw(t, "cascade"), "test")
	switch {
	case err == nil:
		w.runs = append(w.runs, undo)
		w.ended[undo] = w.row(undo)
		if !r.InForce {
			t.Fatalf("run %d was not in force and has been undone", id)
		}
	case !errors.Is(err, store.ErrInUse) && !errors.Is(err, store.ErrNotApplicable):
		t.Fatalf("undo: %v", err)
	case !before.equal(w.look()):
		t.Fatalf("an undo that was refused changed the session: %v", err)
	}
}

func (w *world) replace(t *rapid.T) {
	ctx := context.Background()
	view, revision, err := w.st.View(ctx, w.k)
	noError(t, err)
	var msgs []store.NewMessage
	for _, m := range view {
		if rapid.IntRange(0, 3).Draw(t, "keep") > 0 {
			msgs = append(msgs, store.NewMessage{Message: m.Message})
		}
	}
	fresh := w.draw(1)[:1]
	at := rapid.IntRange(0, len(msgs)).Draw(t, "at")
	if at < len(msgs) && msgs[at].Reasoning == "" && !w.signs && rapid.Bool().Draw(t, "edit") {
		id := fresh[0].ID
		fresh[0] = msgs[at]
		fresh[0].ID, fresh[0].Content = id, chat.TextContent("said otherwise")
		msgs = slices.Delete(msgs, at, at+1)
	}
	before := w.look()
	if _, err := w.st.Replace(ctx, w.k, revision+1, fresh, "test"); !errors.Is(err, store.ErrStale) {
		t.Fatalf("replace of another view: %v, want stale", err)
	}
	if !before.equal(w.look()) {
		t.Fatalf("a replace that was refused changed the session")
	}
	// What precedes it, as it is stored: a view gives calls that repeat ids others, and batches as one.
	kept, keep := map[string]bool{}, false
	for _, m := range view {
		kept[m.ID] = slices.ContainsFunc(msgs[:at], func(o store.NewMessage) bool { return o.ID == m.ID })
	}
	w.prefixes.Written(slices.DeleteFunc(w.view(), func(m chat.Message) bool {
		if k, ok := kept[m.ID]; ok {
			keep = k
		}
		return !keep
	}), texts(fresh))
	run, err := w.st.Replace(ctx, w.k, revision, slices.Insert(msgs, at, fresh...), "test")
	if errors.Is(err, store.ErrInUse) && w.signs {
		if !before.equal(w.look()) {
			t.Fatalf("a replace that was refused changed the session")
		}
		t.Skip("a tool loop is open")
	}
	noError(t, err)
	w.note(fresh)
	w.replaced = true
	w.runs = append(w.runs, run)
	w.ended[run] = w.row(run)
}

// rewind undoes everything: the view is all that was said again (I1), but for what no
// provider takes, which leaves it at once.
func (w *world) rewind() {
	t, ctx := w.t, context.Background()
	if w.signs { // no tool loop is open
		w.append([]store.NewMessage{{Message: chat.Message{ID: fmt.Sprintf("said-%d", len(w.ids)), Role: chat.RoleUser, Content: chat.TextContent("stop")}}})
	}
	for {
		runs, err := w.st.Operator.Runs(ctx, store.RunFilter{Key: w.k, Status: "applied", Limit: 10_000})
		noError(t, err)
		runs = slices.DeleteFunc(runs, func(r store.RunRow) bool { return !r.InForce || r.Kind == "undo" || atOnce(r) })
		if len(runs) == 0 {
			break
		}
		must(w.st.Undo(ctx, w.k, runs[len(runs)-1].ID, true, "test"))(t)
	}
	s := w.look()
	for _, m := range s.all {
		if !hidden(m) && !s.repaired(m.ID) && (m.Included != (m.Kind == chat.KindSource) || m.ExcludedBy != 0) {
			t.Fatalf("back at the first view %s is included: %t, out by %d\n%s", m.ID, m.Included, m.ExcludedBy, w.describe(s))
		}
	}
	w.check()
}
