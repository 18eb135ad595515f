package strategies

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	restubbed := func(id string) chat.Plan {
		return chat.Plan{Additions: []chat.Addition{{
			Kind: chat.KindReplacement, Covers: chat.RangesOf(4), Message: result(id, "stub"),
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
			plan: excludes(2, 4), view: []int{1, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"reasoning does not leave its call": {
			plan: excludes(8), view: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"a group goes when a summary covers what is not excluded": {
			plan: chat.Plan{Exclude: excludes(3).Exclude, Additions: summarizes(0, 4, 5).Additions},
			view: []int{1, 2, -3, 6, 7, 8, 9, 10, 11},
		},
		"a summary loses the part of a group it covers": {
			plan: summarizes(0, 2, 3), view: []int{1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"the last user message and system messages come back": {
			plan: excludes(1, 2, 7), view: []int{1, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"system messages go if the policy says so": {
			guard: pipeline.Guard{DropSystem: true},
			plan:  excludes(1, 2), view: []int{3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"a summary that covers all of it covers neither": {
			plan: summarizes(1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), view: []int{1, -2, 7},
		},
		"a summary of the last user message alone is not written": {
			plan: summarizes(0, 7), view: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"the group of a pinned message stays": {
			pinned: []chat.Seq{5},
			plan:   excludes(2, 3, 4, 5, 6), view: []int{1, 3, 4, 5, 7, 8, 9, 10, 11},
		},
		"an open call stays, with everything behind it": {
			messages: []chat.Message{user("a"), says("b"), calls("x", "y"), result("x", "r"), says("c"), says("d")},
			plan:     excludes(2, 3, 4, 5, 6), view: []int{1, 3, 4, 5, 6},
		},
		"reasoning at the end stays for the call to come": {
			messages: []chat.Message{user("a"), says("b"), thinks("hm")},
			plan:     excludes(2, 3), view: []int{1, 3},
		},
		"a summary behind an open call moves before it": {
			messages: []chat.Message{user("a"), says("b"), calls("x"), says("c")},
			plan:     summarizes(9, 2), view: []int{1, -3, 3, 4},
		},
		"a summary does not stand inside a group": {
			plan: summarizes(5, 2), view: []int{1, -3, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		},
		"a summary does not precede the system messages that the view begins with": {
			messages: []chat.Message{user("a"), sys("s"), user("b")},
			plan:     summarizes(1, 1), view: []int{2, -3, 3},
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
			messages: []chat.Message{user("a"), result("x", "words"), user("b"), result("y", "more")},
			view:     []int{1, -2, 3, -4},
			repairs:  []pipeline.Repair{{Reason: "orphan_result", Messages: 2}},
		},
		"a result too many moves behind the group it stands in": {
			messages: []chat.Message{user("a"), calls("x"), result("z", "words"), result("x", "r"), user("b")},
			view:     []int{1, 2, 4, -5, 5},
			repairs:  []pipeline.Repair{{Reason: "orphan_result", Messages: 1}},
		},
		"an abandoned call that says nothing goes": {
			messages: []chat.Message{user("a"), thinks("hm"), calls("x"), user("b")},
			view:     []int{1, 4},
			repairs:  []pipeline.Repair{{Reason: "unanswered_call", Messages: 2}},
		},
		"an abandoned call keeps the calls that were answered": {
			messages: []chat.Message{user("a"), calls("x", "y"), result("x", "r"), user("b")},
			view:     []int{1, -2, 3, 4},
			repairs:  []pipeline.Repair{{Reason: "unanswered_call", Messages: 1}},
		},
		"what goes anyway is not mended": {
			messages: []chat.Message{user("a"), result("x", "words"), calls("x"), user("b")},
			plan:     excludes(2, 3), view: []int{1, 4},
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
					messages = talk()
				}
				s := session(messages...)
				for _, q := range tt.excluded {
					s.included[q] = false
				}
				for _, q := range tt.pinned {
					s.pinned[q] = true
				}
				faults := chat.Check(s.view())
				r := s.run(t, pipeline.Pipeline{Steps: []plan.Strategy{wants(tt.plan)}, Guard: tt.guard}, whole)
				if diff := cmp.Diff(tt.view, s.shape()); diff != "" {
					t.Errorf("view (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.repairs, r.Repairs); diff != "" {
					t.Errorf("repairs (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(faults, r.Violations); diff != "" {
					t.Errorf("faults (-want +got):\n%s", diff)
				}
				if err := s.invariants(!tt.guard.DropSystem); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestGuardMendsEvenWhatContentAndMetadataDisagreeOn(t *testing.T) {
	t.Parallel()
	// The call of the metadata makes two calls, that of the content another one.
	s := session(user("a"), calls("x", "y"), result("x", "r"), user("b"))
	lie := calls("z")
	s.messages[2] = &lie
	s.run(t, pipeline.Pipeline{}, true)
	if faults := chat.Check(s.view()); len(faults) > 0 {
		t.Error(faults)
	}
}

func TestAnInvalidViewIsRefused(t *testing.T) {
	t.Parallel()
	s := session(user("a"), result("x", "r"))
	if err := pipeline.Valid(s.view()); !errors.Is(err, pipeline.ErrInvalidView) || !strings.Contains(err.Error(), "orphan_result at seq 2") {
		t.Errorf("got %v, want ErrInvalidView naming the fault", err)
	}
	if err := pipeline.Valid(s.view()[:1]); err != nil {
		t.Error(err)
	}
}

func TestGuardAloneChecksAStoredPlan(t *testing.T) {
	t.Parallel()
	s := session(talk()...)
	r, err := pipeline.Guard{}.Check(t.Context(), s.transcript(false), excludes(2, 4, 99), s.load)
	if err != nil {
		t.Fatal(err)
	}
	if got := sortedReasons(r.Plan); !cmp.Equal(got, map[string]string{"x": "{[2,3)}"}) {
		t.Errorf("plan %v", got)
	}
}

// With what is between them out of the view, the reasoning looks like the call's,
// and like all of its group were in front of the user message.
func TestAnOpenCallBehindAMovedUserMessageStays(t *testing.T) {
	t.Parallel()
	s := session(thinks("hm"), says("b"), says("c"), calls("x"), sys("d"))
	moved := user("between")
	s.put(chat.Meta{
		Seq: 6, Position: 3, Kind: chat.KindSummary, Role: chat.RoleUser, Flags: chat.HasText | chat.Moved, Tokens: 5,
	}, moved)
	s.included[2], s.included[3] = false, false
	s.run(t, pipeline.Pipeline{Steps: []plan.Strategy{wants(excludes(4))}}, false)
	if diff := cmp.Diff([]int{1, -3, 4, 5}, s.shape()); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

func TestMovedMessagesAreNotSummaries(t *testing.T) {
	t.Parallel()
	s := session(user("a"), says("b"), user("c"), says("d"))
	for i, role := range []chat.Role{chat.RoleSystem, chat.RoleDeveloper} {
		s.put(chat.Meta{
			Seq: chat.Seq(5 + i), Position: 3, Kind: chat.KindSummary, Role: role,
			Flags: chat.HasText | chat.Moved, Tokens: 5,
		}, text(role, "between"))
	}
	s.included[6] = false
	s.run(t, pipeline.Pipeline{FromLog: true}, true)
	if !s.included[5] || !s.included[6] {
		t.Errorf("after a run from the log the moved messages are in the view: %t, %t; want both", s.included[5], s.included[6])
	}
	s.run(t, pipeline.Pipeline{Steps: []plan.Strategy{mustNew(t, "sliding_window", plan.Params{"keep_last_groups": 1})}}, false)
	if !s.included[5] || s.included[6] {
		t.Errorf("after a sliding window the moved messages are in the view: %t, %t; want the system message alone", s.included[5], s.included[6])
	}
}
