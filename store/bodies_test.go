package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

// What was stored when a message and its words were one row stays what it was.
func TestMigratingMovesTheBodiesOfAVersionBefore(t *testing.T) {
	t.Parallel()
	dsn := storetest.DB(t, "empty", nil) // in one table each, as all of that version
	must(migrations.Up(t.Context(), dsn, migrations.DefaultSchema))(t)
	s := must(Open(t.Context(), Config{URL: dsn}))(t)
	t.Cleanup(s.Close)
	k := Key{Session: "s"}
	sid := damageable(t, s, k)
	before := must(s.All(t.Context(), k))(t)
	exec(t, s, `
		DROP VIEW compactor.messages;
		DROP TABLE compactor.archive_segments, compactor.archive_cursors, compactor.disk_passes;
		ALTER TABLE compactor.sessions DROP COLUMN archived, DROP COLUMN restored_at;
		ALTER TABLE compactor.message_log ADD COLUMN body text, DISABLE TRIGGER USER;
		UPDATE compactor.message_log l SET body = b.body, body_digest = NULL FROM compactor.message_body b WHERE b.sid = l.sid AND b.seq = l.seq;
		UPDATE compactor.message_log l SET digest = compactor.message_digest(l, l.body);
		ALTER TABLE compactor.message_log DROP COLUMN body_digest, ENABLE TRIGGER USER;
		CREATE VIEW compactor.messages AS SELECT * FROM compactor.message_log;
		DROP TABLE compactor.message_body;
		DROP TABLE compactor.erasures, compactor.forked_from CASCADE;
		DROP TYPE compactor.view_change CASCADE;
		DROP TRIGGER keep_applied ON compactor.runs;
		DROP INDEX compactor.runs_without_effect, compactor.bulk_refusals_run;
		DROP TABLE compactor.used_elsewhere, compactor.bulk_undo_runs;
		ALTER TABLE compactor.runs DROP COLUMN said_until;
		ALTER TABLE compactor.sessions DROP COLUMN repeated_ids;
		ALTER TABLE compactor.spending_limits DROP COLUMN started;
		ALTER TABLE compactor.sessions DROP COLUMN erased, DROP COLUMN thresholds_revision, DROP COLUMN parallel;
		ALTER TABLE compactor.thresholds DROP COLUMN revision, DROP COLUMN former;
		DELETE FROM compactor.schema_version WHERE version_id >= 26;
		DELETE FROM compactor.installed_functions`)
	if _, err := migrations.Up(t.Context(), dsn, migrations.DefaultSchema); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), Config{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if diff := cmp.Diff(before, must(again.All(t.Context(), k))(t)); diff != "" {
		t.Errorf("messages (-before +after):\n%s", diff)
	}
	wantConsistent(t, again)
	if _, err := again.Undo(t.Context(), k, one[RunID](t, again, `SELECT head_run FROM compactor.sessions WHERE sid = $1`, sid), false, ""); err != nil {
		t.Error(err)
	}
	byHand(t, again, sid, `UPDATE message_body SET body = replace(body, 'said', 'meant') WHERE seq = 9`)
	if a := must(again.Admin.AuditSession(t.Context(), k))(t); len(a.Findings) != 1 || !strings.HasPrefix(a.Findings[0].String(), "default/s message 9: digest is ") {
		t.Errorf("%+v", a.Findings)
	}
}
