package builtin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	restubbed := func(id string) chat.Plan {
		return chat.Plan{Additions: []chat.Addition{{
			Kind: chat.KindReplacement, Covers: chat.RangesOf(4), Message: sessiontest.Result(id, "stub"),
		}}}
	}
	tests := map[string]struct {
		messages []chat.Message
		excluded []chat.Seq
		pinned   []chat.Seq
		guard    pipeline.Guard
		plan     chat.Plan
		view     []int // additions as their negative position
		repairs  []pipeline.Repair
	}{
		"part of a group does not go": {
			plan: sessiontest.Excludes(2, 4), view: []int{1, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"reasoning does not leave its call": {
			plan: sessiontest.Excludes(8), view: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"a group goes when a summary covers what is not excluded": {
			plan: chat.Plan{Exclude: sessiontest.Excludes(3).Exclude, Additions: sessiontest.Summarizes(0, 4, 5).Additions},
			view: []int{1, 2, -3, 6, 7, 8, 9, 10, 11},
		},
		"a summary loses the part of a group it covers": {
			plan: sessiontest.Summarizes(0, 2, 3), view: []int{1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"the last user message and system messages come back": {
			plan: sessiontest.Excludes(1, 2, 7), view: []int{1, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"system messages go if the policy says so": {
			guard: pipeline.Guard{DropSystem: true},
			plan:  sessiontest.Excludes(1, 2), view: []int{3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"a summary that covers all of it covers neither": {
			plan: sessiontest.Summarizes(1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), view: []int{1, -2, 7},
		},
		"a summary of the last user message alone is not written": {
			plan: sessiontest.Summarizes(0, 7), view: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"the group of a pinned message stays": {
			pinned: []chat.Seq{5},
			plan:   sessiontest.Excludes(2, 3, 4, 5, 6), view: []int{1, 3, 4, 5, 7, 8, 9, 10, 11},
		},
		"an open call stays, with everything behind it": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Says("b"), sessiontest.Calls("x", "y"), sessiontest.Result("x", "r")},
			plan:     sessiontest.Excludes(2, 3, 4), view: []int{1, 3, 4},
		},
		"a call does not stay open as a strategy excludes what followed it": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Says("b"), sessiontest.Calls("x", "y"), sessiontest.Result("x", "r"), sessiontest.Says("c"), sessiontest.Says("d")},
			plan:     sessiontest.Excludes(2, 5, 6), view: []int{1, -3, 4},
			repairs: []pipeline.Repair{{Reason: "unanswered_call", Messages: 1}},
		},
		"parallel calls stay together": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Calls("x"), sessiontest.Calls("y"), sessiontest.Result("x", "r"), sessiontest.Result("y", "s"), sessiontest.User("b")},
			pinned:   []chat.Seq{5}, plan: sessiontest.Excludes(2, 3, 4, 5), view: []int{1, 2, 3, 4, 5, 6},
		},
		"of parallel calls, the one without a result goes": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Calls("x"), sessiontest.Calls("y"), sessiontest.Result("y", "s"), sessiontest.User("b")},
			view:     []int{1, 3, 4, 5},
			repairs:  []pipeline.Repair{{Reason: "unanswered_call", Messages: 1}},
		},
		"of parallel calls with text, what one said without a result stays": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Calls("x"), callsAndSays("look", "y"), sessiontest.Result("x", "s"), sessiontest.User("b")},
			view:     []int{1, 2, 4, -5, 5},
			repairs:  []pipeline.Repair{{Reason: "unanswered_call", Messages: 1}},
		},
		"reasoning at the end stays for the call to come": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Says("b"), sessiontest.Thinks("hm")},
			plan:     sessiontest.Excludes(2, 3), view: []int{1, 3},
		},
		"a summary behind an open call moves before it": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Says("b"), sessiontest.Calls("x")},
			plan:     sessiontest.Summarizes(9, 2), view: []int{1, -3, 3},
		},
		"a summary does not stand inside a group": {
			plan: sessiontest.Summarizes(5, 2), view: []int{1, -3, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"a summary does not precede the system messages that the view begins with": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Sys("s"), sessiontest.User("b")},
			plan:     sessiontest.Summarizes(1, 1), view: []int{2, -3, 3},
		},
		"a stand-in keeps its place": {
			plan: restubbed("a"), view: []int{1, 2, 3, -4, 5, 6, 7, 8, 9, 10, 11},
		},
		"a stand-in that answers another call is refused": {
			plan: restubbed("b"), view: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"an excluded message comes back with its whole group": {
			excluded: []chat.Seq{2, 3, 4, 5},
			plan:     chat.Plan{Include: chat.RangesOf(4)}, view: []int{1, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"a result that lost its call becomes a text": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Result("x", "words"), sessiontest.User("b"), sessiontest.Result("y", "more")},
			view:     []int{1, -2, 3, -4},
			repairs:  []pipeline.Repair{{Reason: "orphan_result", Messages: 2}},
		},
		"a result too many moves behind the group it stands in": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Calls("x"), sessiontest.Result("z", "words"), sessiontest.Result("x", "r"), sessiontest.User("b")},
			view:     []int{1, 2, 4, -5, 5},
			repairs:  []pipeline.Repair{{Reason: "orphan_result", Messages: 1}},
		},
		"an abandoned call that says nothing goes": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Thinks("hm"), sessiontest.Calls("x"), sessiontest.User("b")},
			view:     []int{1, 4},
			repairs:  []pipeline.Repair{{Reason: "unanswered_call", Messages: 2}},
		},
		"an abandoned call keeps the calls that were answered": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Calls("x", "y"), sessiontest.Result("x", "r"), sessiontest.User("b")},
			view:     []int{1, -2, 3, 4},
			repairs:  []pipeline.Repair{{Reason: "unanswered_call", Messages: 1}},
		},
		"excluded messages are not repaired": {
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Result("x", "words"), sessiontest.Calls("x"), sessiontest.User("b")},
			plan:     sessiontest.Excludes(2, 3), view: []int{1, 4},
		},
	}
	for name, tt := range tests {
		for _, whole := range []bool{true, false} {
			if !whole && tt.excluded != nil {
				continue
			}
			t.Run(fmt.Sprintf("%s/whole=%v", name, whole), func(t *testing.T) {
				t.Parallel()
				messages := tt.messages
				if messages == nil {
					messages = sessiontest.Talk()
				}
				s := sessiontest.Of(messages...)
				for _, q := range tt.excluded {
					s.Included[q] = false
				}
				for _, q := range tt.pinned {
					s.Pinned[q] = true
				}
				faults := chat.Check(s.View())
				r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Plans(tt.plan)}, Guard: tt.guard}, whole)
				if diff := cmp.Diff(tt.view, viewSeqs(s)); diff != "" {
					t.Errorf("view (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.repairs, r.Repairs); diff != "" {
					t.Errorf("repairs (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(faults, r.Violations); diff != "" {
					t.Errorf("faults (-want +got):\n%s", diff)
				}
				if err := s.Invariants(!tt.guard.DropSystem); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestGuardMendsEvenWhatContentAndMetadataDisagreeOn(t *testing.T) {
	t.Parallel()
	// The call of the metadata makes two calls, that of the content another one.
	s := sessiontest.Of(sessiontest.User("a"), sessiontest.Calls("x", "y"), sessiontest.Result("x", "r"), sessiontest.User("b"))
	lie := sessiontest.Calls("z")
	s.Messages[2] = &lie
	s.Run(t, pipeline.Pipeline{}, true)
	if faults := chat.Check(s.View()); len(faults) > 0 {
		t.Error(faults)
	}
}

func TestAnInvalidViewIsRefused(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.User("a"), sessiontest.Result("x", "r"))
	if err := pipeline.Valid(s.View()); !errors.Is(err, pipeline.ErrInvalidView) || !strings.Contains(err.Error(), "orphan_result at seq 2") {
		t.Errorf("got %v, want ErrInvalidView naming the fault", err)
	}
	if err := pipeline.Valid(s.View()[:1]); err != nil {
		t.Error(err)
	}
}

func TestTheGuardChecksAFixedPlan(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.Talk()...)
	p := pipeline.Pipeline{Steps: []plan.Strategy{pipeline.Fixed("plan", sessiontest.Excludes(2, 4, 99))}}
	r, err := p.Run(t.Context(), s.Transcript(false), s.Load)
	if err != nil {
		t.Fatal(err)
	}
	if got := byReason(r.Plan); !cmp.Equal(got, map[string]string{"x": "{[2,3)}"}) {
		t.Errorf("plan %v", got)
	}
}

// With what is between them out of the view, the reasoning looks like the call's,
// and like all of its group were in front of the user message.
func TestAnOpenCallBehindAMovedUserMessageStays(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.Thinks("hm"), sessiontest.Says("b"), sessiontest.Says("c"), sessiontest.Calls("x"))
	moved := sessiontest.User("between")
	s.Put(chat.Meta{
		Seq: 5, Position: 3, Kind: chat.KindSummary, Role: chat.RoleUser, Flags: chat.HasText | chat.Moved, Tokens: 5,
	}, moved)
	s.Included[2], s.Included[3] = false, false
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Plans(sessiontest.Excludes(4))}}, false)
	if diff := cmp.Diff([]int{1, -3, 4}, viewSeqs(s)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

// Its text would stand between the two, and behind the reasoning is no place, as a call may
// follow it.
func TestAResultWithoutACallBetweenAMovedCallAndReasoningIsExcluded(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.User("a"), sessiontest.User("b"), sessiontest.Says("c"), sessiontest.Thinks("hm"))
	s.Put(chat.Meta{Seq: 5, Position: 3, Kind: chat.KindSummary, Role: chat.RoleAssistant, Flags: chat.Moved, Calls: 1, Tokens: 5}, sessiontest.Calls("x"))
	s.Put(chat.Meta{
		Seq: 6, Position: 3, Kind: chat.KindSummary, Role: chat.RoleTool, Flags: chat.HasText | chat.Moved, Tokens: 5,
	}, sessiontest.Result("y", "r"))
	s.Included[3] = false
	s.Run(t, pipeline.Pipeline{}, true)
	if diff := cmp.Diff([]int{1, 2, -3, 4}, viewSeqs(s)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

func callsAndSays(text string, ids ...string) chat.Message {
	m := sessiontest.Calls(ids...)
	m.Content = chat.TextContent(text)
	return m
}

func TestMovedMessagesAreNotSummaries(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.User("a"), sessiontest.Says("b"), sessiontest.User("c"), sessiontest.Says("d"))
	for i, role := range []chat.Role{chat.RoleSystem, chat.RoleDeveloper} {
		s.Put(chat.Meta{
			Seq: chat.Seq(5 + i), Position: 3, Kind: chat.KindSummary, Role: role,
			Flags: chat.HasText | chat.Moved, Tokens: 5,
		}, sessiontest.Text(role, "between"))
	}
	s.Included[6] = false
	s.Run(t, pipeline.Pipeline{FromLog: true}, true)
	if !s.Included[5] || !s.Included[6] {
		t.Errorf("after a run from the log the moved messages are in the view: %t, %t; want both", s.Included[5], s.Included[6])
	}
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "sliding_window", plan.Params{"keep_last_groups": 1})}}, false)
	if !s.Included[5] || s.Included[6] {
		t.Errorf("after a sliding window the moved messages are in the view: %t, %t; want the system message alone", s.Included[5], s.Included[6])
	}
}
