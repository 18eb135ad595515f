package cli

import (
	"testing"

	"github.com/sessionstore/compactor/store"
)

func TestArchivedWordsAreShownAndComeBack(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	startWorker(t, db, map[string]string{"policy.start_tokens": "600", "policy.target_tokens": "300", "policy.min_gain_tokens": "50"})
	invoke(t, db, append([]string{"compact", "chat", "--strategy=sliding_window:keep_last_groups=6"}, small...)...).want(t, 0)
	damage(t, db, `UPDATE runs SET ended_at = now() - interval '40 days' WHERE status = 'applied'`)
	all := invoke(t, db, "view", "chat", "--all", "--full").want(t, 0).stdout
	golden(t, "archive_dry_run", invoke(t, db, "archive", "--dry-run").want(t, 0).stdout)
	golden(t, "archive", invoke(t, db, "archive", "chat").want(t, 0).stdout)
	invoke(t, db, "archive").want(t, 0, "archived 0 messages of 0 sessions")
	invoke(t, db, "doctor").want(t, 0, "✓ the log is complete")
	if got := invoke(t, db, "view", "chat", "--all", "--full").want(t, 0).stdout; got != all {
		t.Errorf("the full history of archived words:\n%s\nwant:\n%s", got, all)
	}
	first := decode[struct{ Messages []store.MessageRow }](t, invoke(t, db, "view", "chat", "--all", "--json").want(t, 0)).Messages[1].ID
	golden(t, "restore_message", invoke(t, db, "restore", "chat", "--message", first).want(t, 0).stdout)
	invoke(t, db, "restore", "chat", "--message", "no-such").want(t, 3, "not all of the messages no-such")
	golden(t, "restore", invoke(t, db, "restore", "chat").want(t, 0).stdout)
	invoke(t, db, "restore", "chat").want(t, 0, "nothing of it is in the archive")
	invoke(t, db, "archive", "chat").want(t, 0, "archived 0 messages") // for a day
	invoke(t, db, "archive", "missing").want(t, 3, "not found")
	invoke(t, db, "archive", "--older-than=soon").want(t, 2, "want a time such as 30d or 12h")
}
