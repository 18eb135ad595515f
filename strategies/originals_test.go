package strategies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/summary"
)

const (
	chainAsk        = "Rename the table of the tenants to accounts_v7, please."
	chainConstraint = "Never touch the billing module."
	chainReference  = "internal/store/tenant_rename.go"
)

// chainRound is a part of a growing session. The first holds what the last summary has to hold.
func chainRound(n int) []chat.Message {
	if n > 0 {
		id := fmt.Sprint("look", n)
		return []chat.Message{
			sessiontest.User(fmt.Sprintf("And what is in drawer %d?", n)), sessiontest.Calls(id), sessiontest.Result(id, strings.Repeat("a paper clip\n", 60)),
			sessiontest.Says(fmt.Sprintf("Drawer %d holds paper clips. %s", n, strings.Repeat("They are made of wire. ", 30))),
		}
	}
	edits := sessiontest.Calls("first")
	edits.ToolCalls[0].Name, edits.ToolCalls[0].Arguments = "edit_file", `{"path":"`+chainReference+`"}`
	return []chat.Message{sessiontest.User(chainAsk + " " + chainConstraint), edits, sessiontest.Result("first", "1 file changed"), sessiontest.Says("Renamed in " + chainReference + ".")}
}

var chainHandoff = policy.Step{Strategy: "handoff", Params: map[string]any{
	"protect_first_n": 0, "protect_last_n": 2, "tail_token_budget": 200, "max_summary_tokens": 500,
}}

// chainOf returns a function that compacts a conversation with steps, and the summaries then in
// its view, without the lines in the place of calls.
func chainOf(t *testing.T, steps ...policy.Step) func(c *Conversation) []string {
	t.Helper()
	p := policy.Default()
	p.Fallback = false
	p.Pipeline = steps
	p.Summary.Size.Min, p.Summary.Size.Max = 500, 500
	return func(c *Conversation) (texts []string) {
		t.Helper()
		run, _, err := Build(builtin.Registry(), p, policy.Limits{Window: 8000, Start: 1200, Target: 1100}, summary.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compact(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Records() {
			_, _, framed := frame.Unwrap(r.Message.Content.String())
			if r.Included && (framed || strings.HasPrefix(r.Message.Content.String(), "[Conversation Summary]")) {
				texts = append(texts, r.Message.Content.String())
			}
		}
		return texts
	}
}

func TestTheTenthSummaryHoldsWhatTheFirstRoundSaid(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]policy.Step{
		"handoff":                  {chainHandoff},
		"handoff behind stand-ins": {{Strategy: "tool_result", Params: map[string]any{"keep_last_tool_call_groups": 0}}, chainHandoff},
		"summarize":                {{Strategy: "summarize", Params: map[string]any{"threshold": 3, "keep_last_n": 2, "max_summary_tokens": 500, "preserve_user_messages": false}}},
		"summarization":            {{Strategy: "summarization", Params: map[string]any{"target_count": 2, "threshold": 1}}},
		"preserve_recent_turns":    {{Strategy: "preserve_recent_turns", Params: map[string]any{"turns": 1, "min_turn_tokens": 0}}},
		"preserve_recent_fraction": {{Strategy: "preserve_recent_fraction", Params: map[string]any{"fraction": 0.2}}},
		"preserve_user_messages":   {{Strategy: "preserve_user_messages", Params: map[string]any{"max_tokens": 20}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compact := chainOf(t, steps...)
			c := NewConversation(Options{})
			var texts []string
			for n := range 10 {
				c.Append(chainRound(n)...)
				texts = compact(c)
			}
			if len(texts) != 1 {
				t.Fatalf("%d summaries", len(texts))
			}
			for _, want := range []string{chainAsk, chainConstraint, "edit_file: path " + chainReference + " → 1 file changed"} {
				if strings.Count(texts[0], want) == 0 {
					t.Errorf("no %q in\n%s", want, texts[0])
				}
			}
			if n := strings.Count(texts[0], "And what is in drawer 1?"); n > 1 {
				t.Errorf("an ask is there %d times:\n%s", n, texts[0])
			}
		})
	}
}

func TestOriginalsOfAConversation(t *testing.T) {
	t.Parallel()
	c := NewConversation(Options{})
	c.Append(sessiontest.User("one"), sessiontest.Says("two"), sessiontest.User("three"), sessiontest.Says("four")) // 1 to 4
	cover := func(seqs ...chat.Seq) {
		c.Apply(chat.Plan{Additions: []chat.Addition{{Kind: chat.KindSummary, Covers: chat.RangesOf(seqs...), Position: seqs[0], Message: sessiontest.User("summary")}}})
	}
	c.Apply(chat.Plan{Exclude: []chat.Exclusion{{Reason: "mine", Seqs: chat.RangesOf(2)}}})
	cover(1, 3)                                                                                                                                     // 5
	c.AppendRecord(chat.Record{Meta: chat.Meta{Kind: chat.KindSummary}, Message: sessiontest.User(frame.Wrap("what was before", frame.Options{}))}) // 6
	cover(5, 4)                                                                                                                                     // 7
	for name, x := range map[string]struct {
		of          []chat.Seq
		want, older string
	}{
		"summaries of summaries":      {[]chat.Seq{7}, "one three four", ""},
		"one out of the view":         {[]chat.Seq{5}, "one three", ""},
		"one of a store":              {[]chat.Seq{6, 7}, "one three four", "what was before"},
		"an addition of the same run": {[]chat.Seq{3, 8, 9}, "three", ""},
	} {
		messages, older, err := c.Transcript().Originals(t.Context(), x.of, 1)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for m := range messages {
			got = append(got, m.Content.String())
		}
		if strings.Join(got, " ") != x.want || len(older) != len(strings.Fields(x.older))/3 || len(older) > 0 && !strings.Contains(older[0].Content.String(), x.older) {
			t.Errorf("%s: %q after %d others", name, got, len(older))
		}
	}
}

// A message that the fallback dropped has no summary yet: the next one takes it in.
func TestASummaryTakesInWhatTheFallbackDropped(t *testing.T) {
	t.Parallel()
	c := NewConversation(Options{})
	c.Append(chainRound(0)...)
	c.Append(chainRound(1)...)
	if _, err := c.Compact(t.Context(), pipeline.Pipeline{Target: 300, Fallback: true}); err != nil {
		t.Fatal(err)
	}
	if c.Records()[0].Included {
		t.Fatal("the fallback kept the first message")
	}
	for n := range 4 {
		c.Append(chainRound(n + 2)...)
	}
	texts := chainOf(t, chainHandoff)(c)
	if len(texts) != 1 || !strings.Contains(texts[0], chainAsk) {
		t.Errorf("summaries %q", texts)
	}
}
