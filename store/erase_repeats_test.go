package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

func TestPartsOfErasedTextsAreFound(t *testing.T) {
	t.Parallel()
	const long = "The account of Mrs Example at the bank in the old town has the number 12 34 56."
	words := partSet{}
	for _, text := range []string{long, "PIN 4711", "ok", strings.Repeat("=", 60), "[erased]", "パスワードは秘密です"} {
		words.add(string(saying(text).AppendJSON(nil)))
	}
	words.add(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1234567","type":"function","function":{"name":"look_up_people","arguments":"{\"name\":\"Jo Doe\"}"}}]}`)
	for text, want := range map[string]bool{
		long:                        true,
		"> " + long[10:50] + " (…)": true,
		long[10:49]:                 false, // 39 characters
		"Mrs Example at the  bank\n\tin the old town has": true,
		"the PIN 4711.":                  true,
		"the PIN 47112":                  false, // another word
		"SPIN 4711":                      false,
		"pin 4711":                       false,
		"ok then":                        false, // too short to say anything
		strings.Repeat("=", 80):          false,
		"[erased]":                       false,
		"彼のパスワードは秘密です":                   false, // letters go on
		"「パスワードは秘密です」":                   true,
		`he asked for {"name":"Jo Doe"}`: true,
		"call_1234567":                   false, // names no person
		"look_up_people":                 false,
	} {
		equal(t, want, words.in(string(saying(text).AppendJSON(nil))), "%q", text)
	}
}

func saying(text string) chat.Message {
	return chat.Message{Role: chat.RoleUser, Content: chat.TextContent(text)}
}

// The application's own messages are erased where they hold words, in forks and in the archive, too;
// those of others are reported.
func TestMessagesThatRepeatErasedWordsAreErasedOrNamed(t *testing.T) {
	s := fresh(t)
	k, fork := Key{Session: "chat"}, Key{Session: "fork"}
	const words = "Mrs Example lives in the old town, behind the bank"
	add(t, s, k, user("m1", words), assistant("m2", "noted"), user("m3", "go on"), assistant("m4", "gone on"))
	view, revision := must2(s.View(t.Context(), k))(t)
	must(s.Replace(t.Context(), k, revision, []NewMessage{user("s1", "so far: "+words), user("s2", "so far: an address"), {Message: view[3].Message}}, ""))(t)
	add(t, s, k, user("m5", "I said it: "+words), assistant("m6", "so you did"))
	must(s.Fork(t.Context(), k, fork.Session, ""))(t)
	view, revision = must2(s.View(t.Context(), fork))(t)
	must(s.Replace(t.Context(), fork, revision, []NewMessage{user("s3", "again: "+words), {Message: view[len(view)-1].Message}}, ""))(t)
	add(t, s, fork, user("m7", "and once more: "+words), user("m8", "at last"))
	hide(t, s, fork, 6)
	e := must(s.Admin.Erase(t.Context(), k, []string{"m1"}, "why", "by", false))(t)
	want := []Repeat{
		{Session: "chat", Message: "s1", Replaced: true, Holds: true, Erased: true},
		{Session: "chat", Message: "s2", Replaced: true},
		{Session: "chat", Message: "m5", Holds: true},
		{Session: "fork", Message: "s3", Replaced: true, Holds: true, Erased: true},
		{Session: "fork", Message: "m7", Holds: true},
	}
	noDiff(t, cmp.Diff(want, e.Repeats), "difference")
	if e.Messages != 5 { // m1 and s1 twice, s3
		t.Errorf("%+v", e)
	}
	if got := list[string](t, s, `SELECT DISTINCT l.id FROM compactor.message_log l JOIN compactor.message_body b USING (sid, seq) WHERE b.body LIKE '%Mrs Example%' ORDER BY 1`); cmp.Diff([]string{"m5", "m7"}, got) != "" {
		t.Errorf("the words are in %v, want what is left to the operator", got)
	}
	for _, left := range []string{"m5", "m7"} {
		noError(t, second(s.Admin.Erase(t.Context(), fork, []string{left}, "why", "by", false)))
	}
	wantNowhere(t, s, "Mrs Example")
	wantConsistent(t, s)
}

// BenchmarkEraseGrowth measures the cost of an erasure per message of a session.
func BenchmarkEraseGrowth(b *testing.B) {
	s := open(b)
	n := 0
	growth.Report(b, 2000, 10, func(messages int) func() {
		n++
		k := Key{Session: fmt.Sprint(n)}
		msgs := talk("m", messages)
		for i := range msgs {
			msgs[i].Content = chat.TextContent(strings.Repeat(fmt.Sprintf("message %d says something else. ", i), 30))
		}
		add(b, s, k, msgs...)
		return func() {
			if _, err := s.Admin.Erase(b.Context(), k, []string{"m2"}, "why", "by", true); err != nil {
				b.Fatal(err)
			}
		}
	})
}
