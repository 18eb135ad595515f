package worker

import (
	"context"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// nowhere is a store that a run on metadata can end in.
type nowhere struct {
	Store
	claim *store.Claim
}

func (n nowhere) Load(context.Context, store.RunID) (*store.Claim, error) { return n.claim, nil }
func (nowhere) Apply(context.Context, store.RunID, int64, store.Change) (chat.Ranges, error) {
	return nil, nil
}
func (nowhere) EnsurePolicy(context.Context, string, string, any) error { return nil }

// BenchmarkRun measures a run of a truncation strategy without its database: the cost of the
// worker itself for 200 messages.
func BenchmarkRun(b *testing.B) {
	c := &store.Claim{Run: 1, Trigger: store.TriggerNightly, Session: store.Session{
		LiveMessages: 200, LiveTokens: 40_000, LastSeq: 200, LastSourceSeq: 200, Live: chat.Ranges{{Lo: 1, Hi: chat.Open}},
	}}
	roles := []chat.Role{chat.RoleUser, chat.RoleAssistant, chat.RoleTool, chat.RoleAssistant}
	for i := range 200 {
		m := chat.Meta{Seq: chat.Seq(i + 1), Position: chat.Seq(i + 1), Kind: chat.KindSource, Role: roles[i%4], Flags: chat.HasText, Tokens: 200}
		switch i % 4 {
		case 1:
			m.Calls = 1
		case 2:
			m.Flags |= chat.Paired
		}
		c.View = append(c.View, m)
	}
	p := policy.Default()
	p.Pipeline = []policy.Step{{Strategy: "truncation"}}
	p.StartTokens, p.TargetTokens = 30_000, 20_000
	w := New(nowhere{claim: c}, testPlanner(p), Config{})
	b.ReportAllocs()
	for b.Loop() {
		if err := w.execute(b.Context(), 1); err != nil {
			b.Fatal(err)
		}
	}
}
