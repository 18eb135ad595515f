package worker

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// The parts of the first round that the last summary has to hold.
const (
	firstAsk        = "Please move the booking of Mrs Ferrante to the evening ferry."
	firstConstraint = "Never charge the card without asking me first."
	firstAct        = "move_booking"
	firstBooking    = "FERRY88Q4Z"
)

// firstRound is what is said before the first summary.
func firstRound() []chat.Message {
	return []chat.Message{
		text(chat.RoleUser, firstAsk+" "+firstConstraint),
		{Role: chat.RoleAssistant, Content: chat.TextContent("I will move booking " + firstBooking + "."), ToolCalls: []chat.ToolCall{
			{ID: "call_first", Type: "function", Name: firstAct, Arguments: `{"booking":"` + firstBooking + `","ferry":"evening"}`},
		}},
		{Role: chat.RoleTool, ToolCallID: "call_first", Content: chat.TextContent(`{"status":"moved","booking":"` + firstBooking + `"}`)},
	}
}

// chatter returns messages of about 1,000 tokens that say little.
func chatter(n int) (ms []chat.Message) {
	for i := range 6 {
		ms = append(ms, text(chat.RoleUser, fmt.Sprintf("What about cabin %d of deck %d?", i, n)),
			text(chat.RoleAssistant, fmt.Sprintf("Cabin %d of deck %d is free. %s", i, n, strings.Repeat("It has a window and a bed. ", 22))))
	}
	return ms
}

func chainPolicy() policy.Policy {
	p := testPolicy()
	p.StartTokens, p.TargetTokens, p.Fallback = 2000, 1200, false
	p.Pipeline = []policy.Step{{Strategy: "handoff", Params: map[string]any{"protect_first_n": 0, "protect_last_n": 2, "tail_token_budget": 200, "max_summary_tokens": 600}}}
	p.Summary.Size.Min, p.Summary.Size.Max = 600, 600
	return p
}

// summary returns the text of the only summary in the view of session s.
func (f *fixture) summary() string {
	f.t.Helper()
	all := f.summaries("s")
	if len(all) != 1 {
		f.t.Fatalf("%d summaries, view %s", len(all), f.view("s"))
	}
	return all[0].Content.String()
}

// wantFirstRound fails unless the summary holds what was said in the first round.
func (f *fixture) wantFirstRound(when string) {
	f.t.Helper()
	got := f.summary()
	for _, want := range []string{firstAsk, firstConstraint, firstAct, firstBooking} {
		if !strings.Contains(got, want) {
			f.t.Errorf("%s: no %q in\n%s", when, want, got)
		}
	}
}

// edit puts a text in the place of the summary in the view of session s.
func (f *fixture) edit(to string) {
	f.t.Helper()
	ctx := f.t.Context()
	old := f.summaries("s")[0]
	c := must(f.store.Worker.Claim(ctx, f.operator("s", store.Options{}), "test", time.Minute))(f.t)
	_, err := f.store.Worker.Apply(ctx, c.Run, c.Fence, store.Change{
		Plan: chat.Plan{Additions: []chat.Addition{{
			Kind: chat.KindSummary, Reason: "edited", Covers: chat.RangesOf(old.Seq), Position: 1, Tokens: 20, Counter: "test",
			Flags: chat.HasText, Message: text(old.Role, to),
		}}},
		SnapshotSeq: c.Session.LastSeq, Revision: c.Session.Revision, Delta: store.Delta{DeltaMessages: -1, DeltaTokens: -int64(old.Tokens)},
		Ledger: store.Ledger{Kind: "compact", Outcome: OutcomeApplied}, PostRunState: store.PostRunState{DueTokens: 2000},
	})
	f.must(err)
}

func TestASummaryIsMadeFromTheLogOfWhatItCovers(t *testing.T) {
	t.Parallel()
	f := setupWith(t, database(t), chainPolicy(), Config{})
	// The session of another tenant has the same name and the same seqs.
	other := store.NewMessage{Message: text(chat.RoleUser, "Please book the OTHERTENANT77X cabin, and never tell anybody.")}
	_, _, err := f.store.Append(t.Context(), store.Key{Tenant: "other", Session: "s"}, "", []store.NewMessage{other, other, other})
	noError(t, err)
	f.say("s", firstRound()...)
	f.say("s", text(chat.RoleUser, "You must never mention the WITHDRAWN55X invoice again."))
	f.replace(func(view []store.NewMessage) []store.NewMessage { return view[:len(view)-1] })
	f.say("s", chatter(1)...)
	f.say("s", chatter(2)...)
	if row := f.run(f.event()); row.Outcome != OutcomeApplied {
		t.Fatalf("the first run ended %s %s", row.Outcome, row.Steps)
	}
	f.wantFirstRound("the first summary")

	f.edit(frame.Wrap("Something about ferries.", frame.Options{}))
	if got := f.summary(); strings.Contains(got, firstBooking) {
		t.Fatalf("not edited:\n%s", got)
	}
	f.say("s", chatter(3)...)
	f.say("s", chatter(4)...)
	second := f.run(f.event())
	if second.Outcome != OutcomeApplied {
		t.Fatalf("the second run ended %s %s", second.Outcome, second.Steps)
	}
	f.wantFirstRound("the second summary")

	f.undo(second.ID)
	f.say("s", chatter(5)...)
	if row := f.run(f.event()); row.Outcome != OutcomeApplied {
		t.Fatalf("the run after the undo ended %s %s", row.Outcome, row.Steps)
	}
	f.wantFirstRound("the summary after an undo")
	for name, secret := range map[string]string{"another tenant": "OTHERTENANT77X", "what the application took out": "WITHDRAWN55X"} {
		if got := f.summary(); strings.Contains(got, secret) {
			t.Errorf("the summary holds words of %s:\n%s", name, got)
		}
	}
	if row := f.run(f.operator("s", store.Options{AllowGrowth: true})); row.Outcome != OutcomeApplied {
		t.Fatalf("the operator's run ended %s %s", row.Outcome, row.Steps)
	}
	f.wantFirstRound("the summary of an operator's run")
}

// unread is a store whose messages cannot be read again once.
type unread struct {
	Store
	failed bool
}

func (s *unread) Originals(ctx context.Context, sid int64, upTo chat.Seq, of []chat.Seq, dropped string, most int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
	if !s.failed {
		s.failed = true
		return func(yield func(chat.Original, error) bool) {
			yield(chat.Original{}, &store.Error{Kind: store.ErrUnavailable, Message: "database: away"})
		}, nil, nil
	}
	return s.Store.Originals(ctx, sid, upTo, of, dropped, most)
}

// A log that cannot be read is no missing summary: the run is tried again.
func TestARunWaitsForTheLog(t *testing.T) {
	t.Parallel()
	f := setupWith(t, database(t), chainPolicy(), Config{})
	f.say("s", firstRound()...)
	f.say("s", chatter(1)...)
	f.say("s", chatter(2)...)
	f.run(f.event())
	before := f.summary()
	f.say("s", chatter(3)...)
	f.say("s", chatter(4)...)
	f.w.store = &unread{Store: f.store.Worker}
	id := f.event()
	if row := f.run(id); row.Status != "queued" || f.summary() != before {
		t.Fatalf("%s %s", row.Status, row.Outcome)
	}
	if row := f.run(id); row.Outcome != OutcomeApplied {
		t.Errorf("%s %s", row.Outcome, row.Steps)
	}
	f.wantFirstRound("after the failure")
}

// A worker with a database writes the same summaries as the library on a conversation in memory.
func TestAChainIsThatOfAConversation(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it summarizes recorded sessions twice")
	}
	p := policy.Default()
	p.StartTokens, p.TargetTokens, p.MinGainTokens, p.EstimateMargin = 6000, 5000, 1, 0
	f := setupWith(t, database(t), p, Config{})
	f.w.planner.BindsReasoning = func(string) bool { return false }
	written := 0
	sessions := recorded(t, 20)
	const parts = 4
	for n := range sessions {
		// Of a history that breaks no rule: append repairs at once what the library leaves to its run.
		whole := strategies.NewConversation(strategies.Options{FreeReasoning: true, AllowGrowth: true})
		whole.Append(sessions[n].Messages...)
		must(whole.Compact(t.Context(), pipeline.Pipeline{}))(t)
		all, name := whole.View(), fmt.Sprint("s", n)
		at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
		for i := range all {
			if all[i].CreatedAt.IsZero() {
				all[i].CreatedAt = at // or else the store sets the present time
			}
			at = all[i].CreatedAt
		}
		c := strategies.NewConversation(strategies.Options{FreeReasoning: true})
		for k := range parts {
			part := all[len(all)*k/parts : len(all)*(k+1)/parts]
			if len(part) == 0 {
				continue
			}
			f.say(name, part...)
			f.run(f.operator(name, store.Options{From: "view"}))
			c.Append(part...)
			steps, _, err := strategies.Build(builtin.Registry(), p, p.Limits("", tokens.Window), summary.Options{})
			f.must(err)
			must(c.Compact(t.Context(), steps))(t)
		}
		var stored, inMemory []string
		for _, m := range f.summaries(name) {
			stored = append(stored, m.Content.String())
		}
		for _, r := range c.Records() {
			if r.Included && r.Kind == chat.KindSummary {
				inMemory = append(inMemory, r.Message.Content.String())
			}
		}
		written += len(stored)
		if diff := cmp.Diff(inMemory, stored); diff != "" {
			t.Errorf("%s (-in memory +stored):\n%s", sessions[n].ID, diff)
		}
	}
	if written == 0 {
		t.Error("no summary was written")
	}
}
