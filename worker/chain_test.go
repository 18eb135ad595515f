package worker

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// say appends messages to a session.
func (f *fixture) say(session string, ms ...chat.Message) {
	f.t.Helper()
	msgs := make([]store.NewMessage, len(ms))
	for i, m := range ms {
		f.n++
		m.ID = fmt.Sprintf("%s-%d", session, f.n)
		msgs[i] = store.NewMessage{Message: m, Tokens: tokens.Chars4{}.Message(&m), Counter: "test"}
	}
	f.write(session, msgs...)
}

func text(role chat.Role, s string) chat.Message {
	return chat.Message{Role: role, Content: chat.TextContent(s)}
}

// tenth returns a part of a growing session, and the names that it uses: some of its own, and
// one of each part before it. The outputs of its tools contain many unused names.
func tenth(n int) (ms []chat.Message, used []string) {
	for k := range 4 {
		id, path := fmt.Sprintf("call_%d_%d", n, k), fmt.Sprintf("internal/part%d/step%d.go", n, k)
		used = append(used, path)
		var listing strings.Builder
		for i := range 150 {
			fmt.Fprintf(&listing, "%d  vendor/module%d/part%d/file%d.go\n", 10000+i, i, n, k)
		}
		fmt.Fprintf(&listing, "sent as PARCEL7700%dZ", n) // so far only a tool has said it
		ms = append(ms, text(chat.RoleUser, "Now change "+path+" as we said."),
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("I will edit " + path + "."), ToolCalls: []chat.ToolCall{
				{ID: id, Type: "function", Name: "edit", Arguments: fmt.Sprintf(`{"file_path":%q,"value":%d}`, path, n*1000+k)},
			}},
			chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent("The file " + path + " has been updated.\n" + listing.String())})
	}
	for before := range n {
		order, parcel := fmt.Sprintf("ORDER%dX", 4000+before), fmt.Sprintf("PARCEL7700%dZ", before)
		used = append(used, order, parcel)
		ms = append(ms, text(chat.RoleAssistant, "As before, see "+order+" with "+parcel+"."))
	}
	own := fmt.Sprintf("ORDER%dX", 4000+n)
	return append(ms, text(chat.RoleAssistant, "The order is "+own+"; it is done."), text(chat.RoleUser, "ok, what is next?")), append(used, own)
}

// Ten compactions in a row of a session that grows, by every strategy that writes
// summaries: names in the view that are still used stay in the view, there is one summary,
// and it stays within its cap.
func TestTenChainedCompactions(t *testing.T) {
	t.Parallel()
	const most = 1500
	for name, step := range map[string]policy.Step{
		"handoff":               {Strategy: "handoff", Params: map[string]any{"protect_first_n": 0, "protect_last_n": 3, "tail_token_budget": 300, "max_summary_tokens": most}},
		"summarize":             {Strategy: "summarize", Params: map[string]any{"threshold": 8, "keep_last_n": 4, "max_summary_tokens": most, "preserve_user_messages": false}},
		"summarization":         {Strategy: "summarization", Params: map[string]any{"target_count": 4, "threshold": 2}},
		"preserve_recent_turns": {Strategy: "preserve_recent_turns", Params: map[string]any{"turns": 1, "min_turn_tokens": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testPolicy()
			p.StartTokens, p.TargetTokens, p.Fallback = 5000, 3500, false
			p.Pipeline = []policy.Step{step}
			p.Summary.Size.Min, p.Summary.Size.Max = most, most
			f := setupWith(t, database(t), p, Config{})
			before := ""
			for n := range 10 {
				ms, used := tenth(n)
				f.say("s", ms...)
				row := f.run(f.event())
				all := f.summaries("s")
				if row.Outcome != OutcomeApplied || len(all) != 1 {
					t.Fatalf("compaction %d: %s %s, %d summaries, view %s", n+1, row.Outcome, row.Steps, len(all), f.view("s"))
				}
				after := all[0].Content.String()
				for _, v := range used {
					if strings.Contains(before, v) && !strings.Contains(after, v) {
						t.Errorf("compaction %d lost %s, which is still used", n+1, v)
					}
				}
				body, _, framed := frame.Unwrap(after)
				if size := (utf8.RuneCountInString(body) + 3) / 4; !framed || size > most {
					t.Errorf("compaction %d: framed %v, %d tokens", n+1, framed, size)
				}
				if strings.Count(after, "## References") > 1 || strings.Count(after, "Made from ") != 1 || strings.Count(after, frame.End) > 1 {
					t.Errorf("compaction %d: a summary of summaries:\n%s", n+1, after)
				}
				before = after
			}
			for _, v := range []string{"## References", "ORDER4000X", "PARCEL77000Z"} {
				if !strings.Contains(before, v) {
					t.Errorf("%s is gone:\n%s", v, before)
				}
			}
		})
	}
}

// An operator who asks again and again gets one summary: a summary alone is not summarized,
// and no answer is paid for twice.
func TestAskingAgainIsNoNewSummary(t *testing.T) {
	t.Parallel()
	own := []store.Step{{Strategy: "summarization", Params: map[string]any{"target_count": 4, "threshold": 0}}}
	f, server := modelled(t, database(t), modelPolicy())
	first := f.run(f.operator("s", store.Options{From: "view", Pipeline: own}))
	before := f.summaries("s")
	if first.Outcome != OutcomeApplied || len(before) != 1 || server.Paid() != 1 {
		t.Fatalf("%s %s, %d summaries, %d paid", first.Outcome, first.Steps, len(before), server.Paid())
	}
	for range 2 {
		again := f.run(f.operator("s", store.Options{From: "view", Pipeline: own}))
		if again.Outcome != OutcomeNothingToCompact || !strings.Contains(string(again.Steps), `"no_summary": "nothing_new"`) || server.Calls() != 1 {
			t.Errorf("again: %s %s, %d requests", again.Outcome, again.Steps, server.Calls())
		}
	}
	// From the log it is the same question, which has its answer.
	if row := f.run(f.operator("s", store.Options{Pipeline: own, AllowGrowth: true})); row.CostMicros != 0 || server.Calls() != 1 {
		t.Errorf("from the log: %s %s, %d requests", row.Outcome, row.Steps, server.Calls())
	}
	if after := f.summaries("s"); len(after) != 1 || after[0].Content.String() != before[0].Content.String() {
		t.Errorf("%d summaries", len(after))
	}
}
