package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

// hide takes messages 1 to n out of the view and archives them.
func hide(t *testing.T, s *Store, k Key, n chat.Seq) {
	t.Helper()
	apply(t, s, k, exclude(span(1, n)))
	longAgo(t, s)
	exec(t, s, `UPDATE compactor.sessions SET restored_at = NULL`)
	if moved := must(s.Admin.ArchiveSession(t.Context(), k, time.Minute))(t); moved.Messages == 0 {
		t.Fatal("nothing was archived")
	}
}

// secrets is n messages with a text each of its own.
func secrets(prefix string, n int) []NewMessage {
	out := talk(prefix, n)
	for i := range out {
		out[i].Content = chat.TextContent(fmt.Sprintf("Q%s%dX and so on", prefix, i+1))
		out[i].SourceID = fmt.Sprintf("Q%s%dX", prefix, i+1)
	}
	return out
}

// eraseTenant erases all of a tenant.
func eraseTenant(t fataler, s *Store, tenant string) Erasure {
	ctx := context.Background()
	e := must(s.Admin.RequestErasure(ctx, tenant, "request 8", "by"))(t)
	must(s.Admin.ConfirmErasure(ctx, e.ID, tenant, "by"))(t)
	for e.EndedAt.IsZero() {
		e = must(s.Admin.NextErasure(ctx, e.ID, tenant))(t)
	}
	return e
}

// Words that are recorded as erased may be in a segment that came back from a backup.
func TestAnErasureThatLeftWordsInTheArchiveIsFoundAndRepeated(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, secrets("m", 10)...)
	hide(t, s, k, 8)
	sid := session(t, s, k).SID
	segment := one[string](t, s, `SELECT to_jsonb(a)::text FROM compactor.archive_segments a`)
	must(s.Admin.Erase(t.Context(), k, []string{"m1", "m2", "m3", "m4"}, "why", "by", false))(t)
	exec(t, s, `INSERT INTO compactor.archive_segments OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(NULL::compactor.archive_segments, $1::jsonb || '{"held": "{[1,)}"}')).*`, segment)
	byHand(t, s, sid, `DELETE FROM archive_segments WHERE created_at > now() - interval '1 hour' AND id <> (SELECT min(id) FROM archive_segments)`)
	a := must(s.Admin.AuditSession(t.Context(), k))(t)
	if len(a.Findings) != 1 || !strings.Contains(a.Findings[0].String(), "erased is the words of messages {[1,5)}") {
		t.Errorf("audit: %v", a.Findings)
	}
	if got := must(s.Admin.Restore(t.Context(), k))(t); got.Messages != 4 {
		t.Errorf("restored %+v, want the 4 that are not erased", got)
	}
	if e := must(s.Admin.Erase(t.Context(), k, []string{"m1"}, "again", "by", false))(t); e.EndedAt.IsZero() {
		t.Errorf("%+v", e)
	}
	for i := range 4 {
		wantNowhere(t, s, fmt.Sprintf("Qm%dX", i+1))
	}
	wantConsistent(t, s)

	// So is a message that is recorded as erased and is not.
	byHand(t, s, sid, `UPDATE sessions SET erased = erased + '{[7,8)}'`)
	if a := must(s.Admin.AuditSession(t.Context(), k))(t); len(a.Findings) != 1 || a.Findings[0].Field != "erased" || a.Findings[0].Row != "message 7" {
		t.Errorf("audit: %v", a.Findings)
	}
	if e := must(s.Admin.Erase(t.Context(), k, []string{"m7"}, "again", "by", false))(t); e.Messages != 1 {
		t.Errorf("%+v", e)
	}
	wantNowhere(t, s, "Qm7X")
	wantConsistent(t, s)
}

func TestAnErasedParentLeavesItsForkItsOwnWords(t *testing.T) {
	s := fresh(t)
	k, fork := Key{Session: "parent"}, Key{Session: "fork"}
	add(t, s, k, secrets("m", 6)...)
	noError(t, s.SetLabels(t.Context(), k, map[string]string{"who": "Qm1X"}))
	must(s.Fork(t.Context(), k, fork.Session, ""))(t)
	noError(t, s.SetLabels(t.Context(), fork, map[string]string{"agent": "a", "who": "Qm1X"}))
	add(t, s, fork, secrets("f", 6)...)
	hide(t, s, fork, 10)
	e := must(s.Admin.Erase(t.Context(), k, nil, "why", "by", false))(t)
	if e.Messages != 12 || e.Sessions != 2 || e.EndedAt.IsZero() {
		t.Errorf("%+v", e)
	}
	for i := range 6 {
		wantNowhere(t, s, fmt.Sprintf("Qm%dX", i+1))
	}
	equal(t, "{[7,11)}{[7,11)}", one[string](t, s, `SELECT held::text || seqs FROM compactor.archive_segments`), "the segment")
	wantConsistent(t, s)
	if got := must(s.Admin.Restore(t.Context(), fork))(t); got.Messages != 4 {
		t.Errorf("restored %+v", got)
	}
	for i, m := range must(s.All(t.Context(), fork))(t)[6:12] {
		if want := fmt.Sprintf("Qf%dX and so on", i+1); m.Content.String() != want {
			t.Errorf("%s is %q, want %q", m.ID, m.Content, want)
		}
	}
	equal(t, `{"agent": "a"}`, one[string](t, s, `SELECT labels::text FROM compactor.sessions WHERE id = 'fork'`), "labels of the fork")
	wantConsistent(t, s)
}

// The archive loses the words in the transaction that records the erasure, or nothing has changed.
func TestAnErasureThatFailsIsNotReported(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, secrets("m", 10)...)
	hide(t, s, k, 8)
	sid := session(t, s, k).SID
	before := rowsOf(t, s, sid)
	exec(t, s, `CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space left on device' USING ERRCODE = '53100'; END $$`)
	for _, at := range []string{
		`BEFORE INSERT ON compactor.archive_segments`, `AFTER INSERT ON compactor.archive_segments`, `BEFORE DELETE ON compactor.archive_segments`,
		`AFTER DELETE ON compactor.archive_segments`, `BEFORE UPDATE OF erased ON compactor.sessions`, `BEFORE UPDATE OF ended_at ON compactor.erasures`,
	} {
		exec(t, s, `CREATE TRIGGER fail `+at+` FOR EACH STATEMENT EXECUTE FUNCTION public.fail()`)
		wantError(t, second(s.Admin.Erase(t.Context(), k, []string{"m3"}, "why", "by", false)), ErrNoSpace, "%s", at)
		if diff := cmp.Diff(before, rowsOf(t, s, sid)); diff != "" || one[int](t, s, `SELECT count(*) FROM compactor.erasures`) > 0 {
			t.Errorf("%s (-before +after):\n%s", at, diff)
		}
		exec(t, s, `DROP TRIGGER fail ON `+at[strings.LastIndex(at, " ")+1:])
	}
	// In SQL alone it has not ended, and the audit names the rest.
	if ended := one[bool](t, s, `SELECT ended_at IS NOT NULL FROM compactor.erase('default', 'chat', '{m3}', 'why', 'by')`); ended {
		t.Error("it ended with the words in the archive")
	}
	if _, err := s.pool.Exec(t.Context(), `SELECT compactor.end_erasure(max(id)) FROM compactor.erasures`); !errors.Is(mapError(err), ErrNotApplicable) {
		t.Errorf("its end: %v", err)
	}
	if a := must(s.Admin.AuditSession(t.Context(), k))(t); !slices.ContainsFunc(a.Findings, func(f Finding) bool { return f.Field == "erased" }) {
		t.Errorf("audit: %v", a.Findings)
	}
	must(s.Admin.Erase(t.Context(), k, []string{"m3"}, "again", "by", false))(t)
	wantNowhere(t, s, "Qm3X")
	wantConsistent(t, s)

	// A segment that cannot be read is not replaced by one that lacks words.
	byHand(t, s, sid, `UPDATE archive_segments SET data = set_byte(data, 20, get_byte(data, 20) # 1)`)
	wantError(t, second(s.Admin.Erase(t.Context(), k, []string{"m4"}, "why", "by", false)), ErrDamaged, "with a damaged segment")
	must(s.Admin.Erase(t.Context(), k, nil, "why", "by", false))(t) // there is nothing to keep
	if n := one[int](t, s, `SELECT count(*) FROM compactor.archive_segments`); n > 0 {
		t.Errorf("%d segments are left", n)
	}
}

// Copies are those that fork recorded, whatever parents an application sets later.
func TestErasuresFollowTheWordsWhateverTheParents(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "first"}
	add(t, s, k, secrets("m", 6)...)
	must(s.Fork(t.Context(), k, "second", "m4"))(t)
	must(s.Fork(t.Context(), Key{Session: "second"}, "third", ""))(t)
	must(s.Fork(t.Context(), k, "other", ""))(t)
	noError(t, s.SetParent(t.Context(), Key{Session: "second"}, ""))
	noError(t, s.SetParent(t.Context(), Key{Session: "third"}, "other"))
	noError(t, s.SetParent(t.Context(), Key{Session: "other"}, ""))
	add(t, s, Key{Session: "stranger"}, secrets("m", 6)...)
	noError(t, s.SetParent(t.Context(), Key{Session: "stranger"}, "first"))
	if e := must(s.Admin.Erase(t.Context(), Key{Session: "third"}, []string{"m2"}, "why", "by", false))(t); e.Sessions != 4 {
		t.Errorf("%+v", e)
	}
	// A session of the line that is gone does not end it.
	second := session(t, s, Key{Session: "second"}).SID
	for _, table := range []string{"message_body", "exclusions", "message_log", "runs", "outbox", "sessions"} {
		if n := one[int](t, s, `SELECT count(*) FROM compactor.`+table+` WHERE sid = $1`, second); n > 0 {
			byHand(t, s, second, `DELETE FROM `+table)
		}
	}
	if e := must(s.Admin.Erase(t.Context(), k, []string{"m3"}, "why", "by", false))(t); e.Sessions != 3 {
		t.Errorf("%+v", e)
	}
	for _, words := range []string{"Qm2X", "Qm3X"} {
		if got := list[int64](t, s, `SELECT sid FROM compactor.message_body WHERE body LIKE '%' || $1 || '%' UNION ALL SELECT sid FROM compactor.message_log WHERE source_id = $1`, words); len(got) != 2 || got[0] != got[1] {
			t.Errorf("%s is in sessions %v, want the stranger alone", words, got)
		}
	}
	for _, sql := range []string{`UPDATE compactor.forked_from SET seqs = '{[1,2)}'`, `DELETE FROM compactor.forked_from`, `TRUNCATE compactor.forked_from`} {
		if _, err := s.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	wantConsistent(t, s)
}

// An application can repeat its append in a fork of an erased message, too.
func TestAForkKnowsWhatWasErasedInItsParent(t *testing.T) {
	s := fresh(t)
	k, fork := Key{Session: "chat"}, Key{Session: "fork"}
	add(t, s, k, secrets("m", 4)...)
	must(s.Admin.Erase(t.Context(), k, []string{"m2"}, "why", "by", false))(t)
	must(s.Fork(t.Context(), k, fork.Session, ""))(t)
	equal(t, "{[2,3)}", one[string](t, s, `SELECT erased::text FROM compactor.sessions WHERE id = 'fork'`), "erased in the fork")
	add(t, s, fork, secrets("m", 4)...)
	wantNowhere(t, s, "Qm2X")
	hide(t, s, fork, 3)
	equal(t, "{[1,2),[3,4)}", one[string](t, s, `SELECT seqs::text FROM compactor.archive_segments`), "archived")
	wantConsistent(t, s)
}

func TestArchivedMessagesAreKnownHoweverTheyAreWritten(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	thoughtful := `{"id":"m2","role":"assistant","content":"said","reasoning_content":"thought","tool_calls":[]}`
	if _, err := appendSQL(s, k, `[{"id":"m1","role":"user","content":"asked","name":"n"},`+thoughtful+`,{"id":"m3","role":"user","content":"more"},{"id":"m4","role":"user","content":"last"}]`); err != nil {
		t.Fatal(err)
	}
	try := func(when string) {
		t.Helper()
		for _, same := range []string{
			`{"id":"m1","role":"user","content":"asked","name":"n"}`, `{"name" : "n", "content":"asked", "role":"user", "id":"m1", "tool_call_id": null}`,
			thoughtful, `{"content": "said", "role": "assistant", "id": "m2"}`,
		} {
			for _, list := range []string{`[` + same + `]`, `[` + same + `,{"id":"m4","role":"user","content":"last"}]`} { // append_one, append_many
				if seqs, err := appendSQL(s, k, list); err != nil || seqs[0] > 2 {
					t.Errorf("%s: %s: %v, %v", when, list, seqs, err)
				}
			}
		}
		for _, other := range []string{
			`{"id":"m1","role":"user","content":"asked"}`, `{"id":"m2","role":"assistant","content":"said","reasoning_content":"thought again"}`, `{"id":"m3","role":"user","content":"More"}`,
		} {
			for _, list := range []string{`[` + other + `]`, `[` + other + `,{"id":"m4","role":"user","content":"last"}]`} {
				wantError(t, second(appendSQL(s, k, list)), ErrConflict, "%s: %s", when, list)
			}
		}
	}
	try("stored")
	hide(t, s, k, 3)
	try("archived")
	must(s.Admin.Erase(t.Context(), k, []string{"m3"}, "why", "by", false))(t) // the segment is another one
	noError(t, second(appendSQL(s, k, `{"name":"n", "content":"asked", "role":"user", "id":"m1"}`)))
	must(s.Admin.Restore(t.Context(), k, "m1"))(t)
	noError(t, second(appendSQL(s, k, `{"content": "said", "role": "assistant", "id": "m2"}`)))
	wantError(t, second(appendSQL(s, k, `{"id":"m2","role":"assistant","content":"other"}`)), ErrConflict, "other words")
}

func TestOnlyWhatWasSaidIsArchivedAndRestored(t *testing.T) {
	t.Parallel()
	s, dsn := openRoles(t)
	_, login := storetest.Login(t, dsn, "compactor_application")
	pool := must(pgxpool.New(t.Context(), login))(t)
	defer pool.Close()
	k := Key{Session: "chat"}
	add(t, s, k, secrets("m", 6)...)
	sid := session(t, s, k).SID
	apply(t, s, k, exclude(span(1, 4)))
	longAgo(t, s)
	// Stored words that are not those that were said are not archived in their place.
	byHand(t, s, sid, `UPDATE message_body SET body = replace(body, 'Qm2X', 'Qm9X') WHERE seq = 2`)
	wantError(t, second(s.Admin.ArchiveSession(t.Context(), k, time.Minute)), ErrDamaged, "archive")
	byHand(t, s, sid, `UPDATE message_body SET body = replace(body, 'Qm9X', 'Qm2X') WHERE seq = 2`)
	must(s.Admin.ArchiveSession(t.Context(), k, time.Minute))(t)
	if a := must(s.Admin.AuditSession(t.Context(), k))(t); len(a.Findings) > 0 {
		t.Errorf("%+v", a)
	}
	const forge = `SELECT compactor.restore_bodies((SELECT max(id) FROM compactor.archived_words('', 'chat', '{[1,9)}')), '{1}', ARRAY['{"role":"user","content":"forged"}'])`
	wantError(t, mapError(second(pool.Exec(t.Context(), forge))), ErrDamaged, "forged")
	if got := must(s.Admin.Restore(t.Context(), k))(t); got.Messages != 4 {
		t.Errorf("by an operator: %+v", got)
	}
}

func TestAuditComparesTheArchiveWithTheDigests(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, secrets("m", 8)...)
	hide(t, s, k, 6)
	sid := session(t, s, k).SID
	forge := func(bodies []body) {
		data, raw := pack(bodies)
		exec(t, s, `ALTER TABLE compactor.archive_segments DISABLE TRIGGER keep_segment`)
		exec(t, s, `UPDATE compactor.archive_segments SET data = $1, raw_bytes = $2, checksum = sha256($1)`, data, raw)
		exec(t, s, `ALTER TABLE compactor.archive_segments ENABLE TRIGGER keep_segment`)
	}
	g := must(loadSegments(t.Context(), s, s.pool, k, span(1, 6)))(t)[0]
	bodies := must(g.unpack(g.Seqs))(t)
	other := slices.Clone(bodies)
	other[2].Text = `{"role":"user","content":"forged"}`
	for name, c := range map[string]struct {
		bodies []body
		sql    string
		want   string
	}{
		"other words":     {bodies: other, want: "words is others for messages {[3,4)}"},
		"missing words":   {bodies: bodies[:4], want: "words is others for messages {[5,7)}"},
		"forged digests":  {bodies: bodies, sql: `UPDATE archive_segments SET digests[2] = '\x00'`, want: "words is others for messages {[2,3)}"},
		"a stray segment": {bodies: bodies, sql: `UPDATE archive_segments SET sid = -sid`, want: "session is -"},
	} {
		forge(c.bodies)
		digests := one[[][]byte](t, s, `SELECT digests FROM compactor.archive_segments`)
		if c.sql != "" {
			byHand(t, s, sid, c.sql)
		}
		found := must(s.Admin.Audit(t.Context()))(t)
		if !slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.String(), c.want) }) {
			t.Errorf("%s: %v", name, found)
		}
		exec(t, s, `ALTER TABLE compactor.archive_segments DISABLE TRIGGER keep_segment`)
		exec(t, s, `UPDATE compactor.archive_segments SET sid = abs(sid), digests = $1`, digests)
		exec(t, s, `ALTER TABLE compactor.archive_segments ENABLE TRIGGER keep_segment`)
	}
	forge(bodies)
	wantConsistent(t, s)
}

func TestAForkCountsSinceItsLastCompaction(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, talk("m", 6)...)
	apply(t, s, k, exclude(span(1, 1)))
	add(t, s, k, talk("n", 6)...)
	undone := apply(t, s, k, exclude(span(2, 2)))
	add(t, s, k, talk("o", 6)...)
	must(s.Undo(t.Context(), k, undone, false, ""))(t)
	view, revision := must2(s.View(t.Context(), k))(t)
	msgs := given(view[2:])
	must(s.Replace(t.Context(), k, revision, msgs, ""))(t)
	add(t, s, k, talk("p", 3)...)
	must(s.Fork(t.Context(), k, "fork", ""))(t)
	if got := list[string](t, s, `SELECT concat_ws(' ', messages_since_run, turns_since_run, tokens_since_run) FROM compactor.sessions ORDER BY sid`); got[0] != got[1] || !strings.HasPrefix(got[0], "9 ") {
		t.Errorf("%v", got)
	}
}
