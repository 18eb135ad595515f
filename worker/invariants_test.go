package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// reading counts how often content, or the whole log, is read.
type reading struct {
	*store.Store
	messages, logs atomic.Int64
}

func (r *reading) Messages(ctx context.Context, sid int64, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
	r.messages.Add(1)
	return r.Store.Messages(ctx, sid, seqs)
}

func (r *reading) Log(ctx context.Context, sid int64, upTo chat.Seq) ([]chat.Meta, error) {
	r.logs.Add(1)
	return r.Store.Log(ctx, sid, upTo)
}

// world is one session, what its application has said, and all that happens to it.
type world struct {
	t      *rapid.T
	st     *store.Store
	k      store.Key
	policy policy.Policy

	ids   []string                    // of everything that was said, in order
	said  map[string]store.NewMessage // by id
	runs  []store.RunID               // every run there ever was, undos and replacements among them
	ended map[store.RunID]store.RunRow
	// replaced: the application has decided itself what is in the view, the last
	// user message and system messages not excepted.
	replaced bool
}

// snapshot is what a session looks like.
type snapshot struct {
	row  store.SessionRow
	all  []store.Stored
	view []chat.Meta
}

func (w *world) look() snapshot {
	ctx := context.Background()
	var s snapshot
	var err error
	if s.row, err = w.st.Session(ctx, w.k); err != nil {
		w.t.Fatalf("session: %v", err)
	}
	if s.all, err = w.st.All(ctx, w.k); err != nil {
		w.t.Fatalf("messages: %v", err)
	}
	if s.view, err = w.st.ViewMetas(ctx, s.row.SID); err != nil {
		w.t.Fatalf("view: %v", err)
	}
	return s
}

// included are the ids of what is in the view.
func (s snapshot) included() map[string]bool {
	out := map[string]bool{}
	for _, m := range s.all {
		if m.Included {
			out[m.ID] = true
		}
	}
	return out
}

// equal reports whether nobody but the ledger could tell two snapshots apart.
func (s snapshot) equal(o snapshot) bool {
	return s.row.Revision == o.row.Revision && slices.Equal(s.view, o.view) && len(s.all) == len(o.all) &&
		s.row.LiveTokens == o.row.LiveTokens && s.row.LiveMessages == o.row.LiveMessages
}

// lastUser is the seq of the last user message in the view, 0 for none, of those
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

// at is the id of a message.
func (s snapshot) at(q chat.Seq) string {
	for _, m := range s.all {
		if m.Seq == q {
			return m.ID
		}
	}
	return ""
}

// planned is what a view costs as runs see it, messages behind last left out.
func (w *world) planned(view []chat.Meta, last chat.Seq) chat.Tokens {
	var n chat.Tokens
	for _, m := range view {
		switch {
		case m.Seq > last && m.Kind == chat.KindSource:
		case m.Has(chat.Estimated):
			n += w.policy.Margin(m.Tokens)
		default:
			n += m.Tokens
		}
	}
	return n
}

// draw draws messages as agents and hosts write them, faults included.
func (w *world) draw(most int) []store.NewMessage {
	t := w.t
	var out []store.NewMessage
	ids := rapid.SampledFrom([]string{"a", "b", "c", "a"})
	texts := rapid.SampledFrom([]string{"", " ", "ok", "a b c", strings.Repeat("long text ", 60)})
	put := func(m chat.Message) {
		m.ID = fmt.Sprintf("said-%d", len(w.ids)+len(out))
		n := store.NewMessage{Message: m}
		switch rapid.IntRange(0, 19).Draw(t, "counted") {
		case 0: // by the store
		case 1:
			n.Tokens, n.Counter = tokens.Chars4{}.Message(&m), tokens.Chars4Name
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
			put(text(rapid.SampledFrom([]chat.Role{chat.RoleDeveloper, "critic"}).Draw(t, "role")))
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

func (w *world) note(msgs []store.NewMessage) {
	for _, m := range msgs {
		if _, known := w.said[m.ID]; !known {
			w.ids = append(w.ids, m.ID)
			w.said[m.ID] = m
		}
	}
}

func (w *world) append(msgs []store.NewMessage) {
	if _, _, err := w.st.Append(context.Background(), w.k, "", msgs); err != nil {
		w.t.Fatalf("append: %v", err)
	}
	w.note(msgs)
}

// event and nightly queue the session's automatic run as the scheduler does, and
// return 0 where there is none.
func (w *world) event() store.RunID {
	runs, err := w.st.Relay(context.Background(), 0, 0, 10_000, time.Minute)
	if err != nil {
		w.t.Fatalf("relay: %v", err)
	}
	return w.own(runs)
}

// slots numbers the sweeps of this process.
var slots atomic.Int64

func (w *world) nightly() store.RunID {
	ctx := context.Background()
	n := slots.Add(1)
	if _, err := w.st.FireSlot(ctx, fmt.Sprint("sweep-", n), time.Unix(n, 0), "test"); err != nil {
		w.t.Fatalf("fire: %v", err)
	}
	sweeps, err := w.st.OpenSweeps(ctx)
	if err != nil || len(sweeps) == 0 {
		w.t.Fatalf("open sweeps: %v, %v", sweeps, err)
	}
	var all []store.Delivery
	for done := false; !done; {
		var page []store.Delivery
		if page, done, err = w.st.SweepPage(ctx, sweeps[0].ID, 10_000, time.Minute); err != nil {
			w.t.Fatalf("sweep: %v", err)
		}
		all = append(all, page...)
	}
	return w.own(all)
}

func (w *world) own(all []store.Delivery) store.RunID {
	for _, d := range all {
		if r := w.row(d.Run); r.Session == w.k.Session {
			w.runs = append(w.runs, d.Run)
			return d.Run
		}
	}
	return 0
}

func (w *world) row(id store.RunID) store.RunRow {
	r, err := w.st.Run(context.Background(), id)
	if err != nil {
		w.t.Fatalf("run: %v", err)
	}
	return r
}

func (w *world) worker(st Store, c Config) *Worker { return New(st, testPlanner(w.policy), c) }

// deliver hands the run to one or two workers at once, and again until it has
// ended. at is called in front of the first step of that name.
func (w *world) deliver(id store.RunID, workers int, step string, at func()) {
	var once sync.Once
	for tries := 0; ; tries++ {
		if tries == 6 {
			w.t.Fatalf("run %d does not end: %+v", id, w.row(id))
		}
		var all sync.WaitGroup
		errs := make([]error, workers)
		for i := range workers {
			worker := w.worker(w.st, Config{Name: fmt.Sprint("w", i)})
			if at != nil {
				worker.probe = func(s string) {
					if s == step {
						once.Do(at)
					}
				}
			}
			all.Go(func() { errs[i] = worker.execute(context.Background(), id) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			w.t.Fatalf("run %d: %v", id, err)
		}
		if w.row(id).Outcome != "" {
			return
		}
	}
}

// decides reports whether a run that ended so has looked at the view and left it
// as it should be.
func decides(r store.RunRow) bool {
	switch r.Outcome {
	case OutcomeDryRun, OutcomeWaitingAfterUndo, "superseded":
		return false
	}
	return r.Status != "failed"
}

// execute runs a run under the conditions that are drawn, and checks what has to
// hold of it.
func (w *world) execute(id store.RunID) {
	t, ctx := w.t, context.Background()
	before := w.look()
	workers := 1
	var step string
	var during []store.NewMessage
	var at func()
	meddled := false // somebody else changed the view meanwhile
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	case 0, 1:
		workers = 2
	case 2, 3, 4:
		step = rapid.SampledFrom([]string{stepClaimed, stepPlanned, stepChecked}).Draw(t, "step")
		during = w.draw(3)
		at = func() { w.append(during) }
	case 5:
		step = rapid.SampledFrom([]string{stepClaimed, stepPlanned, stepChecked}).Draw(t, "step")
		if len(w.ids) > 0 {
			pin := rapid.SampledFrom(w.ids).Draw(t, "pin")
			meddled = true
			at = func() {
				if err := w.st.Pin(ctx, w.k, pin); err != nil {
					t.Fatalf("pin: %v", err)
				}
			}
		}
	case 6: // a worker took it and gave it back
		c, err := w.st.Claim(ctx, id, "gone", time.Minute)
		if err != nil {
			t.Fatalf("claim: %v", err)
		}
		if err := w.st.Requeue(ctx, id, c.Fence, 0, rapid.Bool().Draw(t, "failed"), "test", ""); err != nil {
			t.Fatalf("requeue: %v", err)
		}
	case 7: // a worker took it and died
		if _, err := w.st.Claim(ctx, id, "dead", -time.Second); err != nil {
			t.Fatalf("claim: %v", err)
		}
	}
	w.deliver(id, workers, step, at)
	after, r := w.look(), w.row(id)
	during = slices.DeleteFunc(during, func(m store.NewMessage) bool { return !slices.Contains(w.ids, m.ID) })
	say := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("run %d (%s, %s %s %s): %s\nbefore %s\nafter  %s", id, r.Trigger, r.Status, r.Outcome, r.Error,
			fmt.Sprintf(format, args...), w.describe(before), w.describe(after))
	}
	if r.Status == "failed" {
		say("failed")
	}
	// I6: one effect, and no other than the ledger has.
	effects := int64(0)
	if r.Status == "applied" {
		effects = 1
	}
	if after.row.Revision != before.row.Revision+effects {
		say("revision %d became %d", before.row.Revision, after.row.Revision)
	}
	// I2.
	if faults := chat.Check(after.view); decides(r) && len(during) == 0 && len(faults) > 0 {
		say("the view is not valid: %v", faults)
	}
	// A replacement may have torn a group apart so that the numbers fit and the ids do
	// not, which chat.Check says it cannot see.
	if err := strict(after.all); !w.replaced && decides(r) && len(during) == 0 && err != nil {
		say("a strict provider refuses the view: %v", err)
	}
	// I5.
	is := after.included()
	for _, m := range during {
		if !is[m.ID] {
			say("%s was appended meanwhile and is not in the view", m.ID)
		}
	}
	// I4: nothing goes that has to stay, and what is out comes back.
	// A replacement may have taken the last user message out of the view; a run that
	// reads the log brings it back, and what was the last of the view is not any more.
	user := ""
	if last := lastUser(before); lastUser(after) <= last {
		user = before.at(last)
	}
	was := before.included()
	for _, m := range before.all {
		switch {
		case m.Kind != chat.KindSource || !was[m.ID] || is[m.ID]:
		case m.ID == user:
			say("the last user message %s is gone", m.ID)
		case m.Role == chat.RoleSystem && w.policy.PreserveSystem && !after.stands(m):
			say("system message %s is gone", m.ID)
		case m.Pinned && w.whole(before.all, m):
			say("pinned message %s is gone", m.ID)
		}
	}
	if decides(r) && !w.replaced && !meddled && r.Outcome != OutcomeCooldown {
		w.kept(after, say)
	}
	// I7.
	growth := strings.Contains(string(r.Options), "allow_growth")
	broken := len(chat.Check(before.view)) > 0 || w.pinnedOut(before)
	last := chat.Seq(len(before.all))
	was7, is7 := w.planned(before.view, last), w.planned(after.view, last)
	if !broken && !meddled && !growth && is7 > was7 {
		say("the view grew from %d to %d tokens", was7, is7)
	}
	if r.Status != "applied" && len(during) == 0 && !meddled && !before.equal(after) {
		say("it changed the session")
	}
	if r.Outcome == OutcomeApplied && r.Kind == "repair" && !broken {
		say("repaired what was not broken")
	}
	w.ended[id] = r
}

// pinnedOut reports whether a pinned message is not in the view.
func (w *world) pinnedOut(s snapshot) bool {
	return slices.ContainsFunc(s.all, func(m store.Stored) bool { return m.Pinned && !m.Included })
}

// whole reports whether m has nothing wrong with it in the log: it is no result
// without a call, and no call that nobody answered.
func (w *world) whole(all []store.Stored, m store.Stored) bool {
	if w.replaced && (m.Role == chat.RoleTool || len(m.ToolCalls) > 0) {
		return false // the application may have torn its group apart: it is mended
	}
	if m.Role != chat.RoleTool && len(m.ToolCalls) == 0 {
		// Reasoning goes with the call it belongs to.
		return m.Reasoning == ""
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

// kept checks that what must never leave the view is in it.
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

// strict says what a strict provider would refuse, going by contents.
func strict(all []store.Stored) error {
	view := slices.DeleteFunc(slices.Clone(all), func(m store.Stored) bool { return !m.Included })
	user := -1
	for i, m := range view {
		if m.Role == chat.RoleUser {
			user = i
		}
	}
	thinks := func(m store.Stored) bool { return m.Meta(m.Seq).ReasoningOnly() }
	for i := 0; i < len(view); i++ {
		m := view[i]
		if m.Role == chat.RoleTool {
			return fmt.Errorf("result %s has no call", m.ID)
		}
		if m.Role != chat.RoleAssistant || len(m.ToolCalls) == 0 {
			continue
		}
		call, left := i, m.CallIDs()
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
		if len(left) > 0 && call < user {
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
		if m.Reasoning != "" {
			b.WriteString(" reasoning")
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

// check holds the session to what must be so at any time.
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
		if !ok || words(said.Message) != words(m.Message) {
			fail("%s is not what was said", m.ID)
		}
		seen[m.ID] = true
	}
	if len(seen) != len(w.ids) {
		fail("%d messages in the log, %d were said", len(seen), len(w.ids))
	}
	// I2: a view that is not valid is known to be so.
	if faults := chat.Check(s.view); len(faults) > 0 && !s.row.Suspect {
		fail("the view is not valid and nobody knows: %v", faults)
	}
	// I3.
	runs, err := w.st.Runs(ctx, store.RunFilter{Key: store.Key{Tenant: store.DefaultTenant, Session: w.k.Session}, Limit: 10_000})
	if err != nil {
		t.Fatalf("runs: %v", err)
	}
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
	// I4: a pinned message that is out is on its way back.
	if w.pinnedOut(s) && !s.row.Suspect {
		fail("a pinned message is out of the view and nobody knows")
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

// options draws what an operator asks for.
func (w *world) options() store.Options {
	t := w.t
	o := store.Options{
		From:        rapid.SampledFrom([]string{"view", "log", ""}).Draw(t, "from"),
		DryRun:      rapid.IntRange(0, 5).Draw(t, "dry run") == 5,
		AllowGrowth: rapid.IntRange(0, 3).Draw(t, "allow growth") == 3,
	}
	number := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
	for range rapid.IntRange(0, 2).Draw(t, "steps") {
		switch rapid.IntRange(0, 5).Draw(t, "strategy") {
		case 0:
			n := number("max_n", 15)
			o.Pipeline = append(o.Pipeline, step("truncation", "max_n", n, "compact_to", number("compact_to", n))...)
		case 1:
			n := number("max_n", 1500)
			o.Pipeline = append(o.Pipeline, step("truncation", "metric", "tokens", "max_n", n, "compact_to", number("compact_to", n),
				"preserve_system", rapid.Bool().Draw(t, "preserve"))...)
		case 2:
			o.Pipeline = append(o.Pipeline, step("sliding_window", "keep_last_groups", number("groups", 8))...)
		case 3:
			o.Pipeline = append(o.Pipeline, step("selective_tool_call", "keep_last_tool_call_groups", number("groups", 4)-1)...)
		case 4:
			o.Pipeline = append(o.Pipeline, step("tool_result", "keep_last_tool_call_groups", number("groups", 4)-1)...)
		case 5:
			o.Pipeline = append(o.Pipeline, step("token_budget", "token_budget", number("budget", 1500),
				"strategies", []any{map[string]any{"strategy": "tool_result"}})...)
		}
	}
	return o
}

// steps are what can happen to a session.
func (w *world) steps() map[string]func(*rapid.T) {
	ctx := context.Background()
	return map[string]func(*rapid.T){
		"append":      func(*rapid.T) { w.append(w.draw(4)) },
		"append more": func(*rapid.T) { w.append(w.draw(8)) },
		"append again": func(t *rapid.T) {
			if len(w.ids) == 0 {
				t.Skip("nothing was said")
			}
			before := w.look()
			m := w.said[rapid.SampledFrom(w.ids).Draw(t, "message")]
			if _, _, err := w.st.Append(ctx, w.k, "", []store.NewMessage{m}); err != nil {
				t.Fatalf("append once more: %v", err)
			}
			m.Content = chat.TextContent("something else")
			if _, _, err := w.st.Append(ctx, w.k, "", []store.NewMessage{m}); !errors.Is(err, store.ErrConflict) {
				t.Fatalf("append of other content: %v, want a conflict", err)
			}
			if !before.equal(w.look()) {
				t.Fatalf("it changed the session")
			}
		},
		"event": func(t *rapid.T) {
			id := w.event()
			if id == 0 {
				t.Skip("not due")
			}
			w.execute(id)
		},
		"nightly": func(t *rapid.T) {
			id := w.nightly()
			if id == 0 {
				t.Skip("not due")
			}
			w.execute(id)
		},
		"nightly after an event": w.nothingNew,
		"operator": func(*rapid.T) {
			id, err := w.st.Request(ctx, w.k, store.TriggerOperator, "test", w.options())
			if err != nil {
				w.t.Fatalf("request: %v", err)
			}
			w.runs = append(w.runs, id)
			w.execute(id)
		},
		"late delivery": func(t *rapid.T) {
			if len(w.runs) == 0 {
				t.Skip("no run yet")
			}
			before := w.look()
			id := rapid.SampledFrom(w.runs).Draw(t, "run")
			if w.row(id).Outcome == "" {
				t.Fatalf("run %d was left behind", id)
			}
			if err := w.worker(w.st, Config{}).execute(ctx, id); err != nil {
				t.Fatalf("late delivery of run %d: %v", id, err)
			}
			if !before.equal(w.look()) {
				t.Fatalf("the late delivery of run %d changed the session", id)
			}
		},
		"pin": func(t *rapid.T) {
			if err := w.st.Pin(ctx, w.k, rapid.SampledFrom(w.ids).Draw(t, "message")); err != nil {
				t.Fatalf("pin: %v", err)
			}
		},
		"unpin": func(t *rapid.T) {
			var pinned []string
			for _, m := range w.look().all {
				if m.Pinned {
					pinned = append(pinned, m.ID)
				}
			}
			if len(pinned) == 0 {
				t.Skip("nothing is pinned")
			}
			if err := w.st.Unpin(ctx, w.k, rapid.SampledFrom(pinned).Draw(t, "message")); err != nil {
				t.Fatalf("unpin: %v", err)
			}
		},
		"report usage": func(t *rapid.T) {
			n := chat.Tokens(rapid.IntRange(0, 3000).Draw(t, "prompt tokens"))
			if _, err := w.st.ReportUsage(ctx, w.k, n, chat.Seq(rapid.IntRange(0, len(w.ids)).Draw(t, "seq"))); err != nil {
				t.Fatalf("report usage: %v", err)
			}
		},
		"undo":    w.undo,
		"replace": w.replace,
		"":        func(*rapid.T) { w.check() },
	}
}

// nothingNew has two automatic runs queued at once: where the first has decided,
// the second has nothing to do (I8).
func (w *world) nothingNew(t *rapid.T) {
	first, second := w.event(), w.nightly()
	switch {
	case first == 0 && second == 0:
		t.Skip("not due")
	case first == 0 || second == 0:
		w.execute(max(first, second))
		return
	}
	w.deliver(first, 1, "", nil)
	r, before := w.row(first), w.look()
	w.ended[first] = r
	st := &reading{Store: w.st}
	if err := w.worker(st, Config{}).execute(context.Background(), second); err != nil {
		t.Fatalf("run %d: %v", second, err)
	}
	again, after := w.row(second), w.look()
	w.ended[second] = again
	if again.Status != "skipped" || !before.equal(after) || st.messages.Load() > 0 || st.logs.Load() > 0 {
		t.Fatalf("after run %d ended %s, run %d found nothing new and ended %s, %s; it read content %d times and the log %d times\nbefore %s\nafter  %s",
			first, r.Outcome, second, again.Status, again.Outcome, st.messages.Load(), st.logs.Load(), w.describe(before), w.describe(after))
	}
}

func (w *world) undo(t *rapid.T) {
	if len(w.runs) == 0 {
		t.Skip("no run yet")
	}
	before := w.look()
	id := rapid.SampledFrom(w.runs).Draw(t, "run")
	r := w.row(id)
	undo, err := w.st.Undo(context.Background(), id, rapid.Bool().Draw(t, "cascade"), "test")
	switch {
	case err == nil:
		w.runs = append(w.runs, undo)
		w.ended[undo] = w.row(undo)
		if !r.InForce {
			t.Fatalf("run %d was not in force and has been undone", id)
		}
	case !errors.Is(err, store.ErrInUse) && !errors.Is(err, store.ErrNotApplicable):
		t.Fatalf("undo: %v", err)
	case !before.equal(w.look()):
		t.Fatalf("an undo that was refused changed the session: %v", err)
	}
}

func (w *world) replace(t *rapid.T) {
	ctx := context.Background()
	view, revision, err := w.st.View(ctx, w.k)
	if err != nil {
		t.Fatalf("view: %v", err)
	}
	var msgs []store.NewMessage
	for _, m := range view {
		if rapid.IntRange(0, 3).Draw(t, "keep") > 0 {
			msgs = append(msgs, store.NewMessage{Message: m.Message})
		}
	}
	fresh := w.draw(1)[:1]
	at := rapid.IntRange(0, len(msgs)).Draw(t, "at")
	before := w.look()
	if _, err := w.st.Replace(ctx, w.k, revision+1, fresh, "test"); !errors.Is(err, store.ErrStale) {
		t.Fatalf("replace of another view: %v, want stale", err)
	}
	if !before.equal(w.look()) {
		t.Fatalf("a replace that was refused changed the session")
	}
	run, err := w.st.Replace(ctx, w.k, revision, slices.Insert(msgs, at, fresh...), "test")
	if err != nil {
		t.Fatalf("replace: %v", err)
	}
	w.note(fresh)
	w.replaced = true
	w.runs = append(w.runs, run)
	w.ended[run] = w.row(run)
}

// rewind undoes everything: the view is all that was said again (I1).
func (w *world) rewind() {
	t, ctx := w.t, context.Background()
	for {
		runs, err := w.st.Runs(ctx, store.RunFilter{Key: store.Key{Tenant: store.DefaultTenant, Session: w.k.Session}, Status: "applied", Limit: 10_000})
		if err != nil {
			t.Fatalf("runs: %v", err)
		}
		runs = slices.DeleteFunc(runs, func(r store.RunRow) bool { return !r.InForce || r.Kind == "undo" })
		if len(runs) == 0 {
			break
		}
		if _, err := w.st.Undo(ctx, runs[len(runs)-1].ID, true, "test"); err != nil {
			t.Fatalf("undo back to the first view: %v", err)
		}
	}
	s := w.look()
	for _, m := range s.all {
		if m.Included != (m.Kind == chat.KindSource) || m.ExcludedBy != 0 {
			t.Fatalf("back at the first view %s is included: %t, out by %d\n%s", m.ID, m.Included, m.ExcludedBy, w.describe(s))
		}
	}
	w.check()
}

func newWorld(t *rapid.T, st *store.Store, name string) *world {
	p := testPolicy()
	p.EstimateMargin = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "margin")
	p.PreserveSystem = rapid.IntRange(0, 4).Draw(t, "preserve system") > 0
	if rapid.Bool().Draw(t, "no cooldown") {
		p.Cooldown = 0
	}
	return &world{
		t: t, st: st, k: key(name), policy: p,
		said: map[string]store.NewMessage{}, ended: map[store.RunID]store.RunRow{},
	}
}

func TestInvariantsHoldWhateverHappens(t *testing.T) {
	t.Parallel()
	invariants(t, true)
}

// Without replacements more is known of a view.
func TestInvariantsHoldWhereOnlyRunsDecide(t *testing.T) {
	t.Parallel()
	invariants(t, false)
}

func invariants(t *testing.T, replace bool) {
	t.Helper()
	f := setup(t)
	cases := 0
	outcomes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		cases++
		w := newWorld(t, f.store, fmt.Sprint("s", cases))
		w.append(w.draw(8))
		steps := w.steps()
		if !replace {
			delete(steps, "replace")
		}
		t.Repeat(steps)
		w.rewind()
		for _, r := range w.ended {
			outcomes[r.Outcome]++
		}
	})
	f.sound()
	t.Logf("%d cases, runs ended %v", cases, outcomes)
}
