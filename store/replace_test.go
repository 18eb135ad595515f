package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestReplaceKeepsKnownMessagesAndExcludesAbsentOnes(t *testing.T) {
	s, k := freshSession(t)
	m := talk("m", 6)
	add(t, s, k, m...)
	apply(t, s, k, exclude(span(2, 2)))
	// m2 comes back, m3 and m4 go, new ones stand where they stand in the list.
	run := must(s.Replace(t.Context(), k, 1, []NewMessage{user("first", "a"), m[0], user("n1", "x"), user("n2", "y"), m[1], m[4], user("n3", "z"), m[5], user("n4", "end")}, "host"))(t)
	wantView(t, s, k, "first m1 n1 n2 m2 m5 n3 m6 n4")
	equal(t, 2, session(t, s, k).Revision, "revision")
	got := list[string](t, s, `SELECT concat_ws(' ', id, exclude_reason, excluded_by) FROM compactor.messages WHERE excluded ORDER BY seq`)
	equal(t, []string{fmt.Sprint("m3 replaced ", run), fmt.Sprint("m4 replaced ", run)}, got, "excluded")
	row := must(s.Run(t.Context(), run))(t)
	if row.Kind != "replace" || row.Outcome != "replaced" || row.RequestedBy != "host" || row.MessagesBefore != 5 || row.MessagesAfter != 9 {
		t.Errorf("ledger row is %+v", row)
	}
	if !session(t, s, k).Suspect {
		t.Error("an unchecked view, but the session is not suspect")
	}
	wantConsistent(t, s)
	must(s.Undo(t.Context(), k, run, false, ""))(t)
	// The messages of the list are source messages; they keep their positions.
	wantView(t, s, k, "first m1 n1 n2 m3 m4 m5 n3 m6 n4")
	wantConsistent(t, s)
}

func TestReplaceWithTheSameViewChangesNothingInIt(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, user("a", "x"), call("b", "c"), result("c", "c", "y"), assistant("d", "z"))
	apply(t, s, k, summarize(span(2, 3), "looked"))
	// The time and source of a replacement are not part of its body.
	plan := replacement(chat.Meta{Seq: 4, Position: 4}, "short")
	plan.Additions[0].Message.CreatedAt = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	plan.Additions[0].Message.SourceID = "memory"
	apply(t, s, k, plan)
	must(appendSQL(s, k, `{"id":"e","role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"},"id":"c9"}]}`))(t)
	view, revision := must2(s.View(t.Context(), k))(t)
	before := liveSeqs(t, s, k)
	msgs := given(view)
	must(s.Replace(t.Context(), k, revision, msgs, ""))(t)
	equal(t, before, liveSeqs(t, s, k), "view")
	wantConsistent(t, s)
}

func TestReplaceRefusesAStaleRevisionAndNamesBoth(t *testing.T) {
	s, k := freshTalk(t, 4)
	apply(t, s, k, exclude(span(1, 1)))
	apply(t, s, k, exclude(span(2, 2)))
	_, err := s.Replace(t.Context(), k, 1, talk("m", 4), "")
	if !errors.Is(err, ErrStale) || !strings.Contains(fmt.Sprint(err), "revision 2, not 1") {
		t.Errorf("stale revision: %v, want stale, naming 2 and 1", err)
	}
	for name, c := range map[string]struct {
		k    Key
		msgs []NewMessage
		want error
	}{
		"unknown session":   {Key{Session: "no"}, talk("m", 1), ErrNotFound},
		"an edited one":     {k, []NewMessage{user("m1", "edited"), user("new", "x")}, ErrConflict},
		"no message":        {k, []NewMessage{user("m1", talk("m", 1)[0].Content.Text), text("", "", "x")}, ErrInvalid},
		"one id, two texts": {k, []NewMessage{user("n", "x"), user("n", "y")}, ErrConflict},
	} {
		wantError(t, second(s.Replace(t.Context(), c.k, 2, c.msgs, "")), c.want, "%s", name)
	}
	equal(t, []chat.Seq{3, 4}, liveSeqs(t, s, k), "a refused replace changed the view")
	wantConsistent(t, s)
}

// A message after another one stays after the replacement of that one, in the view and in
// the metadata that runs plan on.
func TestReplacedMessagesKeepTheirPlaceAmongAdditions(t *testing.T) {
	s, k := freshSession(t)
	m := talk("m", 4)
	add(t, s, k, m...)
	apply(t, s, k, summarize(span(3, 3), "third")) // 5, in front of 3
	view, revision := must2(s.View(t.Context(), k))(t)
	msgs := []NewMessage{m[0], m[1], user("n", "x"), {Message: view[2].Message}, m[3]}
	must(s.Replace(t.Context(), k, revision, msgs, ""))(t)
	apply(t, s, k, replacement(chat.Meta{Seq: 2, Position: 2}, "short")) // 7
	view, _ = must2(s.View(t.Context(), k))(t)
	var given, planned []chat.Seq
	for _, m := range view {
		given = append(given, m.Seq)
	}
	for _, m := range must(s.Operator.ViewMetas(t.Context(), session(t, s, k).SID))(t) {
		planned = append(planned, m.Seq)
	}
	want := []chat.Seq{1, 7, 6, 5, 4}
	equal(t, [][]chat.Seq{want, want}, [][]chat.Seq{given, planned}, "view as given and as planned on")
	wantConsistent(t, s)
}

func TestReplaceKeepsMessagesAppendedSinceTheRead(t *testing.T) {
	s, k := freshSession(t)
	m := talk("m", 4)
	add(t, s, k, m...)
	add(t, s, k, user("late", "came while the caller was compacting"))
	must(s.ReplaceSeen(t.Context(), k, 0, 4, []NewMessage{m[3]}, "host"))(t)
	equal(t, []chat.Seq{4, 5}, liveSeqs(t, s, k), "view")
	// A message that is named twice is in the view once.
	must(s.Replace(t.Context(), k, 1, []NewMessage{m[3], user("n", "x"), m[3], user("n", "x")}, ""))(t)
	equal(t, []chat.Seq{4, 6}, liveSeqs(t, s, k), "view")
	wantConsistent(t, s)
}

func TestReplacePutsNothingIntoAToolGroup(t *testing.T) {
	s := fresh(t)
	thought := NewMessage{Message: chat.Message{ID: "t", Role: chat.RoleAssistant, Reasoning: "hm"}}
	said := []NewMessage{user("a", "x"), thought, call("b", "c"), result("c", "c", "y"), assistant("d", "z")}
	for _, behind := range []int{2, 3} { // the reasoning, the call
		k := Key{Session: fmt.Sprint("s", behind)}
		add(t, s, k, said...)
		must(s.Replace(t.Context(), k, 0, slices.Insert(slices.Clone(said), behind, user("new", "n")), ""))(t)
		wantView(t, s, k, "a new t b c d")
	}
	wantConsistent(t, s)
}

func TestAResultIsNotPairedWithTheCallOfAnother(t *testing.T) {
	s, k := freshSession(t)
	m := []NewMessage{user("u", "x"), call("c1", "A"), result("r1", "A", "1"), call("c2", "B"), result("r2", "B", "2"), assistant("e", "z")}
	add(t, s, k, m...)
	must(s.Replace(t.Context(), k, 0, []NewMessage{m[0], m[1], m[4], m[5]}, ""))(t)
	equal(t, "u e", viewIDs(t, s, k), "view")
	wantConsistent(t, s)
}

// A call that is put in front of one with the same id, which had been of a batch, does not take its result.
func TestAReplacementPutsACallBeforeAnotherWithItsID(t *testing.T) {
	s, k := freshSession(t)
	known := []NewMessage{user("u", "x"), call("b", "c"), call("d", "a"), result("r", "a", "found"), user("v", "y")}
	for _, m := range known {
		add(t, s, k, m)
	}
	wantView(t, s, k, "u d r v")
	must(s.Replace(t.Context(), k, session(t, s, k).Revision, []NewMessage{known[0], call("n", "a"), known[2], known[3], known[4]}, ""))(t)
	none(t, chat.Check(must(s.Operator.ViewMetas(t.Context(), session(t, s, k).SID))(t)), "the view")
	wantView(t, s, k, "u d r v")
	wantConsistent(t, s)
}
