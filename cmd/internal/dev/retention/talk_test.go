package retention_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// talkOf returns a session without calls and results, as an application stores it that keeps what
// was said alone, and the facts that are said.
func talkOf(s *chat.Session) (ms []chat.Message, facts []retention.Fact) {
	positions := make([]int, len(s.Messages))
	var all strings.Builder
	for i, m := range s.Messages {
		positions[i] = len(ms)
		if said := m.Content.String(); m.Role != chat.RoleTool && strings.TrimSpace(said) != "" {
			m.ToolCalls = nil
			ms = append(ms, m)
			all.WriteString(said + "\n")
		}
	}
	for _, f := range retention.FactsOf(s) {
		if f.Message = positions[f.Message]; strings.Contains(all.String(), f.Answer) {
			facts = append(facts, f)
		}
	}
	return ms, facts
}

// Of a long talk, a small extract holds more answers to later questions than as many tokens of messages drawn at random, though
// it gives nearly half of its room to the requests.
func TestTalksKeepMoreFactsThanRandomMessages(t *testing.T) {
	t.Parallel()
	shares := []float64{0.05, 0.1}
	ours, random := make([]retention.Count, len(shares)), make([]retention.Count, len(shares))
	add := func(to *retention.Count, n retention.Count) { to.Kept, to.Of = to.Kept+n.Kept, to.Of+n.Of }
	for _, s := range sessiontest.Recorded(t, "facts/service.jsonl", 1) {
		ms, facts := talkOf(&s)
		c := retention.NewCase(ms, 0.9, facts...)
		if c == nil {
			t.Fatalf("%s has no facts", s.ID)
		}
		d := extract.New(extract.Options{})
		for i := range c.Pre {
			d.Add(&c.Pre[i])
		}
		for i, share := range shares {
			text := d.Text(int(share * c.Tokens))
			add(&ours[i], c.Detail([]chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(text)}}).Counts[retention.Facts])
			add(&random[i], c.Detail(retention.Random(s.ID).Keep(slices.Clone(c.Pre), share*c.Tokens, retention.Sizer{})).Counts[retention.Facts])
		}
	}
	for i, share := range shares {
		t.Logf("at %.0f %%: %d of %d, at random %d", 100*share, ours[i].Kept, ours[i].Of, random[i].Kept)
		if 10*ours[i].Kept < 11*random[i].Kept {
			t.Errorf("at %.0f %%: %d of %d facts, at random %d", 100*share, ours[i].Kept, ours[i].Of, random[i].Kept)
		}
	}
}
