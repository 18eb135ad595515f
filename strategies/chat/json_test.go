package chat_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestMessageUnmarshalJSON(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := map[string]struct {
		in   string
		want chat.Message
	}{
		"string content": {
			in:   `{"role":"user","content":"hi <b>&\u00e9"}`,
			want: chat.Message{Role: "user", Content: chat.TextContent("hi <b>&é")},
		},
		"null content and calls with arguments that are no JSON": {
			in: `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":"}, "index":0}]}`,
			want: chat.Message{Role: "assistant", Content: chat.Content{Null: true}, ToolCalls: []chat.ToolCall{{
				ID: "c1", Type: "function", Name: "f", Arguments: `{"a":`,
				Raw: raw(`{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":"}, "index":0}`),
			}}},
		},
		"absent content and a custom call": {
			in: `{"role":"assistant","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sh","input":"ls"}}]}`,
			want: chat.Message{Role: "assistant", Content: chat.Content{Null: true}, ToolCalls: []chat.ToolCall{{
				ID: "c1", Type: "custom", Name: "sh", Arguments: "ls",
				Raw: raw(`{"id":"c1","type":"custom","custom":{"name":"sh","input":"ls"}}`),
			}}},
		},
		"arguments that came as an object": {
			in: `{"role":"assistant","content":"","tool_calls":[{"id":null,"function":{"name":"f","arguments":{"n":1e2}}}]}`,
			want: chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{{
				Name: "f", Arguments: `{"n":1e2}`, Raw: raw(`{"id":null,"function":{"name":"f","arguments":{"n":1e2}}}`),
			}}},
		},
		"parts of every kind": {
			in: `{"role":"user","content":[{"type":"text","text":"a"},"b",{"type":"image_url","image_url":{"url":"x"}},{"type":"refusal","refusal":"no"},{"type":"thinking","thinking":"hm"}]}`,
			want: chat.Message{Role: "user", Content: chat.Content{Parts: []chat.Part{
				{Type: "text", Text: "a", Raw: raw(`{"type":"text","text":"a"}`)},
				{Text: "b", Raw: raw(`"b"`)},
				{Type: "image_url", Raw: raw(`{"type":"image_url","image_url":{"url":"x"}}`)},
				{Type: "refusal", Text: "no", Raw: raw(`{"type":"refusal","refusal":"no"}`)},
				{Type: "thinking", Raw: raw(`{"type":"thinking","thinking":"hm"}`)},
			}}},
		},
		"an empty array is not null": {
			in:   `{"role":"user","content":[]}`,
			want: chat.Message{Role: "user", Content: chat.Content{Parts: []chat.Part{}}},
		},
		"the envelope": {
			in: `{"id":"m1","role":"tool","content":"","tool_call_id":"c1","name":"f","source_id":"rag","created_at":"2024-05-15T15:00:00-05:00"}`,
			want: chat.Message{
				ID: "m1", Role: "tool", ToolCallID: "c1", Name: "f", SourceID: "rag",
				CreatedAt: time.Date(2024, 5, 15, 20, 0, 0, 0, time.UTC),
			},
		},
		"unknown keys stay byte for byte": {
			in: `{"role":"user","content":"","function_call":{"name":"f", "arguments":""},"n":1.00e+2,"audio":null}`,
			want: chat.Message{Role: "user", Extra: map[string]json.RawMessage{
				"function_call": raw(`{"name":"f", "arguments":""}`), "n": raw(`1.00e+2`), "audio": raw(`null`),
			}},
		},
		"a call from before tools": {
			in: `{"role":"assistant","content":"","function_call":{"name":"f", "arguments":"{}", "x":1}}`,
			want: chat.Message{Role: "assistant", Legacy: true, ToolCalls: []chat.ToolCall{
				{Type: "function", Name: "f", Arguments: "{}", Raw: raw(`{"name":"f", "arguments":"{}", "x":1}`)},
			}},
		},
		"its result": {
			in:   `{"role":"function","name":"f","content":"r"}`,
			want: chat.Message{Role: "tool", Legacy: true, Name: "f", Content: chat.TextContent("r")},
		},
		"reasoning": {
			in:   `{"role":"assistant","content":"","reasoning":"because"}`,
			want: chat.Message{Role: "assistant", Reasoning: "because", ReasoningKey: "reasoning"},
		},
		"reasoning of another type stays": {
			in: `{"role":"assistant","content":"","reasoning":{"effort":"low"},"reasoning_content":""}`,
			want: chat.Message{
				Role: "assistant", ReasoningKey: "reasoning_content",
				Extra: map[string]json.RawMessage{"reasoning": raw(`{"effort":"low"}`)},
			},
		},
		"the reasoning that says something wins": {
			in: `{"role":"assistant","content":"","reasoning_content":"","reasoning":"r"}`,
			want: chat.Message{
				Role: "assistant", Reasoning: "r", ReasoningKey: "reasoning",
				Extra: map[string]json.RawMessage{"reasoning_content": raw(`""`)},
			},
		},
		"an unreadable time stays": {
			in: `{"role":"developer","content":"","created_at":"yesterday","id":17}`,
			want: chat.Message{
				Role: "developer", ID: "17", Extra: map[string]json.RawMessage{"created_at": raw(`"yesterday"`)},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got chat.Message
			if err := json.Unmarshal([]byte(tt.in), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			roundTrip(t, got)
		})
	}
}

func roundTrip(t *testing.T, m chat.Message) {
	t.Helper()
	out := m.AppendJSON(nil)
	var again chat.Message
	if err := json.Unmarshal(out, &again); err != nil {
		t.Fatalf("read the written message: %v\n%s", err, out)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
}

func TestMessageUnmarshalJSONErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"no role":              {`{"content":"x"}`, "role: missing"},
		"role of another type": {`{"role":1}`, "role: want a string, got a number"},
		"null role":            {`{"role":null}`, "role: want a string, got null"},
		"empty role":           {`{"role":""}`, "role: empty"},
		"content object":       {`{"role":"user","content":{}}`, "content: want a string, an array of parts or null, got an object"},
		"content number":       {`{"role":"user","content":1}`, "content: want a string"},
		"part of another type": {`{"role":"user","content":[{"type":"text"},3]}`, "content[1]: want an object"},
		"part type":            {`{"role":"user","content":[{"type":3}]}`, "content[0]: type: want a string"},
		"call id":              {`{"role":"tool","tool_call_id":3}`, "tool_call_id: want a string, got a number"},
		"calls":                {`{"role":"assistant","tool_calls":{}}`, "tool_calls: want an array"},
		"call":                 {`{"role":"assistant","tool_calls":[1]}`, "tool_calls[0]: want an object"},
		"id of a call":         {`{"role":"assistant","tool_calls":[{"id":1}]}`, "tool_calls[0].id: want a string"},
		"an array":             {`[]`, "want an object, got an array"},
		"null":                 {`null`, "want an object, got null"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m chat.Message
			err := json.Unmarshal([]byte(tt.in), &m)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want it to contain %q", err, tt.want)
			}
		})
	}
}

func TestCreatedAt(t *testing.T) {
	t.Parallel()
	day := time.Date(2025, 11, 20, 17, 3, 4, 0, time.UTC)
	tests := map[string]struct {
		in   string
		want time.Time // zero: kept in Extra
	}{
		"RFC 3339":              {`"2025-11-20T17:03:04Z"`, day},
		"with a fraction":       {`"2025-11-20T17:03:04.5Z"`, day.Add(time.Second / 2)},
		"with an offset":        {`"2025-11-20T18:03:04+01:00"`, day},
		"ISO without a zone":    {`"2025-11-20T17:03:04.000001"`, day.Add(time.Microsecond)},
		"with a space":          {`"2025-11-20 17:03:04"`, day},
		"as Postgres writes it": {`"2025-11-20 17:03:04.25+00"`, day.Add(time.Second / 4)},
		"as Go prints it":       {`"2025-11-20 17:03:04 +0000 UTC"`, time.Time{}},
		"UTC by name":           {`"2025-11-20 17:03:04 UTC"`, day},
		"a zone by name":        {`"2025-11-20 17:03:04 EST"`, time.Time{}},
		"unix seconds":          {`1763658184`, day},
		"unix milliseconds":     {`1763658184000`, day},
		"unix microseconds":     {`1763658184000000`, day},
		"unix nanoseconds":      {`1763658184000000000`, day},
		"a fraction of a unix":  {`1763658184.123456`, day.Add(123456 * time.Microsecond)},
		"the epoch":             {`0`, time.Unix(0, 0).UTC()},
		"the zero time":         {`"0001-01-01T00:00:00Z"`, time.Time{}},
		"too far away":          {`1e300`, time.Time{}},
		"null":                  {`null`, time.Time{}},
		"an object":             {`{"at":1}`, time.Time{}},
		"a date":                {`"2025-11-20"`, time.Time{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m chat.Message
			if err := json.Unmarshal([]byte(`{"role":"user","created_at":`+tt.in+`}`), &m); err != nil {
				t.Fatal(err)
			}
			if !m.CreatedAt.Equal(tt.want) {
				t.Errorf("got %v, want %v", m.CreatedAt, tt.want)
			}
			if kept := string(m.Extra["created_at"]); tt.want.IsZero() && kept != tt.in {
				t.Errorf("kept %q, want %q", kept, tt.in)
			}
			roundTrip(t, m)
		})
	}
}

func TestAppendJSONOfMessagesMadeInGo(t *testing.T) {
	t.Parallel()
	m := chat.Message{
		Role: chat.RoleAssistant, Content: chat.Content{Parts: []chat.Part{{Text: "<a>\x01\n\"\xff"}}},
		ToolCalls: []chat.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}, {ID: "d", Type: "custom", Name: "g"}},
		Reasoning: "r", Extra: map[string]json.RawMessage{"role": json.RawMessage(`"user"`), "x": nil},
	}
	const want = `{"role":"assistant","content":[{"type":"text","text":"<a>\u0001\n\"\ufffd"}],"reasoning_content":"r",` +
		`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},` +
		`{"id":"d","type":"custom","custom":{"name":"g","input":""}}],"x":null}`
	if diff := cmp.Diff(want, string(m.AppendJSON(nil))); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	const log = `[
		{"role":"system","content":"s"},
		{"role":"user","content":[{"type":"image_url","image_url":{}}]},
		{"role":"assistant","content":null,"reasoning_content":"hm"},
		{"role":"assistant","content":" ","tool_calls":[{"id":"a"},{"id":"a"}]},
		{"role":"tool","content":"1","tool_call_id":"a"},
		{"role":"tool","content":"2","tool_call_id":"a"},
		{"role":"tool","content":"3","tool_call_id":"a"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}]`
	var ms []chat.Message
	if err := json.Unmarshal([]byte(log), &ms); err != nil {
		t.Fatal(err)
	}
	meta := func(seq chat.Seq, role chat.Role, f chat.Flags, calls int) chat.Meta {
		return chat.Meta{Seq: seq, Position: seq, Kind: chat.KindSource, Role: role, Flags: f, Calls: calls}
	}
	want := []chat.Meta{
		meta(1, chat.RoleSystem, chat.HasText, 0),
		meta(2, chat.RoleUser, chat.HasMedia, 0),
		meta(3, chat.RoleAssistant, chat.HasReasoning|chat.PlainReasoning, 0),
		meta(4, chat.RoleAssistant, 0, 2),
		meta(5, chat.RoleTool, chat.HasText|chat.Paired, 0),
		meta(6, chat.RoleTool, chat.HasText|chat.Paired, 0),
		meta(7, chat.RoleTool, chat.HasText, 0),
		meta(8, chat.RoleAssistant, chat.HasReasoning|chat.PlainReasoning, 0),
	}
	got := chat.Describe(ms)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metas (-want +got):\n%s", diff)
	}
	if !got[2].ReasoningOnly() || !got[7].ReasoningOnly() || got[3].ReasoningOnly() {
		t.Error("reasoning-only messages are not recognised")
	}
	if diff := cmp.Diff([]string{"a", "a"}, ms[3].CallIDs()); diff != "" {
		t.Errorf("call ids (-want +got):\n%s", diff)
	}
}

func FuzzMessageJSON(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":"x","created_at":1}`))
	f.Add([]byte(`{"role":"assistant","content":[{"type":"text","text":"\ud800"}],"tool_calls":[{"id":"a","function":{"arguments":{}}}]}`))
	f.Add([]byte(`{"role":"tool","content":null,"reasoning":{},"reasoning_content":"","x":[1e2],"id":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m chat.Message
		if m.UnmarshalJSON(data) != nil {
			return
		}
		roundTrip(t, m)
		n := chat.Sanitize(&m)
		if again := chat.Sanitize(&m); again != 0 {
			t.Errorf("%d repairs, then %d more", n, again)
		}
		roundTrip(t, m)
		_ = chat.Describe(chat.Repaired([]chat.Message{m}))
	})
}
