package cli

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
)

// damage executes statements with triggers off.
func damage(t *testing.T, db []string, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db[0][len("DATABASE_URL="):])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `SET session_replication_role = replica; SET search_path = compactor; `+sql); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorNamesEachFindingAndFixesWhatFollowsFromLogAndLedger(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	invoke(t, db, "import", file(t, "s.jsonl", conversation("other", 2)), "--tenant=acme").want(t, 0)
	damage(t, db, `
		UPDATE sessions SET live_messages = 1, turns = 99 WHERE id = 'chat';
		UPDATE message_body SET body = replace(body, 'thing', 'think') WHERE seq = 2 AND sid = (SELECT sid FROM sessions WHERE id = 'other');
		ALTER TABLE exclusions DISABLE TRIGGER append_only`)
	counters := "! default/chat: live_messages is 1, should be 33 (compactor doctor --fix sets it)"
	trigger := "! trigger append_only of exclusions: state is disabled, should be enabled (compactor doctor --fix sets it)"
	body := "✗ acme/other message 2: body is "
	invoke(t, db, "doctor").want(t, exitFindings, "✗ counters follow from the log and the view: 2 findings", counters, trigger,
		body, "(restore it from a backup: nothing else has what was said)", "3 checks failed", "checking, sessions: 2\n")

	operator := append([]string{"DATABASE_URL=" + roleLogin(t, db[0][len("DATABASE_URL="):], "compactor_operator")}, db[1:]...)
	reader := append([]string{"DATABASE_URL=" + roleLogin(t, db[0][len("DATABASE_URL="):], "compactor_reader")}, db[1:]...)
	invoke(t, reader, "doctor", "--fix").want(t, exitFindings, "not fixed: ", counters, trigger)
	r := invoke(t, operator, "doctor", "--fix").want(t, exitFindings, "fixed default/chat: live_messages from 1 to 33\n",
		"fixed default/chat: turns from 99 to 8\n", trigger, body)
	if strings.Contains(r.stdout, counters) {
		t.Errorf("it is fixed, but still reported:\n%s", r.stdout)
	}
	got := decode[struct {
		OK              bool
		Findings, Fixed []store.Finding
	}](t, invoke(t, db, "doctor", "--fix", "--json").want(t, exitFindings))
	if got.OK || len(got.Fixed) != 1 || got.Fixed[0].Row != "trigger append_only of exclusions" ||
		len(got.Findings) != 1 || got.Findings[0].Session != "other" || got.Findings[0].Derived {
		t.Errorf("%+v", got)
	}
	damage(t, db, `UPDATE message_body SET body = replace(body, 'think', 'thing') WHERE seq = 2 AND sid = (SELECT sid FROM sessions WHERE id = 'other')`)
	invoke(t, db, "doctor").want(t, 0, "all checks passed", "✓ messages are as they were appended")
}

// What one cause has done is one line, in the same order each time, and what may follow from it stands under it.
func TestDoctorGroupsFindingsByTheirCause(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	invoke(t, db, "import", file(t, "s.jsonl", conversation("other", 9)), "--tenant=acme").want(t, 0)
	damage(t, db, `
		DELETE FROM message_log WHERE seq = 5 AND sid = (SELECT sid FROM sessions WHERE id = 'chat');
		DELETE FROM message_body WHERE seq > 3 AND sid = (SELECT sid FROM sessions WHERE id = 'other');
		GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA compactor TO PUBLIC`)
	r := invoke(t, db, "doctor").want(t, exitFindings, "✗ default/chat message 5 is missing: should be a message (restore it",
		"✗ acme/other message 4: body is missing, should be ", "more up to message ", "✗ PUBLIC on routine compactor.add_segment(",
		"more up to PUBLIC on routine compactor.writers_of_sessions() (compactor migrate up, as the owner of the tables, sets it)")
	if n := strings.Count(r.stdout, "\n      "); n != 3 {
		t.Errorf("%d lines for three causes:\n%s", n, r.stdout)
	}
	data := func(out string) string { // the section; those before it have statistics, which autovacuum changes
		_, out, _ = strings.Cut(out, "\ndata\n")
		out, _, _ = strings.Cut(out, "\nwork\n")
		return out
	}
	if again := invoke(t, db, "doctor"); data(again.stdout) == "" || data(again.stdout) != data(r.stdout) {
		t.Errorf("once:\n%s\nand again:\n%s", r.stdout, again.stdout)
	}
	got := decode[struct{ Findings []store.Finding }](t, invoke(t, db, "doctor", "--json").want(t, exitFindings))
	if len(got.Findings) < 100 {
		t.Errorf("%d findings as JSON", len(got.Findings))
	}
	invoke(t, db, "migrate", "up").want(t, 0, "restored ", " rights of roles and ", "which were missing or not as this version has them")
	if r := invoke(t, db, "doctor"); strings.Contains(r.stdout, "PUBLIC") {
		t.Errorf("after migrate up:\n%s", r.stdout)
	}
}

func TestDoctorChecksASample(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	invoke(t, db, "import", file(t, "s.jsonl", conversation("a", 1)+conversation("b", 1))).want(t, 0)
	invoke(t, db, "doctor", "--sample=2").want(t, 0, "– sessions checked: 2 of 3 (a sample; --deep checks all)", "✓ views are valid: 2 of 2")
	invoke(t, db, "doctor").want(t, 0, "✓ sessions checked: 3 of 3")
	invoke(t, db, "doctor", "--sample=-1").want(t, exitUsage, "--sample")
	invoke(t, db, "doctor", "--sample=1", "--deep").want(t, exitUsage, "--sample")
	invoke(t, db, "doctor", "--help").want(t, 0, "of more than 10,000 sessions a random sample of that size", "--fix")
}

// A view that cannot be read names the command that says why.
func TestTheViewOfADamagedSessionNamesDoctor(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	damage(t, db, `UPDATE sessions SET live = '{[1,)}'; DELETE FROM message_body WHERE seq = 5`)
	for _, command := range []string{"view", "export"} {
		invoke(t, db, command, "chat").want(t, exitInternal, "message 5 ", "compactor doctor says what is damaged")
	}
}
