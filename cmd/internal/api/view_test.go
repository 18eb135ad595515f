package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

func TestTheViewIsWhatAModelIsSent(t *testing.T) {
	s := newServer(t)
	key, read := s.key(t, "append", "ours"), s.key(t, "read", "ours")
	s.do(t, read, http.MethodGet, at("s", "/view"), nil).want(t, 404, `"code":"not_found"`)
	s.session(t, key, "s", 2)
	got := s.do(t, read, http.MethodGet, at("s", "/view"), nil).want(t, 200)
	const want = `{"revision":0,"last_seq":2,"messages":[{"role":"user","content":"words of 1"},{"role":"assistant","content":"words of 2"}]}`
	if got.body != want || got.header.Get("ETag") != `"0-2"` || got.header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("%v %s", got.header, got.body)
	}
	s.do(t, read, http.MethodGet, at("s", "/view?ids=true"), nil).want(t, 200, `[{"id":"m1","role":"user",`)
	// A tag is of the whole view, a revision of what stands in it.
	for _, c := range []struct {
		tags   string
		status int
	}{
		{`"0-2"`, 304}, {`W/"0-2"`, 304}, {`"5", "0-2"`, 304}, {"*", 304}, {`"0"`, 304}, {"0", 304}, {`"0-1"`, 200}, {`"1-2"`, 200}, {`"x"`, 200}, {`""`, 200},
	} {
		got := s.do(t, read, http.MethodGet, at("s", "/view"), nil, "If-None-Match", c.tags)
		if got.status != c.status || got.header.Get("ETag") != `"0-2"` || c.status == 304 && got.body != "" {
			t.Errorf("%s: %d %v %s", c.tags, got.status, got.header, got.body)
		}
	}
	s.do(t, read, http.MethodGet, at("none", "/view"), nil, "If-None-Match", "*").want(t, 404)
	s.session(t, key, "s", 3)
	s.do(t, read, http.MethodGet, at("s", "/view"), nil, "If-None-Match", `"0-2"`).want(t, 200)
	s.do(t, read, http.MethodGet, at("s", "/view"), nil, "If-None-Match", `"0"`).want(t, 304)
	for query, field := range map[string]string{
		"shape=morse": "query.shape", "shape=anthropic&tail=true": "query.shape", "shape=ai-sdk&ids=true": "query.shape", "max_tokens=-1": "query.max_tokens",
		"max_tokens=5&tail=true": "query.max_tokens", "preset=chat": "query.preset", "max_tokens=5&preset=morse": "query.preset", "prefix_changed_since=x": "query.prefix_changed_since",
	} {
		s.do(t, read, http.MethodGet, at("s", "/view?"+query), nil).want(t, 422, `"field":"`+field+`"`)
	}
	// An empty view is a list, too.
	if err := s.exclude(t, "ours", "s", "m1", "m2", "m3"); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"", "ids=1", "shape=anthropic", "shape=ai-sdk", "max_tokens=1"} {
		s.do(t, read, http.MethodGet, at("s", "/view?"+query), nil).want(t, 200, `"messages":[]`)
	}
	s.do(t, read, http.MethodGet, at("s", "/view?shape=responses"), nil).want(t, 200, `"input":[]`)
}

func TestTheViewHasTheShapeOfAHost(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	s.do(t, key, http.MethodPost, at("s", "/messages"), `[{"role":"system","content":"be brief"},{"role":"user","content":"hi"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}},{"type":"text","text":"and"}]}]`).want(t, 200)
	for shape, want := range map[string]string{
		"anthropic": `"losses":{"part input_audio":1},"system":"be brief","messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"},{"type":"text","text":"and"}]}]}`,
		"responses": `"instructions":"be brief","input":[{"content":"hi","role":"user","type":"message"},` +
			`{"arguments":"{\"a\":1}","call_id":"c1","name":"f","type":"function_call"},{"call_id":"c1","output":"r","type":"function_call_output"},` +
			`{"content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}},{"type":"input_text","text":"and"}],"role":"user","type":"message"}]}`,
		"ai-sdk": `"losses":{"part input_audio":1},"messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"hi"}]},` +
			`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"f","input":{"a":1}}]},` +
			`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"f","output":{"type":"text","value":"r"}}]},` +
			`{"role":"user","content":[{"type":"text","text":"and"}]}]}`,
	} {
		got := s.do(t, key, http.MethodGet, at("s", "/view?shape="+shape), nil).want(t, 200)
		if diff := cmp.Diff(`{"revision":0,"last_seq":5,`+want, got.body); diff != "" {
			t.Errorf("%s: %s", shape, diff)
		}
	}
}

// Providers refuse keys that they do not know.
func TestTheViewHasNoKeysOfFormats(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	for format, doc := range map[string]string{
		"anthropic": `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{},"caller":{"type":"direct"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r","is_error":true}]}]}`,
		"responses": `{"input":[{"type":"message","role":"user","content":"hi","id":"msg_1"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"c1","output":"r","status":"completed"}]}`,
		"chat": `[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"},"pi":{"x":1}}]},
			{"role":"tool","tool_call_id":"c1","content":"r","is_error":true,"claude_code":{"uuid":"1"}}]`,
	} {
		s.do(t, key, http.MethodPost, at(format, "/messages?format="+format), doc).want(t, 200)
		s.do(t, key, http.MethodPost, at(format, "/messages"), `{"role":"user","content":"more","name":"bob","own":1}`).want(t, 200)
		s.do(t, key, http.MethodPost, at(format, "/fork"), `{"session":"`+format+`-fork"}`).want(t, 201)
		s.do(t, key, http.MethodGet, at(format+"-fork", "/view"), nil).want(t, 200, `"losses":{`)
		for _, query := range []string{"", "?tail=true", "?max_tokens=100000", "?max_tokens=100000&ids=true", "?ids=true"} {
			got := s.do(t, key, http.MethodGet, at(format, "/view"+query), nil).want(t, 200, `"own":1`)
			v := into[api.View](t, got)
			kept := false
			for _, word := range []string{"is_error", `"claude_code"`, `"responses"`, `"anthropic"`, `"pi"`} {
				kept = kept || strings.Contains(got.body, word)
			}
			if ids := strings.Contains(query, "ids"); kept != ids || (v.Losses["extra"]+v.Losses["call extra"] > 0) == ids {
				t.Errorf("%s%s: %s", format, query, got.body)
			}
		}
	}
}

func TestAHostLearnsWhetherItsPrefixHasChanged(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	s.session(t, key, "s", 4)
	changed := func(since string) bool {
		t.Helper()
		v := into[api.View](t, s.do(t, key, http.MethodGet, at("s", "/view?prefix_changed_since="+since), nil).want(t, 200, `"prefix_changed":`))
		return *v.PrefixChanged
	}
	tag := s.do(t, key, http.MethodGet, at("s", "/view"), nil).header.Get("ETag")
	s.session(t, key, "s", 6)
	if changed(tag) || changed("0") {
		t.Error("appending has changed the prefix")
	}
	if err := s.exclude(t, "ours", "s", "m5"); err != nil {
		t.Fatal(err)
	}
	if changed(tag) || !changed("0") || !changed("0-5") || changed("1") || !changed("9") {
		t.Error("m5 is not in the first four messages, and is in the first six")
	}
	s.do(t, key, http.MethodGet, at("none", "/view?prefix_changed_since=0"), nil).want(t, 404)
}

func TestAViewIsCutForOneAnswer(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	var msgs []string
	for i := range 40 {
		call := fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, i)
		msgs = append(msgs, fmt.Sprintf(`{"role":"user","content":"question %d"}`, i), call, fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, strings.Repeat("data ", 40)))
	}
	s.do(t, key, http.MethodPost, at("s", "/messages"), "["+`{"role":"system","content":"rules"},`+strings.Join(msgs, ",")+"]").want(t, 200)
	for _, query := range []string{"max_tokens=1000", "max_tokens=1000&preset=coding", "max_tokens=1000&preset=strict", "max_tokens=1000&shape=anthropic"} {
		got := s.do(t, key, http.MethodGet, at("s", "/view?"+query), nil).want(t, 200)
		v := into[api.View](t, got)
		if v.Cut == nil || !v.Cut.Fits || v.Cut.TokensAfter > 1000 || v.Cut.TokensBefore < 2000 || v.Cut.Removed == 0 {
			t.Errorf("%s: %+v", query, v.Cut)
		}
		if !strings.Contains(got.body, "rules") || !strings.Contains(got.body, "question 39") {
			t.Errorf("%s: without the system prompt or the newest message", query)
		}
		if strings.Contains(query, "shape") {
			continue
		}
		metas := into[struct{ Messages []chat.Message }](t, got).Messages
		if faults := chat.Check(chat.Describe(metas)); len(faults) > 0 {
			t.Errorf("%s: not valid: %v", query, faults)
		}
	}
	small := into[api.View](t, s.do(t, key, http.MethodGet, at("s", "/view?max_tokens=1"), nil).want(t, 200))
	if small.Cut.Fits || len(small.Messages) == 0 {
		t.Errorf("%+v", small.Cut)
	}
	whole := into[api.View](t, s.do(t, key, http.MethodGet, at("s", "/view?max_tokens=1000000"), nil).want(t, 200))
	if whole.Cut.Removed != 0 || len(whole.Messages) != 121 {
		t.Errorf("%+v, %d messages", whole.Cut, len(whole.Messages))
	}
	if row, err := s.st.Session(t.Context(), store.Key{Tenant: "ours", Session: "s"}); err != nil || row.Revision != 0 || row.LiveMessages != 121 {
		t.Errorf("something is stored: %+v, %v", row, err)
	}
}

func TestTheTailIsGivenApart(t *testing.T) {
	s := newServer(t).works(t)
	key := s.key(t, "append", "ours")
	s.do(t, key, http.MethodPost, at("s", "/messages"), `[{"id":"sys","role":"system","content":"rules"}]`).want(t, 200)
	s.do(t, key, http.MethodPost, at("s", "/messages"), strings.ReplaceAll(talk(8), "words", strings.Repeat("many words ", 200))).want(t, 200)
	k := store.Key{Tenant: "ours", Session: "s"}
	run, err := s.st.Request(t.Context(), k, store.TriggerApplication, "test", store.Options{
		AllowGrowth: true, Pipeline: []store.Step{{Strategy: "extractive", Params: map[string]any{"protect_first_n": 1, "protect_last_n": 2, "tail_token_budget": 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := s.st.WaitRun(t.Context(), run); err != nil || row.Status != "applied" {
		t.Fatalf("%+v, %v", row, err)
	}
	v := into[struct {
		Summaries, Kept, Tail []struct{ ID, Content string }
		TailStartSeq          int64 `json:"tail_start_seq"`
	}](t, s.do(t, key, http.MethodGet, at("s", "/view?tail=true&ids=true"), nil).want(t, 200))
	ids := func(msgs []struct{ ID, Content string }) (out []string) {
		for _, m := range msgs {
			out = append(out, m.ID)
		}
		return out
	}
	if len(v.Summaries) != 1 || v.Summaries[0].Content == "" {
		t.Errorf("summaries %+v", v.Summaries)
	}
	if diff := cmp.Diff([]string{"sys"}, ids(v.Kept)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"m6", "m7", "m8"}, ids(v.Tail)); diff != "" || v.TailStartSeq != 7 {
		t.Errorf("from %d on: %s", v.TailStartSeq, diff)
	}
	var list map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s.do(t, key, http.MethodGet, at("s", "/view?tail=true"), nil).body), &list); err != nil || list["messages"] != nil {
		t.Errorf("%v, %v", list, err)
	}
}

func TestItemsHaveTheIDsOfTheirMessages(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "acme")
	const items = `[{"role":"system","content":"be brief"},{"role":"user","content":"hi"},
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
		{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"function_call_output","call_id":"c2","output":"2"}]`
	s.do(t, key, http.MethodPost, at("s", "/messages?format=responses"), items, "Idempotency-Key", "k").want(t, 200)
	view := into[api.View](t, s.do(t, key, http.MethodGet, at("s", "/view?shape=responses&ids=true"), nil).want(t, 200))
	want := []string{"k#1", "k#2", "k#3", "k#3", "k#3", "k#4", "k#5"}
	if diff := cmp.Diff(want, view.IDs); diff != "" || view.Instructions != "be brief" || len(view.Input) != 6 {
		t.Errorf("%s\n%+v", diff, view)
	}
	s.do(t, key, http.MethodGet, at("s", "/view?shape=anthropic&ids=true"), nil).want(t, 422, `"field":"query.shape"`)
}
