package store

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// wantPrompt checks that the view equals the output of package formats for a provider.
func wantPrompt(t fataler, s *Store, k Key, msgs []chat.Message) {
	t.Helper()
	var got, want bytes.Buffer
	rows := list[string](t, s, `SELECT message::text FROM compactor.view($1, $2)`, k.tenant(), k.Session)
	fmt.Fprintf(&got, `{"session_id":"s","messages":[%s]}`, strings.Join(rows, ","))
	r, err := formats.NewReader(&got, "chat")
	if err != nil {
		t.Fatalf("%v", err)
	}
	read, err := r.Next()
	if err != nil {
		t.Fatalf("%v in %s", err, rows)
	}
	got.Reset()
	for i := range msgs {
		msgs[i] = msgs[i].Body()
	}
	_, err1 := formats.Write(&got, "chat", read.Session, formats.Options{Log: true})
	var pairs chat.Pairer
	metas := make([]chat.Meta, len(msgs))
	for i := range msgs {
		metas[i] = pairs.Describe(&msgs[i], chat.Seq(i+1))
	}
	_, err2 := formats.Write(&want, "chat", chat.Session{ID: "s", Messages: chat.Merge(metas, msgs)}, formats.Options{})
	if diff := cmp.Diff(strings.Split(want.String(), `{"role"`), strings.Split(got.String(), `{"role"`)); diff != "" || err1 != nil || err2 != nil {
		t.Fatalf("%v, %v, view (-formats +SQL):\n%s", err1, err2, diff)
	}
}

func TestCallsOfOneMessageHaveDifferentIDsInTheView(t *testing.T) {
	s := fresh(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		k := Key{Session: fmt.Sprint(n)}
		var msgs []chat.Message
		for range rapid.IntRange(1, 4).Draw(t, "turns") {
			ids := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "x", "x_2", "y"}), 1, 4).Draw(t, "ids")
			m := call("", ids...)
			if rapid.Bool().Draw(t, "raw") {
				for i := range m.ToolCalls {
					m.ToolCalls[i].Raw = fmt.Appendf(nil, `{"function":{"name":"look","arguments":"{}"},"id":%q,"n":%d,"type":"function"}`, ids[i], i)
				}
			}
			msgs = append(msgs, user("", "go").Message, m.Message)
			if rapid.IntRange(0, 3).Draw(t, "another message of calls") == 0 {
				msgs, ids = append(msgs, call("", "z", "z", "w").Message), append(ids, "z", "z", "w")
			}
			for i, id := range rapid.Permutation(ids).Draw(t, "results") {
				msgs = append(msgs, result("", id, fmt.Sprint("r", i)).Message)
			}
		}
		var all []NewMessage
		for _, m := range msgs {
			all = append(all, NewMessage{Message: m})
		}
		add(t, s, k, all...)
		wantPrompt(t, s, k, msgs)
	})
	wantConsistent(t, s)
}

// BenchmarkRepeatedIDsGrowth reads a view in which all calls have one id, two of them in each message.
func BenchmarkRepeatedIDsGrowth(b *testing.B) {
	s := open(b)
	growth.Report(b, 200, 8, func(n int) func() {
		k := Key{Session: fmt.Sprint(n)}
		var msgs []NewMessage
		for i := range n {
			msgs = append(msgs, call("", "x", "x"), result("", "x", fmt.Sprint("a", i)), result("", "x", fmt.Sprint("b", i)))
		}
		add(b, s, k, msgs...)
		return func() {
			if view, _, err := s.View(b.Context(), k); err != nil || view[len(view)-1].ToolCallID != fmt.Sprintf("x_%d", n+1) {
				b.Fatal(len(view), err)
			}
		}
	})
}

// A view with ids that were made distinct can be given back, and the original messages appended again.
func TestReplaceAndAppendKnowMessagesByTheIDsOfTheView(t *testing.T) {
	s, k := freshSession(t)
	m := []NewMessage{user("a", "x"), call("b", "c", "c"), result("r1", "c", "y"), result("r2", "c", "z"), user("d", "x")}
	add(t, s, k, m...)
	view, revision := must2(s.View(t.Context(), k))(t)
	if got := view[3].ToolCallID; got != "c_2" {
		t.Fatalf("second result answers %q", got)
	}
	msgs := given(view)
	must(s.Replace(t.Context(), k, revision, msgs, ""))(t)
	add(t, s, k, m...)
	wantView(t, s, k, "a b r1 r2 d")
	if _, _, err := s.Append(t.Context(), k, "", []NewMessage{result("r2", "c_2", "edited")}); err == nil {
		t.Error("other content is taken")
	}
	if _, _, err := s.Append(t.Context(), k, "", []NewMessage{call("b", "c", "d")}); err == nil {
		t.Error("other ids are taken")
	}
	must(s.Fork(t.Context(), k, "f", ""))(t)
	forked, _ := must2(s.View(t.Context(), Key{Session: "f"}))(t)
	equal(t, "c_2", forked[3].ToolCallID, "in the fork the second result answers")
	wantConsistent(t, s)
}
