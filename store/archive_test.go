package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

const month = 30 * 24 * time.Hour

// old makes a session with a pin, a summary of a summary, a replacement and excluded messages,
// whose runs were 40 days ago. All but 6, 11 to 14 and the latest of runs are out of the view.
func old(t fataler, s *Store, k Key) {
	t.Helper()
	add(t, s, k, talk("m", 12)...)
	noError(t, s.Pin(context.Background(), k, "m6"))
	first := summarize(span(2, 5), "what was said")
	first.Exclude = []chat.Exclusion{{Reason: "truncated", Seqs: span(1, 1)}}
	apply(t, s, k, first)                                        // 13
	apply(t, s, k, summarize(chat.RangesOf(7, 8, 13), "in all")) // 14
	apply(t, s, k, exclude(span(9, 10)))
	longAgo(t, s)
}

// freshArchived is freshSession with an old session whose excluded messages are archived.
func freshArchived(t *testing.T) (*Store, Key) {
	t.Helper()
	s, k := freshSession(t)
	old(t, s, k)
	must(s.Admin.ArchiveSession(t.Context(), k, month))(t)
	return s, k
}

// longAgo has all runs end 40 days ago.
func longAgo(t fataler, s *Store) {
	exec(t, s, `UPDATE compactor.runs SET ended_at = now() - interval '40 days', queued_at = now() - interval '40 days' WHERE status = 'applied'`)
}

func TestArchivedWordsAreStillThere(t *testing.T) {
	s, k := freshSession(t)
	old(t, s, k)
	sid := session(t, s, k).SID
	all, rows := must(s.All(t.Context(), k))(t), rowsOf(t, s, sid)
	preview := must(s.Admin.ArchivePreview(t.Context(), k, month))(t)
	if rowsOf(t, s, sid) != rows {
		t.Error("a preview has changed something")
	}
	got := must(s.Admin.ArchiveSession(t.Context(), k, month))(t)
	if got.Messages != 10 || got.Segments != 1 || got.Sessions != 1 || got.Stored <= got.Archived || got.Messages != preview.Messages || got.Stored != preview.Stored {
		t.Errorf("archived %+v, expected by the preview: %+v", got, preview)
	}
	if away := list[int64](t, s, `SELECT seq FROM compactor.message_log l WHERE NOT EXISTS (SELECT FROM compactor.message_body b WHERE b.sid = l.sid AND b.seq = l.seq) ORDER BY 1`); cmp.Diff(away, []int64{1, 2, 3, 4, 5, 7, 8, 9, 10, 13}) != "" {
		t.Errorf("archived are %v", away)
	}
	if n := one[int](t, s, `SELECT count(*) FROM compactor.messages WHERE archived AND content IS NULL AND message IS NULL AND excluded`); n != 10 {
		t.Errorf("SQL shows %d archived messages", n)
	}
	equal(t, all, must(s.All(t.Context(), k))(t), "the full history")
	if got := must(s.Worker.Messages(t.Context(), sid, []chat.Seq{2, 6}))(t); got[2].Content.String() != "message 2 of a conversation about nothing much" || got[2].ID != "m2" {
		t.Errorf("message 2 is %+v", got[2])
	}
	summary := one[string](t, s, `SELECT id FROM compactor.message_log WHERE seq = 13`)
	if got := must(s.Reader.Summary(t.Context(), k, summary))(t); got.Content.String() != "what was said" {
		t.Errorf("the archived summary is %+v", got)
	}
	wantConsistent(t, s)
	add(t, s, k, talk("m", 3)...) // known, by their digests
	if _, err := appendSQL(s, k, `[{"id": "m2", "role": "user", "content": "another"}]`); !errors.Is(err, ErrConflict) {
		t.Errorf("an archived message with other content: %v", err)
	}

	if got := must(s.Admin.Restore(t.Context(), k, "m2", "m9"))(t); got.Messages != 2 {
		t.Errorf("restored %+v", got)
	}
	equal(t, 8, one[int](t, s, `SELECT count(*) FROM compactor.messages WHERE archived`), "are archived still")
	if got := must(s.Admin.ArchiveSession(t.Context(), k, month))(t); got.Messages != 0 {
		t.Errorf("what has just been restored is archived again: %+v", got)
	}
	must(s.Admin.Restore(t.Context(), k))(t)
	exec(t, s, `UPDATE compactor.sessions SET restored_at = NULL`)
	equal(t, rows, rowsOf(t, s, sid), "after all was restored")
	wantConsistent(t, s)
}

func TestWhatNeedsArchivedWordsHasThemRestoredFirst(t *testing.T) {
	s := fresh(t)
	for name, c := range map[string]struct {
		sql string
		do  func(k Key, run RunID) error
	}{
		"undo": {`SELECT compactor.undo_run('default', $1, $2, true)`, func(k Key, run RunID) error {
			_, err := s.Undo(t.Context(), k, run, true, "")
			return err
		}},
		"pin":  {`SELECT compactor.pin('default', $1, 'm9') WHERE $2 > 0`, func(k Key, _ RunID) error { return s.Pin(t.Context(), k, "m9") }},
		"fork": {`SELECT compactor.fork('default', $1, $1 || '-child') WHERE $2 > 0`, func(k Key, _ RunID) error { _, err := s.Fork(t.Context(), k, k.Session+"-fork", ""); return err }},
		"replace": {
			`SELECT compactor.replace_view('default', $1, 3, '[{"id": "m9", "role": "user", "content": "message 9 of a conversation about nothing much"}]') WHERE $2 > 0`,
			func(k Key, _ RunID) error {
				_, err := s.Replace(t.Context(), k, 3, talk("m", 10)[8:], "")
				return err
			},
		},
		"an append of a message that was deleted": {
			`SELECT compactor.append('default', $1, json_build_object('id', 'm12', 'role', 'assistant', 'content', 'message 12 of a conversation about nothing much')) WHERE $2 > 0`,
			func(k Key, _ RunID) error {
				_, _, err := s.Append(t.Context(), k, "", append(talk("m", 12)[11:], user("n", "new")))
				return err
			},
		},
		"a run that includes": {`SELECT compactor.refuse_archived(s, '{[9,11)}') FROM compactor.sessions s WHERE id = $1 AND $2 > 0`, func(k Key, _ RunID) error {
			c := start(t, s, k)
			ch := must(c.change(s, chat.Plan{Include: span(9, 10)}))(t)
			_, err := s.Worker.Apply(t.Context(), c.Run, c.Fence, ch)
			return err
		}},
	} {
		k := Key{Session: name}
		old(t, s, k)
		run := one[RunID](t, s, `SELECT min(r.id) FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE s.id = $1`, name)
		deleted := 0
		if strings.Contains(name, "deleted") {
			deleted = 1
			must(s.Exclude(t.Context(), k, []string{"m12"}, ""))(t)
			longAgo(t, s)
		}
		if got := must(s.Admin.ArchiveSession(t.Context(), k, month))(t); got.Messages != int64(10+deleted) {
			t.Fatalf("archived %+v", got)
		}
		_, err := s.pool.Exec(t.Context(), c.sql, name, run)
		if err = mapError(err); !errors.Is(err, ErrArchived) || !strings.Contains(err.Error(), "compactor restore '"+name+"'") || strings.Contains(err.Error(), "{[") {
			t.Errorf("%s in SQL: %v, want it refused with the command that restores", name, err)
		}
		wantError(t, c.do(k, run), nil, "%s", name)
		wantConsistent(t, s)
	}
}

// Whatever fails, and at whichever statement, the words are there: in the rows or in the archive.
func TestAnArchiverThatFailsLosesNothing(t *testing.T) {
	s, k := freshSession(t)
	old(t, s, k)
	sid := session(t, s, k).SID
	before, all := rowsOf(t, s, sid), must(s.All(t.Context(), k))(t)
	exec(t, s, `CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space left on device' USING ERRCODE = '53100'; END $$`)
	for _, event := range []string{
		`BEFORE INSERT ON compactor.archive_segments FOR EACH STATEMENT`, `AFTER INSERT ON compactor.archive_segments FOR EACH ROW`,
		`BEFORE UPDATE OF archived ON compactor.sessions FOR EACH ROW`, `BEFORE DELETE ON compactor.message_body FOR EACH STATEMENT`,
		`AFTER DELETE ON compactor.message_body FOR EACH STATEMENT`, "COMMIT",
	} {
		if event == "COMMIT" {
			exec(t, s, `CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON compactor.archive_segments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.fail()`)
			event = "AFTER INSERT ON compactor.archive_segments"
		} else {
			exec(t, s, `CREATE TRIGGER fail `+event+` EXECUTE FUNCTION public.fail()`)
		}
		if got, err := s.Admin.ArchiveSession(t.Context(), k, month); !errors.Is(err, ErrUnavailable) || got.Messages != 0 {
			t.Errorf("%s: %+v, %v", event, got, err)
		}
		equal(t, before, rowsOf(t, s, sid), "%s", event)
		exec(t, s, `DROP TRIGGER fail ON `+strings.Fields(event)[strings.Count(event[:strings.Index(event, " ON ")], " ")+2])
	}
	must(s.Admin.ArchiveSession(t.Context(), k, month))(t)
	archived := rowsOf(t, s, sid)
	exec(t, s, `CREATE TRIGGER fail BEFORE INSERT ON compactor.message_body FOR EACH STATEMENT EXECUTE FUNCTION public.fail()`)
	if _, err := s.Admin.Restore(t.Context(), k); !errors.Is(err, ErrUnavailable) || rowsOf(t, s, sid) != archived {
		t.Errorf("a restore without space: %v", err)
	}
	exec(t, s, `DROP TRIGGER fail ON compactor.message_body`)
	equal(t, all, must(s.All(t.Context(), k))(t), "the full history")
	wantConsistent(t, s)
}

func TestTheDatabaseRejectsTheLossOfArchivedWords(t *testing.T) {
	s, _ := freshArchived(t)
	for _, sql := range []string{
		`DELETE FROM compactor.message_body`, `DELETE FROM compactor.message_body WHERE seq = 6`, `TRUNCATE compactor.message_body`, `UPDATE compactor.message_body SET body = '{}'`,
		`DELETE FROM compactor.archive_segments`, `TRUNCATE compactor.archive_segments`, `UPDATE compactor.archive_segments SET data = ''`,
		`UPDATE compactor.archive_segments SET seqs = '{[1,2)}'`, `UPDATE compactor.archive_segments SET seqs = seqs + '{[90,91)}'`, `UPDATE compactor.archive_segments SET checksum = ''`, `UPDATE compactor.archive_segments SET sid = sid + 1`,
		`UPDATE compactor.archive_segments SET seqs = '{[1,2)}', data = NULL, purged_at = now()`, `UPDATE compactor.sessions SET live = '{[1,)}'`,
	} {
		if _, err := s.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") && !strings.Contains(err.Error(), "sessions_archived_check") {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
	for _, c := range [][2]string{{`ALTER TABLE compactor.message_body DISABLE TRIGGER archived_only`, "archived_only of message_body"}, {`ALTER TABLE compactor.archive_segments DISABLE TRIGGER keep_segment`, "keep_segment of archive_segments"}} {
		exec(t, s, c[0])
		if got := must(s.Admin.AuditDatabase(t.Context()))(t); len(got) != 1 || !strings.Contains(got[0].String(), c[1]) {
			t.Errorf("after %s: %v", c[0], got)
		}
		noError(t, s.Admin.EnableTriggers(t.Context()))
	}
}

func TestASegmentThatIsDamagedIsFoundAndChangesNothing(t *testing.T) {
	s, k := freshArchived(t)
	sid := session(t, s, k).SID
	byHand(t, s, sid, `UPDATE archive_segments SET data = set_byte(data, 20, get_byte(data, 20) # 1)`)
	damaged := rowsOf(t, s, sid)
	wantError(t, second(s.Admin.Restore(t.Context(), k)), ErrDamaged, "restore")
	wantError(t, second(s.Undo(t.Context(), k, one[RunID](t, s, `SELECT min(id) FROM compactor.runs`), true, "")), ErrDamaged, "undo")
	wantError(t, second(s.All(t.Context(), k)), ErrDamaged, "full history")
	if a := must(s.Admin.AuditSession(t.Context(), k))(t); len(a.Findings) != 1 || a.Findings[0].Field != "checksum" {
		t.Errorf("audit: %v", a.Findings)
	}
	// With the checksum that fits, the words are not those that were said.
	byHand(t, s, sid, `UPDATE message_log SET body_digest = '\x00' WHERE seq = 3`)
	byHand(t, s, sid, `UPDATE archive_segments SET data = set_byte(data, 20, get_byte(data, 20) # 1)`)
	if _, err := s.Admin.Restore(t.Context(), k); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "message 3") {
		t.Errorf("restore of other words: %v", err)
	}
	byHand(t, s, sid, `UPDATE archive_segments SET data = set_byte(data, 20, get_byte(data, 20) # 1)`)
	byHand(t, s, sid, `UPDATE message_log SET body_digest = (SELECT body_digest('x')) WHERE seq = 3`)
	if len(damaged) == 0 || one[int](t, s, `SELECT count(*) FROM compactor.message_body`) != 4 {
		t.Error("something was restored")
	}
}

// A summary of archived messages reads the messages themselves, and of purged messages the summary
// that is left of them.
func TestOriginalsAreReadFromTheArchive(t *testing.T) {
	s, k := freshSession(t)
	old(t, s, k)
	before := originals(t, s, k, "", 1<<40, 14)
	must(s.Admin.ArchiveSession(t.Context(), k, month))(t)
	if got := originals(t, s, k, "", 1<<40, 14); got != before || !strings.Contains(got, "m2 m3 m4 m5") {
		t.Errorf("14 stands for %q, and before it was archived for %q", got, before)
	}
	if log := must(s.History(k, "", "test").Load(t.Context(), true))(t); len(log.Records) != 14 || log.Records[0].Message.Content.String() == "" {
		t.Errorf("the log that a host reads: %+v", log.Records)
	}
	byHand(t, s, session(t, s, k).SID, `UPDATE archive_segments SET created_at = now() - interval '2 days'`)
	must(s.Scheduler.PurgeArchive(t.Context(), 24*time.Hour, 24*time.Hour, []string{"default"}, 10))(t)
	equal(t, "[in all]", originals(t, s, k, "", 1<<40, 14), "what 14 stands for, whose words are gone")
}

func TestTheArchiverGoesAlongTheRunsOnceForAnAge(t *testing.T) {
	s := fresh(t)
	for _, name := range []string{"a", "b", "child", "other"} {
		add(t, s, Key{Session: name}, talk("m", 8)...)
		apply(t, s, Key{Session: name}, exclude(span(1, 4)))
	}
	noError(t, s.SetParent(t.Context(), Key{Session: "child"}, "a"))
	exec(t, s, `UPDATE compactor.sessions SET policy = 'kept' WHERE id IN ('other', 'child')`)
	if got, more, err := s.Scheduler.Archive(t.Context(), month, []string{"default"}, 100); err != nil || more || got.Messages != 0 {
		t.Fatalf("too early: %+v, %v, %v", got, more, err)
	}
	longAgo(t, s)
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, queued_at, status) SELECT sid, 'nightly', now(), 'queued' FROM compactor.sessions WHERE id = 'a'`)
	total, pages := ArchiveStats{}, 0
	for more := true; more; pages++ {
		var got ArchiveStats
		var err error
		if got, more, err = s.Scheduler.Archive(t.Context(), month, []string{"default"}, 2); err != nil {
			t.Fatal(err)
		}
		total.Add(got)
	}
	if total.Messages != 12 || total.Sessions != 3 || pages < 2 {
		t.Errorf("archived %+v in %d pages, want those of a, b and the child of a", total, pages)
	}
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.archive_candidates('30 days', '{default}', 100)`), "runs are looked at again")
	// A session that a writer has is tried again.
	exec(t, s, `DELETE FROM compactor.archive_cursors`)
	if got, _, err := s.Scheduler.Archive(t.Context(), 24*time.Hour, []string{"kept"}, 100); err != nil || got.Messages != 4 {
		t.Errorf("by another age: %+v, %v", got, err)
	}
	k := Key{Session: "busy"}
	add(t, s, k, talk("m", 8)...)
	apply(t, s, k, exclude(span(1, 4)))
	longAgo(t, s)
	tx := begin(t, s, `SELECT FROM compactor.sessions WHERE id = 'busy' FOR NO KEY UPDATE`)
	exec(t, s, `DELETE FROM compactor.runs WHERE status = 'queued'`)
	if got, _, err := s.Scheduler.Archive(t.Context(), month, []string{"default"}, 100); err != nil || got.Messages != 0 {
		t.Errorf("while a writer has it: %+v, %v", got, err)
	}
	noError(t, tx.Rollback(t.Context()))
	if got, _, err := s.Scheduler.Archive(t.Context(), month, []string{"default"}, 100); err != nil || got.Messages != 4 {
		t.Errorf("after that: %+v, %v", got, err)
	}
}

func TestWritersRunsAndUndosGoOnWhileTheirWordsAreArchived(t *testing.T) {
	s := fresh(t)
	ctx := t.Context()
	var g sync.WaitGroup
	done := make(chan struct{})
	for i := range 3 {
		k := Key{Session: fmt.Sprint(i)}
		add(t, s, k, talk("m", 10)...)
		g.Go(func() {
			for n := range 25 {
				add(t, s, k, user(fmt.Sprintf("n%d", n), fmt.Sprintf("message %d while others are archived", n)))
				run := apply(t, s, k, exclude(span(chat.Seq(n+1), chat.Seq(n+1))))
				if rand.IntN(4) == 0 {
					wantError(t, second(s.Undo(ctx, k, run, true, "")), nil, "undo")
				}
			}
		})
	}
	archived := 0
	go func() { g.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		exec(t, s, `UPDATE compactor.sessions SET restored_at = NULL`)
		for i := range 3 {
			got, err := s.Admin.ArchiveSession(ctx, Key{Session: fmt.Sprint(i)}, 0)
			if err != nil && !errors.Is(err, ErrBusy) {
				t.Errorf("archive: %v", err)
			}
			archived += int(got.Messages)
		}
	}
	if archived == 0 {
		t.Error("nothing was archived")
	}
	for i := range 3 {
		if all := must(s.All(ctx, Key{Session: fmt.Sprint(i)}))(t); len(all) != 35 {
			t.Errorf("%d messages, want 35", len(all))
		}
	}
	wantConsistent(t, s)
}

func TestArchivingAndRestoringChangesNothing(t *testing.T) {
	s := fresh(t)
	sessions := 0
	rapid.Check(t, func(r *rapid.T) {
		sessions++
		k := Key{Session: fmt.Sprint(sessions)}
		msgs := talk("m", rapid.IntRange(2, 40).Draw(r, "messages"))
		for i := range msgs {
			msgs[i].Content = chat.TextContent(strings.Repeat(rapid.StringN(1, 20, -1).Draw(r, "text"), rapid.SampledFrom([]int{1, 1, 50, 4000}).Draw(r, "times")))
		}
		add(r, s, k, msgs...)
		for range rapid.IntRange(1, 4).Draw(r, "runs") {
			c := start(r, s, k)
			lo := rapid.IntRange(1, len(msgs)).Draw(r, "lo")
			gone := span(chat.Seq(lo), chat.Seq(rapid.IntRange(lo, len(msgs)).Draw(r, "hi"))).Intersect(c.Session.Live)
			plan := exclude(gone)
			switch summary := rapid.Bool().Draw(r, "summary"); {
			case len(gone) == 0:
				plan = chat.Plan{}
			case summary:
				plan = summarize(gone, "a summary")
			}
			ch := must(c.change(s, plan))(r)
			if _, err := s.Worker.Apply(context.Background(), c.Run, c.Fence, ch); err != nil {
				r.Fatalf("apply: %v", err)
			}
		}
		longAgo(r, s)
		sid := one[int64](r, s, `SELECT sid FROM compactor.sessions WHERE id = $1`, k.Session)
		const rows = `SELECT md5(string_agg(b::text, '' ORDER BY seq)) || (SELECT to_jsonb(s) - 'restored_at' FROM compactor.sessions s WHERE s.sid = $1) FROM compactor.message_body b WHERE sid = $1`
		before, all := one[string](r, s, rows, sid), must(s.All(context.Background(), k))(r)
		must(s.Admin.ArchiveSession(context.Background(), k, month))(r)
		if diff := cmp.Diff(all, must(s.All(context.Background(), k))(r)); diff != "" {
			r.Fatalf("archived (-before +after):\n%s", diff)
		}
		if n := one[int64](r, s, `SELECT count(*) FROM compactor.messages WHERE session = $1 AND archived <> (excluded AND NOT pinned)`, k.Session); n > 0 {
			r.Fatalf("%d messages are archived and should not be, or the other way round", n)
		}
		must(s.Admin.Restore(context.Background(), k))(r)
		if after := one[string](r, s, rows, sid); after != before {
			r.Fatalf("restored: %s, before: %s", after, before)
		}
	})
	wantConsistent(t, s)
}

func TestArchivedWordsComeBackWithoutTheReasoningThatHasLeft(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, thoughtful("m", 0, 8)...)
	applyBehind(t, s, k, exclude(span(1, 1)), 1, nil) // the reasoning behind it leaves
	apply(t, s, k, exclude(span(2, 6)))
	sid := session(t, s, k).SID
	seqs := []chat.Seq{2, 3, 4}
	before := must(s.Worker.Messages(t.Context(), sid, seqs))(t)
	exec(t, s, `UPDATE compactor.runs SET ended_at = ended_at - interval '1 hour'`)
	if moved := must(s.Admin.ArchiveSession(t.Context(), k, time.Minute))(t); moved.Messages != 6 {
		t.Fatalf("archived: %+v", moved)
	}
	after := must(s.Worker.Messages(t.Context(), sid, seqs))(t)
	for _, q := range seqs {
		if got, want := string(after[q].AppendJSON(nil)), string(before[q].AppendJSON(nil)); got != want {
			t.Errorf("message %d is\n%s\nwas\n%s", q, got, want)
		}
	}
	if strings.Contains(string(after[2].AppendJSON(nil)), "thinking") {
		t.Errorf("%s", after[2].AppendJSON(nil))
	}
}
