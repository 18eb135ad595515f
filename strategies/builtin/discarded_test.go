package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// If the guard cannot make the outcome valid, the view stays as it was and the last step
// reports it: this summary would stand between a moved call and reasoning that its group then
// has, and behind the reasoning is no place, as a call may follow it.
func TestPlansThatCannotBeMadeValidAreDiscarded(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.User("a"), sessiontest.User("b"), sessiontest.Says("c"), sessiontest.Thinks("hm"))
	s.Put(chat.Meta{Seq: 5, Position: 3, Kind: chat.KindSummary, Role: chat.RoleAssistant, Flags: chat.Moved, Calls: 1, Tokens: 5}, sessiontest.Calls("x"))
	before := viewSeqs(s)
	r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Plans(chat.Plan{Additions: []chat.Addition{{
		Kind: chat.KindSummary, Covers: chat.RangesOf(3), Reason: "summarized", Position: 3, Message: sessiontest.Says("c, in short"), Tokens: 1,
	}}})}}, false)
	if n := len(r.Steps); n != 2 || r.Steps[1].Strategy != "guard" || r.Steps[1].Discarded != "invalid_view" || r.Rejected > 0 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(before, viewSeqs(s)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}
