package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestAppendEstimatesTokensFromOctetsAndMediaFlat(t *testing.T) {
	s := fresh(t)
	body := `{"role":"user","content":"` + strings.Repeat("é", 100) + `"}`
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 90000) + `"}}`
	frame := `{"role":"user","content":["see",,]}`
	if _, err := appendSQL(s, Key{Session: "s"}, `[`+body+`,{"role":"user","content":["see",`+image+`,`+image+`]},{"role":"user","content":"x","token_count":12}]`); err != nil {
		t.Fatal(err)
	}
	got := list[string](t, s, `SELECT token_count || ' ' || counter || ' ' || flags FROM compactor.message_log ORDER BY seq`)
	want := []string{
		fmt.Sprintf("%d bytes/3 17", (len(body)+2)/3),
		fmt.Sprintf("%d bytes/3 21", 2000+(len(frame)+2)/3),
		"12 application 1",
	}
	equal(t, want, got, "tokens")
	wantConsistent(t, s)
}

// With LONG_TESTS, the message has 20 MB.
func TestAppendTakesAMessageOfManyMegabytes(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	s, k := freshSession(t)
	size := 2 << 20
	if sessiontest.Long() {
		size = 20 << 20
	}
	big := strings.Repeat("a line of a very long log \\u0000\n", size/33)
	add(t, s, k, user("big", big), user("", "and?"))
	view, _ := must2(s.View(t.Context(), k))(t)
	if view[0].Content.Text != big {
		t.Error("the message came back changed")
	}
	equal(t, []chat.Seq{1}, add(t, s, k, user("big", big)), "appended again")
}

// wantDescribed compares the metadata that SQL computed in batches with the metadata that
// Go computes for the whole session.
func wantDescribed(t fataler, s *Store, k Key) {
	t.Helper()
	rows, err := s.pool.Query(context.Background(), `
		SELECT m.seq, b.body, m.flags, m.calls, m.role_code::text FROM compactor.message_log m JOIN compactor.message_body b USING (sid, seq) JOIN compactor.sessions s USING (sid)
		WHERE s.tenant = $1 AND s.id = $2 AND m.kind = 'm' ORDER BY m.seq`, k.tenant(), k.Session)
	if err != nil {
		t.Fatalf("log: %v", err)
	}
	type fact struct {
		Seq   chat.Seq
		Flags chat.Flags
		Calls int
		Role  string
	}
	var seq int64
	var body, role string
	var flags, calls int16
	var got, want []fact
	var msgs []chat.Message
	_, err = pgx.ForEachRow(rows, []any{&seq, &body, &flags, &calls, &role}, func() error {
		got = append(got, fact{chat.Seq(seq), chat.Flags(flags) &^ chat.Estimated, int(calls), role})
		var m chat.Message
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			return fmt.Errorf("%s: %w", body, err)
		}
		msgs = append(msgs, m)
		return nil
	})
	if err != nil {
		t.Fatalf("log: %v", err)
	}
	for _, m := range chat.Describe(msgs) {
		want = append(want, fact{m.Seq, m.Flags, m.Calls, roleCode(m.Role)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("facts of session %s (-Go +SQL):\n%s", k, diff)
	}
	var p chat.Pairer
	faults := 0
	for _, m := range msgs {
		if _, fault := p.Next(m.Role, m.CallIDs(), m.ToolCallID, m.Meta(1).ReasoningOnly()); fault {
			faults++
		}
	}
	row := session(t, s, k)
	repairs := one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE sid = $1 AND kind = 'repair'`, row.SID)
	if (repairs > 0) != (faults > 0) {
		t.Fatalf("session %s: %d repairs, the Pairer reports %d faults", k, repairs, faults)
	}
	if left := must(s.Admin.Violations(context.Background(), row.SID))(t); len(left) > 0 {
		t.Fatalf("session %s: the view has %v", k, left)
	}
}

// drawMessage draws messages whose calls and results fit often, and often not.
func drawMessage(t *rapid.T) NewMessage {
	ids := rapid.SampledFrom([]string{"a", "a", "b", "c"})
	content := rapid.SampledFrom([]string{"", " ", "said", "\u00a0\u3000\n", "\u200b", "\x1f", "{}"})
	var m NewMessage
	switch rapid.IntRange(0, 11).Draw(t, "kind") {
	case 0, 1:
		m = user("", content.Draw(t, "text"))
	case 2, 3:
		m = call("", rapid.SliceOfN(ids, 1, 3).Draw(t, "calls")...)
		m.Content = chat.TextContent(content.Draw(t, "text"))
	case 4, 5, 6:
		m = result("", ids.Draw(t, "answers"), content.Draw(t, "text"))
	case 10:
		m = call("", "")
		m.Legacy = true
	case 11:
		m = result("", "", content.Draw(t, "text"))
		m.Name, m.Legacy = "f", true
	case 7:
		m = assistant("", content.Draw(t, "text"))
		m.Reasoning = rapid.SampledFrom([]string{"", "thinking"}).Draw(t, "reasoning")
		m.ReasoningKey = rapid.SampledFrom([]string{"", "reasoning", "reasoning_content"}).Draw(t, "key")
	case 8:
		m = assistant("", "")
		raw := rapid.SampledFrom([]string{`[{}]`, `[]`, `[ ]`, `{"a":1}`, `""`, `"x"`, `7`, `[[]]`, `[{"data":"x"}]`, `{"signature":""}`}).Draw(t, "details")
		m.Extra = map[string]json.RawMessage{rapid.SampledFrom(append(slices.Clone(chat.ReasoningKeys), "function_call")).Draw(t, "key"): json.RawMessage(raw)}
	default:
		m = text("", chat.Role(rapid.SampledFrom([]string{"system", "developer", "assistant", "user", "tool", "function"}).Draw(t, "role")), "")
		part := rapid.SampledFrom([]string{
			`" "`, `"x"`, `{"type":"text","text":"x"}`, `{"type":"text","text":" "}`, `{"text":"x"}`, `{"type":"text","text":7}`, `{"type":null,"text":"x"}`,
			`{"type":"refusal","refusal":"no"}`, `{"type":"refusal","text":"no"}`, `{"type":"image_url","text":"x"}`, `{"type":"thinking","thinking":"hm"}`,
			`{"type":"input_audio"}`, `{}`, `{"type":"output_text","refusal":"x"}`, `{"type":"","text":"x"}`,
		})
		if m.Role == chat.RoleTool {
			m.ToolCallID = ids.Draw(t, "answers")
		}
		m.Content = chat.Content{Parts: []chat.Part{}}
		for _, raw := range rapid.SliceOfN(part, 1, 3).Draw(t, "parts") {
			m.Content.Parts = append(m.Content.Parts, chat.Part{Raw: json.RawMessage(raw)})
		}
		if rapid.Bool().Draw(t, "calls, whatever the role") {
			m.ToolCalls = call("", "a").ToolCalls
			if rapid.Bool().Draw(t, "beside a block of another format") { // alone it is refused
				m.Content.Parts = append(m.Content.Parts, chat.Part{Raw: json.RawMessage(`{"type":"tool_use","text":"x"}`)})
			}
		}
	}
	return m
}

func TestAppendDescribesMessagesAsGoDoesInAnyBatches(t *testing.T) {
	s := fresh(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		k := Key{Session: fmt.Sprint(n)}
		msgs := rapid.SliceOfN(rapid.Custom(drawMessage), 1, 30).Draw(t, "messages")
		for len(msgs) > 0 {
			size := min(len(msgs), rapid.SampledFrom([]int{1, 1, 2, 3, 7, 30}).Draw(t, "batch"))
			add(t, s, k, msgs[:size]...)
			msgs = msgs[size:]
		}
		wantDescribed(t, s, k)
	})
	wantConsistent(t, s)
}

func TestAppendDescribesRecordedSessionsAsGoDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	s := fresh(t)
	for name, nth := range map[string]int{"aider_history.jsonl": 1, "entire_cli.jsonl": 10, "pi_mono.jsonl": 2, "swe_agent.jsonl": 10, "taubench_airline.jsonl": 20} {
		for n, h := range sessiontest.Recorded(t, name, nth) {
			k := Key{Tenant: name, Session: h.ID}
			var msgs []NewMessage
			for _, m := range h.Messages {
				msgs = append(msgs, NewMessage{Message: m})
			}
			for i := 0; len(msgs) > 0; i++ {
				size := min(len(msgs), []int{1, 500, 7, 1, 2}[(i+n)%5])
				add(t, s, k, msgs[:size]...)
				msgs = msgs[size:]
			}
			wantDescribed(t, s, k)
		}
	}
	wantConsistent(t, s)
}
