package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// tablesOf returns the names of tables, without the catalogs that databases share: others have them
// locked for as long as they make a database.
func tablesOf(t *testing.T, s *Store, schemas ...string) string {
	return strings.Join(list[string](t, s, `SELECT oid::regclass::text FROM pg_class
		WHERE relkind = 'r' AND relnamespace = ANY($1::regnamespace[]) AND NOT relisshared`, schemas), ", ")
}

// placesOf returns where a string stands in the database: in rows of tables, in the samples
// that the planner keeps of them, and in the archive.
func placesOf(t *testing.T, s *Store, words string) (places []string) {
	t.Helper()
	exec(t, s, `ANALYZE `+tablesOf(t, s, "compactor"))
	for _, table := range list[string](t, s, `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = 'compactor' AND c.relkind IN ('r', 'm') UNION ALL SELECT 'pg_stats'`) {
		rows := list[string](t, s, `SELECT t::text FROM `+table+` t WHERE strpos(t::text, $1) > 0`, words)
		for _, row := range rows {
			places = append(places, table+": "+row)
		}
	}
	for _, data := range list[[]byte](t, s, `SELECT data FROM compactor.archive_segments WHERE data IS NOT NULL`) {
		raw := must(zstdReader.DecodeAll(data, nil))(t)
		if strings.Contains(string(raw), words) {
			places = append(places, fmt.Sprintf("archive_segments: %s", raw))
		}
	}
	return places
}

func wantNowhere(t *testing.T, s *Store, words string) {
	t.Helper()
	if places := placesOf(t, s, words); len(places) > 0 {
		t.Errorf("%q stands in\n%s", words, strings.Join(places, "\n"))
	}
}

// filesWith returns the files of the database, of tables, indexes and catalogs, that hold a string
// in any of their pages; nil where the server's files cannot be read.
func filesWith(t *testing.T, s *Store, words string) []string {
	t.Helper()
	exec(t, s, `CHECKPOINT`)
	dir := one[string](t, s, `SELECT current_setting('data_directory') || '/base/' || (SELECT oid FROM pg_database WHERE datname = current_database())`)
	files := must(filepath.Glob(dir + "/[0-9]*"))(t)
	var found []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		case bytes.Contains(raw, []byte(words)):
			found = append(found, f)
		}
	}
	return found
}

// quoted makes a history of all kinds of runs, in which everything that was derived repeats the
// words, and a fork of it.
func quoted(t *testing.T, s *Store, k Key, words string) (erasable string, fork Key) {
	t.Helper()
	thresholds(t, s, Threshold{"", 1 << 30, 0, false, Counts{}})
	said := user("secret", "please note "+words)
	said.Name = words
	add(t, s, k, user("u1", "said first"), said, call("c1", "a"), result("r1", "a", "a result"), assistant("a1", "noted"))
	apply(t, s, k, replacement(chat.Meta{Seq: 2, Position: 2}, "short: "+words))
	add(t, s, k, user("u2", "go on"), assistant("a2", "gone on"))
	apply(t, s, k, summarize(span(3, 5), "the user had said "+words)) // which covers neither it nor its replacement
	fork = Key{Tenant: k.Tenant, Session: k.Session + "-fork"}
	must(s.Fork(t.Context(), k, fork.Session, ""))(t)
	add(t, s, k, user("u3", "and then"), assistant("a3", "so it is"))
	apply(t, s, k, summarize(span(6, 9), "once more "+words))
	exec(t, s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, prompt_hash, answer, ended_at)
		SELECT 'k' || id, sid, id, 1, 'answered', 'p', 'an answer with '||$1, now() FROM compactor.runs WHERE status = 'applied'`, words)
	add(t, s, k, user("u4", "at last"))
	return said.ID, fork
}

// archiveAll moves all that is out of the view to the archive, and has some of it back, which
// segments keep.
func archiveAll(t *testing.T, s *Store, sessions ...Key) {
	t.Helper()
	for _, k := range sessions {
		exec(t, s, `UPDATE compactor.runs SET ended_at = ended_at - interval '1 hour'`)
		if moved := must(s.Admin.ArchiveSession(t.Context(), k, time.Minute))(t); moved.Messages < 2 {
			t.Fatalf("archived: %+v", moved)
		}
	}
	must(s.Admin.Restore(t.Context(), sessions[0], "secret"))(t)
}

func TestErasedWordsAreNowhere(t *testing.T) {
	t.Parallel()
	const words = "Wer-das-liest"
	for name, erase := range map[string]func(t *testing.T, s *Store, k, fork Key, id string) Erasure{
		"a message": func(t *testing.T, s *Store, k, _ Key, id string) Erasure {
			return must(s.Admin.Erase(t.Context(), k, []string{id}, "request 8", "dpo", false))(t)
		},
		"a message, by its copy in the fork": func(t *testing.T, s *Store, _, fork Key, id string) Erasure {
			return must(s.Admin.Erase(t.Context(), fork, []string{id}, "request 8", "dpo", false))(t)
		},
		"a message whose words are in the archive": func(t *testing.T, s *Store, k, fork Key, id string) Erasure {
			archiveAll(t, s, k, fork)
			e := must(s.Admin.Erase(t.Context(), k, []string{id}, "request 8", "dpo", true))(t)
			if n := one[int](t, s, `SELECT count(*) FROM compactor.archive_segments`); n < 2 || e.Messages < 2 {
				t.Errorf("a dry run leaves %d segments, %+v", n, e)
			}
			return must(s.Admin.Erase(t.Context(), k, []string{id}, "request 8", "dpo", false))(t)
		},
		"a session whose words are in the archive": func(t *testing.T, s *Store, k, fork Key, _ string) Erasure {
			archiveAll(t, s, k, fork)
			return must(s.Admin.Erase(t.Context(), k, nil, "request 8", "dpo", false))(t)
		},
		"a session, with the copies in its fork": func(t *testing.T, s *Store, k, _ Key, _ string) Erasure {
			noError(t, s.SetLabels(t.Context(), k, map[string]string{"name": words}))
			must(s.Request(t.Context(), k, TriggerApplication, "", Options{Focus: words}))(t)
			must(s.Request(t.Context(), k, TriggerOperator, "", Options{Summary: &WrittenSummary{Text: words}}))(t)
			return must(s.Admin.Erase(t.Context(), k, nil, "request 8", "dpo", false))(t)
		},
		"a tenant": func(t *testing.T, s *Store, k, _ Key, _ string) Erasure {
			return eraseTenant(t, s, k.tenant())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			k := Key{Session: "chat"}
			id, fork := quoted(t, s, k, words)
			if n := len(placesOf(t, s, words)); n < 10 {
				t.Fatalf("the words stand in %d places only", n)
			}
			before := filesWith(t, s, words)
			seqs := list[string](t, s, `SELECT sid || ' ' || seq || ' ' || position || ' ' || id || ' ' || kind::text FROM compactor.message_log ORDER BY sid, seq`)
			e := erase(t, s, k, fork, id)
			if e.Sessions != 2 || e.Messages < 2 || e.Derived < 5 || e.Answers < 3 || e.Note != "request 8" || e.EndedAt.IsZero() {
				t.Errorf("%+v", e)
			}
			wantNowhere(t, s, words)
			wantConsistent(t, s)
			if got := list[string](t, s, `SELECT sid || ' ' || seq || ' ' || position || ' ' || id || ' ' || kind::text FROM compactor.message_log ORDER BY sid, seq`); !slices.Equal(got, seqs) {
				t.Errorf("rows are now\n%s\nwere\n%s", strings.Join(got, "\n"), strings.Join(seqs, "\n"))
			}
			for _, run := range list[RunID](t, s, `SELECT r.id FROM compactor.runs r WHERE status = 'applied' AND kind = 'compact' AND in_force ORDER BY sid, id DESC`) {
				row := must(s.Run(t.Context(), run))(t)
				wantError(t, second(s.Undo(t.Context(), Key{Session: row.Session}, run, false, "")), nil, "undo of run %d", run)
			}
			wantNowhere(t, s, words)
			wantConsistent(t, s)
			if len(before) == 0 {
				t.Log("the files of the server cannot be read here")
				return
			}
			after := before
			for n := 0; n < 100 && len(after) > 0; n++ {
				exec(t, s, `VACUUM FULL `+tablesOf(t, s, "compactor", "pg_catalog")) // it keeps rows that a connecting backend might still see
				after = filesWith(t, s, words)
			}
			if len(before) < 3 || len(after) > 0 {
				t.Errorf("the words are on pages of %v, and of %v before", after, before)
			}
		})
	}
}

func TestErasedMessagesStayValidAndSayNothing(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	thresholds(t, s, Threshold{"", 1 << 30, 0, false, Counts{}})
	asked := call("c1", "a", "b")
	asked.ToolCalls[0].Arguments = `{"name":"someone"}`
	add(t, s, k, user("u1", "who is someone?"), asked, result("r1", "a", "someone lives"), result("r2", "b", "here"), assistant("a1", "someone lives here"), user("u2", "thanks"))
	must(s.Admin.Erase(t.Context(), k, []string{"u1", "c1", "r1", "a1"}, "why", "by", false))(t)
	var got []string
	view, _ := must2(s.View(t.Context(), k))(t)
	for _, m := range view {
		got = append(got, string(m.Body().AppendJSON(nil)))
	}
	want := []string{
		`{"role":"user","content":"[erased]"}`,
		`{"role":"assistant","content":"[erased]","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}}]}`,
		`{"role":"tool","content":"[erased]","tool_call_id":"a"}`,
		`{"role":"tool","content":"here","tool_call_id":"b"}`,
		`{"role":"assistant","content":"[erased]"}`,
		`{"role":"user","content":"thanks"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// An application that repeats its append restores nothing and gets no conflict.
	add(t, s, k, user("u1", "who is someone?"))
	add(t, s, k, user("u1", "who is someone?"), user("u2", "thanks"), user("u3", "more"))
	wantNowhere(t, s, "someone")
	wantConsistent(t, s)
	if _, _, err := s.Append(t.Context(), k, "", []NewMessage{user("u2", "no thanks")}); err == nil {
		t.Error("a message that was not erased has changed")
	}
	if _, err := s.Undo(t.Context(), k, one[RunID](t, s, `SELECT head_run FROM compactor.sessions`), false, ""); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("undo of the erasure: %v", err)
	}
	e := must(s.Admin.Erase(t.Context(), k, []string{"u1"}, "again", "by", false))(t)
	if e.Messages != 0 {
		t.Errorf("erased again: %+v", e)
	}
}

func TestWhatWasPlannedBeforeAnErasureBringsNoWordsBack(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	const words = "Wer-das-liest"
	add(t, s, k, append([]NewMessage{user("secret", words)}, talk("m", 5)...)...)
	c := start(t, s, k)
	ch := must(c.change(s, summarize(span(1, 3), "about "+words)))(t)
	call, _, _, err := s.Worker.AskSummary(t.Context(), SummaryCall{Run: c.Run, Fence: c.Fence, Key: "k", PromptHash: "p"})
	if err != nil {
		t.Fatal(err)
	}
	must(s.Admin.Erase(t.Context(), k, []string{"secret"}, "why", "by", false))(t)
	if err := s.Worker.AnswerSummary(t.Context(), call, SummaryAnswer{Text: "about " + words, Model: "m"}); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("the answer is stored: %v", err)
	}
	wantError(t, second(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch)), ErrNotApplicable, "the plan is applied")
	wantNowhere(t, s, words)
}

func TestASummaryInTheViewIsWrittenAnewAfterAnErasure(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, talk("m", 6)...)
	apply(t, s, k, summarize(span(1, 3), "what was said"))
	add(t, s, k, user("m7", "said later"))
	must(s.Admin.Erase(t.Context(), k, []string{"m2"}, "why", "by", true))(t)
	if n := one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE kind = 'erase' OR status = 'queued'`); n != 0 {
		t.Fatalf("a dry run left %d runs", n)
	}
	must(s.Admin.Erase(t.Context(), k, []string{"m7"}, "why", "by", false))(t)
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE status = 'queued'`), "runs wait; the summary is older than the message")
	must(s.Admin.Erase(t.Context(), k, []string{"m2"}, "why", "by", false))(t)
	if got := one[string](t, s, `SELECT trigger || ' ' || (options->>'from') FROM compactor.runs WHERE status = 'queued'`); got != "operator log" {
		t.Errorf("what waits: %s", got)
	}
}

// A run that waits, or was under way, and plans on the view does not write the summary anew.
func TestAnErasureDuringARunHasTheSummaryWrittenAnew(t *testing.T) {
	s := fresh(t)
	for name, tt := range map[string]struct {
		options Options
		claimed bool
		want    []string
	}{
		"waits, on the view":     {Options{From: "view"}, false, []string{"operator view", "bulk log"}},
		"under way, on the view": {Options{From: "view"}, true, []string{"operator view", "operator log"}},
		"dry run":                {Options{DryRun: true}, false, []string{"operator -", "bulk log"}},
		"waits, on the log":      {Options{}, false, []string{"operator -"}},
		"under way, on the log":  {Options{}, true, []string{"operator -"}},
	} {
		k := Key{Session: name}
		add(t, s, k, talk("m", 6)...)
		apply(t, s, k, summarize(span(1, 3), "what was said"))
		run := must(s.Request(t.Context(), k, TriggerOperator, "test", tt.options))(t)
		if tt.claimed {
			must(s.Worker.Claim(t.Context(), run, "w", time.Minute))(t)
		}
		for _, id := range []string{"m2", "m3"} {
			must(s.Admin.Erase(t.Context(), k, []string{id}, "why", "by", false))(t)
		}
		got := list[string](t, s, `SELECT r.trigger || ' ' || coalesce(r.options->>'from', '-') FROM compactor.runs r JOIN compactor.sessions s USING (sid)
			WHERE r.status = 'queued' AND s.id = $1 ORDER BY r.id`, name)
		equal(t, tt.want, got, "%s: what waits", name)
	}
}

func TestSignedReasoningBehindErasedWordsLeavesTheViewForGood(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	thresholds(t, s, Threshold{"", 1 << 30, 0, false, Counts{}})
	add(t, s, k, thoughtful("m", 0, 8)...)
	run := applyBehind(t, s, k, exclude(span(7, 7)), 7, nil)
	wantReasoning(t, s, k, "after the run", "m2", "m4", "m6")
	must(s.Admin.Erase(t.Context(), k, []string{"m3"}, "why", "by", false))(t)
	wantReasoning(t, s, k, "after the erasure", "m2")
	wantConsistent(t, s)
	add(t, s, k, thoughtful("n", 8, 2)...)
	wantReasoning(t, s, k, "with a new answer", "m2", "n2")
	must(s.Undo(t.Context(), k, run, false, ""))(t)
	for _, id := range reasoning(t, s, k) {
		if id == "m4" || id == "m6" || id == "m8" {
			t.Errorf("the reasoning of %s is back", id)
		}
	}
	wantConsistent(t, s)

	open := Key{Session: "open"}
	add(t, s, open, user("u1", "look"), signed(call("c1", "a"), 20))
	wantError(t, second(s.Admin.Erase(t.Context(), open, []string{"u1"}, "why", "by", false)), ErrInUse, "before an open tool loop")
	must(s.Admin.Erase(t.Context(), open, nil, "why", "by", false))(t)
	wantConsistent(t, s)
}

func TestErasuresAreRefused(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "chat"}
	add(t, s, k, talk("m", 2)...)
	other := Key{Tenant: "other", Session: "chat"}
	add(t, s, other, talk("m", 2)...)
	for name, refused := range map[string]struct {
		err  error
		want error
		text string
	}{
		"of no session":    {second(s.Admin.Erase(t.Context(), Key{Session: "none"}, nil, "why", "by", false)), ErrNotFound, "session none"},
		"of no message":    {second(s.Admin.Erase(t.Context(), k, []string{"m1", "m9"}, "why", "by", false)), ErrNotFound, "no source message 'm9'"},
		"of an empty list": {second(s.Admin.Erase(t.Context(), k, []string{}, "why", "by", false)), ErrNotFound, "no source message"},
		"without a note":   {second(s.Admin.Erase(t.Context(), k, nil, "", "by", false)), ErrInvalid, "a note that says why is required"},
		"of no tenant":     {second(s.Admin.RequestErasure(t.Context(), "none", "why", "by")), ErrNotFound, "tenant none has no sessions"},
		"unconfirmed":      {second(s.Admin.NextErasure(t.Context(), must(s.Admin.RequestErasure(t.Context(), "other", "why", "by"))(t).ID, "other")), ErrNotApplicable, "not confirmed"},
		"of another tenant": {
			second(s.Admin.ConfirmErasure(t.Context(), must(s.Admin.RequestErasure(t.Context(), "other", "why", "by"))(t).ID, "default", "by")),
			ErrNotFound, "there is no erasure",
		},
	} {
		if !errors.Is(refused.err, refused.want) || !strings.Contains(fmt.Sprint(refused.err), refused.text) {
			t.Errorf("%s: %v", name, refused.err)
		}
	}
	e := must(s.Admin.RequestErasure(t.Context(), "other", "why", "by"))(t)
	exec(t, s, `UPDATE compactor.erasures SET requested_at = now() - interval '8 days' WHERE id = $1`, e.ID)
	wantError(t, second(s.Admin.ConfirmErasure(t.Context(), e.ID, "other", "by")), ErrNotApplicable, "confirmed after 8 days")
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.sessions WHERE erased <> '{}'`), "sessions are erased")
}

func TestErasureOfATenantGoesOnWhereItWasAndLeavesOthers(t *testing.T) {
	s := fresh(t)
	for _, tenant := range []string{"acme", "other"} {
		for i := range 5 {
			add(t, s, Key{Tenant: tenant, Session: fmt.Sprintf("s%d", i)}, text("m", chat.RoleUser, "said by "+tenant))
		}
	}
	e := must(s.Admin.RequestErasure(t.Context(), "acme", "why", "by"))(t)
	must(s.Admin.ConfirmErasure(t.Context(), e.ID, "acme", "by"))(t)
	for range 2 {
		must(s.Admin.NextErasure(t.Context(), e.ID, e.Tenant))(t)
	}
	e = must(s.Admin.ConfirmErasure(t.Context(), e.ID, "acme", "another"))(t) // after an interruption
	if e.Sessions != 2 || e.ConfirmedBy != "by" {
		t.Errorf("%+v", e)
	}
	for n := 0; n < 10 && e.EndedAt.IsZero(); n++ {
		e = must(s.Admin.NextErasure(t.Context(), e.ID, e.Tenant))(t)
	}
	if e.Sessions != 5 || e.Messages != 5 {
		t.Errorf("%+v", e)
	}
	wantNowhere(t, s, "said by acme")
	if n := one[int](t, s, `SELECT count(*) FROM compactor.message_body WHERE body LIKE '%said by other%'`); n != 5 {
		t.Errorf("%d messages of the other tenant are left, want 5", n)
	}
	wantError(t, second(s.Admin.ConfirmErasure(t.Context(), e.ID, "acme", "by")), ErrNotApplicable, "confirmed after its end")
}

func TestAnErasureKeepsTheViewValid(t *testing.T) {
	s := fresh(t)
	thought := assistant("k", "")
	thought.Reasoning = "hm"
	legacy := NewMessage{Message: chat.Message{ID: "lc", Role: chat.RoleAssistant, Content: chat.Content{Null: true}, Legacy: true, ToolCalls: []chat.ToolCall{{Name: "f", Arguments: `{"a":1}`}}}}
	answer := NewMessage{Message: chat.Message{ID: "lr", Role: chat.RoleTool, Legacy: true, Name: "f", Content: chat.TextContent("secret")}}
	for name, ids := range map[string][]string{"reasoning": {"k"}, "all": nil, "legacy": {"lc", "lr"}} {
		k := Key{Session: name}
		add(t, s, k, user("u", "x"), call("c", "a"), thought, result("r", "a", "y"), assistant("e", "z"), legacy, answer, user("v", "w"))
		before := session(t, s, k)
		must(s.Admin.Erase(t.Context(), k, ids, "why", "by", false))(t)
		after := session(t, s, k)
		if before.LiveMessages != after.LiveMessages || after.Due {
			t.Errorf("%s: %d messages in the view, then %d, due %t", name, before.LiveMessages, after.LiveMessages, after.Due)
		}
		equal(t, "u c k r e lc lr v", viewIDs(t, s, k), "%s: view", name)
		view, _ := must2(s.View(t.Context(), k))(t)
		if m := view[6].Message; !m.Legacy || m.Name != "f" {
			t.Errorf("%s: the result before tools is %+v", name, m)
		}
		wantConsistent(t, s)
	}
}

func TestErasuresOfOneFamilyWaitForEachOther(t *testing.T) {
	s := fresh(t)
	for round := range 10 {
		parent, fork := Key{Session: fmt.Sprint("parent", round)}, Key{Session: fmt.Sprint("fork", round)}
		add(t, s, parent, secrets("m", 4)...)
		must(s.Fork(t.Context(), parent, fork.Session, ""))(t)
		done := make(chan error)
		for _, k := range []Key{parent, fork} {
			go func() {
				_, err := s.Admin.Erase(t.Context(), k, []string{"m1", "m2"}, "why", "by", false)
				done <- err
			}()
		}
		wantError(t, errors.Join(<-done, <-done), nil, "round %d", round)
	}
}

// TestErasingASessionReachesItsColumns fills the columns of texts that sessions have, but for names, ids of calls, codes and
// hashes: a new one is to be taken out by erase_rest, unless it belongs to these.
func TestErasingASessionReachesItsColumns(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 4)...)
	for _, column := range list[string](t, s, `
		SELECT format('%I = %s', attname, CASE atttypid WHEN 'jsonb'::regtype THEN '''{"key": "Qm1X"}''' WHEN 'text[]'::regtype THEN '''{Qm1X}''' ELSE '''Qm1X''' END)
		FROM pg_attribute WHERE attrelid = 'compactor.sessions'::regclass AND atttypid IN ('text'::regtype, 'text[]'::regtype, 'json'::regtype, 'jsonb'::regtype)
			AND NOT attisdropped AND attname NOT IN ('tenant', 'id', 'model', 'state', 'quarantine_reason', 'open_calls', 'policy', 'policy_override',
				'policy_hash', 'decision_fingerprint', 'hold_code')`) {
		exec(t, s, `UPDATE compactor.sessions SET `+column)
	}
	must(s.Admin.Erase(t.Context(), k, nil, "why", "by", false))(t)
	wantNowhere(t, s, "Qm1X")
}
