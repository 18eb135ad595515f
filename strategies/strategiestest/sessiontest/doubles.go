package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Quarter counts characters by four.
type Quarter struct{}

// Writes returns a summarizer that always answers the same, or fails where that is
// nothing.
func Writes(summary string) plan.Summarizer {
	return plan.Func(func(context.Context, plan.Request) (string, error) {
		if summary == "" {
			return "", errors.New("the model fails")
		}
		return summary, nil
	})
}

// Notes is a summarizer that remembers what it was asked.
type Notes struct {
	Asked  []plan.Request
	Answer func(n int) (string, error)
}

func (s *Notes) Summarize(_ context.Context, r plan.Request) (string, error) {
	s.Asked = append(s.Asked, r)
	if s.Answer != nil {
		return s.Answer(len(s.Asked))
	}
	return fmt.Sprintf("notes %d", len(s.Asked)), nil
}

// Equal is a counter by which every message costs the same.
type Equal chat.Tokens

func (n Equal) Message(*chat.Message) chat.Tokens { return chat.Tokens(n) }

// Spy is a strategy made of a function.
type Spy func(*plan.Transcript) (chat.Plan, error)

func (f Spy) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) { return f(t) }

func Wants(p chat.Plan) plan.Strategy {
	return Spy(func(*plan.Transcript) (chat.Plan, error) { return p, nil })
}

func Excludes(qs ...chat.Seq) chat.Plan {
	return chat.Plan{Exclude: []chat.Exclusion{{Reason: "x", Seqs: chat.RangesOf(qs...)}}}
}

func Summarizes(at chat.Seq, qs ...chat.Seq) chat.Plan {
	return chat.Plan{Additions: []chat.Addition{{
		Kind: chat.KindSummary, Covers: chat.RangesOf(qs...), Position: at, Message: Says("sum"),
	}}}
}

// Shelf is a History in memory, strict about what it is given.
type Shelf struct {
	*Session
	T interface {
		Fatalf(format string, args ...any)
	}
	Writes []chat.Write
}

func (s *Shelf) Load(_ context.Context, whole bool) (chat.Log, error) {
	log := chat.Log{Last: chat.Seq(len(s.Metas)), Revision: int64(len(s.Writes))}
	for _, e := range s.Transcript(whole).Entries {
		log.Records = append(log.Records, chat.Record{Meta: e.Meta, Message: *s.Messages[e.Seq], Included: e.Included, Pinned: e.Pinned})
	}
	return log, nil
}

func (s *Shelf) Append(_ context.Context, w chat.Write) error {
	if !w.Plan.Empty() && (w.After != chat.Seq(len(s.Metas)) || w.Revision != int64(len(s.Writes))) {
		s.T.Fatalf("plan for what is behind %d at revision %d, not %d at %d", w.After, w.Revision, len(s.Metas), len(s.Writes))
	}
	s.Writes = append(s.Writes, w)
	s.Add(w.Messages...)
	s.apply(s.T, w.Plan)
	return nil
}

func (s *Shelf) Texts() string { return viewOf(s.View(), s.Messages) }

func viewOf(view []chat.Meta, of map[chat.Seq]*chat.Message) string {
	var out []string
	for _, m := range view {
		out = append(out, of[m.Seq].Content.Text)
	}
	return strings.Join(out, "|")
}

func ViewText(ms []chat.Message) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Content.Text)
	}
	return strings.Join(out, "|")
}

func Shelved(t *testing.T, ms ...chat.Message) *Shelf {
	return &Shelf{Session: Of(ms...), T: t}
}

func (Equal) Name() string { return "equal" }

func (Spy) Name() string { return "spy" }

func (Quarter) Name() string { return "quarter" }

func (Quarter) Message(m *chat.Message) chat.Tokens {
	n := len(m.Content.String()) + len(m.Reasoning)
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Arguments)
	}
	return chat.Tokens(n/4 + 4)
}
