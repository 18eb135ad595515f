package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store/storetest"
)

// An edited result of a call is still there, also behind the next run.
func TestAnEditedResultStays(t *testing.T) {
	x := attachedTables["generic"]
	a := newApplication(t, x.ddl...)
	startWorker(t, a.db, nil)
	for n := range 2 {
		for _, s := range x.turn {
			args := []any{fmt.Sprint(n), "result"}
			if !strings.Contains(s, "$2") {
				args = args[:1]
			}
			a.exec(s, args...)
		}
	}
	invoke(t, a.db, append([]string{"attach", x.table, "--on-delete=keep", "--apply"}, x.flags...)...).want(t, 0)
	a.exec(`UPDATE "chat log" SET body = 'result, edited' WHERE nr = 3`)
	a.exec(`INSERT INTO "chat log" (chat, "who says", body) VALUES (5, 'Customer', 'and now?')`)
	invoke(t, a.db, "compact", "chat_log:5", "--strategy", "strip_media")
	native := a.texts(fmt.Sprintf(x.read, `public."chat log"`))
	if got := a.texts(fmt.Sprintf(x.read, `compactor_chat_log."chat log"`)); strings.Join(got, "\n") != strings.Join(native, "\n") {
		t.Errorf("view:\n%s\ntable:\n%s", strings.Join(got, "\n"), strings.Join(native, "\n"))
	}
}

// A summary of a deleted row is written anew, also where the run of an operator read the deletion.
func TestEraseOfASummarizedRow(t *testing.T) {
	a := longChat(t, chatTable, "erase")
	a.exec(`DELETE FROM chat WHERE id = 1`)
	invoke(t, a.db, "compact", "chat:c", "--from=view", "--strategy", "strip_media")
	startRoles(t, a.db, nil, func(app *App) ([]Role, error) { s, err := app.SchedulerRole(); return []Role{s}, err })
	storetest.Await(t, "a new summary", func() bool {
		return !strings.Contains(strings.Join(a.texts(`SELECT body FROM compactor_chat.chat WHERE chat = 'c'`), "\n"), "[erased]")
	})
	if got := a.texts(`SELECT body::text FROM compactor.message_body WHERE body LIKE '%question 0%'`); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// An undone summary does not bring back what the application has deleted meanwhile.
func TestUndoDoesNotBringBackDeletedRows(t *testing.T) {
	for _, mode := range []string{"exclude", "erase"} {
		t.Run(mode, func(t *testing.T) {
			a := longChat(t, chatTable, mode)
			run := a.texts(`SELECT max(id)::text FROM compactor.runs WHERE kind = 'compact'`)[0]
			a.exec(`DELETE FROM chat WHERE id IN (3, 4)`)
			invoke(t, a.db, "compact", "chat:c", "--from=view", "--strategy", "strip_media")
			invoke(t, a.db, "undo", run, "--cascade").want(t, 0)
			got := a.texts(`SELECT id FROM compactor.view('', 'chat:c')`)
			want := a.texts(`SELECT id || '#1@1' FROM chat ORDER BY id`)
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("the view has %q, want %q", got, want)
			}
		})
	}
}
