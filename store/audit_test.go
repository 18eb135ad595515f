package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/strategies/chat"
)

// damage is a change by hand, with triggers off, and how Audit names it.
type damage struct {
	sql  string   // $1 is the sid; run(n) stands for the run that made revision n
	want []string // findings, as row and field
	// fixed: Fix brings back what was there before. Otherwise it changes nothing.
	fixed bool
}

// The faults that an operator may meet, and two beside them.
var damages = map[string]damage{
	"live_tokens":           {sql: `UPDATE sessions SET live_tokens = live_tokens + 100`, want: []string{"live_tokens"}, fixed: true},
	"live_estimated_tokens": {sql: `UPDATE sessions SET live_estimated_tokens = 0`, want: []string{"live_estimated_tokens"}, fixed: true},
	"turns and total_tokens": {
		sql: `UPDATE sessions SET turns = turns + 1, total_tokens = total_tokens - 3`, want: []string{"turns", "total_tokens"}, fixed: true,
	},
	"tail_start_seq":                      {sql: `UPDATE sessions SET tail_start_seq = 2`, want: []string{"tail_start_seq"}, fixed: true},
	"last_source_seq":                     {sql: `UPDATE sessions SET last_source_seq = 4`, want: []string{"last_source_seq"}, fixed: true},
	"due=false on a due session":          {sql: `UPDATE sessions SET due = false`, want: []string{"due"}, fixed: true},
	"open_calls":                          {sql: `UPDATE sessions SET open_calls = '{}'`, want: []string{"open_calls"}, fixed: true},
	"live":                                {sql: `UPDATE sessions SET live = live - '{[9,10)}'`, want: []string{"live"}, fixed: true},
	"reasoning_out":                       {sql: `UPDATE sessions SET reasoning_out = '{[1,3)}'`, want: []string{"reasoning_out"}, fixed: true},
	"hold_seq far ahead":                  {sql: `UPDATE sessions SET hold_seq = 1000`, want: []string{"hold_seq"}, fixed: true},
	"cooldown_until far ahead":            {sql: `UPDATE sessions SET cooldown_until = now() + interval '1 year'`, want: []string{"cooldown_until"}, fixed: true},
	"pins beyond the log":                 {sql: `UPDATE sessions SET pinned = pinned + '{[16,20)}'`, want: []string{"pinned"}, fixed: true},
	"a parent that is the session itself": {sql: `UPDATE sessions SET parent = sid`, want: []string{"parent"}},
	"live with its run": {
		sql: `UPDATE sessions SET live = live - '{[9,10)}'; UPDATE runs SET live_after = live_after - '{[9,10)}' WHERE id = run(5)`, want: []string{"run 5 live_after"},
	},
	"live with its run, more than before": {
		sql: `UPDATE sessions SET live = live + '{[2,3)}'; UPDATE runs SET live_after = live_after + '{[2,3)}' WHERE id = run(5)`, want: []string{"run 5 live_after"},
	},

	"a live token_count": {sql: `UPDATE message_log SET token_count = token_count + 50 WHERE seq = 9`, want: []string{"message 9 token_count"}, fixed: true},
	"cumulative_tokens":  {sql: `UPDATE message_log SET cumulative_tokens = cumulative_tokens + 7 WHERE seq = 9`, want: []string{"message 9 cumulative_tokens"}, fixed: true},
	"a Paired flag":      {sql: `UPDATE message_log SET flags = flags # 8 WHERE seq = 3`, want: []string{"message 3 flags"}, fixed: true},
	"role_code":          {sql: `UPDATE message_log SET role_code = 'a' WHERE seq = 13`, want: []string{"message 13 role_code"}, fixed: true},
	"summary_of='{}'":    {sql: `UPDATE message_log SET summary_of = '{}' WHERE seq = 10`, want: []string{"message 10 summary_of"}, fixed: true},
	"a rewritten body":   {sql: `UPDATE message_body SET body = replace(body, 'said', 'meant') WHERE seq = 9`, want: []string{"message 9 body"}},
	"a deleted body":     {sql: `DELETE FROM message_body WHERE seq = 9`, want: []string{"message 9 body"}},
	"a deleted message":  {sql: `DELETE FROM message_log WHERE seq = 9`, want: []string{"message 9 missing"}},

	"a deleted exclusion": {sql: `DELETE FROM exclusions WHERE run = run(5)`, want: []string{"run 5 live_after", "message 8 exclusion"}},
	"an exclusion that points to a wrong stand-in": {
		sql: `UPDATE exclusions SET summary_seq = 12 WHERE summary_seq = 11`, want: []string{"exclusion by run 2 summary_seq"},
	},
	"an exclusion that names another session's run": {
		sql:  `UPDATE exclusions SET run = (SELECT min(id) FROM runs WHERE sid <> $1) WHERE run = run(5)`,
		want: []string{"exclusion by run another run", "run 5 live_after", "message 8 exclusion"},
	},

	"in_force on the head line": {sql: `UPDATE runs SET in_force = false WHERE id = run(1)`, want: []string{"run 1 in_force"}, fixed: true},
	"in_force on an undone run": {sql: `UPDATE runs SET in_force = true WHERE id = run(3)`, want: []string{"run 3 in_force"}, fixed: true},
	"a cut base_run":            {sql: `UPDATE runs SET base_run = NULL WHERE id = run(2)`, want: []string{"run 2 base_run"}, fixed: true},
	"a falsified live_before":   {sql: `UPDATE runs SET live_before = live_before - '{[6,7)}' WHERE id = run(2)`, want: []string{"run 2 live_before"}},
	"a revision gap":            {sql: `UPDATE runs SET revision = 6 WHERE id = run(5); UPDATE sessions SET revision = 6`, want: []string{"run 6 revision"}},
	"a deleted run":             {sql: `DELETE FROM runs WHERE id = run(5)`, want: []string{"live"}},
	"the last user message out of the view": {
		sql: `UPDATE exclusions SET seqs = seqs + '{[13,14)}' WHERE run = run(5); UPDATE runs SET live_after = live_after - '{[13,14)}' WHERE id = run(5);
			UPDATE sessions SET live = live - '{[13,14)}', tail_start_seq = 14, live_messages = live_messages - 1,
				live_tokens = live_tokens - (SELECT token_count FROM message_log m WHERE m.sid = $1 AND m.seq = 13),
				live_estimated_tokens = live_estimated_tokens - (SELECT token_count FROM message_log m WHERE m.sid = $1 AND m.seq = 13)`,
		want: []string{"message 13 view"},
	},
}

// damageable makes a due session of 15 messages, at revision 5, with a summary (10), two
// replacements (11 and 12), a run that was undone, and an open call.
func damageable(t *testing.T, s *Store, k Key) (sid int64) {
	t.Helper()
	add(t, s, k, user("u1", "said first"), call("c1", "a", "b"), result("r1", "a", "said by a"), result("r2", "b", "said by b"),
		assistant("a1", "said then"), user("u2", "said second"), assistant("a2", "said at length"), user("u3", "said third"), assistant("a3", "said again"))
	apply(t, s, k, summarize(span(2, 5), "what was said"))
	both := replacement(chat.Meta{Seq: 6, Position: 6}, "short")
	both.Additions = append(both.Additions, replacement(chat.Meta{Seq: 7, Position: 7}, "shorter").Additions...)
	apply(t, s, k, both)
	undone := apply(t, s, k, exclude(span(1, 1)))
	must(s.Undo(t.Context(), k, undone, false, ""))(t)
	apply(t, s, k, exclude(span(8, 8)))
	add(t, s, k, user("u4", "said last"), call("c2", "x", "y"), result("r3", "x", "said by x"))
	row := session(t, s, k)
	exec(t, s, `UPDATE compactor.sessions SET due_tokens = 1, due = true WHERE sid = $1`, row.SID)
	return row.SID
}

// byHand executes statements on the rows of one session with triggers off.
func byHand(t *testing.T, s *Store, sid int64, sql string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica; SET LOCAL search_path = compactor`); err != nil {
			return err
		}
		for i := range 7 {
			sql = strings.ReplaceAll(sql, fmt.Sprintf("run(%d)", i), fmt.Sprintf("(SELECT id FROM runs WHERE sid = $1 AND revision = %d)", i))
		}
		for statement := range strings.SplitSeq(sql, ";") {
			where := " WHERE sid = $1"
			if i := strings.LastIndex(statement, " WHERE "); i > strings.LastIndex(statement, " SET ") && !strings.HasSuffix(statement, "$1 AND m.seq = 13)") {
				where = " AND sid = $1"
			}
			tag, err := tx.Exec(t.Context(), statement+where, sid)
			if err != nil || tag.RowsAffected() == 0 {
				return fmt.Errorf("%s: %d rows, %w", statement, tag.RowsAffected(), err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rowsOf returns all rows of a session as text, without the time since which it is due: one that is set right begins anew.
func rowsOf(t *testing.T, s *Store, sid int64) string {
	t.Helper()
	return strings.Join(list[string](t, s, `
		SELECT (to_jsonb(x) - 'due_since')::text FROM compactor.sessions x WHERE sid = $1
		UNION ALL (SELECT to_jsonb(x)::text FROM compactor.message_log x WHERE sid = $1 ORDER BY seq)
		UNION ALL (SELECT to_jsonb(x)::text FROM compactor.message_body x WHERE sid = $1 ORDER BY seq)
		UNION ALL (SELECT to_jsonb(x)::text FROM compactor.archive_segments x WHERE sid = $1 ORDER BY id)
		UNION ALL (SELECT to_jsonb(x)::text FROM compactor.runs x WHERE sid = $1 ORDER BY id)
		UNION ALL (SELECT to_jsonb(x)::text FROM compactor.exclusions x WHERE sid = $1 ORDER BY run, seqs::text)`, sid), "\n")
}

// rowAndField names findings as damages do, with runs by their revision.
func rowAndField(t *testing.T, s *Store, sid int64, findings []Finding) []string {
	t.Helper()
	var out []string
	for _, f := range findings {
		name := strings.TrimSpace(f.Row + " " + f.Field)
		if i := strings.Index(name, "run "); i >= 0 {
			var id int64
			_, _ = fmt.Sscanf(name[i:], "run %d", &id)
			revision := one[string](t, s, `SELECT coalesce((SELECT revision::text FROM compactor.runs WHERE sid = $1 AND id = $2), 'another')`, sid, id)
			name = strings.Replace(name, fmt.Sprintf("run %d", id), "run "+revision, 1)
		}
		out = append(out, name)
	}
	return out
}

func TestAuditFindsWhatWasChangedByHand(t *testing.T) {
	s := fresh(t)
	damageable(t, s, Key{Session: "undamaged"})
	for name, d := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := Key{Session: name}
			sid := damageable(t, s, k)
			if a := must(s.Admin.AuditSession(t.Context(), k))(t); len(a.Findings) > 0 {
				t.Fatalf("before: %v", a)
			}
			before := rowsOf(t, s, sid)
			byHand(t, s, sid, d.sql)
			damaged := rowsOf(t, s, sid)

			found := must(s.Admin.AuditSession(t.Context(), k))(t).Findings
			names := rowAndField(t, s, sid, found)
			for _, want := range d.want {
				if i := slices.Index(names, want); i < 0 {
					t.Errorf("%s is not among the findings %v", want, found)
				} else if found[i].Derived != d.fixed {
					t.Errorf("%s: can be fixed: %t, want %t", found[i], found[i].Derived, d.fixed)
				}
			}
			for _, f := range found {
				if f.Derived != d.fixed || d.fixed && len(found) > len(d.want) {
					t.Errorf("found %s as well", f)
				}
			}

			fixed := must(s.Admin.Fix(t.Context(), k))(t)
			if !d.fixed {
				if diff := cmp.Diff(damaged, rowsOf(t, s, sid)); diff != "" || len(fixed) > 0 {
					t.Errorf("it was to touch nothing, and says %v:\n%s", fixed, diff)
				}
				return
			}
			equal(t, before, rowsOf(t, s, sid), "fixed")
			equal(t, found, fixed, "it says that it did, -found +fixed")
			none(t, must(s.Admin.AuditSession(t.Context(), k))(t).Findings, "left over")
		})
	}
	t.Cleanup(func() {
		a, err := s.Admin.AuditSession(context.WithoutCancel(t.Context()), Key{Session: "undamaged"})
		if err != nil || len(a.Findings) > 0 {
			t.Errorf("in the untouched session: %v, %v", a.Findings, err)
		}
	})
}

func TestAuditFindsATriggerThatDoesNotProtect(t *testing.T) {
	s := fresh(t)
	for _, c := range []struct{ sql, want string }{
		{`ALTER TABLE compactor.message_log DISABLE TRIGGER append_only`, "trigger append_only of message_log: state is disabled, should be enabled"},
		{`ALTER TABLE compactor.exclusions DISABLE TRIGGER append_only`, "trigger append_only of exclusions: state is disabled, should be enabled"},
		{`ALTER TABLE compactor.message_log ENABLE REPLICA TRIGGER keep_digest`, "trigger keep_digest of message_log: state is disabled, should be enabled"},
	} {
		exec(t, s, c.sql)
		got := must(s.Admin.AuditDatabase(t.Context()))(t)
		for i := range got { // those of the partitions follow from it
			got[i].Row = ofPartition.ReplaceAllString(got[i].Row, "")
		}
		if got = slices.Compact(got); len(got) != 1 || got[0].String() != c.want || !got[0].Derived {
			t.Errorf("after %s: %v, want %s", c.sql, got, c.want)
		}
		noError(t, s.Admin.EnableTriggers(t.Context()))
		none(t, must(s.Admin.AuditDatabase(t.Context()))(t), "enabled, but")
	}
	exec(t, s, `DROP TRIGGER append_only ON compactor.message_log`)
	if got := must(s.Admin.AuditDatabase(t.Context()))(t); len(got) != 1 || got[0].Stored != "missing" || got[0].Derived {
		t.Errorf("without the trigger: %v", got)
	}
}

// Roles and the policies of tables are those of functions/zz_grants.sql and tenant.sql.
func TestAuditFindsRightsAndFencesThatWereChanged(t *testing.T) {
	t.Parallel()
	_, dsn := openRoles(t)
	const schema = "rights_of_all"
	createRoles(t, dsn, schema)
	s := must(Open(t.Context(), Config{URL: dsn, Schema: schema}))(t)
	t.Cleanup(s.Close)
	t.Cleanup(func() { // roles are the server's
		ctx := context.WithoutCancel(t.Context())
		for _, role := range migrations.Roles(schema) {
			if _, err := s.pool.Exec(ctx, `DROP OWNED BY `+role+`; DROP ROLE `+role, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Error(err)
			}
		}
	})
	for _, c := range []struct{ sql, want string }{
		{`GRANT EXECUTE ON FUNCTION rights_of_all.view_revision TO PUBLIC`, "PUBLIC on routine rights_of_all.view_revision(text,text): privilege is EXECUTE, should be none"},
		{`GRANT SELECT ON rights_of_all.message_body TO rights_of_all_application`, "rights_of_all_application on table rights_of_all.message_body: privilege is SELECT, should be none"},
		{`GRANT UPDATE (role) ON rights_of_all.message_log TO rights_of_all_reader`, "rights_of_all_reader on table rights_of_all.message_log (role): privilege is UPDATE, should be none"},
		{`GRANT TRUNCATE ON rights_of_all.runs TO rights_of_all_worker`, "rights_of_all_worker on table rights_of_all.runs: privilege is DELETE, INSERT, SELECT, TRUNCATE, UPDATE, should be DELETE, INSERT, SELECT, UPDATE"},
		{`GRANT CREATE ON SCHEMA rights_of_all TO PUBLIC`, "PUBLIC on schema rights_of_all: privilege is CREATE, should be none"},
		{`REVOKE SELECT ON rights_of_all.messages FROM rights_of_all_reader`, "rights_of_all_reader on table rights_of_all.messages: privilege is none, should be SELECT"},
		{`ALTER FUNCTION rights_of_all.view_revision SECURITY INVOKER`, "rights_of_all.view_revision(text,text): privilege is that of its caller, or with another search_path, should be that of the owner"},
		{`ALTER FUNCTION rights_of_all.view_revision RESET search_path`, "rights_of_all.view_revision(text,text): privilege is that of its caller, or with another search_path, should be that of the owner"},
		{`GRANT rights_of_all_worker TO rights_of_all_application`, "memberships of rights_of_all_application: privilege is rights_of_all_worker, should be none"},
		{`ALTER TABLE rights_of_all.sessions DISABLE ROW LEVEL SECURITY`, "row-level security of table rights_of_all.sessions: state is off, should be on"},
		{`DROP POLICY tenant ON rights_of_all.runs`, "policy tenant on table rights_of_all.runs: state is missing, should be as installed"},
		{`ALTER POLICY tenant ON rights_of_all.runs USING (true)`, "policy tenant on table rights_of_all.runs: state is of another condition, should be as installed"},
		{`CREATE POLICY everybody ON rights_of_all.runs USING (true)`, "policy everybody on table rights_of_all.runs: state is one that lets more rows through, should be none"},
		{`ALTER POLICY worker ON rights_of_all.runs TO rights_of_all_worker, rights_of_all_reader`, "policy worker on table rights_of_all.runs: state is of another condition, should be as installed"},
	} {
		exec(t, s, c.sql)
		got := must(s.Admin.AuditDatabase(t.Context()))(t)
		if len(got) != 1 || got[0].String() != c.want || got[0].Derived {
			t.Errorf("after %s: %v, want %s", c.sql, got, c.want)
		}
		if strings.HasPrefix(c.sql, "GRANT rights_of_all_worker") { // which the role that granted it has to revoke
			exec(t, s, `REVOKE rights_of_all_worker FROM rights_of_all_application`)
		}
		must(migrations.Up(t.Context(), dsn, schema))(t)
		none(t, must(s.Admin.AuditDatabase(t.Context()))(t), "after %s and migrate up", c.sql)
	}
}

// One lost row is one finding; the rows after it add none.
func TestAuditNamesTheCauseAlone(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, append(talk("m", 40), call("c", "x"), result("r", "x", "y"))...)
	sid := session(t, s, k).SID
	byHand(t, s, sid, `DELETE FROM message_log WHERE seq = 9; DELETE FROM message_log WHERE seq > 9 AND seq < 12; DELETE FROM message_log WHERE seq = 41`)
	if got := rowAndField(t, s, sid, must(s.Admin.AuditSession(t.Context(), k))(t).Findings); !slices.Equal(got, []string{"message 9 missing", "message 41 missing"}) {
		t.Errorf("found %v, want the lost rows alone", got)
	}
}

func TestWhatWasSaidIsNotToBeChangedEvenByFix(t *testing.T) {
	s := fresh(t)
	sid := damageable(t, s, Key{Session: "s"})
	for _, set := range []string{"body_digest = '{}'", "body_digest = NULL", "token_count = 1", "position = 1", "id = 'x'", "role = 'tool'", "name = 'x'", "digest = NULL", "summary_of = '{}', kind = 's'"} {
		err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL compactor.fix = 'on'`); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), `UPDATE compactor.message_log SET `+set+` WHERE sid = $1 AND seq = 9`, sid)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("message 9 of session %d is not to be changed", sid)) {
			t.Errorf("%s: %v, want it refused", set, err)
		}
	}
	for _, sql := range []string{
		`UPDATE compactor.message_log SET flags = 0`, `SELECT set_config('compactor.fix', 'on', false); DELETE FROM compactor.message_log`,
		`SET compactor.fix = 'on'; UPDATE compactor.exclusions SET reason = ''`, `SET compactor.fix = 'on'; UPDATE compactor.message_body SET body = '{}'`,
		`UPDATE compactor.message_body SET body = '{}'`, `UPDATE compactor.message_body SET seq = 70 WHERE seq = 2`, `UPDATE compactor.message_log SET name = 'x'`,
	} {
		if _, err := s.pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err == nil {
			t.Errorf("%s was not refused", sql)
		}
	}
}

func TestFixWaitsForTheRunThatIsAtWork(t *testing.T) {
	s, k := freshSession(t)
	sid := damageable(t, s, k)
	start(t, s, k)
	byHand(t, s, sid, `UPDATE sessions SET live_messages = 1`)
	if _, err := s.Admin.Fix(t.Context(), k); !errors.Is(err, ErrInUse) {
		t.Errorf("%v, want it in use", err)
	}
	// A lease longer than any is from another clock: no worker holds it.
	exec(t, s, `UPDATE compactor.runs SET lease_until = now() + interval '1 day' WHERE status = 'running'`)
	stuck := func(f Finding) bool { return f.Field == "lease_until" }
	if found := must(s.Admin.AuditDatabase(t.Context()))(t); !slices.ContainsFunc(found, stuck) {
		t.Errorf("a lease of a day is not found: %v", found)
	}
	wantError(t, second(s.Admin.Fix(t.Context(), k)), nil, "a run that no worker holds")
	exec(t, s, `UPDATE compactor.runs SET lease_until = now() - interval '1 minute' WHERE status = 'running'`)
	if found := must(s.Admin.AuditDatabase(t.Context()))(t); slices.ContainsFunc(found, stuck) {
		t.Errorf("a lease that has just ended: %v", found)
	}
}

func TestAuditPagesThroughAllSessionsOrASample(t *testing.T) {
	s := fresh(t)
	const n = 2*auditPage + 20
	for i := range n {
		add(t, s, Key{Session: fmt.Sprint(i)}, user("", "x"))
	}
	for _, c := range []struct{ sample, want int }{{0, n}, {auditPage + 1, auditPage + 1}, {10 * n, n}} {
		var sids []int64
		for a, err := range s.Admin.AuditSessions(t.Context(), c.sample) {
			if err != nil {
				t.Fatal(err)
			}
			sids = append(sids, a.SID)
		}
		if !slices.IsSorted(sids) || len(slices.Compact(sids)) != c.want {
			t.Errorf("a sample of %d: sessions %v, want %d", c.sample, sids, c.want)
		}
	}
}

// Calibration by reports makes other sessions due at their next write.
func TestAuditKnowsThatReportsOfOthersTeach(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{DueTokens: 1000})
	k := Key{Session: "s"}
	add(t, s, k, counted(user("", "x"), 10))
	exec(t, s, `INSERT INTO compactor.calibrations (tenant, model, counted, reported, reports, overhead, scale, updated_at)
		VALUES ('default', '', '{1}', '{1}', 5, 5000, 1, now())`)
	none(t, must(s.Admin.AuditSession(t.Context(), k))(t).Findings, "findings")
}
