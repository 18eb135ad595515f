package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

// viewIDs returns the ids of a view, which must be valid.
func viewIDs(t *testing.T, s *Store, k Key) string {
	t.Helper()
	var ids []string
	var msgs []chat.Message
	view, _ := must2(s.View(t.Context(), k))(t)
	for _, m := range view {
		ids, msgs = append(ids, m.ID), append(msgs, m.Message)
	}
	none(t, chat.Check(chat.Describe(msgs)), "view %v", ids)
	return strings.Join(ids, " ")
}

func wantView(t *testing.T, s *Store, k Key, want string) {
	t.Helper()
	equal(t, want, viewIDs(t, s, k), "view")
}

func TestAClearedSessionIsAnEmptyView(t *testing.T) {
	s, k := freshSession(t)
	m := []NewMessage{text("p", chat.RoleSystem, "x"), user("a", "x"), call("b", "c"), result("d", "c", "y"), assistant("e", "z")}
	add(t, s, k, m...)
	noError(t, s.Pin(t.Context(), k, "a"))
	run := must(s.Replace(t.Context(), k, 0, nil, "app"))(t)
	for of, want := range map[Key]int64{k: 1, {Session: "unknown"}: 0} {
		view, revision := must2(s.View(t.Context(), of))(t)
		if len(view) != 0 || revision != want {
			t.Errorf("view of %s: %d messages at revision %d, want none at %d", of, len(view), revision, want)
		}
	}
	got := list[string](t, s, `SELECT DISTINCT concat_ws(' ', exclude_reason, excluded_by, pinned) FROM compactor.messages`)
	equal(t, []string{fmt.Sprint("deleted_by_application ", run, " f")}, got, "excluded")
	wantConsistent(t, s)
	add(t, s, k, user("f", "anew"))
	wantView(t, s, k, "f")
	wantConsistent(t, s)
	must(s.Undo(t.Context(), k, run, false, ""))(t)
	wantView(t, s, k, "p a b d e f")
	wantConsistent(t, s)
	// As a store that is cleared and filled again has it.
	must(s.Replace(t.Context(), k, 2, nil, "app"))(t)
	add(t, s, k, append(m[1:], user("g", "new"))...)
	wantView(t, s, k, "a b d e g")
	wantConsistent(t, s)
}

func TestADeletedMessageLeavesWithItsGroupAndComesBack(t *testing.T) {
	s, k := freshSession(t)
	thought := assistant("t", "")
	thought.Reasoning = "hm"
	m := []NewMessage{user("a", "x"), thought, call("b", "c", "d"), result("r1", "c", "y"), result("r2", "d", "y"), assistant("e", "z"), user("f", "last")}
	add(t, s, k, m...)
	run := must(s.Exclude(t.Context(), k, []string{"r2", "f"}, "app"))(t)
	wantView(t, s, k, "a e")
	row := must(s.Run(t.Context(), run))(t)
	if row.Kind != "replace" || row.RequestedBy != "app" || row.MessagesBefore != 7 || row.MessagesAfter != 2 {
		t.Errorf("ledger row is %+v", row)
	}
	wantConsistent(t, s)
	equal(t, 0, must(s.Exclude(t.Context(), k, []string{"r1", "f"}, "app"))(t), "deleted again by run")
	if _, err := s.Exclude(t.Context(), k, []string{"a", "no", "nor"}, ""); !errors.Is(err, ErrNotFound) || !strings.Contains(fmt.Sprint(err), "no, nor") {
		t.Errorf("unknown ids: %v", err)
	}
	var log []chat.Seq
	for _, m := range must(s.Worker.Log(t.Context(), session(t, s, k).SID, 7))(t) {
		log = append(log, m.Seq)
	}
	equal(t, []chat.Seq{1, 6}, log, "a run from the log sees")
	// An import is no word of the application.
	must2(s.Import(t.Context(), k, "", m))(t)
	wantView(t, s, k, "a e")
	add(t, s, k, m[3], user("g", "new"))
	wantView(t, s, k, "a t b r1 r2 e g")
	wantConsistent(t, s)
	wantError(t, mapError(second(appendSQL(s, k, `{"id":"f","role":"user","content":"edited"}`))), ErrConflict, "with other content")
	wantView(t, s, k, "a t b r1 r2 e g")
	add(t, s, k, m[6])
	wantView(t, s, k, "a t b r1 r2 e f g")
	wantConsistent(t, s)
}

func TestWhatARunTookOutStaysOutWhenItIsAppendedAgain(t *testing.T) {
	s, k := freshSession(t)
	m := talk("m", 6)
	add(t, s, k, m...)
	apply(t, s, k, exclude(span(1, 2)))
	add(t, s, k, m...)
	wantView(t, s, k, "m3 m4 m5 m6")
	// So do messages that a replacement took out: a late repetition of an append undoes no compaction.
	must(s.Replace(t.Context(), k, 1, []NewMessage{user("n", "short"), m[4], m[5]}, ""))(t)
	wantView(t, s, k, "n m5 m6")
	add(t, s, k, m...)
	wantView(t, s, k, "n m5 m6")
	wantConsistent(t, s)
}

func TestAReplacementLeavesWithTheMessageItIsFor(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, user("a", "x"), call("b", "c"), result("d", "c", "long"), user("e", "z"))
	metas := must(s.Operator.ViewMetas(t.Context(), session(t, s, k).SID))(t)
	apply(t, s, k, replacement(metas[0], "short"))
	must(s.Exclude(t.Context(), k, []string{"a"}, ""))(t)
	wantView(t, s, k, "b d e")
	wantConsistent(t, s)
}

func TestGroupsAreThoseOfGo(t *testing.T) {
	s := fresh(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		k := Key{Session: fmt.Sprint(n)}
		drawn := rapid.SliceOfN(rapid.Custom(drawMessage), 1, 12).Draw(t, "messages")
		seqs := add(t, s, k, drawn...)
		sid := one[int64](t, s, `SELECT sid FROM compactor.sessions WHERE id = $1`, k.Session)
		msgs := make([]chat.Message, len(drawn))
		for i, m := range drawn {
			msgs[i] = m.Message
		}
		metas := chat.Describe(msgs) // of the log: a repair may have taken calls out of the view
		of := rapid.SampledFrom(seqs).Draw(t, "seq")
		var got, want chat.Ranges
		if err := s.pool.QueryRow(t.Context(), s.q(`SELECT compactor.groups_of($1, '{[1,)}', int8multirange(int8range($2, $3)))::text`), sid, of, of+1).Scan(rangesText{&got}); err != nil {
			t.Fatal(err)
		}
		for _, g := range chat.Groups(metas) {
			if metas[g.Start].Seq <= of && of <= metas[g.End-1].Seq {
				want = span(metas[g.Start].Seq, metas[g.End-1].Seq)
			}
		}
		// Reasoning that no call follows is a group for each message in Go.
		if diff := cmp.Diff(want, got.Intersect(want)); diff != "" || len(got) != 1 {
			t.Fatalf("group of %d (-Go +SQL):\n%s", of, diff)
		}
	})
}

// Nothing before an open tool loop changes; the append is taken all the same, and the next one brings the message back.
func TestADeletedMessageWaitsForTheEndOfAnOpenLoop(t *testing.T) {
	s, k := freshSession(t)
	open := call("c", "x")
	open.Extra = map[string]json.RawMessage{"thinking_blocks": json.RawMessage(`[{"type":"thinking","thinking":"hm","signature":"c2ln"}]`)}
	add(t, s, k, user("d", "deleted"), user("u", "go"))
	must(s.Exclude(t.Context(), k, []string{"d"}, ""))(t)
	add(t, s, k, open)
	add(t, s, k, user("d", "deleted"), result("r", "x", "y"))
	wantView(t, s, k, "u c r")
	add(t, s, k, assistant("e", "done"))
	add(t, s, k, user("d", "deleted"))
	wantView(t, s, k, "d u c r e")
	wantConsistent(t, s)
}

// An undo with the later runs keeps in force what the application has deleted in them; the undo of a deletion takes it back.
func TestAnUndoBringsBackNothingThatWasDeletedSince(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, talk("m", 6)...)
	summary := apply(t, s, k, summarize(span(1, 4), "what was said"))
	deletion := must(s.Exclude(t.Context(), k, []string{"m3"}, "app"))(t)
	last := must(s.Exclude(t.Context(), k, []string{"m6"}, "app"))(t)
	undo := must(s.Undo(t.Context(), k, summary, true, "op"))(t)
	wantView(t, s, k, "m1 m2 m4 m5")
	equal(t, []string{fmt.Sprint("m3 deleted_by_application ", undo), fmt.Sprint("m6 deleted_by_application ", undo)},
		list[string](t, s, `SELECT concat_ws(' ', id, exclude_reason, excluded_by) FROM compactor.messages WHERE excluded AND kind = 'source' ORDER BY seq`), "out")
	wantConsistent(t, s)
	must(s.Undo(t.Context(), k, undo, false, "op"))(t)
	wantConsistent(t, s)
	must(s.Undo(t.Context(), k, last, false, "op"))(t)
	must(s.Undo(t.Context(), k, deletion, false, "op"))(t)
	must(s.Undo(t.Context(), k, summary, false, "op"))(t)
	wantView(t, s, k, "m1 m2 m3 m4 m5 m6")
	// One that was deleted and is appended again is there after an undo, too.
	deletion = must(s.Exclude(t.Context(), k, []string{"m2"}, "app"))(t)
	must(s.Exclude(t.Context(), k, []string{"m5"}, "app"))(t)
	add(t, s, k, talk("m", 6)[4])
	must(s.Undo(t.Context(), k, deletion, true, "op"))(t)
	wantView(t, s, k, "m1 m2 m3 m4 m5 m6")
	wantConsistent(t, s)
}
