package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

// The view is valid right after the append that breaks a rule, without a worker. A line has the messages that
// one append appends: a user, A assistant, cX a call, cXY two calls, rX a result, k thinks.
func TestTheViewIsValidAfterEveryAppend(t *testing.T) {
	s := fresh(t)
	tests := map[string]struct {
		appends string
		view    string // the ids of the messages of the view
		out     string // reasons and ids of the messages that are not in it
		due     bool
	}{
		"a call that the user passes by":               {"u cA|u", "0 2", "unanswered_call 1", false},
		"a call that the agent passes by":              {"u cA|a", "0 2", "unanswered_call 1", false},
		"a call and its reasoning":                     {"u|k|cA|k|u", "0 4", "unanswered_call 1 2 3", false},
		"a call that waits":                            {"u cAB|rA", "0 1 2", "", false},
		"a result that was lost":                       {"u cAB rA|a", "0 3", "awaiting_repair 1 2", true},
		"a result without a call":                      {"u rX|a", "0 2", "awaiting_repair 1", true},
		"a result that comes late":                     {"u cA|u|rA", "0 2", "unanswered_call 1 awaiting_repair 3", true},
		"parallel calls, one by one":                   {"u|cA|cB|rA|rB|a", "0 1+2 3 4 5", "", false},
		"parallel calls with reasoning":                {"u|k|cA|k|cB|k|rB|rA|a", "0 1 2+3+4 5 6 7 8", "", false},
		"parallel calls, one without a result":         {"u|cA|cB|rB|a", "0 2 3 4", "unanswered_call 1", false},
		"a call that follows a result is another's":    {"u|cAB|rA|cC|rC|a", "0 3 4 5", "awaiting_repair 1 2", true},
		"a call made again":                            {"u|cA|cA|rA|a", "0 2 3 4", "unanswered_call 1", false},
		"everything in one append":                     {"u cA cB rA rB cC u rX a", "0 1+2 3 4 6 8", "unanswered_call 5 awaiting_repair 7", true},
		"an orphan among the results that are to come": {"u cAB rX|rA|rB", "0 1 3 4", "awaiting_repair 2", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := Key{Session: name}
			n := 0
			for line := range strings.SplitSeq(tt.appends, "|") {
				var msgs []NewMessage
				for w := range strings.FieldsSeq(line) {
					id := fmt.Sprint(n)
					n++
					switch w[0] {
					case 'u':
						msgs = append(msgs, user(id, "said"))
					case 'a':
						msgs = append(msgs, assistant(id, "said"))
					case 'k':
						m := text(id, chat.RoleAssistant, "")
						m.Content, m.Reasoning = chat.Content{Null: true}, "hm"
						msgs = append(msgs, m)
					case 'c':
						msgs = append(msgs, call(id, strings.Split(w[1:], "")...))
					case 'r':
						msgs = append(msgs, result(id, w[1:], "found"))
					}
				}
				add(t, s, k, msgs...)
				none(t, must(s.Admin.Violations(t.Context(), session(t, s, k).SID))(t), "after %s the view", line)
			}
			var view []string
			for _, seqs := range list[[]int64](t, s, `SELECT seqs FROM compactor.merged_view('default', $1)`, k.Session) {
				var of []string
				for _, q := range seqs {
					of = append(of, fmt.Sprint(q-1))
				}
				view = append(view, strings.Join(of, "+"))
			}
			equal(t, tt.view, strings.Join(view, " "), "view")
			out := one[string](t, s, `SELECT coalesce(string_agg(r || ids, ' ' ORDER BY first), '') FROM (
				SELECT exclude_reason AS r, ' ' || string_agg(id, ' ' ORDER BY seq) AS ids, min(seq) AS first FROM compactor.messages
				WHERE session = $1 AND excluded AND excluded_by IS NOT NULL GROUP BY 1) x`, k.Session)
			equal(t, tt.out, out, "out of the view")
			if row := session(t, s, k); row.Due != tt.due || row.Suspect != tt.due {
				t.Errorf("due %t, suspect %t, want %t", row.Due, row.Suspect, tt.due)
			}
			// Who reads the view may give it back, and read it from a fork, and after an undo.
			messages, revision := must2(s.View(t.Context(), k))(t)
			again := make([]NewMessage, len(messages))
			for i, m := range messages {
				again[i].Message = m.Message
			}
			add(t, s, k, again...)
			must(s.Replace(t.Context(), k, revision, again, "test"))(t)
			if after, _ := must2(s.View(t.Context(), k))(t); !cmp.Equal(messages, after) {
				t.Errorf("the view that was given back became %s", cmp.Diff(messages, after))
			}
			must(s.Fork(t.Context(), k, k.Session+" fork", ""))(t)
			head := one[RunID](t, s, `SELECT head_run FROM compactor.sessions WHERE id = $1`, k.Session)
			must(s.Undo(t.Context(), k, head, true, "test"))(t)
			for _, k := range []Key{k, {Session: k.Session + " fork"}} {
				none(t, must(s.Admin.Violations(t.Context(), session(t, s, k).SID))(t), "the view of %s", k)
			}
		})
	}
	t.Cleanup(func() { wantConsistent(t, s) })
}

// A plan may take a call out of the view while its result is appended.
func TestAResultThatComesDuringARunThatTakesItsCall(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, user("u", "go"), call("c", "a"))
	c := start(t, s, k)
	ch := must(c.change(s, exclude(span(2, 2))))(t)
	add(t, s, k, result("r", "a", "late words"))
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	equal(t, []chat.Seq{1}, liveSeqs(t, s, k), "view")
	if row := session(t, s, k); !row.Suspect || !row.Due {
		t.Errorf("suspect %t, due %t: no run will bring the words of the result back", row.Suspect, row.Due)
	}
	if c := start(t, s, k); len(c.Awaiting) != 1 || c.Awaiting[0].Seq != 3 {
		t.Errorf("the next run gets %v, want the result", c.Awaiting)
	}
	wantConsistent(t, s)
}

// A message with a role that no provider takes, which append refuses, leaves a view that has it.
func TestForeignRolesThatAreStoredLeaveTheView(t *testing.T) {
	s, k := freshSession(t)
	if _, err := s.pool.Exec(t.Context(), `CREATE OR REPLACE FUNCTION compactor.unusable(p_role json, p_tool_call_id json, p_calls json) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'`); err != nil {
		t.Fatal(err)
	}
	add(t, s, k, user("u", "go"), text("x", "ai", "hello"))
	c := start(t, s, k)
	if got := chat.Check(c.View); len(got) != 1 || got[0].Code != chat.ViolationForeignRole || got[0].Seq != 2 {
		t.Errorf("violations %v, want the foreign role at 2", got)
	}
	add(t, s, k, result("r", "a", "nothing"))
	equal(t, []chat.Seq{1}, liveSeqs(t, s, k), "view")
}

func TestSQLMergesParallelCallsAsGoDoes(t *testing.T) {
	s := fresh(t)
	of := func(id, rest string) string {
		return `{"role":"assistant",` + rest + `"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	}
	check := func(t fataler, name string, bodies []string) {
		view, messages := []chat.Meta{}, make([]chat.Message, len(bodies))
		var p chat.Pairer
		for i := range bodies {
			if err := json.Unmarshal([]byte(bodies[i]), &messages[i]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			view = append(view, p.Describe(&messages[i], chat.Seq(i+1)))
		}
		merged := chat.Merge(view, messages)
		if len(merged) != 1 {
			t.Fatalf("%s: %d messages", name, len(merged))
		}
		var got chat.Message
		if err := json.Unmarshal([]byte(one[string](t, s, `SELECT compactor.merged_message($1)`, bodies)), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(string(merged[0].AppendJSON(nil)), string(got.AppendJSON(nil))); diff != "" {
			t.Fatalf("%s (-Go +SQL):\n%s\nof %s", name, diff, bodies)
		}
	}
	for name, bodies := range map[string][]string{
		"plain":                 {of("a", `"content":null,`), of("b", `"content":null,`)},
		"texts":                 {of("a", `"content":"one",`), of("b", `"content":"",`), of("c", `"content":"two",`)},
		"parts":                 {of("a", `"content":"one",`), of("b", `"content":[{"type":"thinking","thinking":"x","signature":"s"}],`)},
		"reasoning":             {of("a", `"content":null,"reasoning_content":"one",`), `{"role":"assistant","content":null,"reasoning_content":"two"}`, of("b", `"content":null,`)},
		"structures":            {of("a", `"content":null,"reasoning_details":[{"data":"x"}],`), of("b", `"content":null,"reasoning_details":[{"data":"y"}],"x":1,`)},
		"names":                 {of("a", `"content":null,`), of("b", `"content":null,"name":"n",`)},
		"nothing":               {of("a", `"content":"","x":"","y":null,`), of("b", `"content":[],"x":"1","y":"",`), of("c", `"content":"","y":2,`)},
		"two keys of reasoning": {of("a", `"content":null,"reasoning":"one",`), of("b", `"content":null,"reasoning_content":"two","reasoning":"three",`)},
		"signatures":            {of("a", `"content":null,"thinking":"one","thinking_signature":"s",`), of("b", `"content":null,"thinking":"two","thinking_signature":"s",`)},
		"lists and texts":       {of("a", `"content":[],"reasoning":["x"],`), of("b", `"content":"t","reasoning":"one",`), of("c", `"content":[{"type":"text","text":"u"}],"reasoning":["y"],`)},
	} {
		check(t, name, bodies)
	}
	rapid.Check(t, func(t *rapid.T) {
		bodies := make([]string, rapid.IntRange(2, 4).Draw(t, "messages"))
		for i := range bodies {
			rest := ""
			for _, key := range []string{"content", "name", "refusal", "reasoning", "reasoning_content", "reasoning_details", "reasoning_opaque", "thinking", "x"} {
				kinds := []string{"", "", "", `null`, `""`, `"a"`, `"ä \"b\""`, `[]`, `[{"type":"text","text":"c"}]`, `["d",{"type":"e"}]`, `{"f":1}`, `2`}
				if key == "content" {
					kinds = kinds[3:10]
				}
				if value := rapid.SampledFrom(kinds).Draw(t, key); value != "" {
					rest += fmt.Sprintf("%q:%s,", key, value)
				}
			}
			bodies[i] = of(fmt.Sprint(i), rest)
		}
		check(t, "drawn", bodies)
	})
}
