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
	post := func(path string, body any) reply { return s.do(t, operate, http.MethodPost, path, body) }
	get := func(path string) reply { return s.do(t, operate, http.MethodGet, path, nil) }
	s.say(t, "acme", "chat", long(40)...)
	s.say(t, "other", "chat-o", long(40)...)
	steps := []store.Step{{Strategy: "handoff", Params: map[string]any{"protect_last_n": 2, "tail_token_budget": 100}}}
	summary, dry := map[string]any{"pipeline": steps}, map[string]any{"dry_run": true, "pipeline": steps}
	shown := into[api.Compaction](t, post(at("chat", "/compact"), dry).want(t, 200, `"dry_run":true`, `"model_calls":`))
	if shown.Preview.Outcome != "applied" || len(shown.Diff.Out) == 0 || len(shown.Diff.Wrote) != 1 || shown.Diff.Stays.Messages == 0 {
		t.Errorf("%+v", shown)
	}
	get("/v1/runs").want(t, 200, `"items":[]`)

	done := into[api.Compaction](t, post(at("chat", "/compact?wait=20s"), summary).want(t, 200, `"outcome":"applied"`))
	if done.Run.MessagesAfter != shown.Preview.MessagesAfter || done.Run.RequestedBy != "key:operate-4" {
		t.Errorf("%+v, the preview was %+v", done.Run, shown.Preview)
	}
	run := func(rest string) string { return fmt.Sprintf("/v1/runs/%d%s", done.Run.ID, rest) }
	got := into[reports.Run](t, get(run("")).want(t, 200, `"steps":[`))
	diff := into[store.RunDiff](t, get(run("/diff")).want(t, 200))
	if len(got.Summaries) != 1 || len(diff.Wrote) != 1 || diff.Wrote[0].ID != got.Summaries[0] ||
		diff.Out[0].Messages != shown.Diff.Out[0].Messages {
		t.Errorf("%+v; %+v", got, diff)
	}
	kept := into[reports.Kept](t, get(run("/kept")).want(t, 200))
	if kept.Of != diff.Out[0].Messages || kept.Requests.Of == 0 || shown.Preview.Kept == nil || kept.Requests.Of != shown.Preview.Kept.Requests.Of {
		t.Errorf("%+v; the preview %+v", kept, shown.Preview.Kept)
	}
	if got.Start == 0 || got.Target >= got.Start || got.Meaning == "" {
		t.Errorf("start %d, target %d, %q", got.Start, got.Target, got.Meaning)
	}
	get("/v1/runs?trigger=operator").want(t, 200, fmt.Sprintf(`"run":%d`, done.Run.ID))
	get("/v1/runs?trigger=bulk").want(t, 200, `"items":[]`)
	get("/v1/runs?model=m&session=chat").want(t, 200, `"items":[]`)
	get("/v1/strategies").want(t, 200, `"name":"handoff"`, `"name":"coding"`)
	post(at("chat", "/compact"), map[string]any{"dry_run": true, "preset": "strict"}).want(t, 200, `"dry_run":true`)
	post(at("chat", "/compact"), map[string]any{"dry_run": true, "preset": "none"}).want(t, 422, `"field":"body.preset"`)
	id := got.Summaries[0]
	get("/v1/summaries/"+id).want(t, 200, `"in_view":true`, `"prose":`, `"written_by":"extractive"`)
	page := into[items[store.MessageRow]](t, get("/v1/summaries/"+id+"/sources?limit=2").want(t, 200))
	if len(page.Items) != 2 || page.Items[0].Seq != 2 || page.Items[0].SummarizedBy != id || page.Next != "3" {
		t.Errorf("%+v", page)
	}
	get(at("chat", "/messages/2")).want(t, 200, `"covered_by":[{`, id)

	post(at("chat", "/compact?wait=20s"), map[string]any{"strategies": []string{"drop_everything"}}).want(t, 422, `"field":"body.pipeline"`)
	post(at("chat", "/compact"), map[string]any{"strategies": []string{"handoff"}, "policy": "default"}).want(t, 422, `"field":"body"`)
	post(at("chat", "/compact?wait=1h"), nil).want(t, 422, `"field":"query.wait"`)
	own := map[string]any{"summary": map[string]any{"text": "They spoke. [m3]"}, "pipeline": steps, "allow_growth": true}
	second := into[api.Compaction](t, post(at("chat", "/compact?wait=20s"), own).want(t, 200, `"outcome":"applied"`)).Run.ID
	post(run("/undo"), nil).want(t, 409, `"code":"in_use"`)
	post(run("/undo"), map[string]any{"dry_run": true}).want(t, 200, fmt.Sprintf(`"later":[%d]`, second), `"messages_after":40`)
	post(run("/undo"), map[string]any{"cascade": true}).want(t, 200, `"outcome":"undone"`, `"messages_after":40`)
	post(run("/undo"), map[string]any{"cascade": true}).want(t, 409, `"code":"not_applicable"`)
	get("/v1/runs?session=chat&status=applied&limit=1").want(t, 200, `"kind":"undo"`, `"next":"`)
	get(fmt.Sprintf("/v1/runs?after=%d", second)).want(t, 200, fmt.Sprintf(`"run":%d`, done.Run.ID))

	if err := s.st.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "acme"}, "test", "test"); err != nil {
		t.Fatal(err)
	}
	post(at("chat", "/compact"), nil).want(t, 409, `"code":"paused"`)

	stranger := s.key(t, "operate", "other")
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, run("")},
		{http.MethodGet, run("/diff")},
		{http.MethodGet, run("/kept")},
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
