package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// recorded returns each nth of the recorded sessions of every file, under ids that differ, or all of them if sessiontest.Long.
func recorded(t *testing.T, nth int) (out []chat.Session) {
	t.Helper()
	for _, name := range []string{"aider_history", "entire_cli", "pi_mono", "swe_agent", "taubench_airline"} {
		for _, s := range sessiontest.Recorded(t, name+".jsonl", nth) {
			s.ID = fmt.Sprintf("%s-%d", name, len(out))
			out = append(out, s)
		}
	}
	return out
}

// Recorded sessions under every strategy: three rounds of runs with appends
// in between, then all of them undone.
func TestRecordedSessionsUnderEveryStrategy(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	t.Parallel()
	f, data, every := setup(t), recorded(t, 1), everyChain()
	var all []*journey
	for n, name := range slices.Sorted(maps.Keys(every)) {
		sessions := data
		if !sessiontest.Long() || !slices.Contains(thorough, name) {
			sessions = nil // others for each strategy
			for i := n % sample; i < len(data); i += sample {
				sessions = append(sessions, data[i])
			}
		}
		t.Run(name, func(t *testing.T) {
			outcomes := map[string]int{}
			for i, s := range sessions {
				j := &journey{
					fixture: &fixture{t: t, store: f.store}, pipeline: every[name], outcomes: outcomes, n: i, key: key(name + " of " + s.ID),
					said: map[string]string{}, roles: map[chat.Role][]string{},
				}
				j.compact(s.Messages)
				all = append(all, j)
			}
			if !seldom[name] && outcomes[OutcomeApplied]+outcomes[OutcomeAboveTarget]+outcomes[OutcomeFloorAboveTrigger] < len(sessions)/2 {
				t.Error("hardly anything was compacted")
			}
			t.Logf("%d sessions, %v", len(sessions), outcomes)
		})
	}
	f.sound() // while there is something excluded
	for _, j := range all {
		j.t = t
		j.undo()
	}
}

// journey is one recorded session on its way through the rounds.
type journey struct {
	*fixture
	pipeline func(int64, chat.Tokens) []store.Step
	outcomes map[string]int
	n        int
	key      store.Key
	sid      int64
	ids      []string          // of everything that was said, in order
	said     map[string]string // what was said, by id
	roles    map[chat.Role][]string
	pinned   string
	last     chat.Seq
	sum      string
}

// words returns a message for comparison, without the fields that the store adds.
func words(m chat.Message) string {
	return string(m.Body().AppendJSON(nil))
}

func (j *journey) write(put func(context.Context, store.Key, string, []store.NewMessage) ([]chat.Seq, int, error), ms ...chat.Message) {
	j.t.Helper()
	msgs := make([]store.NewMessage, len(ms))
	for i, m := range ms {
		m.ID = fmt.Sprintf("said-%d", len(j.ids))
		msgs[i] = store.NewMessage{Message: m, Tokens: tokens.Chars4{}.Message(&m), Counter: chat.CounterChars4}
		j.ids = append(j.ids, m.ID)
		j.roles[m.Role] = append(j.roles[m.Role], m.ID)
	}
	seqs, _, err := put(j.t.Context(), j.key, "", msgs) // repairs what Postgres cannot hold, in place
	j.must(err)
	for i := range msgs {
		j.said[msgs[i].ID] = words(msgs[i].Message)
	}
	j.last = seqs[len(seqs)-1]
	j.sid = must(j.store.Session(j.t.Context(), j.key))(j.t).SID
	j.sum, _, err = j.store.Admin.Checksum(j.t.Context(), j.sid, j.last)
	j.must(err)
}

func (j *journey) compact(ms []chat.Message) {
	j.t.Helper()
	j.write(j.store.Import, ms...)
	j.pin(ms)
	said := func(role chat.Role, text string) chat.Message {
		return chat.Message{Role: role, Content: chat.TextContent(text)}
	}
	call := said(chat.RoleAssistant, "")
	call.ToolCalls = []chat.ToolCall{{ID: "call_1", Type: "function", Name: "look", Arguments: `{"at":"it"}`}}
	result := said(chat.RoleTool, "it is there")
	result.ToolCallID = "call_1"
	rounds := [][]chat.Message{
		{said(chat.RoleUser, "and now?"), call, result, said(chat.RoleAssistant, "done")},
		{said(chat.RoleUser, "once more"), call, result, result, said(chat.RoleAssistant, "done")}, // the second result has no call
		{said(chat.RoleUser, "go on"), call, said(chat.RoleUser, "never mind"), said(chat.RoleAssistant, "fine")},
	}
	for round, more := range rounds {
		j.run("view", false)
		j.write(j.store.Append, more...)
		if round == 1 {
			j.run("log", j.n%2 == 0)
		}
	}
	j.run("view", false)
}

// pin pins a message of the older half that has nothing wrong with it: in every
// other session a tool result, where there is one.
func (j *journey) pin(ms []chat.Message) {
	j.t.Helper()
	metas := chat.Describe(ms)
	var texts, results []string
	for _, g := range chat.Groups(metas[:len(metas)/2]) {
		calls, answers := 0, 0
		result := ""
		for i := g.Start; i < g.End; i++ {
			switch m := metas[i]; {
			case m.Calls > 0:
				calls += m.Calls
			case m.Role == chat.RoleTool && m.Has(chat.Paired):
				answers++
				result = j.ids[i]
			case m.Role == chat.RoleTool:
				calls = -1 << 20
			case m.Role == chat.RoleUser:
				texts = append(texts, j.ids[i])
			}
		}
		if answers > 0 && answers == calls {
			results = append(results, result)
		}
	}
	switch {
	case len(results) > 0 && j.n%2 == 0:
		j.pinned = results[len(results)/2]
	case len(texts) > 0:
		j.pinned = texts[len(texts)/2]
	default:
		return
	}
	j.must(j.store.Pin(j.t.Context(), j.key, j.pinned))
}

// run is an operator's run and everything that has to hold after it.
func (j *journey) run(from string, growth bool) {
	t, ctx := j.t, j.t.Context()
	t.Helper()
	before := must(j.store.Session(ctx, j.key))(t)
	broken := len(chat.Check(must(j.store.Operator.ViewMetas(ctx, j.sid))(t))) > 0 || before.Suspect // by what a repair left out
	o := store.Options{From: from, AllowGrowth: growth}
	p := policy.Default()
	p.MinGainTokens = 1
	// The run plans with the margin, as these counts are estimates.
	size := p.Margin(before.LiveTokens)
	if j.pipeline != nil {
		o.Pipeline = j.pipeline(before.LiveMessages, size)
	} else {
		p.StartTokens, p.TargetTokens = max(2, size*8/10), max(1, size*6/10)
	}
	id := must(j.store.Request(ctx, j.key, store.TriggerOperator, "test", o))(t)
	planner := testPlanner(p)
	planner.Registry.Summarizer = plan.Func(func(context.Context, plan.Request) (string, error) { return "what was said", nil })
	j.must(New(j.store.Worker, planner, Config{}).execute(ctx, id))
	r := j.row(id)
	j.outcomes[r.Outcome]++
	if err := j.holds(before, r, broken || growth); err != nil {
		t.Fatalf("session %s: run %d (%s, %s %s): %v", j.key, id, r.Status, r.Outcome, r.Error, err)
	}
}

// holds returns an error if the view and the log are not as a run has to leave them.
func (j *journey) holds(before store.SessionRow, r store.RunRow, mayGrow bool) error {
	t, ctx := j.t, j.t.Context()
	if r.Status != "applied" && r.Status != "skipped" {
		return errors.New("did not end well")
	}
	after := must(j.store.Session(ctx, j.key))(t)
	metas := must(j.store.Operator.ViewMetas(ctx, j.sid))(t)
	if faults := chat.Check(metas); len(faults) > 0 {
		return fmt.Errorf("the view is not valid: %v", faults[:min(len(faults), 5)])
	}
	if after.LiveTokens > before.LiveTokens && !mayGrow {
		return fmt.Errorf("the view grew from %d to %d tokens", before.LiveTokens, after.LiveTokens)
	}
	if r.TokensBefore != int64(before.LiveTokens) || r.Status == "applied" && (r.TokensAfter != int64(after.LiveTokens) || r.MessagesAfter != after.LiveMessages) {
		return fmt.Errorf("the ledger says %d to %d tokens in %d messages, the session %d to %d in %d", r.TokensBefore, r.TokensAfter,
			r.MessagesAfter, before.LiveTokens, after.LiveTokens, after.LiveMessages)
	}
	sum, n, err := j.store.Admin.Checksum(ctx, j.sid, j.last)
	j.must(err)
	if sum != j.sum || n != int64(len(j.ids)) {
		return errors.New("what was said has changed")
	}
	kept := slices.Clone(j.roles[chat.RoleSystem])
	if users := j.roles[chat.RoleUser]; len(users) > 0 {
		kept = append(kept, users[len(users)-1])
	}
	if j.pinned != "" {
		kept = append(kept, j.pinned)
	}
	var seqs []chat.Seq
	for _, m := range metas {
		if m.Kind == chat.KindSource && (m.Role == chat.RoleSystem || m.Role == chat.RoleUser || j.pinned != "") {
			seqs = append(seqs, m.Seq)
		}
	}
	there := map[string]string{}
	for _, m := range must(j.store.Worker.Messages(ctx, j.sid, seqs))(t) {
		there[m.ID] = words(*m)
	}
	for _, id := range kept {
		if text, ok := there[id]; !ok || text != j.said[id] {
			return fmt.Errorf("%s has to be in the view as it was said; there: %t", id, ok)
		}
	}
	return nil
}

// undo undoes everything: newest first, or the first with all after it. What a view does not
// hold as it was said stays out, by a repair of its own.
func (j *journey) undo() {
	t, ctx := j.t, j.t.Context()
	t.Helper()
	runs := must(j.store.Operator.Runs(ctx, store.RunFilter{Key: store.Key{Tenant: store.DefaultTenant, Session: j.key.Session}, Status: "applied", Limit: 100}))(t)
	runs = slices.DeleteFunc(runs, func(r store.RunRow) bool { return r.Kind == "repair" })
	if j.n%2 == 1 && len(runs) > 0 {
		runs = runs[len(runs)-1:]
	}
	for _, r := range runs {
		must(j.store.Undo(ctx, j.key, r.ID, true, "test"))(t)
	}
	var want []string
	for _, m := range must(j.store.All(ctx, j.key))(t) {
		switch {
		case m.Included && m.Kind == chat.KindSource:
			want = append(want, m.ID)
		case m.Kind != chat.KindSource && !m.Included && m.ExcludeReason == "":
		case m.Kind == chat.KindSource && m.ExcludedBy != 0 && slices.Contains([]string{"unanswered_call", "awaiting_repair"}, m.ExcludeReason):
		default:
			t.Errorf("session %s: message %s: included %t, excluded by run %d (%s)", j.key, m.ID, m.Included, m.ExcludedBy, m.ExcludeReason)
		}
	}
	view := j.stored(j.key.Session)
	if len(view) != len(want) {
		t.Fatalf("session %s: %d messages in the view, %d can be", j.key, len(view), len(want))
	}
	for i, m := range view {
		if m.ID != want[i] || words(m.Message) != j.said[m.ID] {
			t.Errorf("session %s: message %d of the view is %s; want %s as it was said", j.key, i, m.ID, want[i])
		}
	}
}
