package store

import (
	"testing"
	"time"
)

func TestPurgedWordsLeaveATombstone(t *testing.T) {
	s, k := freshArchived(t)
	if n := must(s.Scheduler.PurgeArchive(t.Context(), 24*time.Hour, 24*time.Hour, []string{"default"}, 10))(t); n != 0 {
		t.Fatalf("%d segments were purged before their time", n)
	}
	byHand(t, s, session(t, s, k).SID, `UPDATE archive_segments SET created_at = now() - interval '2 days'`)
	if n := must(s.Scheduler.PurgeArchive(t.Context(), 24*time.Hour, 24*time.Hour, []string{"another"}, 10))(t); n != 0 {
		t.Fatalf("%d segments were purged by the policy of others", n)
	}
	if n := must(s.Scheduler.PurgeArchive(t.Context(), 24*time.Hour, 365*24*time.Hour, []string{"default"}, 10))(t); n != 0 {
		t.Fatalf("%d segments were purged, which a disk budget made before the time of their policy", n)
	}
	if n := must(s.Scheduler.PurgeArchive(t.Context(), 24*time.Hour, 24*time.Hour, []string{"default"}, 10))(t); n != 1 {
		t.Fatalf("%d segments were purged", n)
	}
	none(t, must(s.Admin.AuditSession(t.Context(), k))(t).Findings, "after the purge")
	purged := 0
	for _, m := range must(s.All(t.Context(), k))(t) {
		if m.Purged {
			purged++
			if m.Content.String() != "" || m.ID == "" || m.Role == "" || m.ExcludedBy == 0 {
				t.Errorf("%+v", m)
			}
		}
	}
	equal(t, 10, purged, "messages are purged")
	wantError(t, second(s.Undo(t.Context(), k, one[RunID](t, s, `SELECT min(id) FROM compactor.runs`), true, "")), ErrPurged, "undo")
	wantError(t, second(s.Admin.Restore(t.Context(), k)), ErrPurged, "restore")
	wantConsistent(t, s)
}

// Words that are gone without a purge are lost, whatever the segment says of them.
func TestAFakedPurgeIsFound(t *testing.T) {
	s, k := freshArchived(t)
	sid := session(t, s, k).SID
	for _, also := range []string{"", ", purged_after = '1 day'"} {
		byHand(t, s, sid, `UPDATE archive_segments SET data = NULL, purged_at = now()`+also)
		if a := must(s.Admin.AuditSession(t.Context(), k))(t); len(a.Findings) != 1 || a.Findings[0].Field != "purged_after" || a.Findings[0].Derived {
			t.Errorf("with %q: %v", also, a.Findings)
		}
	}
}
