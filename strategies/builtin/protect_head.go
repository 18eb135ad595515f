package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// protectHead pins the beginning of a conversation for the rest of a run. It excludes
// nothing itself; as the first step of a pipeline it restricts all later steps, the
// fallback and the guard.
type protectHead struct{ groups, messages int64 }

func newProtectHead(a *plan.Args) (plan.Strategy, error) {
	s := &protectHead{
		groups:   a.Int(plan.Int{Name: "groups", Default: 2, Min: 0, Doc: "how many of the first groups later steps keep; system messages do not count"}),
		messages: a.Int(plan.Int{Name: "messages", Default: 0, Min: 0, Doc: "how many of the first messages they keep at least, in whole groups"}),
	}
	if s.groups == 0 && s.messages == 0 {
		a.Fault("groups", 0, "more than 0, or messages")
	}
	return s, nil
}

func (*protectHead) Name() string { return "protect_head" }

func (*protectHead) Plan(context.Context, *plan.Transcript) (chat.Plan, error) {
	return chat.Plan{}, nil
}

// Pins implements plan.Pinner. The head ends at the first summary.
func (s *protectHead) Pins(t *plan.Transcript) ([]chat.Seq, error) {
	var out []chat.Seq
	groups, messages := s.groups, s.messages
	for i, g := range t.Groups() {
		if g.Kind == chat.GroupSystem || !t.GroupIncluded(i) {
			continue
		}
		if e := &t.Entries[g.Start]; groups <= 0 && messages <= 0 || isSummary(e) {
			break
		}
		out = append(out, seqsOf(t, entriesOf(t, i))...)
		groups--
		messages -= int64(g.End - g.Start)
	}
	return out, nil
}
