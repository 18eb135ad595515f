package chat_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestSanitizeJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in, want string
		repairs  int
	}{
		"nothing to do":                     {`{"a":"\n\u00e9 \"x\" é"}`, `{"a":"\n\u00e9 \"x\" é"}`, 0},
		"an escaped NUL":                    {`"a\u0000b"`, `"a\ufffdb"`, 1},
		"a backslash before u0000":          {`"a\\u0000"`, `"a\\u0000"`, 0},
		"a backslash and an escaped NUL":    {`"a\\\u0000"`, `"a\\\ufffd"`, 1},
		"a NUL byte":                        {"\"a\x00\x00\"", "\"a\uFFFD\uFFFD\"", 2},
		"bytes that are no UTF-8":           {"\"\xff\xc3\"", "\"\uFFFD\uFFFD\"", 2},
		"a pair of surrogates":              {`"\ud83D\uDe00"`, `"\ud83D\uDe00"`, 0},
		"a high surrogate alone":            {`"\ud800x"`, `"\ufffdx"`, 1},
		"a low surrogate alone":             {`"\uDFFF"`, `"\ufffd"`, 1},
		"two high surrogates, one low":      {`"\ud83d\ud83d\ude00"`, `"\ufffd\ud83d\ude00"`, 1},
		"a high surrogate, another escape":  {`"\ud83d\u0041"`, `"\ufffd\u0041"`, 1},
		"a high surrogate, then \\\\udc00":  {`"\ud83d\\udc00"`, `"\ufffd\\udc00"`, 1},
		"in a key":                          {`{"\u0000":1}`, `{"\ufffd":1}`, 1},
		"cut in the middle of an escape":    {`"\u00`, `"\u00`, 0},
		"a backslash at the end":            {`"\`, `"\`, 0},
		"a backslash before a NUL byte":     {"\"\\\x00\"", "\"\\\uFFFD\"", 1},
		"the replacement character by hand": {"\"\uFFFD\\ufffd\"", "\"\uFFFD\\ufffd\"", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, n := chat.SanitizeJSON([]byte(tt.in))
			if string(got) != tt.want || n != tt.repairs {
				t.Errorf("got %q with %d repairs, want %q with %d", got, n, tt.want, tt.repairs)
			}
		})
	}
}

func TestSanitize(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"type":"text","text":"\ud800"}`)
	m := chat.Message{
		ID: "a\x00", Role: "user", Content: chat.Content{Parts: []chat.Part{{Type: "text", Text: "\uFFFD", Raw: raw}}},
		ToolCalls: []chat.ToolCall{{ID: "\xff", Arguments: "\x00"}},
		Extra:     map[string]json.RawMessage{"k\x00": json.RawMessage(`"\u0000"`), "k\uFFFD": json.RawMessage(`1`)},
	}
	parts, calls, extra := m.Content.Parts, m.ToolCalls, m.Extra
	if n := chat.Sanitize(&m); n != 6 {
		t.Errorf("got %d repairs, want 6", n)
	}
	want := chat.Message{
		ID: "a\uFFFD", Role: "user",
		Content: chat.Content{Parts: []chat.Part{
			{Type: "text", Text: "\uFFFD", Raw: json.RawMessage(`{"type":"text","text":"\ufffd"}`)},
		}},
		ToolCalls: []chat.ToolCall{{ID: "\uFFFD", Arguments: "\uFFFD"}},
		Extra: map[string]json.RawMessage{
			"k\uFFFD\uFFFD": json.RawMessage(`"\ufffd"`), "k\uFFFD": json.RawMessage(`1`),
		},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("sanitized (-want +got):\n%s", diff)
	}
	if string(parts[0].Raw) != string(raw) || calls[0].ID != "\xff" || len(extra) != 2 || extra["k\x00"] == nil {
		t.Error("the slices of other copies of the message have changed")
	}
}

func FuzzSanitizeJSON(f *testing.F) {
	for _, s := range []string{`{"a":"\ud800\u0000"}`, "\"\x00\xff\"", `"\\u0000\ud83d\ude00"`, `"\`, `\ud800\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := string(raw)
		clean, n := chat.SanitizeJSON(raw)
		if string(raw) != before {
			t.Fatal("the input was written to")
		}
		if again, k := chat.SanitizeJSON(clean); k != 0 || string(again) != string(clean) {
			t.Fatalf("%q: %d repairs left", clean, k)
		}
		if !utf8.Valid(clean) || strings.ContainsRune(string(clean), 0) {
			t.Fatalf("%q: not clean", clean)
		}
		if (n == 0) != (string(clean) == before) {
			t.Fatalf("%d repairs of %q gave %q", n, before, clean)
		}
		var was, is any
		if json.Unmarshal(raw, &was) != nil {
			return
		}
		if err := json.Unmarshal(clean, &is); err != nil {
			t.Fatalf("%q was JSON, %q is not: %v", before, clean, err)
		}
		if strings.ContainsAny(before, "\\\x00") {
			return // NUL differs on purpose
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("says something else (-want +got):\n%s", diff)
		}
	})
}
