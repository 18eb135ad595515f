package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// The summary would stand between a moved call and reasoning that its group then has, and
// behind the reasoning is no place, as a call may follow it: so the call waits no more.
func TestASummaryBehindAMovedCall(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.User("a"), sessiontest.User("b"), sessiontest.Says("c"), sessiontest.Thinks("hm"))
	s.Put(chat.Meta{Seq: 5, Position: 4, Kind: chat.KindSummary, Role: chat.RoleAssistant, Flags: chat.Moved, Calls: 1, Tokens: 5}, sessiontest.Calls("x"))
	r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Plans(chat.Plan{Additions: []chat.Addition{{
		Kind: chat.KindSummary, Covers: chat.RangesOf(3), Reason: "summarized", Position: 4, Message: sessiontest.Says("c, in short"), Tokens: 1,
	}}})}}, false)
	if diff := cmp.Diff([]pipeline.Repair{{Reason: "unanswered_call", Messages: 1}}, r.Repairs); diff != "" {
		t.Errorf("repairs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 2, -4, 4}, viewSeqs(s)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}
