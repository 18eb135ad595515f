package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
)

func TestChildrenAreShownWithTheirParent(t *testing.T) {
	t.Parallel()
	db := database(t)
	for _, name := range []string{"chat", "search"} {
		invoke(t, db, "import", file(t, "s.jsonl", conversation(name, 2))).want(t, 0)
	}
	invoke(t, db, "set-parent", "search", "chat").want(t, 0, "session search is a child of chat")
	invoke(t, db, "set-parent", "draft", "chat").want(t, 0)
	if lines := strings.Count(invoke(t, db, "sessions", "--children-of", "chat").want(t, 0, "search", "draft", "PARENT").stdout, "\n"); lines != 3 {
		t.Errorf("%d lines, want a header and the two children", lines)
	}
	got := decode[struct{ Sessions []store.SessionRow }](t, invoke(t, db, "sessions", "--json").want(t, 0)).Sessions
	if len(got) != 3 || got[0].Children != 2 || got[1].Parent != "chat" {
		t.Errorf("%+v", got)
	}
	invoke(t, db, "view", "search").want(t, 0, "child of chat")
	invoke(t, db, "view", "chat").want(t, 0, "2 children")
	invoke(t, db, "policy", "explain", "search").want(t, 0, "parent", "chat")
	invoke(t, db, "set-parent", "chat", "search").want(t, exitUsage, "cannot be the child of search")
	invoke(t, db, "set-parent", "chat", "missing").want(t, exitNotFound, "missing")
	invoke(t, db, "set-parent", "draft").want(t, 0, "has no parent")
	invoke(t, db, "fork", "chat", "retry", "--at", "3").want(t, 0, "session retry has 3 messages of chat, 3 in its view")
	if row := decode[store.SessionRow](t, invoke(t, db, "fork", "chat", "copy", "--json").want(t, 0)); row.Parent != "chat" || row.Messages != got[0].Messages {
		t.Errorf("%+v", row)
	}
	invoke(t, db, "fork", "chat", "copy").want(t, exitRefused, "exists already")
	invoke(t, db, "fork", "chat", "other", "--at", "nothing").want(t, exitNotFound, "compactor: fork: session chat has no source message nothing")
	invoke(t, db, "doctor").want(t, 0)
}

func TestAForkOfACompactedSessionIsSound(t *testing.T) {
	t.Parallel()
	db := compacted(t)
	invoke(t, db, "compact", "chat-1", "--strategy=handoff", "--allow-growth").want(t, 0)
	invoke(t, db, "fork", "chat-1", "fork").want(t, 0)
	source, fork := invoke(t, db, "view", "chat-1", "--full").want(t, 0), invoke(t, db, "view", "fork", "--full").want(t, 0, "child of chat-1")
	body := func(r result) string { // without the header and the seqs
		_, text, _ := strings.Cut(r.stdout, "\n")
		return regexp.MustCompile(`(?m)^ *\d+ +`).ReplaceAllString(text, "")
	}
	if diff := cmp.Diff(body(source), body(fork)); diff != "" {
		t.Errorf("view (-source +fork):\n%s", diff)
	}
	summary := regexp.MustCompile(`summary-\d+-\d+`).FindString(invoke(t, db, "view", "fork", "--json").want(t, 0).stdout)
	invoke(t, db, "summary", "show", summary).want(t, 0, summary, "chat-1")
	invoke(t, db, "summary", "expand", summary).want(t, 0)
	copies := decode[struct{ Runs []store.RunRow }](t, invoke(t, db, "runs", "fork", "--json").want(t, 0)).Runs
	if len(copies) != 2 || copies[0].Origin == 0 {
		t.Fatalf("%+v", copies)
	}
	invoke(t, db, "runs", "--run", strconv.FormatInt(copies[0].ID, 10)).want(t, 0, fmt.Sprintf("run %d, by a fork", copies[0].Origin))
	invoke(t, db, "doctor", "--deep").want(t, 0)
	invoke(t, db, "compact", "fork", "--from=view").want(t, 0)
	invoke(t, db, "doctor", "--deep").want(t, 0)
}
