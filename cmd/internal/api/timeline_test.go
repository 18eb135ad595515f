package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// A timeline gives the view of each moment as it was read then, also around an undo.
func TestTimelineHasTheViewOfEachMoment(t *testing.T) {
	s := newServer(t)
	read := s.key(t, "read", "acme")
	k := store.Key{Tenant: "acme", Session: "chat"}
	views := map[store.RunID][]chat.Seq{}
	timeline := func() (out store.Timeline) {
		t.Helper()
		return into[store.Timeline](t, s.do(t, read, http.MethodGet, at("chat", "/timeline"), nil).want(t, 200))
	}
	note := func() {
		t.Helper()
		v, err := s.st.Reader.WholeView(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		runs, run := timeline().Runs, store.RunID(0)
		if len(runs) > 0 {
			run = runs[len(runs)-1].ID
		}
		views[run] = nil
		for _, m := range v.Messages {
			views[run] = append(views[run], m.Seq)
		}
	}
	s.say(t, "acme", "chat", "write to ann@example.com", "done: src/app.go", "thanks", "welcome")
	for _, id := range []string{"m1", "m3"} {
		if _, err := s.st.Exclude(t.Context(), k, []string{id}, "test"); err != nil {
			t.Fatal(err)
		}
		note()
	}
	second := timeline().Runs[1]
	undo, err := s.st.Undo(t.Context(), k, second.ID, false, "ann")
	if err != nil {
		t.Fatal(err)
	}
	note()
	later := []store.NewMessage{
		{Message: chat.Message{ID: "m5", Role: chat.RoleUser, Content: chat.TextContent("and now?")}},
		{Message: chat.Message{ID: "m6", Role: chat.RoleAssistant, Content: chat.TextContent("wait")}},
	}
	if _, _, err := s.st.Append(t.Context(), k, "", later); err != nil {
		t.Fatal(err)
	}
	got := timeline()
	if len(got.Runs) != 3 || got.Runs[1].UndoneBy != undo || got.Runs[1].InForce || got.Runs[2].Undoes != second.ID || got.Runs[1].Out != "{[3,4)}" ||
		got.Runs[2].Back != "{[3,4)}" || got.Messages.Kinds != "uauaua" || len(got.Messages.Said) != 6 || got.LastSeq != 6 || got.More {
		t.Errorf("%+v", got)
	}
	for run, want := range views {
		view, _, ok := got.At(run)
		if !ok || !cmp.Equal(want, view.Seqs()) {
			t.Errorf("after run %d: %v, want %v", run, view, want)
		}
	}
	if view, _, ok := got.At(0); !ok || view.String() != "{[2,7)}" {
		t.Errorf("now: %v", view)
	}
	if _, _, ok := got.At(undo + 1); ok {
		t.Error("the moment of a run that is not of the session")
	}
	s.say(t, "acme", "long", strings.Repeat("You must wait. ", 5000), "yes")
	if _, err := s.st.Exclude(t.Context(), store.Key{Tenant: "acme", Session: "long"}, []string{"m1"}, "test"); err != nil {
		t.Fatal(err)
	}
	run := into[store.Timeline](t, s.do(t, read, http.MethodGet, at("long", "/timeline"), nil).want(t, 200)).Runs[0].ID
	kept := into[reports.Kept](t, s.do(t, read, http.MethodGet, fmt.Sprintf("/v1/runs/%d/kept", run), nil).want(t, 200))
	if kept.Demands.Of != 2000 || kept.Requests.Of != 1 { // each is compared with all that was written
		t.Errorf("%d demands of %d requests are looked at", kept.Demands.Of, kept.Requests.Of)
	}
	s.do(t, read, http.MethodGet, at("none", "/timeline"), nil).want(t, 404)
	s.do(t, s.key(t, "read", "other"), http.MethodGet, at("chat", "/timeline"), nil).want(t, 404)
	for seqs, status := range map[string]int{"{[2,3),[5,7)}": 200, "{[1,1000)}": 422, "{[1,)}": 422, "x": 422} {
		r := s.do(t, read, http.MethodGet, at("chat", "/messages?seqs="+url.QueryEscape(seqs)), nil).want(t, status)
		if page := into[items[store.MessageRow]](t, r); status == 200 && fmt.Sprint(len(page.Items), page.Items[0].Seq) != "3 2" {
			t.Error(r.body)
		}
	}
}
