package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestApplicationsGiveNoPositions(t *testing.T) {
	s := fresh(t)
	got := list[string](t, s, `SELECT DISTINCT a FROM pg_proc p, unnest(p.proargnames) a WHERE p.pronamespace = 'compactor'::regnamespace AND p.proname = 'append' ORDER BY 1`)
	equal(t, []string{"p_key", "p_messages", "p_model", "p_session", "p_tenant"}, got, "arguments of append")
}

func TestAKeyMakesABatchWithoutIdsIdempotent(t *testing.T) {
	s, k := freshSession(t)
	batch := func(contents ...string) (msgs []NewMessage) {
		for _, c := range contents {
			msgs = append(msgs, user("", c))
		}
		return msgs
	}
	once := func(key string, msgs []NewMessage) ([]chat.Seq, error) {
		seqs, _, err := s.AppendOnce(context.Background(), k, "", key, msgs)
		return seqs, err
	}
	first := must(once("turn-1", batch("a", "b")))(t)
	second := must(once("turn-2", batch("a")))(t)
	equal(t, [][]chat.Seq{{1, 2}, {3}}, [][]chat.Seq{first, second}, "seqs")
	for range 2 {
		equal(t, first, must(once("turn-1", batch("a", "b")))(t), "the same again")
		equal(t, second, must(once("turn-2", batch("a")))(t), "the same again")
	}
	for name, msgs := range map[string][]NewMessage{
		"another content": batch("a", "c"), "another order": batch("b", "a"), "fewer": batch("a"), "more": batch("a", "b", "c"), "none": nil,
	} {
		if _, err := once("turn-1", msgs); !errors.Is(err, ErrConflict) || !strings.Contains(fmt.Sprint(err), "turn-1") {
			t.Errorf("the key with %s: %v, want a conflict that names the key", name, err)
		}
	}
	// Without a key, and beside ids, nothing changes.
	must(once("", batch("a")))(t)
	mixed := []NewMessage{user("own", "x"), user("", "y")}
	if a, b := must(once("turn-3", mixed))(t), must(once("turn-3", mixed))(t); !cmp.Equal(a, []chat.Seq{5, 6}) || !cmp.Equal(a, b) {
		t.Errorf("beside an id: %v, then %v", a, b)
	}
	// Other sessions have keys of their own.
	other, _ := must2(s.AppendOnce(t.Context(), Key{Session: "t"}, "", "turn-1", batch("z")))(t)
	equal(t, []chat.Seq{1}, other, "another session")
	got := list[string](t, s, `SELECT id FROM compactor.messages WHERE session = 's' AND seq IN (1, 2, 3, 5, 6) ORDER BY seq`)
	equal(t, strings.Fields("turn-1#1 turn-1#2 turn-2#1 own turn-3#2"), got, "ids")
	wantConsistent(t, s)
}

func TestJSONArgumentsMayBeJSONOrJSONBOrText(t *testing.T) {
	s := fresh(t)
	revision := 0
	for _, typ := range []string{"", "::json", "::jsonb", "::text"} {
		raw := `'[{"role":"user","content":"x"}]'` + typ
		exec(t, s, `SELECT compactor.append('t', 's', `+raw+`)`)
		exec(t, s, `SELECT compactor.append('t', 's', `+raw+`, 'gpt-4o')`)
		exec(t, s, `SELECT compactor.append(p_tenant => 't', p_session => 's', p_messages => `+raw+`, p_key => 'key'||`+fmt.Sprint(revision)+`)`)
		exec(t, s, `SELECT compactor.replace_view('t', 's', $1, `+raw+`)`, revision)
		exec(t, s, `SELECT compactor.replace_view('t', 's', $1, `+raw+`, 'me', 3)`, revision+1)
		revision += 2
	}
	// A parameter without a type, as drivers send it.
	for _, raw := range []any{`{"role":"user","content":"x"}`, []byte(`[]`)} {
		exec(t, s, `SELECT compactor.append($1, $2, $3)`, "t", "s", raw)
	}
	if n := len(liveSeqs(t, s, Key{Tenant: "t", Session: "s"})); n == 0 {
		t.Error("an empty view")
	}
	wantConsistent(t, s)
}

func TestTheViewComesWithItsRevisionInOneCall(t *testing.T) {
	s := fresh(t)
	k := Key{Tenant: "t", Session: "s"}
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.view_with_revision('t', 's')`), "rows for a session that does not exist")
	odd := user(`id "quoted" \ ü`, "ü < > \u2028 \"")
	add(t, s, k, append(talk("m", 5), odd)...)
	apply(t, s, k, summarize(span(1, 3), "start"))
	before := liveSeqs(t, s, k)
	// Nothing is changed by giving it back as it is, in any of the types.
	for _, typ := range []string{"json", "jsonb", "text"} {
		exec(t, s, `SELECT compactor.replace_view('t', 's', revision, messages::`+typ+`, 'me', seen) FROM compactor.view_with_revision('t', 's')`)
		equal(t, before, liveSeqs(t, s, k), "%s: view", typ)
	}
	// Without the first, and with one more.
	exec(t, s, `SELECT compactor.replace_view('t', 's', revision, (messages::jsonb - 0) || '{"role": "user", "content": "n"}', 'me', seen)
		FROM compactor.view_with_revision('t', 's')`)
	view, revision := must2(s.View(t.Context(), k))(t)
	if diff := cmp.Diff([]chat.Seq{4, 5, 6, 8}, liveSeqs(t, s, k)); diff != "" || revision != 5 || view[2].ID != odd.ID {
		t.Errorf("revision %d, view (-want +got):\n%s", revision, diff)
	}
	// A null is no revision.
	if _, err := s.pool.Exec(t.Context(), `SELECT compactor.replace_view('t', 's', NULL, '[{"role":"user","content":"x"}]')`); !errors.Is(mapError(err), ErrStale) {
		t.Errorf("replace without a revision: %v, want it refused", err)
	}
	apply(t, s, k, exclude(span(4, 8)))
	if got := one[string](t, s, `SELECT concat_ws(' ', revision, seen, messages) FROM compactor.view_with_revision('t', 's')`); got != "6 8 []" {
		t.Errorf("an empty view is %q", got)
	}
	wantConsistent(t, s)
}
