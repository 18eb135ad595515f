package cli

import (
	"path/filepath"
	"testing"
)

func TestSessionsAreNamedAfterTheirFolder(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/x/history.jsonl": "history", "/x/tasks/1757/api_conversation_history.json": "1757", "/g/s/%2Fw/u-1/chat_history.jsonl": "u-1",
		"/k/w/s-1/context.jsonl": "s-1", "/k/w/session_1/agents/main/wire.jsonl": "session_1", "/context.jsonl": "context", "/a/wire.jsonl": "wire",
	} {
		if got := fileSession(filepath.FromSlash(path)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
