package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// reading counts how often content, or the whole log, is read.
type reading struct {
	store.Worker
	messages, logs atomic.Int64
}

func (r *reading) Messages(ctx context.Context, sid int64, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
	r.messages.Add(1)
	return r.Worker.Messages(ctx, sid, seqs)
}

func (r *reading) Log(ctx context.Context, sid int64, upTo chat.Seq) ([]chat.Meta, error) {
	r.logs.Add(1)
	return r.Worker.Log(ctx, sid, upTo)
}

// world is one session with the messages of its application and its events.
type world struct {
	t      *rapid.T
	st     *store.Store
	k      store.Key
	policy policy.Policy
	// other is the session of the same name of another tenant, others what it holds.
	other  store.Key
	others snapshot
	// summarizer is the workers', drawn for each run.
	summarizer plan.Summarizer

	ids   []string                    // of everything that was said, in order
	said  map[string]store.NewMessage // by id
	runs  []store.RunID               // every run there ever was, undos and replacements among them
	ended map[store.RunID]store.RunRow
	// signs reports whether the model signs its reasoning. prefixes is its provider.
	signs    bool
	prefixes sessiontest.Prefixes
	// free reports that the workers take the model for one that does not bind reasoning, and
	// mixed that they did so in a run whose effect no other run has taken out of the view.
	free, mixed bool
	// replaced reports that the application has replaced the view, which may lack the last
	// user message and system messages.
	replaced bool
}

// snapshot is the state of a session.
type snapshot struct {
	row  store.SessionRow
	all  []store.Stored
	view []chat.Meta
}

func (w *world) look() snapshot { return w.lookAt(w.k) }

func (w *world) lookAt(k store.Key) snapshot {
	ctx := context.Background()
	var s snapshot
	s.row = must(w.st.Session(ctx, k))(w.t)
	s.all = must(w.st.All(ctx, k))(w.t)
	s.view = must(w.st.Operator.ViewMetas(ctx, s.row.SID))(w.t)
	return s
}

// included returns the ids of the messages in the view.
func (s snapshot) included() map[string]bool {
	out := map[string]bool{}
	for _, m := range s.all {
		if m.Included {
			out[m.ID] = true
		}
	}
	return out
}

// equal reports whether two snapshots differ in the ledger alone.
func (s snapshot) equal(o snapshot) bool {
	return s.row.Revision == o.row.Revision && slices.Equal(s.view, o.view) && len(s.all) == len(o.all) &&
		s.row.LiveTokens == o.row.LiveTokens && s.row.LiveMessages == o.row.LiveMessages
}

// lastUser returns the seq of the last user message in the view, 0 for none, of those
// that stand where they were said.
func lastUser(s snapshot) chat.Seq {
	last := chat.Seq(0)
	for _, m := range s.view {
		if m.Role == chat.RoleUser && m.Kind == chat.KindSource {
			last = max(last, m.Seq)
		}
	}
	return last
}

// stands reports whether a message in the view says the same in the place of m:
// one that was put between a call and its results has to be moved.
func (s snapshot) stands(m store.Stored) bool {
	by := ""
	for _, x := range s.all {
		if x.ID == m.ID {
			by = x.SummarizedBy
		}
	}
	return by != "" && slices.ContainsFunc(s.all, func(x store.Stored) bool {
		return x.ID == by && x.Included && words(x.Message) == words(m.Message)
	})
}

// awaits reports whether the view lacks a message until a run gives it another form.
func (s snapshot) awaits() bool {
	return slices.ContainsFunc(s.all, func(m store.Stored) bool { return m.ExcludeReason == "awaiting_repair" })
}

// repairReasons are the reasons of what a repair has taken out of a view.
var repairReasons = []string{"awaiting_repair", "unanswered_call", "orphan_result"}

// repaired reports whether a message is not in the view as it made it invalid.
func (s snapshot) repaired(id string) bool {
	return slices.ContainsFunc(s.all, func(m store.Stored) bool {
		return m.ID == id && slices.Contains(repairReasons, m.ExcludeReason)
	})
}

// at returns the id of a message.
func (s snapshot) at(q chat.Seq) string {
	for _, m := range s.all {
		if m.Seq == q {
			return m.ID
		}
	}
	return ""
}

// planned returns the planned tokens of a view without the messages after last, under the
// policy of a run.
func planned(p policy.Policy, view []chat.Meta, last chat.Seq) chat.Tokens {
	var n chat.Tokens
	for _, m := range view {
		switch {
		case m.Seq > last && m.Kind == chat.KindSource:
		case m.Has(chat.Estimated):
			n += p.Margin(m.Tokens)
		default:
			n += m.Tokens
		}
	}
	return n
}

// repairAdds returns by how many planned tokens a repair alone makes the view larger, if the
// view has to be repaired before the run, and the policy of the run: without a margin where
// reports of usage have taught what counts amount to.
func (w *world) repairAdds(id store.RunID) (chat.Tokens, policy.Policy) {
	ctx := context.Background()
	c := must(w.st.Worker.Load(ctx, id))(w.t)
	p := w.planner()
	rc := p.newRunContext(c, namedPolicy{policy: p.Policy})
	if !rc.invalid {
		return 0, rc.policy
	}
	noError(w.t, rc.buildTranscript(ctx, w.st.Worker))
	guard := pipeline.Pipeline{Guard: pipeline.Guard{DropSystem: !w.policy.PreserveSystem}, FreeReasoning: !rc.bindsReasoning}
	t := &plan.Transcript{Entries: rc.entries, Counter: p.Counter(""), Ended: !c.Session.CallsOpen}
	r, err := guard.Run(ctx, t, func(ctx context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
		return w.st.Worker.Messages(ctx, c.Session.SID, seqs)
	})
	noError(w.t, err)
	return max(0, -rc.lessGain(&r)), rc.policy
}

// draw draws messages as agents and hosts write them, faults included.
func (w *world) draw(most int) []store.NewMessage {
	t := w.t
	var out []store.NewMessage
	ids := rapid.SampledFrom([]string{"a", "b", "c", "a"})
	texts := rapid.SampledFrom([]string{"", " ", "ok", "a b c", strings.Repeat("long text ", 60)})
	put := func(m chat.Message) {
		if w.signs && m.Role == chat.RoleAssistant && rapid.Bool().Draw(t, "signed") {
			m.Reasoning = ""
			m = sessiontest.Sign(m, rapid.IntRange(0, sessiontest.SignedForms-1).Draw(t, "form"), len(w.ids)+len(out))
		}
		m.ID = fmt.Sprintf("said-%d", len(w.ids)+len(out))
		n := store.NewMessage{Message: m}
		switch rapid.IntRange(0, 19).Draw(t, "counted") {
		case 0: // by the store
		case 1:
			n.Tokens, n.Counter = tokens.Chars4{}.Message(&m), chat.CounterChars4
		case 2:
			n.Tokens, n.Counter = 5000, "test"
		default:
			n.Tokens, n.Counter = chat.Tokens(rapid.IntRange(0, 200).Draw(t, "tokens")), "test"
		}
		out = append(out, n)
	}
	text := func(r chat.Role) chat.Message {
		return chat.Message{Role: r, Content: chat.TextContent(texts.Draw(t, "text"))}
	}
	thinks := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, Reasoning: "hm"}
	result := func(id string) chat.Message {
		m := text(chat.RoleTool)
		m.ToolCallID = id
		return m
	}
	for range rapid.IntRange(1, most).Draw(t, "messages") {
		switch rapid.IntRange(0, 11).Draw(t, "kind") {
		case 0:
			put(text(chat.RoleSystem))
		case 1, 2:
			put(text(chat.RoleUser))
		case 3, 4:
			put(text(chat.RoleAssistant))
		case 5:
			put(text(chat.RoleDeveloper))
		case 6:
			put(thinks)
		case 7:
			put(result(ids.Draw(t, "id")))
		default:
			if rapid.IntRange(0, 3).Draw(t, "reasoning before") == 0 {
				put(thinks)
			}
			call := text(chat.RoleAssistant)
			names := rapid.SliceOfN(ids, 1, 3).Draw(t, "calls")
			for _, id := range names {
				call.ToolCalls = append(call.ToolCalls, chat.ToolCall{ID: id, Type: "function", Name: "do_" + id, Arguments: "{}"})
			}
			put(call)
			if rapid.IntRange(0, 3).Draw(t, "reasoning behind") == 0 {
				put(thinks)
			}
			results := slices.Clone(names)
			switch rapid.IntRange(0, 7).Draw(t, "fault") {
			case 0, 1:
				results = results[:rapid.IntRange(0, len(results)).Draw(t, "answered")]
			case 2:
				results = append(results, ids.Draw(t, "one more"))
			case 3:
				slices.Reverse(results)
			}
			for _, id := range results {
				put(result(id))
			}
		}
	}
	return out
}

// view returns the messages of the view, each as it was said.
func (w *world) view() (out []chat.Message) {
	all, err := w.st.All(context.Background(), w.k)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	noError(w.t, err)
	for _, m := range all {
		if m.Included {
			out = append(out, m.Message)
		}
	}
	return out
}

// prompt returns the view as the application reads it.
func (w *world) prompt() []chat.Message {
	view, _, err := w.st.View(context.Background(), w.k)
	noError(w.t, err)
	out := make([]chat.Message, len(view))
	for i, m := range view {
		out[i] = m.Message
	}
	return out
}

// texts returns the messages without what the store adds.
func texts(msgs []store.NewMessage) []chat.Message {
	out := make([]chat.Message, len(msgs))
	for i, m := range msgs {
		out[i] = m.Message
	}
	return out
}

func (w *world) note(msgs []store.NewMessage) {
	for _, m := range msgs {
		if _, known := w.said[m.ID]; !known {
			w.ids = append(w.ids, m.ID)
			w.said[m.ID] = m
		}
	}
}
