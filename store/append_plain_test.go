package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawPlain draws the JSON of a message that is plain, or nearly, with an envelope.
func drawPlain(t *rapid.T) string {
	fields := map[string][]string{
		"role":              {`"user"`, `"assistant"`, `"user"`, `"system"`, `"tool"`, `""`, `null`, `7`},
		"content":           {`"said"`, `"said"`, `""`, `" \u00a0\n"`, `"\"id\": null"`, `"ü 日本 \\ \u0041"`, `null`, `[]`, `[{"type":"text","text":"x"}]`, `7`},
		"id":                {`"a"`, `"ü\n"`, `null`, `7`, `""`},
		"name":              {`"bob"`, `null`, `7`},
		"created_at":        {`"2025-01-02T03:04:05Z"`, `1735787045`, `"yesterday"`, `null`},
		"token_count":       {`12`, `0`, `"12"`, `-1`, `1.5`, `1234567890`, `null`},
		"token_counter":     {`"o200k_base"`, `"chars/4"`, `"x*1.1"`, `null`, `7`},
		"source_id":         {`"s"`, `7`, `null`},
		"tool_calls":        {`[]`, `null`, `[{"id":"c"}]`},
		"tool_call_id":      {`"c"`, `null`},
		"reasoning":         {`"hm"`, `""`, `null`},
		"reasoning_details": {`[{"data":"x"}]`},
		"parts":             {`[{"text":"x"}]`},
		"extra":             {`{"a": [1, null]}`, `1e2`, `null`},
		"is_error":          {`true`, `null`},
	}
	always := []string{"role", "content"}
	other := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"id", "name", "created_at", "token_count", "token_counter", "source_id", "tool_calls", "tool_call_id", "reasoning", "reasoning_details", "parts", "extra", "is_error",
	}), 0, 3, rapid.ID).Draw(t, "keys")
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	var parts []string
	for _, key := range rapid.Permutation(append(always, other...)).Draw(t, "order") {
		value := rapid.SampledFrom(fields[key]).Draw(t, key)
		parts = append(parts, fmt.Sprintf("%s%q%s:%s%s%s", space.Draw(t, "space"), key, space.Draw(t, "space"), space.Draw(t, "space"), value, space.Draw(t, "space")))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestAPlainMessageIsTakenApartAsAnyOther(t *testing.T) {
	s := fresh(t)
	const query = `
		SELECT coalesce(p.ord IS NOT NULL, false), coalesce(p::text, ''), m.p::text, m.fault IS NOT NULL
		FROM (SELECT q AS p, q.fault FROM compactor.parse_messages(json_build_array($1::json), nullif($2, '')) q) m,
			(SELECT * FROM compactor.parse_plain($1::json, nullif($2, ''))) p`
	compare := func(t fataler, m, key string) (plain bool) {
		var fault bool
		var got, want string
		noError(t, s.pool.QueryRow(context.Background(), query, m, key).Scan(&plain, &got, &want, &fault))
		if plain && (got != want || fault) {
			t.Fatalf("%s with key %q:\n%s", m, key, cmp.Diff(want, got))
		}
		return plain
	}
	if !compare(t, `{"role":"user","content":"said"}`, "") {
		t.Error("a message of a role and a text is not plain")
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom([]string{"", "k"}).Draw(t, "key")
		for _, m := range rapid.SliceOfN(rapid.Custom(drawPlain), 1, 10).Draw(t, "messages") {
			compare(t, m, key)
		}
	})
}

// The stored session does not depend on how its messages were divided into calls.
func TestMessagesAppendedOneByOneAreStoredAsInOneCall(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 60, 0, false, Counts{}})
	state := func(t fataler, k Key) string {
		return one[string](t, s, `
			SELECT concat_ws(E'\n', (SELECT string_agg(concat_ws('|', m.seq, m.position, m.cumulative_tokens, m.token_count, m.calls, m.flags, m.role_code, m.kind, m.id, m.role,
					m.name, m.call_ids, m.tool_call_id, m.source_id, m.counter, m.reasoning_tokens, b.body), E'\n' ORDER BY m.seq)
				FROM compactor.message_log m JOIN compactor.message_body b USING (sid, seq) WHERE m.sid = s.sid),
			concat_ws('|', last_seq, last_source_seq, messages, turns, total_tokens, messages_since_run, tokens_since_run,
				turns_since_run, ARRAY(SELECT c FROM unnest(open_calls) c ORDER BY c), open_answered, open_pending, suspect_seq IS NULL, state, timed),
			-- A repair takes out reasoning that was there by then.
			CASE WHEN revision = 0 THEN concat_ws('|', live_messages, live_tokens, live_estimated_tokens, due, EXISTS (SELECT FROM compactor.outbox o WHERE o.sid = s.sid)) END)
			FROM compactor.sessions s WHERE tenant = $1 AND id = $2`, k.tenant(), k.Session)
	}
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		single, whole := Key{Session: fmt.Sprintf("single%d", n)}, Key{Session: fmt.Sprintf("whole%d", n)}
		msgs := rapid.SliceOfN(rapid.Custom(drawMessage), 2, 12).Draw(t, "messages")
		for i := range msgs {
			msgs[i].ID = fmt.Sprintf("m%d", i)
			add(t, s, single, msgs[i])
		}
		add(t, s, whole, msgs...)
		if diff := cmp.Diff(state(t, whole), state(t, single)); diff != "" {
			t.Fatalf("stored (-in one call +one by one):\n%s", diff)
		}
	})
	wantConsistent(t, s)
}
