package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

func TestAppendIsIdempotentByID(t *testing.T) {
	s, k := freshSession(t)
	msgs := talk("m", 4)
	add(t, s, k, msgs[:3]...)
	before := one[string](t, s, `SELECT to_json(s) FROM compactor.sessions s`)
	equal(t, []chat.Seq{2}, add(t, s, k, msgs[1]), "one again")
	equal(t, []chat.Seq{1, 2, 3}, add(t, s, k, msgs[:3]...), "all again")
	equal(t, before, one[string](t, s, `SELECT to_json(s) FROM compactor.sessions s`), "the session changed")
	equal(t, []chat.Seq{3, 4, 2, 4}, add(t, s, k, msgs[2], msgs[3], msgs[1], msgs[3]), "old, new, old, new again in one batch")
	wantConsistent(t, s)
}

func TestAppendRefusesAKnownIDWithOtherContent(t *testing.T) {
	s, k := freshTalk(t, 3)
	for name, msgs := range map[string][]NewMessage{
		"alone":          {user("m2", "other")},
		"among new ones": {user("n1", "new"), user("m2", "other"), user("n2", "new")},
	} {
		_, _, err := s.Append(t.Context(), k, "", msgs)
		if !errors.Is(err, ErrConflict) || !strings.Contains(fmt.Sprint(err), "m2") {
			t.Errorf("%s: %v, want a conflict that names m2", name, err)
		}
	}
	_, _, err := s.Append(t.Context(), k, "", []NewMessage{user("n1", "one"), user("n2", "two"), user("n1", "not one")})
	if !errors.Is(err, ErrConflict) || !strings.Contains(fmt.Sprint(err), "n1") {
		t.Errorf("the same new id with two contents: %v, want a conflict that names n1", err)
	}
	equal(t, 3, one[int](t, s, `SELECT count(*) FROM compactor.message_log`), "messages: a refused batch leaves nothing")
	wantConsistent(t, s)
}

func TestAppendKeepsTheMessageAsReceivedWithoutItsEnvelope(t *testing.T) {
	s := fresh(t)
	for in, want := range map[string]string{
		`{"role":"user","content":"a"}`: `{"role":"user","content":"a"}`,
		`{ "z" : 1e2, "role":"user",  "content":"ü \u00fc \/ \n", "a": [ 1.0, {"b":2 , "a":1} ] }`:                                                                        `{ "z" : 1e2, "role":"user",  "content":"ü \u00fc \/ \n", "a": [ 1.0, {"b":2 , "a":1} ] }`,
		`{"id":"x","role":"user","z":1e2,"content":"\/","token_count":3,"token_counter":"t","source_id":"memory","created_at":"2025-01-02","a":[ 1.0, {"b":2 , "a":1} ]}`: `{"role":"user","z":1e2,"content":"\/","a":[ 1.0, {"b":2 , "a":1} ]}`,
		`{"role":"user","content":"a","id":null,"created_at":null}`:                                                                                                       `{"role":"user","content":"a"}`,
		`{"role":"system","content":null,"created_at":"the day after tomorrow"}`:                                                                                          `{"role":"system","content":null,"created_at":"the day after tomorrow"}`,
		`{"role":"tool","content":"id","tool_call_id":"x","name":null}`:                                                                                                   `{"role":"tool","content":"id","tool_call_id":"x","name":null}`,
		`{"id":"y","role":"user","content":"a","é\"\u0041":1}`:                                                                                                            `{"role":"user","content":"a","é\"A":1}`,
	} {
		k := Key{Session: in}
		if _, err := appendSQL(s, k, in); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := one[string](t, s, `SELECT body FROM compactor.message_body l JOIN compactor.sessions s USING (sid) WHERE s.id = $1`, in); got != want {
			t.Errorf("body is %s, want %s", got, want)
		}
	}
	got := one[string](t, s, `SELECT concat_ws(' ', id, source_id, token_count, counter, created_at AT TIME ZONE 'UTC') FROM compactor.message_log WHERE id = 'x'`)
	if want := "x memory 3 t 2025-01-02 00:00:00"; got != want {
		t.Errorf("envelope is %q, want %q", got, want)
	}
}

// A time that is none, or outside the years of JSON, stays in the body.
func TestAppendReadsCreatedAtAsGoDoes(t *testing.T) {
	s := fresh(t)
	now := time.Now()
	for i, in := range []string{
		`"2025-01-02T03:04:05Z"`, `"2025-01-02T03:04:05.678901+02:00"`, `"2025-01-02 03:04:05"`, `"2025-01-02T03:04:05.5"`,
		`"2025-01-02 03:04:05 UTC"`, `"2025-01-02 03:04:05-07"`, `1735787045`, `1735787045.25`, `1735787045678`, `1735787045678901`,
		`1735787045678901234`, `5`, `"yesterday"`, `"2025-13-45T00:00:00Z"`, `null`, `""`, `true`, `"infinity"`, `"-infinity"`,
		`"12025-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-01:00"`, `"0001-01-01T00:00:00+01:00"`, `"2025-01-01 00:00:00 BC"`, `"0000-01-01"`,
		`253402300800`, `99999999999`, `-62135596801`, `1e300`, `9223372036854775807`, `9999999999999999999`, `1735787045678.5`,
		`1735787045678901234.5`,
	} {
		k := Key{Session: fmt.Sprint(i)}
		raw := fmt.Sprintf(`{"role":"user","content":"x","created_at":%s}`, in)
		must(appendSQL(s, k, raw))(t)
		var m chat.Message
		noError(t, json.Unmarshal([]byte(raw), &m))
		got := must(s.Session(t.Context(), k))(t).LastMessageAt
		_, err := got.MarshalJSON()
		noError(t, err)
		switch {
		case m.CreatedAt.IsZero():
			if got.Before(now.Add(-time.Hour)) || got.After(now.Add(time.Hour)) {
				t.Errorf("%s: stored as %v, want about now", in, got)
			}
		case got.Sub(m.CreatedAt).Abs() > time.Microsecond:
			t.Errorf("%s: stored as %v, Go reads %v", in, got, m.CreatedAt)
		}
		body := one[string](t, s, `SELECT body FROM compactor.message_body JOIN compactor.sessions s USING (sid) WHERE s.id = $1`, k.Session)
		equal(t, m.CreatedAt.IsZero() && in != "null", strings.Contains(body, in), "%s stays in the body %s", in, body)
	}
	late := user("late", "x")
	late.CreatedAt = time.Date(12025, 1, 1, 0, 0, 0, 0, time.UTC)
	add(t, s, Key{Session: "go"}, late)
	_, err := must(s.Session(t.Context(), Key{Session: "go"}))(t).LastMessageAt.MarshalJSON()
	noError(t, err)
	wantConsistent(t, s)
}

func TestAppendRepairsTextThatPostgresCannotStore(t *testing.T) {
	s := fresh(t)
	for in, want := range map[string]string{
		`a\u0000b`:             "a\uFFFDb",
		`\ud800`:               "\uFFFD",
		`\ud800\ud83d\ude00`:   "\uFFFD😀",
		`\\u0000`:              `\u0000`,
		`\\\\u0000\\ud800`:     `\\u0000\ud800`,
		`\ud83d\\\ude00`:       "\uFFFD\\\uFFFD",
		`\uFFFD \u00e9 \ud800`: "\uFFFD é \uFFFD",
	} {
		k := Key{Session: in}
		must(appendSQL(s, k, `[{"role":"user","content":"`+in+`","x":{"`+in+`":["`+in+`"]}}]`))(t)
		view, _ := must2(s.View(t.Context(), k))(t)
		equal(t, want, view[0].Content.Text, "%s: stored as", in)
		equal(t, want, one[string](t, s, `SELECT content FROM compactor.messages WHERE session = $1`, in), "%s: SQL reads", in)
		must(s.pool.Exec(t.Context(), `SELECT compactor.replace_view(NULL, $1, 0, $2)`, in, `[{"id":"n`+in+`","role":"user","content":"x`+in+`"}]`))(t)
		view, _ = must2(s.View(t.Context(), k))(t)
		equal(t, []string{"n" + want, "x" + want}, []string{view[0].ID, view[0].Content.Text}, "%s: replaced by", in)
	}
	bad := []NewMessage{user("a", "x\x00y\xffz"), call("b", "c\x00"), result("c", "c\x00", "\xed\xa0\x80")}
	bad[0].Extra = map[string]json.RawMessage{"k": json.RawMessage(`"\ud800 \u0000"`)}
	_, repairs := must2(s.Append(t.Context(), Key{Session: "go"}, "", bad))(t)
	equal(t, 9, repairs, "repairs")
	view, _ := must2(s.View(t.Context(), Key{Session: "go"}))(t)
	equal(t, "x\uFFFDy\uFFFDz", view[0].Content.Text, "stored as")
	if bodies := strings.Join(list[string](t, s, `SELECT body FROM compactor.message_body`), ""); !utf8.ValidString(bodies) {
		t.Error("a body is not valid UTF-8")
	}
	wantConsistent(t, s)
}

func TestAppendRepairsAsGoDoes(t *testing.T) {
	s := fresh(t)
	piece := rapid.SampledFrom([]string{`\u0000`, `\ud83d`, `\ude00`, `\\`, `u0000`, `ud800`, `\n`, `\uDBFF`, `\uDfff`, `\u00e9`, `x`, `\"`})
	rapid.Check(t, func(t *rapid.T) {
		raw := `"` + strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "") + `"`
		want, _ := chat.SanitizeJSON([]byte(raw))
		if got := one[string](t, s, `SELECT compactor.repair_json($1)`, raw); got != string(want) {
			t.Fatalf("%s became %s, in Go it becomes %s", raw, got, want)
		}
	})
}

func TestAppendTakesOddMessages(t *testing.T) {
	s := fresh(t)
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	odd := []string{
		`{"role":"function","name":"f","content":"meanwhile"}`,
		`{"role":"user","content":""}`, `{"role":"system","content":null}`, `{"role":"system"}`, `{"role":"tool","tool_call_id":"x","content":[]}`,
		`{"role":"assistant","content":"","tool_calls":[]}`, `{"role":"assistant","content":"","tool_calls":null}`,
		`{"role":"user","tool_calls":[{"id":"x","function":{"name":"f"}}],"content":"not an assistant"}`,
		`{"role":"user","content":["one",{"type":"text"},{"text":"two"},{"type":"image_url","image_url":{"url":"data:"}},{"type":"thinking"}]}`,
		`{"role":"user","content":"x","deep":` + deep + `}`, `{"role":"user","role":"assistant","content":"twice"}`,
		`{"role":"user","content":"x","name":7}`, `{"role":"user","content":"x","n":1e400}`,
	}
	k := Key{Tenant: "t", Session: "s"}
	must(appendSQL(s, k, "["+strings.Join(odd, ",")+"]"))(t)
	for _, m := range odd {
		wantError(t, second(appendSQL(s, k, m)), nil, "%s", m)
	}
	equal(t, 2*len(odd), one[int](t, s, `SELECT count(*) FROM compactor.message_log`), "messages in the log")
	equal(t, "toolt", one[string](t, s, `SELECT role || role_code::text FROM compactor.message_log WHERE seq = 1`), "another role is stored as")
	wantDescribed(t, s, k)
	wantConsistent(t, s)
}

func TestAppendRejectsInvalidMessages(t *testing.T) {
	s, k := freshSession(t)
	good := `{"role":"user","content":"x"}`
	for bad, want := range map[string]string{
		`"text"`:                                          "must be an object",
		`{"content":"x"}`:                                 "role must be a string",
		`{"role":5}`:                                      "role must be a string",
		`{"role":"user","id":5}`:                          "id must be a string",
		`{"role":"user","content":5}`:                     "content must be",
		`{"role":"user","content":[5]}`:                   "content: a part",
		`{"role":"user","content":[{"type":5}]}`:          "content: a part",
		`{"role":"assistant","tool_calls":{}}`:            "tool_calls must be",
		`{"role":"assistant","tool_calls":[5]}`:           "tool_calls: a call",
		`{"role":"assistant","tool_calls":[{"id":5}]}`:    "tool_calls: a call",
		`{"role":"tool","tool_call_id":5}`:                "tool_call_id must be",
		`{"role":"user","token_count":-1}`:                "token_count must be",
		`{"role":"user","token_count":99999999999999999}`: "token_count must be",
	} {
		_, err := appendSQL(s, k, "["+good+","+good+","+bad+"]")
		if !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), "message 2") || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want it refused as message 2 because %s", bad, err, want)
		}
		var m chat.Message
		if err := json.Unmarshal([]byte(bad), &m); err == nil && !strings.Contains(bad, "token_count") && !strings.Contains(bad, `"id":5}`) {
			t.Errorf("%s: Go takes it", bad)
		}
	}
	for _, bad := range []string{`5`, `"text"`, `null`} {
		wantError(t, second(appendSQL(s, k, bad)), ErrInvalid, "append of %s", bad)
	}
	for name, raw := range map[string]string{
		"no JSON":           `{"role":`,
		"nested too deeply": `{"role":"user","content":"x","deep":` + strings.Repeat("[", 200000) + strings.Repeat("]", 200000) + `}`,
		"an id too long to index": fmt.Sprintf(`{"role":"user","id":%q}`, func() (id string) {
			for i := range 2000 {
				id += fmt.Sprint(i * i)
			}
			return id
		}()),
	} {
		wantError(t, second(appendSQL(s, k, raw)), ErrInvalid, "%s", name)
	}
	wantError(t, third(s.Append(t.Context(), Key{}, "", talk("m", 1))), ErrInvalid, "session without an id")
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.sessions`), "sessions: what is refused leaves nothing")
}

// BenchmarkAppendGrowth appends messages with calls and results, and then a message that is there already.
func BenchmarkAppendGrowth(b *testing.B) {
	s := open(b)
	appends := 0
	growth.Report(b, 2000, 10, func(n int) func() {
		var msgs []NewMessage
		for len(msgs) < n {
			id := fmt.Sprint(len(msgs))
			msgs = append(msgs, user("u"+id, "please look into it"), call("c"+id, "x"+id, "y"+id), result("rx"+id, "x"+id, "here"), result("ry"+id, "y"+id, "there"))
		}
		return func() {
			appends++
			k := Key{Session: fmt.Sprint(appends)}
			add(b, s, k, msgs...)
			add(b, s, k, msgs[0])
		}
	})
}

func TestConcurrentAppendersLoseNothing(t *testing.T) {
	s, k := freshSession(t)
	const writers, batches, size = 4, 20, 3
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for b := range batches {
				add(t, s, k, talk(fmt.Sprintf("%d-%d-", w, b), size)...)
				wantError(t, third(s.Append(context.Background(), k, "", []NewMessage{user("everybody's", "the same")})), nil, "append beside others")
			}
		})
	}
	group.Wait()
	equal(t, writers*batches*size+1, len(liveSeqs(t, s, k)), "messages")
	wantConsistent(t, s)
}

func TestAppendToSeveralSessionsInOneTransaction(t *testing.T) {
	s := fresh(t)
	do := func(commit bool) {
		tx := must(s.pool.Begin(t.Context()))(t)
		for _, session := range []string{"a", "b", "c", "a"} {
			must(tx.Exec(t.Context(), `SELECT compactor.append(NULL, $1, '{"role":"user","content":"x"}')`, session))(t)
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		noError(t, end(t.Context()))
	}
	do(false)
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.sessions`), "sessions after a rollback")
	do(true)
	do(true)
	got := list[string](t, s, `SELECT tenant || ' ' || id || ' ' || messages FROM compactor.sessions ORDER BY id`)
	equal(t, []string{"default a 4", "default b 2", "default c 2"}, got, "sessions")
	wantConsistent(t, s)
}
