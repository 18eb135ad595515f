package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	data := recorded(t, 1)
	every := everyChain()
	for n, name := range slices.Sorted(maps.Keys(every)) {
		pipeline, sessions := every[name], data
		if !sessiontest.Long() || !slices.Contains(thorough, name) {
			sessions = nil // others for each strategy
			for i := n % sample; i < len(data); i += sample {
				sessions = append(sessions, data[i])
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &chain{st: openStore(t, database(t)), pipeline: pipeline, outcomes: map[string]int{}}
			all := make([]*journey, len(sessions))
			c.each(t, len(sessions), func(ctx context.Context, i int) error {
				all[i] = &journey{chain: c, n: i, key: key(sessions[i].ID), said: map[string]string{}, roles: map[chat.Role][]string{}}
				if err := all[i].compact(ctx, sessions[i].Messages); err != nil {
					return fmt.Errorf("session %s: %w", sessions[i].ID, err)
				}
				return nil
			})
			c.audit(t) // while there is something excluded
			if t.Failed() {
				return
			}
			c.each(t, len(sessions), func(ctx context.Context, i int) error {
				if err := all[i].undo(ctx); err != nil {
					return fmt.Errorf("session %s, undone: %w", sessions[i].ID, err)
				}
				return nil
			})
			c.audit(t)
			if !seldom[name] && c.outcomes[OutcomeApplied]+c.outcomes[OutcomeAboveTarget]+c.outcomes[OutcomeFloorAboveTrigger] < len(sessions)/2 {
				t.Error("hardly anything was compacted")
			}
			t.Logf("%d sessions, %v", len(sessions), c.outcomes)
		})
	}
}

// chain is one strategy over all sessions, on a database of its own.
type chain struct {
	st       *store.Store
	pipeline func(int64, chat.Tokens) []store.Step
	mu       sync.Mutex
	outcomes map[string]int
}

func (c *chain) each(t *testing.T, n int, do func(context.Context, int) error) {
	t.Helper()
	var all sync.WaitGroup
	queue := make(chan int)
	for range 3 {
		all.Go(func() {
			for i := range queue {
				if err := do(t.Context(), i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		queue <- i
	}
	close(queue)
	all.Wait()
}

func (c *chain) audit(t *testing.T) {
	t.Helper()
	(&fixture{t: t, store: c.st}).sound()
}

// journey is one recorded session on its way through the rounds.
type journey struct {
	*chain
	n      int
	key    store.Key
	sid    int64
	ids    []string          // of everything that was said, in order
	said   map[string]string // what was said, by id
	roles  map[chat.Role][]string
	pinned string
	last   chat.Seq
	sum    string
}

// words returns a message for comparison, without the fields that the store adds.
func words(m chat.Message) string {
	return string(m.Body().AppendJSON(nil))
}

func (j *journey) write(ctx context.Context, put func(context.Context, store.Key, string, []store.NewMessage) ([]chat.Seq, int, error), ms ...chat.Message) error {
	msgs := make([]store.NewMessage, len(ms))
	for i, m := range ms {
		m.ID = fmt.Sprintf("said-%d", len(j.ids))
		msgs[i] = store.NewMessage{Message: m, Tokens: tokens.Chars4{}.Message(&m), Counter: chat.CounterChars4}
		j.ids = append(j.ids, m.ID)
		j.roles[m.Role] = append(j.roles[m.Role], m.ID)
	}
	seqs, _, err := put(ctx, j.key, "", msgs) // repairs what Postgres cannot hold, in place
	if err != nil {
		return err
	}
	for i := range msgs {
		j.said[msgs[i].ID] = words(msgs[i].Message)
	}
	j.last = seqs[len(seqs)-1]
	j.sum, _, err = j.st.Admin.Checksum(ctx, j.sid, j.last)
	return err
}

func (j *journey) compact(ctx context.Context, ms []chat.Message) error {
	if err := j.write(ctx, j.st.Import, ms...); err != nil {
		return err
	}
	row, err := j.st.Session(ctx, j.key)
	if err != nil {
		return err
	}
	j.sid = row.SID
	if j.sum, _, err = j.st.Admin.Checksum(ctx, j.sid, j.last); err != nil {
		return err
	}
	if err := j.pin(ctx, ms); err != nil {
		return err
	}
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
		if err := j.run(ctx, "view", false); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if err := j.write(ctx, j.st.Append, more...); err != nil {
			return err
		}
		if round == 1 {
			if err := j.run(ctx, "log", j.n%2 == 0); err != nil {
				return fmt.Errorf("round %d, from the log: %w", round, err)
			}
		}
	}
	if err := j.run(ctx, "view", false); err != nil {
		return fmt.Errorf("after the last append: %w", err)
	}
	return nil
}

// pin pins a message of the older half that has nothing wrong with it: in every
// other session a tool result, where there is one.
func (j *journey) pin(ctx context.Context, ms []chat.Message) error {
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
		return nil
	}
	return j.st.Pin(ctx, j.key, j.pinned)
}

// run is an operator's run and everything that has to hold after it.
func (j *journey) run(ctx context.Context, from string, growth bool) error {
	before, err := j.st.Session(ctx, j.key)
	if err != nil {
		return err
	}
	metas, err := j.st.Operator.ViewMetas(ctx, j.sid)
	if err != nil {
		return err
	}
	broken := len(chat.Check(metas)) > 0 || before.Suspect // by what a repair left out
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
	id, err := j.st.Request(ctx, j.key, store.TriggerOperator, "test", o)
	if err != nil {
		return err
	}
	planner := testPlanner(p)
	planner.Registry.Summarizer = plan.Func(func(context.Context, plan.Request) (string, error) { return "what was said", nil })
	if err := New(j.st.Worker, planner, Config{}).execute(ctx, id); err != nil {
		return err
	}
	r, err := j.st.Run(ctx, id)
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.outcomes[r.Outcome]++
	j.mu.Unlock()
	if err := j.holds(ctx, before, r, broken || growth); err != nil {
		return fmt.Errorf("run %d (%s, %s %s): %w", id, r.Status, r.Outcome, r.Error, err)
	}
	return nil
}

func (j *journey) holds(ctx context.Context, before store.SessionRow, r store.RunRow, mayGrow bool) error {
	if r.Status != "applied" && r.Status != "skipped" {
		return errors.New("did not end well")
	}
	after, err := j.st.Session(ctx, j.key)
	if err != nil {
		return err
	}
	metas, err := j.st.Operator.ViewMetas(ctx, j.sid)
	if err != nil {
		return err
	}
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
	sum, n, err := j.st.Admin.Checksum(ctx, j.sid, j.last)
	if err != nil {
		return err
	}
	if sum != j.sum || n != int64(len(j.ids)) {
		return errors.New("what was said has changed")
	}
	must := slices.Clone(j.roles[chat.RoleSystem])
	if users := j.roles[chat.RoleUser]; len(users) > 0 {
		must = append(must, users[len(users)-1])
	}
	if j.pinned != "" {
		must = append(must, j.pinned)
	}
	var seqs []chat.Seq
	for _, m := range metas {
		if m.Kind == chat.KindSource && (m.Role == chat.RoleSystem || m.Role == chat.RoleUser || j.pinned != "") {
			seqs = append(seqs, m.Seq)
		}
	}
	got, err := j.st.Worker.Messages(ctx, j.sid, seqs)
	if err != nil {
		return err
	}
	there := map[string]string{}
	for _, m := range got {
		there[m.ID] = words(*m)
	}
	for _, id := range must {
		if text, ok := there[id]; !ok || text != j.said[id] {
			return fmt.Errorf("%s has to be in the view as it was said; there: %t", id, ok)
		}
	}
	return nil
}

// undo takes everything back: newest first, or the first with all after it. What a view does not
// hold as it was said stays out, by a repair of its own.
func (j *journey) undo(ctx context.Context) error {
	runs, err := j.st.Operator.Runs(ctx, store.RunFilter{Key: store.Key{Tenant: store.DefaultTenant, Session: j.key.Session}, Status: "applied", Limit: 100})
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(r store.RunRow) bool { return r.Kind == "repair" })
	if j.n%2 == 1 && len(runs) > 0 {
		runs = runs[len(runs)-1:]
	}
	for _, r := range runs {
		if _, err := j.st.Undo(ctx, j.key, r.ID, true, "test"); err != nil {
			return err
		}
	}
	all, err := j.st.All(ctx, j.key)
	if err != nil {
		return err
	}
	var want []string
	for _, m := range all {
		switch {
		case m.Included && m.Kind == chat.KindSource:
			want = append(want, m.ID)
		case m.Kind != chat.KindSource && !m.Included && m.ExcludeReason == "":
		case m.Kind == chat.KindSource && m.ExcludedBy != 0 && slices.Contains([]string{"unanswered_call", "awaiting_repair"}, m.ExcludeReason):
		default:
			return fmt.Errorf("message %s: included %t, excluded by run %d (%s)", m.ID, m.Included, m.ExcludedBy, m.ExcludeReason)
		}
	}
	view, _, err := j.st.View(ctx, j.key)
	if err != nil {
		return err
	}
	if len(view) != len(want) {
		return fmt.Errorf("%d messages in the view, %d can be", len(view), len(want))
	}
	for i, m := range view {
		if m.ID != want[i] || words(m.Message) != j.said[m.ID] {
			return fmt.Errorf("message %d of the view is %s; want %s as it was said", i, m.ID, want[i])
		}
	}
	return nil
}
