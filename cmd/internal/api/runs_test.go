package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
)

func TestSessionsAreCompacted(t *testing.T) {
	s := newServer(t).works(t)
	operate := s.key(t, "operate", "acme")
	s.say(t, "acme", "chat", long(40)...)
	s.say(t, "other", "chat-o", long(40)...)
	summary := map[string]any{"pipeline": []any{map[string]any{"strategy": "handoff", "params": map[string]any{"protect_last_n": 2, "tail_token_budget": 100}}}}
	dry := map[string]any{"dry_run": true, "pipeline": summary["pipeline"]}
	shown := into[api.Compaction](t, s.do(t, operate, http.MethodPost, at("chat", "/compact"), dry).want(t, 200, `"dry_run":true`, `"model_calls":`))
	if shown.Preview.Outcome != "applied" || len(shown.Diff.Out) == 0 || len(shown.Diff.Wrote) != 1 || shown.Diff.Stays.Messages == 0 {
		t.Errorf("%+v", shown)
	}
	s.do(t, operate, http.MethodGet, "/v1/runs", nil).want(t, 200, `"items":[]`)

	done := into[api.Compaction](t, s.do(t, operate, http.MethodPost, at("chat", "/compact?wait=20s"), summary).want(t, 200, `"outcome":"applied"`))
	if done.Run.MessagesAfter != shown.Preview.MessagesAfter || done.Run.RequestedBy != "key:operate-4" {
		t.Errorf("%+v, the preview was %+v", done.Run, shown.Preview)
	}
	run := func(rest string) string { return fmt.Sprintf("/v1/runs/%d%s", done.Run.ID, rest) }
	got := into[reports.Run](t, s.do(t, operate, http.MethodGet, run(""), nil).want(t, 200, `"steps":[`))
	diff := into[store.RunDiff](t, s.do(t, operate, http.MethodGet, run("/diff"), nil).want(t, 200))
	if len(got.Summaries) != 1 || len(diff.Wrote) != 1 || diff.Wrote[0].ID != got.Summaries[0] || diff.Out[0].Messages != shown.Diff.Out[0].Messages {
		t.Errorf("%+v; %+v", got, diff)
	}
	id := got.Summaries[0]
	s.do(t, operate, http.MethodGet, "/v1/summaries/"+id, nil).want(t, 200, `"in_view":true`, `"prose":`, `"written_by":"extractive"`)
	page := into[items[store.MessageRow]](t, s.do(t, operate, http.MethodGet, "/v1/summaries/"+id+"/sources?limit=2", nil).want(t, 200))
	if len(page.Items) != 2 || page.Items[0].Seq != 2 || page.Items[0].SummarizedBy != id || page.Next != "3" {
		t.Errorf("%+v", page)
	}
	s.do(t, operate, http.MethodGet, at("chat", "/messages/2"), nil).want(t, 200, `"covered_by":[{`, id)

	s.do(t, operate, http.MethodPost, at("chat", "/compact?wait=20s"), map[string]any{"strategies": []string{"drop_everything"}}).want(t, 422, `"field":"body.pipeline"`)
	s.do(t, operate, http.MethodPost, at("chat", "/compact"), map[string]any{"strategies": []string{"handoff"}, "policy": "default"}).want(t, 422, `"field":"body"`)
	s.do(t, operate, http.MethodPost, at("chat", "/compact?wait=1h"), nil).want(t, 422, `"field":"query.wait"`)
	own := map[string]any{"summary": map[string]any{"text": "They spoke. [m3]"}, "pipeline": summary["pipeline"], "allow_growth": true}
	second := into[api.Compaction](t, s.do(t, operate, http.MethodPost, at("chat", "/compact?wait=20s"), own).want(t, 200, `"outcome":"applied"`)).Run.ID
	s.do(t, operate, http.MethodPost, run("/undo"), nil).want(t, 409, `"code":"in_use"`)
	s.do(t, operate, http.MethodPost, run("/undo"), map[string]any{"dry_run": true}).want(t, 200, fmt.Sprintf(`"later":[%d]`, second), `"messages_after":40`)
	s.do(t, operate, http.MethodPost, run("/undo"), map[string]any{"cascade": true}).want(t, 200, `"outcome":"undone"`, `"messages_after":40`)
	s.do(t, operate, http.MethodPost, run("/undo"), map[string]any{"cascade": true}).want(t, 409, `"code":"not_applicable"`)
	s.do(t, operate, http.MethodGet, "/v1/runs?session=chat&status=applied&limit=1", nil).want(t, 200, `"kind":"undo"`, `"next":"`)
	s.do(t, operate, http.MethodGet, fmt.Sprintf("/v1/runs?after=%d", second), nil).want(t, 200, fmt.Sprintf(`"run":%d`, done.Run.ID))

	if err := s.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "acme"}, "test", "test"); err != nil {
		t.Fatal(err)
	}
	s.do(t, operate, http.MethodPost, at("chat", "/compact"), nil).want(t, 409, `"code":"paused"`)

	stranger := s.key(t, "operate", "other")
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, run("")},
		{http.MethodGet, run("/diff")},
		{http.MethodPost, run("/undo")},
		{http.MethodGet, "/v1/runs/9999"},
		{http.MethodGet, "/v1/summaries/" + id},
		{http.MethodGet, "/v1/summaries/" + id + "/sources"},
		{http.MethodGet, "/v1/summaries/summary-1-9999"},
		{http.MethodPost, at("chat", "/compact")},
		{http.MethodPost, at("none", "/compact")},
		{http.MethodGet, "/v1/runs?session=chat"},
	} {
		s.do(t, stranger, c.method, c.path, nil).want(t, 404, `"code":"not_found"`)
	}
	s.do(t, stranger, http.MethodGet, "/v1/runs", nil).want(t, 200, `"items":[]`)
	reads := s.key(t, "read", "acme")
	s.do(t, reads, http.MethodPost, at("chat", "/compact"), nil).want(t, 403)
	s.do(t, reads, http.MethodPost, run("/undo"), nil).want(t, 403)
}
