package store

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/agent"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

var _ agent.History = (*History)(nil)

// makes returns a strategy of the registry.
func makes(t *testing.T, name string, p plan.Params) plan.Strategy {
	t.Helper()
	s := must(builtin.Registry().New(name, p))(t)
	return s
}

// plain returns messages without the fields that the store adds.
func plain(msgs ...NewMessage) []chat.Message {
	out := make([]chat.Message, len(msgs))
	for i, m := range msgs {
		out[i] = m.Message
	}
	return out
}

// listed returns all messages of a session in view order, as "id" or "id<reason" with the
// replacement.
func listed(t *testing.T, s *Store, k Key) string {
	t.Helper()
	var out []string
	for _, m := range must(s.All(t.Context(), k))(t) {
		one := m.ID
		if m.Kind != chat.KindSource {
			one = string(m.Kind) + "(" + m.Content.Text + ")"
		}
		if !m.Included {
			one += "<" + m.ExcludeReason
			if m.SummarizedBy != "" {
				one += "*"
			}
		}
		out = append(out, one)
	}
	return strings.Join(out, " ")
}

// A compaction by an application is recorded like a run of a worker: it can be explained and
// undone.
func TestAProviderWritesThroughAHistory(t *testing.T) {
	t.Parallel()
	for _, excluded := range []bool{true, false} {
		s := open(t)
		k := Key{Session: "s"}
		h := s.History(k, "gpt-4o", "host")
		h.Count = func(m *chat.Message) (chat.Tokens, string) { return tokens.Chars4{}.Message(m), "test" }
		source := agent.NewSource("chat", h)
		source.StoreExcluded = excluded
		p, err := agent.NewProvider(agent.ProviderConfig{
			Sources: []agent.Source{source},
			Before:  makes(t, "sliding_window", plan.Params{"keep_last_groups": 1}),
			New:     makes(t, "tool_result", plan.Params{"keep_last_tool_call_groups": 0}),
			After:   makes(t, "sliding_window", plan.Params{"keep_last_groups": 4}),
		})
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("many words ", 20)
		steps := []agent.Exchange{
			{Inputs: plain(user("u1", "go")), Outputs: plain(assistant("a1", "gone"))},
			{Inputs: plain(user("u2", "look")), Outputs: plain(call("c2", "x"), result("r2", "x", long), assistant("a2", "seen"))},
			{Inputs: plain(user("u3", "and?"))},
		}
		for _, x := range steps {
			must(p.Write(t.Context(), x))(t)
			wantConsistent(t, s)
			view, _ := must2(s.View(t.Context(), k))(t)
			metas := must(s.Operator.ViewMetas(t.Context(), session(t, s, k).SID))(t)
			if faults := chat.Check(metas); len(faults) > 0 || len(view) != len(metas) {
				t.Fatalf("%v", faults)
			}
		}
		summary := "[Tool results: look: " + strings.TrimSpace(long) + "]"
		got := strings.ReplaceAll(listed(t, s, k), summary, "…")
		want := "u1<sliding_window a1<sliding_window u2 summary(…) c2<tool_result_compaction* r2<tool_result_compaction* a2 u3"
		if !excluded {
			// The replacement of the call is an ordinary message with an id assigned by the store.
			got = strings.Join(strings.Fields(got)[:3], " ")
			want = "u1<sliding_window a1<sliding_window u2"
		}
		equal(t, want, got, "stored, excluded ones too: %v", excluded)
		if n := one[int64](t, s, `SELECT count(*) FROM compactor.messages WHERE id IN ('c2', 'r2')`); (n == 2) != excluded {
			t.Errorf("%d of the call's messages are stored", n)
		}
		read, err := p.Read(t.Context())
		if err != nil || len(read.Messages) != 1 || read.Messages[0].ID != "u3" {
			t.Errorf("read %d messages, %v", len(read.Messages), err)
		}
		runs := must(s.Operator.Runs(t.Context(), RunFilter{Key: k, Limit: 10}))(t)
		if len(runs) == 0 || runs[0].Trigger != TriggerApplication || runs[0].RequestedBy != "host" || runs[0].Outcome != "applied" || !runs[0].InForce {
			t.Fatalf("%+v", runs)
		}
		var ran []pipeline.StepResult
		if err := json.Unmarshal(runs[0].Steps, &ran); err != nil || len(ran) == 0 {
			t.Errorf("steps: %s, %v", runs[0].Steps, err)
		}
		view, _ := must2(s.View(t.Context(), k))(t)
		if int64(len(view)) != runs[0].MessagesAfter {
			t.Errorf("%d messages in view, the ledger says %d", len(view), runs[0].MessagesAfter)
		}
		for _, r := range runs { // newest first
			must(s.Undo(t.Context(), k, r.ID, false, ""))(t)
		}
		if strings.Contains(strings.ReplaceAll(listed(t, s, k), "summary(", ""), "sliding_window") {
			t.Errorf("after undo: %s", listed(t, s, k))
		}
		wantConsistent(t, s)
	}
}

func TestAHistoryRefusesStalePlansAndKeepsTheMessages(t *testing.T) {
	s, k := freshSession(t)
	h := s.History(k, "", "host")
	if log, err := h.Load(t.Context(), false); err != nil || len(log.Records) > 0 || log.Last != 0 {
		t.Errorf("no session yet: %+v, %v", log, err)
	}
	add(t, s, k, talk("m", 4)...)
	write := func(id string, log chat.Log) error {
		return h.Append(t.Context(), chat.Write{
			Messages: plain(user(id, id)), Plan: exclude(span(1, 1)), After: log.Last, Revision: log.Revision,
		})
	}
	log := must(h.Load(t.Context(), false))(t)
	add(t, s, k, user("late", "x"))
	wantError(t, write("n1", log), ErrStale, "written meanwhile")
	log = must(h.Load(t.Context(), false))(t)
	apply(t, s, k, exclude(span(2, 2)))
	wantError(t, write("n2", log), ErrStale, "compacted meanwhile")
	log = must(h.Load(t.Context(), false))(t)
	c := start(t, s, k)
	wantError(t, write("n3", log), ErrBusy, "a worker at work")
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Kind: "compact", Outcome: "nothing_to_compact"}, nil))
	equal(t, []chat.Seq{1, 3, 4, 5, 6, 7, 8}, liveSeqs(t, s, k), "view")
	log = must(h.Load(t.Context(), true))(t)
	if len(log.Records) != 8 || log.Records[1].Included || !log.Records[0].Included {
		t.Errorf("whole log: %+v", log)
	}
	noError(t, write("n4", log))
	wantError(t, write("n4", must(h.Load(t.Context(), false))(t)), ErrStale, "a message that is there already")
	// A pin that the plan does not know of is not overrun.
	log = must(h.Load(t.Context(), false))(t)
	noError(t, s.Pin(t.Context(), k, "m4"))
	err := h.Append(t.Context(), chat.Write{Plan: exclude(span(3, 4)), After: log.Last, Revision: log.Revision, Pinned: nil})
	if !errors.Is(err, ErrStale) {
		t.Errorf("pinned meanwhile: %v", err)
	}
	noError(t, s.Unpin(t.Context(), k, "m4"))
	// Pins that others set are kept.
	noError(t, s.Pin(t.Context(), k, "m3"))
	p, err := agent.NewProvider(agent.ProviderConfig{
		Sources: []agent.Source{agent.NewSource("chat", h)}, After: makes(t, "sliding_window", plan.Params{"keep_last_groups": 1}),
	})
	if err != nil {
		t.Fatal(err)
	}
	must(p.Write(t.Context(), agent.Exchange{Inputs: plain(user("n5", "x"))}))(t)
	equal(t, []chat.Seq{3, 10}, liveSeqs(t, s, k), "view")
	wantConsistent(t, s)
}
