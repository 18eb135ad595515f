package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// pinnedOut reports whether a pinned message is not in the view.
func (w *world) pinnedOut(s snapshot) bool {
	return slices.ContainsFunc(s.all, func(m store.Stored) bool { return m.Pinned && !m.Included && !hidden(m) })
}

// hidden reports whether m is out of the view because it is reasoning of another view.
func hidden(m store.Stored) bool { return m.ExcludeReason == string(chat.ViolationStaleReasoning) }

// says reports whether a stored message is what was said, but for reasoning that is not in
// the view.
func says(m store.Stored, said chat.Message) bool {
	meta := said.Meta(1)
	return words(m.Message) == words(said) || m.Included && meta.Signed() && words(m.Message) == words(said.WithoutReasoning())
}

// whole reports whether m is valid in the log: neither a result without a call nor a call
// without a result.
func (w *world) whole(all []store.Stored, m store.Stored) bool {
	if w.replaced && (m.Role == chat.RoleTool || len(m.ToolCalls) > 0) {
		return false // the application may have split its group, which is repaired
	}
	if m.Role != chat.RoleTool && len(m.ToolCalls) == 0 {
		// Reasoning goes with the call it belongs to.
		meta := m.Meta(m.Seq)
		return m.Reasoning == "" && !meta.Signed()
	}
	var log []store.Stored
	for _, x := range all {
		if x.Kind == chat.KindSource {
			log = append(log, x)
		}
	}
	slices.SortFunc(log, func(a, b store.Stored) int { return int(a.Seq - b.Seq) })
	msgs := make([]chat.Message, len(log))
	for i := range log {
		msgs[i] = log[i].Message
	}
	metas := chat.Describe(msgs)
	for _, g := range chat.Groups(metas) {
		calls, answers, faulty, here := 0, 0, false, false
		for i := g.Start; i < g.End; i++ {
			here = here || log[i].ID == m.ID
			if metas[i].Role == chat.RoleAssistant {
				calls += metas[i].Calls
			}
			switch {
			case metas[i].Role != chat.RoleTool:
			case metas[i].Has(chat.Paired):
				answers++
			case log[i].ID == m.ID:
				faulty = true
			}
		}
		if here {
			return !faulty && calls == answers
		}
	}
	return false
}

// kept checks that protected messages are in the view.
func (w *world) kept(s snapshot, say func(string, ...any)) {
	w.t.Helper()
	is := s.included()
	user := ""
	for _, id := range w.ids {
		m := w.said[id]
		if m.Role == chat.RoleUser {
			user = id
		}
		if m.Role == chat.RoleSystem && w.policy.PreserveSystem && !is[id] {
			say("system message %s is not in the view", id)
		}
	}
	if user != "" && !is[user] {
		say("the last user message %s is not in the view", user)
	}
	for _, m := range s.all {
		if m.Pinned && !m.Included && w.whole(s.all, m) {
			say("pinned message %s is not in the view", m.ID)
		}
	}
}

// strict returns the errors that a strict provider would report for what it is sent.
func strict(view []chat.Message) error {
	thinks := func(m chat.Message) bool { return m.Meta(1).ReasoningOnly() }
	for i := 0; i < len(view); i++ {
		m := view[i]
		if m.Role == chat.RoleTool {
			return fmt.Errorf("result %s has no call", m.ID)
		}
		if m.Role != chat.RoleAssistant || len(m.ToolCalls) == 0 {
			continue
		}
		left := m.CallIDs()
		for i+1 < len(view) && thinks(view[i+1]) {
			i++
		}
		for i+1 < len(view) && view[i+1].Role == chat.RoleTool {
			i++
			k := slices.Index(left, view[i].ToolCallID)
			if k < 0 {
				return fmt.Errorf("result %s answers no call of %s", view[i].ID, m.ID)
			}
			left = slices.Delete(left, k, k+1)
		}
		if len(left) > 0 && i+1 < len(view) {
			return fmt.Errorf("calls %v of %s have no result", left, m.ID)
		}
	}
	return nil
}

func (w *world) describe(s snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "revision %d, %d tokens, context %d, due %t, suspect %t", s.row.Revision, s.row.LiveTokens, s.row.ContextTokens, s.row.Due, s.row.Suspect)
	for _, m := range s.all {
		fmt.Fprintf(&b, "\n  %d %s %s %s", m.Seq, m.ID, m.Kind, m.Role)
		if len(m.ToolCalls) > 0 || m.Role == chat.RoleTool {
			fmt.Fprintf(&b, " %v%s", m.CallIDs(), m.ToolCallID)
		}
		if meta := m.Meta(m.Seq); meta.Has(chat.HasReasoning) {
			fmt.Fprintf(&b, " reasoning (signed %t)", meta.Signed())
		}
		fmt.Fprintf(&b, " %d tokens (%s)", m.Tokens, m.Counter)
		if m.Pinned {
			b.WriteString(" pinned")
		}
		if !m.Included {
			fmt.Fprintf(&b, " out: %s by %d %s", m.ExcludeReason, m.ExcludedBy, m.SummarizedBy)
		}
	}
	return b.String()
}

// check checks the invariants of the session.
func (w *world) check() {
	t, ctx := w.t, context.Background()
	s := w.look()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), w.describe(s))
	}
	// I1: everything that was said is there as it was said.
	seen, summaries := map[string]bool{}, map[string]bool{}
	for _, m := range s.all {
		if m.Kind != chat.KindSource {
			summaries[m.ID] = true
			continue
		}
		said, ok := w.said[m.ID]
		if !ok || !says(m, said.Message) {
			fail("%s is not what was said", m.ID)
		}
		seen[m.ID] = true
	}
	if len(seen) != len(w.ids) {
		fail("%d messages in the log, %d were said", len(seen), len(w.ids))
	}
	// I2, whenever a view is read.
	if faults := chat.Check(s.view); len(faults) > 0 {
		fail("the view is invalid: %v", faults)
	}
	// A replacement may have split a group so that the numbers fit and the ids do
	// not, which chat.Check says it cannot see.
	if err := strict(w.prompt()); !w.replaced && err != nil {
		fail("a strict provider refuses the view: %v", err)
	}
	if s.awaits() && !s.row.Suspect {
		last, _ := w.st.Operator.Runs(context.Background(), store.RunFilter{Key: w.k, Limit: 1})
		fail("what awaits a repair is not due for one, after %+v", last)
	}
	// I15: everything before signed reasoning is as it was when that was written.
	if _, err := w.prefixes.Valid(w.view()); err != nil && !w.mixed {
		fail("%v", err)
	}
	if faults, err := w.st.Admin.Violations(ctx, s.row.SID); err != nil || slices.ContainsFunc(faults, func(f chat.Violation) bool {
		return f.Code == chat.ViolationStaleReasoning
	}) {
		fail("the check of the view says %v, %v", faults, err)
	}
	// I3.
	runs, err := w.st.Operator.Runs(ctx, store.RunFilter{Key: w.k, Limit: 10_000})
	noError(t, err)
	force, applied, running := map[store.RunID]bool{}, int64(0), 0
	revisions := map[int64]bool{}
	for _, r := range runs {
		force[r.ID] = r.InForce
		switch r.Status {
		case "applied":
			applied++
			if revisions[r.Revision] {
				fail("two runs made view %d", r.Revision)
			}
			revisions[r.Revision] = true
		case "running":
			running++
		}
		if was, ok := w.ended[r.ID]; ok && (was.Status != r.Status || was.Outcome != r.Outcome || was.Revision != r.Revision || !was.EndedAt.Equal(*r.EndedAt)) {
			fail("run %d has ended twice: %+v, then %+v", r.ID, was, r)
		}
	}
	for _, m := range s.all {
		if m.Kind != chat.KindSource || m.Included {
			continue
		}
		if m.ExcludeReason == "" || !force[m.ExcludedBy] || m.SummarizedBy != "" && !summaries[m.SummarizedBy] {
			fail("%s is out of the view by run %d (in force %t), %q, %q", m.ID, m.ExcludedBy, force[m.ExcludedBy], m.ExcludeReason, m.SummarizedBy)
		}
	}
	// I4: a pinned message that is out is on its way back, if it can stand in a valid view.
	for _, m := range s.all {
		if m.Pinned && !m.Included && !s.row.Suspect && w.whole(s.all, m) {
			fail("pinned message %s is not in the view, which is not marked", m.ID)
		}
	}
	// I16: nothing of this is seen in another tenant's session of the same name.
	if other := w.lookAt(w.other); !w.others.equal(other) {
		t.Fatalf("the session of another tenant changed\nbefore %s\nafter  %s", w.describe(w.others), w.describe(other))
	}
	// I6.
	if running > 1 || applied != s.row.Revision {
		fail("%d runs are running, %d have been applied and made %d views", running, applied, s.row.Revision)
	}
	var live chat.Tokens
	for _, m := range s.view {
		live += m.Tokens
	}
	if live != s.row.LiveTokens || int64(len(s.view)) != s.row.LiveMessages {
		fail("the counters say %d tokens in %d messages, the view has %d in %d", s.row.LiveTokens, s.row.LiveMessages, live, len(s.view))
	}
}
