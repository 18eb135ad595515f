package web_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/dev/backlog"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// longSession makes a session of the tenant engineering that was compacted several times, with an undo among them, and
// returns the run that was undone.
func (f *fleet) longSession() (undone store.RunID) {
	f.Helper()
	k := store.Key{Tenant: "engineering", Session: "long"}
	n := 0
	for s := range backlog.Generate(backlog.Options{Seed: 7, Sessions: 6, End: time.Now()}) {
		for i := range s.Messages {
			n++
			s.Messages[i].ID = fmt.Sprintf("long-%d", n)
			for j := range s.Messages[i].ToolCalls {
				s.Messages[i].ToolCalls[j].ID += k.Session + fmt.Sprint(len(s.ID), s.ID)
			}
			if s.Messages[i].ToolCallID != "" {
				s.Messages[i].ToolCallID += k.Session + fmt.Sprint(len(s.ID), s.ID)
			}
		}
		f.append(k.Tenant, k.Session, s.Messages)
		f.settled()
		runs, err := f.st.Operator.Runs(f.Context(), store.RunFilter{Key: k, Status: store.StatusApplied, Limit: 10})
		if err != nil {
			f.Fatal(err)
		}
		if len(runs) == 2 && undone == 0 {
			undone = runs[0].ID
			if _, err := f.st.Undo(f.Context(), k, undone, false, "ann"); err != nil {
				f.Fatal(err)
			}
		}
	}
	f.append(k.Tenant, k.Session, []chat.Message{
		{ID: "hostile", Role: chat.RoleUser, Content: chat.TextContent("<script>alert(1)</script> \x1b[31m red \u202egnp.exe ![x](http://evil.example/x.png)")},
	})
	return undone
}

// get returns a page as its HTML.
func (f *fleet) get(path string) string {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.url+path, nil)
	if err != nil {
		f.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // of a test
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		f.Fatalf("%s: %d %s %v", path, resp.StatusCode, raw, err)
	}
	return string(raw)
}

func TestSessionPage(t *testing.T) {
	f := newFleet(t, small)
	undone := f.longSession()
	html := f.get(at("session", "tenant", "engineering", "id", "long"))
	t.Log(len(html), undone)
	_ = os.WriteFile("/tmp/session.html", []byte(html), 0o600)
}
