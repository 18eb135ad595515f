package store

import (
	"encoding/json"
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

// A new message in the place of another one belongs to the group of that one. What is said is as in
// TestTheViewIsValidAfterEveryAppend; then each of edits gives the view back with another message, whose id has a stroke more, in
// the place of one.
func TestEditsKeepTheirPlaceAndTheirGroup(t *testing.T) {
	s := fresh(t)
	tests := map[string]struct {
		said, edits, later string
		view               string
	}{
		"a result":                            {"u cA rA a", "2", "", "0 1 2' 3"},
		"the last result":                     {"u cA rA", "2", "u", "0 1 2' 3"},
		"one of two results":                  {"u cAB rA rB a", "2", "", "0 1 2' 3 4"},
		"both results, one by one":            {"u cAB rA rB a", "3 2 3'", "", "0 1 2' 3'' 4"},
		"a result, twice":                     {"u cAB rA rB", "3 3' 2", "u", "0 1 2' 3'' 4"},
		"a call":                              {"u cA rA a", "1", "", "0 1' 2 3"},
		"a call, twice":                       {"u cA rA a", "1 1'", "", "0 1'' 2 3"},
		"a call and its result":               {"u cA rA a", "1 2", "", "0 1' 2' 3"},
		"a result and its call":               {"u cA rA a", "2 1 2' 0", "", "0' 1' 2'' 3"},
		"a call behind reasoning":             {"u k cA rA a", "2", "", "0 1 2' 3 4"},
		"the first of parallel calls":         {"u|cA|cB|rA|rB|a", "1", "", "0 1'+2 3 4 5"},
		"a result of parallel calls":          {"u|cA|cB|rA|rB|a", "3", "", "0 1+2 3' 4 5"},
		"a call of another turn":              {"u cA rA u cA rA a", "1 5", "", "0 1' 2 3 4 5' 6"},
		"what was said before a call waits":   {"u a u cA", "1 0", "rA", "0' 1' 2 3 4"},
		"a call that waits for a result":      {"u cAB rA", "1", "rB", "0 1' 2 3"},
		"a group before a call that waits":    {"u cA rA u cA", "1 2", "rA", "0 1' 2' 3 4 5"},
		"a result beside one that is to come": {"u cABC rA rB", "2 3", "rC", "0 1 2' 3' 4"},
		"neighbours, one by one":              {"u a u a u", "1 2 1' 3 2' 0", "", "0' 1'' 2'' 3' 4"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := Key{Session: name}
			n := 0
			say := func(line string) {
				for part := range strings.SplitSeq(line, "|") {
					var msgs []NewMessage
					for w := range strings.FieldsSeq(part) {
						id := fmt.Sprint(n)
						n++
						switch w[0] {
						case 'u':
							msgs = append(msgs, user(id, "said"))
						case 'a':
							msgs = append(msgs, assistant(id, "said"))
						case 'k':
							m := text(id, chat.RoleAssistant, "")
							m.Content, m.Reasoning = chat.Content{Null: true}, "hm"
							msgs = append(msgs, m)
						case 'c':
							msgs = append(msgs, call(id, strings.Split(w[1:], "")...))
						case 'r':
							msgs = append(msgs, result(id, w[1:], "found"))
						}
					}
					if len(msgs) > 0 {
						add(t, s, k, msgs...)
					}
				}
			}
			say(tt.said)
			for id := range strings.FieldsSeq(tt.edits) {
				var msgs []NewMessage
				for _, raw := range list[string](t, s, `SELECT jsonb_build_object('id', id) || message::jsonb FROM compactor.view('default', $1, false)`, k.Session) {
					var m NewMessage
					noError(t, json.Unmarshal([]byte(raw), &m.Message))
					if m.ID = one[string](t, s, `SELECT $1::jsonb->>'id'`, raw); m.ID == id {
						m.ID += "'"
						m.Content = chat.TextContent("said otherwise " + m.ID)
					}
					msgs = append(msgs, m)
				}
				must(s.Replace(t.Context(), k, session(t, s, k).Revision, msgs, "test"))(t)
			}
			say(tt.later)
			var view []string
			for _, seqs := range list[[]int64](t, s, `SELECT seqs FROM compactor.merged_view('default', $1)`, k.Session) {
				view = append(view, one[string](t, s, `SELECT string_agg(l.id, '+' ORDER BY u.n) FROM unnest($1::bigint[]) WITH ORDINALITY u(seq, n)
					JOIN compactor.message_log l ON l.seq = u.seq AND l.sid = $2`, seqs, session(t, s, k).SID))
			}
			equal(t, tt.view, strings.Join(view, " "), "view")
			none(t, must(s.Admin.Violations(t.Context(), session(t, s, k).SID))(t), "the view")
		})
	}
	t.Cleanup(func() { wantConsistent(t, s) })
}
