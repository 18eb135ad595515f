package store

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// Content in fields of other APIs' formats would be lost if it were stored as it is.
func TestAppendRefusesMessagesInOtherFormatsAndNamesTheWayIn(t *testing.T) {
	s, k := freshSession(t)
	good := `{"role":"user","content":"x"}`
	for bad, want := range map[string]string{
		`{"role":"assistant","content":[{"type":"text","text":"hm"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`: "Anthropic format (tool_use in content): import it with `compactor import --format anthropic`, append it with AppendFormat",
		`{"role":"user","parts":[{"type":"text","text":"hello"}]}`:                                                        "Vercel AI SDK format (parts): convert it",
		`{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`:                                              "Gemini format (parts)",
		`{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]}`:                            "Bedrock Converse format (toolUse in content)",
		`{"role":"assistant","contents":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}`:            "Agent Framework format (contents)",
		`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`:                                              "OpenAI Responses format (an item of type function_call): import it with `compactor import --format responses`",
		`{"type":"function_call_output","call_id":"a","output":"y"}`:                                                      "--format responses",
		`{"from":"human","value":"hello"}`:                                                                                "ShareGPT format (from and value): import it with `compactor import --format sharegpt`",
		`{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}`:                              "--format claude-code",
		`{"type":"response_item","payload":{"type":"message","role":"user","content":[]}}`:                                "--format codex",
		`{"type":"message","id":"1","message":{"role":"user","content":"x"}}`:                                             "--format pi",
		`{"model":"m","messages":[{"role":"user","content":"x"}]}`:                                                        "a document: append the list in its key messages",
	} {
		for _, messages := range []string{bad, "[" + good + "," + bad + "]"} {
			_, err := appendSQL(s, k, messages)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: %v, want it refused as %s", messages, err, want)
			}
			if messages[0] == '[' && !strings.Contains(fmt.Sprint(err), "message 1: ") {
				t.Errorf("%s: %v, want it to name message 1", messages, err)
			}
		}
		if _, format, ok := strings.Cut(want, "--format "); ok {
			if _, err := formats.Lookup(strings.FieldsFunc(format, func(r rune) bool { return r == '`' })[0]); err != nil {
				t.Errorf("%s: the way in does not exist: %v", bad, err)
			}
		}
	}
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.sessions`), "sessions: what is refused leaves nothing")
	// Messages that resemble other formats, but are complete.
	for _, fine := range []string{
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":[{"type":"tool_result","content":"y"}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"x"}]}`,
		`{"role":"user","content":"x","parts":[],"contents":null,"toolInvocations":[]}`,
		`{"role":"user","content":"x","parts":7,"from":"a","value":"b","payload":{},"uuid":"u","messages":[]}`,
	} {
		wantError(t, second(appendSQL(s, k, fine)), nil, "%s", fine)
	}
	wantDescribed(t, s, k)
	wantConsistent(t, s)
}

// A message that is read from a file and one that is appended obey one rule, which Go and SQL each have.
func TestGoAndSQLRefuseTheSameMessages(t *testing.T) {
	s := fresh(t)
	const missing, call = "content: missing", `"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`
	messages := map[string]string{ // with the reason, "" where they are valid
		`{"role":"user"}`:                                                                      missing,
		`{"role":"user","content":null}`:                                                       missing,
		`{"role":"user","content":[]}`:                                                         missing,
		`{"role":"user","message":{"content":"x"}}`:                                            missing,
		`{"role":"assistant"}`:                                                                 missing,
		`{"role":"assistant","tool_calls":[]}`:                                                 missing,
		`{"role":"assistant","refusal":null,"audio":null}`:                                     missing,
		`{"role":"assistant","reasoning":"","reasoning_details":[]}`:                           missing,
		`{"role":"assistant","name":"bob","created_at":"2026-01-02"}`:                          missing,
		`{"role":"assistant","content":null}`:                                                  "",
		`{"role":"assistant","content":""}`:                                                    "",
		`{"role":"assistant","content":[{"type":"text","text":""}]}`:                           "",
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}}`:      "",
		`{"role":"assistant",` + call + `}`:                                                    "",
		`{"role":"assistant","content":[{"type":"tool_use","id":"a"}],` + call + `}`:           "",
		`{"role":"assistant","content":[{"toolUse":{}}]}`:                                      "(toolUse in content)",
		`{"role":"user","content":[{"type":"tool_result"}]}`:                                   "(tool_result in content)",
		`{"role":"user","content":[{"toolResult":{}}]}`:                                        "(toolResult in content)",
		`{"role":"user","content":"x","parts":[{"type":"text"}]}`:                              "(parts)",
		`{"role":"user","content":"x","toolInvocations":[{}]}`:                                 "(toolInvocations)",
		`{"role":"user","content":"x","contents":[{}]}`:                                        "(contents)",
		`{"role":"user","content":"x","parts":[],"contents":null}`:                             "",
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}`:             "",
		`{"role":"system"}`:                                                                    "",
		`{"role":"developer","content":"x"}`:                                                   "",
		`{"role":"function","name":"f","content":"x"}`:                                         "",
		`{"role":"ai","content":"x"}`:                                                          "this one is assistant",
		`{"role":"human","content":"x"}`:                                                       "this one is user",
		`{"role":"USER","content":"x"}`:                                                        "this one is user",
		`{"role":"narrator","content":"x"}`:                                                    `role "narrator": want`,
		`{"role":"tool","tool_call_id":"a"}`:                                                   "",
		`{"role":"tool","tool_call_id":"a","content":[{"type":"tool_reference"}]}`:             "",
		`{"role":"tool","content":"x"}`:                                                        "tool_call_id: missing",
		`{"role":"tool","content":"x","tool_call_id":""}`:                                      "tool_call_id: missing",
		`{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f"}}]}`: "",
		`{"role":"assistant","tool_calls":[{"id":"a","name":"f","args":{}}]}`:                  "no function",
		`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":""}}]}`:                "no function",
		`{"role":"assistant","tool_calls":[{"id":"","function":{"name":"f"}}]}`:                "has no id",
		`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b"}]}`:    "no function",
	}
	for typ := range strings.FieldsSeq(`tool-f toolRequest toolResponse dynamic-tool function_call tool_use tool-result tool_call toolCall functionCall
		toolResult tool_output tool_call_output function_result function_call_output`) {
		messages[`{"role":"assistant","content":[{"type":"`+typ+`"}]}`] = "(" + typ + " in content)"
	}
	for typ := range strings.FieldsSeq(`thinking server_tool_use web_search_call tool_search_tool_result tool_search_call tool_search_output tool_reference`) {
		messages[`{"role":"assistant","content":[{"type":"`+typ+`"}]}`] = ""
	}
	for _, key := range append(slices.Clone(chat.ReasoningKeys), "refusal", "audio") {
		messages[`{"role":"assistant","content":null,"`+key+`":"x"}`] = ""
	}
	for message, want := range messages {
		var m chat.Message
		err := m.UnmarshalJSON([]byte(message))
		if err == nil {
			err = m.Validate()
		}
		fault := one[string](t, s, `SELECT coalesce(fault, '') FROM compactor.parse_messages(json_build_array($1::json), NULL)`, message)
		for from, got := range map[string]string{"Go": fmt.Sprint(err), "SQL": stdcmp.Or(fault, "<nil>")} {
			if want := stdcmp.Or(want, "<nil>"); !strings.Contains(got, want) {
				t.Errorf("%s: %s: %s, want %s", from, message, got, want)
			}
		}
	}
}

func TestAppendFormatTakesWhatFormatsRead(t *testing.T) {
	s := fresh(t)
	for format, said := range map[string][]string{
		"anthropic": {
			`{"role":"user","content":"weather?"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
			`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"rain"}]},{"role":"assistant","content":"It rains."}]`,
		},
		"responses": {
			`[{"role":"user","content":"weather?"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]`,
			`{"type":"function_call_output","call_id":"a","output":"rain"}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It rains."}]}`,
		},
		"chat": {
			`[{"role":"user","content":"weather?"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]`,
			`{"role":"tool","tool_call_id":"a","content":"rain"}`,
			`{"role":"assistant","content":"It rains."}`,
		},
	} {
		k := Key{Session: format}
		for i, raw := range said {
			key := fmt.Sprint("turn-", i)
			first, _ := must2(s.AppendFormat(t.Context(), k, "m", format, key, []byte(raw)))(t)
			if again, _ := must2(s.AppendFormat(t.Context(), k, "m", format, key, []byte(raw)))(t); !cmp.Equal(first, again) {
				t.Errorf("%s: appended again as %v, want %v", format, again, first)
			}
		}
		view, _ := must2(s.View(t.Context(), k))(t)
		var got []string
		for _, m := range view {
			got = append(got, fmt.Sprint(m.Role, " ", m.Content, " ", m.CallIDs(), " ", m.ToolCallID))
		}
		want := []string{"user weather? [] ", "assistant  [a] ", "tool rain [] a", "assistant It rains. [] "}
		equal(t, want, got, "%s", format)
		if session(t, s, k).Suspect {
			t.Errorf("%s: the view is suspect", format)
		}
	}
	k := Key{Session: "document"}
	if _, repairs, err := s.AppendFormat(t.Context(), k, "", "anthropic", "", []byte(`{"model":"claude-x","system":"be \u0000 kind","messages":[{"role":"user","content":"x"}]}`)); err != nil || repairs != 1 {
		t.Errorf("%d repairs, %v; want 1", repairs, err)
	}
	if row := session(t, s, k); row.Model != "claude-x" || row.Messages != 2 {
		t.Errorf("the document is %+v", row)
	}
	for name, c := range map[string]struct{ format, raw string }{
		"unknown format":   {"xml", `{"role":"user","content":"x"}`},
		"no JSON":          {"anthropic", `{"role":`},
		"nothing":          {"anthropic", ``},
		"no role":          {"anthropic", `{"content":"x"}`},
		"several sessions": {"anthropic", `{"messages":[{"role":"user","content":"x"}]}` + "\n" + `{"messages":[{"role":"user","content":"y"}]}`},
	} {
		wantError(t, third(s.AppendFormat(t.Context(), k, "", c.format, "", []byte(c.raw))), ErrInvalid, "%s", name)
	}
	wantConsistent(t, s)
}

// A message that Go cannot read makes its session unreadable.
func TestAppendRefusesNestingThatGoCannotRead(t *testing.T) {
	s, k := freshSession(t)
	// nested returns a message of depth levels, the message itself included.
	nested := func(depth int) string {
		return `{"role":"user","content":"\"[{\\","deep":` + strings.Repeat(`[{"\"[":`, (depth-1)/2) + strings.Repeat("[", (depth-1)%2) +
			"1" + strings.Repeat("]", (depth-1)%2) + strings.Repeat("}]", (depth-1)/2) + `}`
	}
	for _, depth := range []int{9901, 10500} {
		for _, raw := range []string{nested(depth), "[" + nested(2) + "," + nested(depth) + "]"} {
			if _, err := appendSQL(s, k, raw); !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), "9900 levels") {
				t.Errorf("%d levels: %.200v, want it refused", depth, err)
			}
		}
	}
	for _, raw := range []string{
		nested(9900),
		`{"role":"user","content":"` + strings.Repeat("[{", 20000) + `"}`,
		`{"role":"user","content":"x","wide":[` + strings.Repeat("[{}],", 20000) + `[]]}`,
	} {
		wantError(t, second(appendSQL(s, k, raw)), nil, "%.60s…", raw)
	}
	view, _ := must2(s.View(t.Context(), k))(t)
	apply(t, s, k, summarize(span(2, 3), "brackets"))
	msgs := given(view[:1])
	must(s.Replace(t.Context(), k, 1, msgs, ""))(t)
	wantConsistent(t, s)
}

func TestAReportedCountNeverMakesAnAppendFail(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 100, 0.1, false, Counts{}})
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 2)...)
	for _, n := range []chat.Tokens{-1, 1_000_000_000, math.MaxInt64 - 1, math.MaxInt64} {
		if _, err := s.ReportUsage(t.Context(), k, n, 0); !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), "999999999") {
			t.Errorf("report of %d: %v, want it refused with the range", n, err)
		}
	}
	must(s.ReportUsage(t.Context(), k, 999_999_999, 0))(t)
	add(t, s, k, counted(user("n", "x"), 999_999_999))
	wantConsistent(t, s)
}

func TestAMessageMakesNoMoreCallsThanAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	s := fresh(t)
	ids := strings.Fields(strings.Repeat("c ", 32768))
	_, _, err := s.Append(t.Context(), Key{Session: "s"}, "", []NewMessage{call("a", ids...)})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), "at most 32767 calls, not 32768") {
		t.Errorf("32,768 calls: %.200v, want them refused", err)
	}
	add(t, s, Key{Session: "s"}, call("a", ids[1:]...))
	wantDescribed(t, s, Key{Session: "s"})
}

// An exported view holds summaries with their ids, and an application may have such ids itself.
func TestIdsLikeThoseOfRunsDoNotBlockThem(t *testing.T) {
	s, k := freshSession(t)
	msgs := talk("m", 4)
	for run := range 20 { // whichever the next one is
		msgs = append(msgs, user(fmt.Sprintf("summary-45-%d", run+1), "an exported summary"), user(fmt.Sprintf("standin-45-%d", run+1), "and replacement"))
	}
	add(t, s, k, msgs...)
	apply(t, s, k, summarize(span(1, 2), "start"))
	apply(t, s, k, replacement(chat.Meta{Seq: 3, Position: 3}, "short"))
	got := list[string](t, s, `SELECT regexp_replace(id, '[0-9a-f]+$', '') FROM compactor.message_log WHERE kind <> 'm' ORDER BY seq`)
	equal(t, []string{"summary-45-1-", "standin-46-"}, got, "ids of the runs' messages")
	// Messages that were read from the view are known.
	view, revision := must2(s.View(t.Context(), k))(t)
	known := given(view)
	must(s.Replace(t.Context(), k, revision, known, ""))(t)
	equal(t, 46, one[int](t, s, `SELECT count(*) FROM compactor.message_log`), "messages")
	wantConsistent(t, s)
}
