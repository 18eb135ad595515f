package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// viewTexts returns the view as "kind text".
func viewTexts(t *testing.T, s *Store, k Key) (out []string) {
	t.Helper()
	view, _ := must2(s.View(t.Context(), k))(t)
	for _, m := range view {
		out = append(out, fmt.Sprintf("%s %s %s", m.Kind, m.ID, m.AppendJSON(nil)))
	}
	return out
}

// forkable makes a session with a history of all kinds of runs, and returns the view that it had
// at each of its messages, after the last run that saw nothing behind it.
func forkable(t *testing.T, s *Store, k Key) map[chat.Seq][]string {
	t.Helper()
	views := map[chat.Seq][]string{}
	seen := func() {
		t.Helper()
		views[session1(t, s, k)] = viewTexts(t, s, k)
	}
	say := func(msgs ...NewMessage) {
		t.Helper()
		for _, m := range msgs {
			add(t, s, k, m)
			seen()
		}
	}
	run := func(p chat.Plan) RunID {
		t.Helper()
		id := apply(t, s, k, p)
		seen()
		return id
	}
	say(user("u1", "said first"), call("c1", "a", "b"), result("r1", "a", "said by a"), result("r2", "b", "said by b"),
		assistant("a1", "said then"), user("u2", "said second"), assistant("a2", "said at length"), user("u3", "said third"), assistant("a3", "said again"))
	run(summarize(span(2, 5), "what was said")) // 10
	say(user("u4", "said fourth"), assistant("a4", "answered"))
	both := replacement(chat.Meta{Seq: 6, Position: 6}, "short")
	both.Additions = append(both.Additions, replacement(chat.Meta{Seq: 7, Position: 7}, "shorter").Additions...)
	run(both) // 13 and 14
	say(user("u5", "said fifth"))
	undone := run(exclude(span(1, 1)))
	must(s.Undo(t.Context(), k, undone, false, ""))(t)
	seen()
	say(call("c2", "x", "y"), result("r3", "x", "said by x"), result("r4", "y", "said by y"), assistant("a5", "said so"))
	run(summarize(chat.Ranges{{Lo: 8, Hi: 12}, {Lo: 13, Hi: 14}}, "more was said")) // over the first summary and a replacement
	run(exclude(span(12, 12)))
	say(user("u6", "said last"))
	return views
}

// session1 returns the last source seq of a session.
func session1(t *testing.T, s *Store, k Key) chat.Seq {
	t.Helper()
	return one[chat.Seq](t, s, `SELECT last_source_seq FROM compactor.sessions WHERE tenant = $1 AND id = $2`, k.tenant(), k.Session)
}

func TestAForkHasTheViewOfThatMoment(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1 << 30, 0, false, Counts{}})
	k := Key{Session: "chat"}
	views := forkable(t, s, k)
	noError(t, s.Pin(t.Context(), k, "u5"))
	noError(t, s.SetLabels(t.Context(), k, map[string]string{"agent": "a"}))
	source := viewTexts(t, s, k)
	said := list[string](t, s, `SELECT id || body FROM compactor.message_log JOIN compactor.message_body USING (sid, seq) WHERE kind = 'm' ORDER BY seq`)
	n := 0
	for _, m := range must(s.All(t.Context(), k))(t) {
		if m.Kind != chat.KindSource {
			continue
		}
		fork := Key{Session: "fork at " + m.ID}
		at := m.ID
		if m.Seq%2 == 0 {
			at = fmt.Sprint(m.Seq)
		}
		messages := must(s.Fork(t.Context(), k, fork.Session, at))(t)
		equal(t, views[m.Seq], viewTexts(t, s, fork), "fork at %d, %s", m.Seq, m.ID)
		row := session(t, s, fork)
		log := list[string](t, s, `SELECT id || body FROM compactor.message_log JOIN compactor.message_body USING (sid, seq) WHERE sid = $1 AND kind = 'm' ORDER BY seq`, row.SID)
		if int64(len(log)) != messages || len(said) < len(log) || messages != row.Messages {
			t.Errorf("fork at %d has %d messages in its log, says %d, counts %d", m.Seq, len(log), messages, row.Messages)
		}
		if row.Parent != "chat" || !row.Due || !row.Suspect {
			t.Errorf("%+v", row)
		}
		// It goes on as any session does.
		add(t, s, fork, user("later", "and then"))
		apply(t, s, fork, exclude(span(1, 1)))
		n++
	}
	if n < 15 || session(t, s, k).Children != int64(n) {
		t.Errorf("%d forks, %d children", n, session(t, s, k).Children)
	}
	equal(t, source, viewTexts(t, s, k), "the source has changed")
	last := Key{Session: "the last"}
	must(s.Fork(t.Context(), k, last.Session, ""))(t)
	equal(t, source, viewTexts(t, s, last), "fork of all")
	pins := list[string](t, s, `SELECT m.id FROM compactor.messages m WHERE session = 'the last' AND pinned`)
	equal(t, []string{"u5"}, pins, "pins")
	if got := must(s.Operator.Explain(t.Context(), last))(t).Labels; got["agent"] != "a" {
		t.Errorf("labels %v", got)
	}
	why := func(session string) []string {
		return list[string](t, s, `SELECT format('%s %s %s', id, exclude_reason, summarized_by) FROM compactor.messages WHERE session = $1 AND excluded AND kind = 'source' ORDER BY id`, session)
	}
	for _, x := range why("the last") {
		if strings.Contains(x, "  ") && !strings.HasPrefix(x, "a4 ") {
			t.Errorf("not explained: %q", x)
		}
	}
	// Its runs can be undone, and a fork can be forked.
	must(s.Fork(t.Context(), last, "of a fork", ""))(t)
	equal(t, source, viewTexts(t, s, Key{Session: "of a fork"}), "fork of a fork")
	equal(t, why("the last"), why("of a fork"), "reasons in a fork of a fork")
	must(s.Fork(t.Context(), last, "early", "r2"))(t)
	equal(t, views[4], viewTexts(t, s, Key{Session: "early"}), "early fork of a fork")
	wantConsistent(t, s)
	head := must(s.Operator.Runs(t.Context(), RunFilter{Key: last, Limit: 1}))(t)[0]
	origin := must(s.Run(t.Context(), head.Origin))(t)
	if origin.Session != "chat" || origin.Outcome != head.Outcome || !head.InForce || head.Origin != must(s.Operator.Runs(t.Context(), RunFilter{Key: Key{Session: "of a fork"}, Limit: 1}))(t)[0].Origin {
		t.Errorf("%+v is a copy of %+v", head, origin)
	}
	must(s.Undo(t.Context(), last, head.ID, false, ""))(t)
	must(s.Undo(t.Context(), k, origin.ID, false, ""))(t)
	equal(t, viewTexts(t, s, k), viewTexts(t, s, last), "after the undo, -source +fork")
	for _, x := range must(s.Operator.Outcomes(t.Context(), 0))(t) {
		if x.Outcome == "undone" && x.Runs != 3 {
			t.Errorf("copies count as runs: %+v", x)
		}
	}
	wantConsistent(t, s)
}

func TestAForkIsRefusedWithAReason(t *testing.T) {
	s := fresh(t)
	add(t, s, Key{Session: "a"}, talk("m", 3)...)
	noError(t, s.SetLabels(t.Context(), Key{Session: "empty"}, map[string]string{}))
	for _, tt := range []struct {
		from, to, at string
		kind         error
		says         string
	}{
		{"missing", "x", "", ErrNotFound, "missing"},
		{"a", "x", "m9", ErrNotFound, "m9"},
		{"a", "x", "4", ErrNotFound, "4"},
		{"empty", "x", "", ErrNotFound, "empty"},
		{"a", "", "", ErrInvalid, "empty id"},
		{"a", "empty", "", ErrConflict, "exists already"},
		{"a", "a", "m1", ErrConflict, "exists already"},
	} {
		if _, err := s.Fork(t.Context(), Key{Session: tt.from}, tt.to, tt.at); !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	equal(t, 2, one[int](t, s, `SELECT count(*) FROM compactor.sessions`), "sessions")
}

// A history that the application has compacted is cut at its messages, too.
func TestAForkOfAReplacedView(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, talk("m", 6)...)
	before := viewTexts(t, s, k)
	view, revision := must2(s.View(t.Context(), k))(t)
	must(s.Replace(t.Context(), k, revision, []NewMessage{user("new", "what was said"), {Message: view[4].Message}, {Message: view[5].Message}}, ""))(t)
	replaced := viewTexts(t, s, k)
	add(t, s, k, user("m7", "later"))
	for at, want := range map[string][]string{"m6": before, "new": replaced} {
		must(s.Fork(t.Context(), k, "at "+at, at))(t)
		equal(t, want, viewTexts(t, s, Key{Session: "at " + at}), "at %s", at)
	}
	wantConsistent(t, s)
}

// A run that waits for the fork's view finds the open calls as append would have left them.
func TestAForkWithinAToolLoopWaitsForItsResults(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, user("u", "look"), call("c", "x", "y"), result("r1", "x", "a"), result("r2", "y", "b"), assistant("a", "done"))
	must(s.Fork(t.Context(), k, "fork", "r1"))(t)
	got := one[string](t, s, `SELECT open_calls::text || ' ' || open_answered FROM compactor.sessions WHERE id = 'fork'`)
	if got != "{y} true" {
		t.Errorf("open calls: %s", got)
	}
	add(t, s, Key{Session: "fork"}, result("other", "y", "c"), assistant("a", "done otherwise"))
	if v := must(s.Admin.Violations(t.Context(), session(t, s, Key{Session: "fork"}).SID))(t); len(v) > 0 {
		t.Errorf("%v", v)
	}
	if got := must(s.Scheduler.Relay(t.Context(), 0, 0, 9, time.Minute))(t); len(sessionsOf(t, s, got)) != 1 {
		t.Errorf("relayed %v, want the fork", got)
	}
	wantConsistent(t, s)
}

// A fork holds the signed reasoning that its source held then, in an open tool loop, too.
func TestAForkHoldsSignedReasoningOnlyOnItsPrefix(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, thoughtful("m", 0, 8)...)
	applyBehind(t, s, k, exclude(span(3, 3)), 3, nil)
	add(t, s, k, thoughtful("n", 30, 2)...)
	wantReasoning(t, s, k, "of the source", "m2", "n2")
	add(t, s, k, thoughtful("o", 40, 4)...)
	_, revision := must2(s.View(t.Context(), k))(t)
	applyBehind(t, s, k, exclude(span(13, 13)), 13, nil)
	wantReasoning(t, s, k, "of the source after another run", "m2", "n2", "o2")
	add(t, s, k, user("u", "look"), signed(call("c", "x"), 60))
	must2(s.AppendOn(t.Context(), k, revision, "", []NewMessage{result("r", "x", "y"), signed(assistant("late", "on the view before"), 61)}))(t)
	for at, want := range map[string][]string{
		"m4": {"m2", "m4"}, "m8": {"m2"}, "n2": {"m2", "n2"}, "o1": {"m2", "n2"}, "o4": {"m2", "n2", "o2"}, "c": {"m2", "n2", "o2", "c"},
		"late": reasoning(t, s, k),
	} {
		fork := Key{Session: "at " + at}
		must(s.Fork(t.Context(), k, fork.Session, at))(t)
		wantReasoning(t, s, fork, "of a fork at "+at, want...)
	}
	at := Key{Session: "at c"}
	undo := must(s.Operator.Runs(t.Context(), RunFilter{Key: at, Limit: 1}))(t)[0].ID
	wantError(t, second(s.Undo(t.Context(), at, undo, false, "")), ErrInUse, "undo within an open tool loop")
}

// The archiver or an erasure runs between two steps of a fork.
func TestAForkHasTheWordsOfItsParent(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*Store, context.Context, Key) error{
		"archive": func(s *Store, ctx context.Context, k Key) error {
			_, err := s.Admin.ArchiveSession(ctx, k, month)
			return err
		},
		"erase": func(s *Store, ctx context.Context, k Key) error {
			_, err := s.Admin.Erase(ctx, k, []string{"m2"}, "asked for", "test", false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := freshSession(t)
			old(t, s, k)
			// The fork waits here, after it has read its parent.
			exec(t, s, `CREATE FUNCTION compactor.wait_here() RETURNS trigger LANGUAGE plpgsql AS
				'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END'`)
			exec(t, s, `CREATE TRIGGER wait_here BEFORE INSERT ON compactor.sessions FOR EACH ROW EXECUTE FUNCTION compactor.wait_here()`)
			gate := begin(t, s, `SELECT pg_advisory_xact_lock(4711)`)
			locked := func() int {
				return waiters(t, s)
			}
			forked, done := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := s.Fork(t.Context(), k, "fork", "")
				forked <- err
			}()
			for locked() < 1 && len(forked) == 0 && t.Context().Err() == nil { //nolint:revive // the condition waits
			}
			go func() { done <- meanwhile(s, t.Context(), k) }()
			for locked() < 2 && len(done) == 0 && t.Context().Err() == nil { //nolint:revive // the condition waits
			}
			noError(t, gate.Rollback(t.Context()))
			noError(t, <-forked)
			if err := <-done; err != nil && !errors.Is(err, ErrBusy) { // the archiver leaves out locked sessions
				t.Error(err)
			}
			exec(t, s, `DROP FUNCTION compactor.wait_here() CASCADE`)
			parent, fork := must(s.All(t.Context(), k))(t), must(s.All(t.Context(), Key{Session: "fork"}))(t)
			for i, m := range parent {
				if i >= len(fork) || string(fork[i].AppendJSON(nil)) != string(m.AppendJSON(nil)) {
					t.Errorf("message %d is not in the fork as %s", m.Seq, m.AppendJSON(nil))
				}
			}
			wantConsistent(t, s)
		})
	}
}

// A fork that has begun before an erasure, of a session that the erasure comes to later, is seen by it.
func TestAnErasureReachesAForkThatIsUnderWay(t *testing.T) {
	s, k := freshSession(t)
	old(t, s, k)
	must(s.Fork(t.Context(), k, "child", ""))(t)
	tx := begin(t, s, `SELECT compactor.fork('default', 'child', 'grandchild')`)
	done := make(chan error, 1)
	go func() {
		_, err := s.Admin.Erase(t.Context(), k, []string{"m2"}, "asked for", "test", false)
		done <- err
	}()
	for waiters(t, s) == 0 && len(done) == 0 { //nolint:revive // the condition waits
	}
	noError(t, tx.Commit(t.Context()))
	noError(t, <-done)
	for _, session := range []string{"s", "child", "grandchild"} {
		for _, m := range must(s.All(t.Context(), Key{Session: session}))(t) {
			if m.ID == "m2" && m.Content.String() != "" && m.Content.String() != "[erased]" {
				t.Errorf("%s still has %s", session, m.AppendJSON(nil))
			}
		}
	}
	wantConsistent(t, s)
}
