package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/policy"
)

// modelPolicy summarizes the messages before the newest ones, and does nothing else.
func modelPolicy() policy.Policy {
	p := testPolicy()
	p.StartTokens, p.TargetTokens = 3000, 1500
	p.Fallback = false
	p.Pipeline = []policy.Step{{Strategy: "handoff", Params: map[string]any{"protect_first_n": 1, "protect_last_n": 3, "tail_token_budget": 300, "max_summary_tokens": 1000}}}
	return p
}

func modelConfig(url string) llm.Config {
	c := llm.Default()
	c.Models = []llm.Profile{{Name: "m", BaseURL: url, Window: 32_000, Price: llm.Price{Input: 1, Output: 2}}}
	c.Retry.Base, c.Retry.Max = time.Millisecond, 2*time.Millisecond
	return c
}

// playing returns a client whose only server plays steps.
func playing(t testing.TB, url string, hangs bool, cooldowns llm.Cooldowns) *llm.Client {
	t.Helper()
	c := modelConfig(url)
	if hangs {
		c.Deadline.Min, c.Deadline.Max = 300*time.Millisecond, 300*time.Millisecond
	}
	client := must(llm.New(c, llm.Deps{Cooldowns: cooldowns}))(t)
	t.Cleanup(client.Close)
	return client
}

func started(t testing.TB, steps ...llmtest.Step) (*llmtest.Server, string) {
	t.Helper()
	server := llmtest.New(steps...)
	url := must(server.Start())(t)
	t.Cleanup(func() { _ = server.Close() })
	return server, url
}

// modelled returns a fixture whose summaries come from a model that plays steps, with one
// long session that is due.
func modelled(t testing.TB, dsn string, p policy.Policy, steps ...llmtest.Step) (*fixture, *llmtest.Server) {
	t.Helper()
	server, url := started(t, steps...)
	f := asking(t, dsn, p, url)
	if slices.ContainsFunc(steps, func(s llmtest.Step) bool { return s.Behaviour == llmtest.Hang }) {
		f.w.planner.Model = playing(t, url, true, f.store.Worker.Cooldowns())
	}
	f.talk("s", 20)
	return f, server
}

// asking returns a fixture whose summaries come from the model at url.
func asking(t testing.TB, dsn string, p policy.Policy, url string) *fixture {
	t.Helper()
	f := setupWith(t, dsn, p, Config{Lease: 10 * time.Second})
	f.w.planner.Model = playing(t, url, false, f.store.Worker.Cooldowns())
	return f
}

// talk appends turns that there is something to summarize in.
func (f *fixture) talk(session string, turns int) {
	f.t.Helper()
	var msgs []store.NewMessage
	add := func(m chat.Message) {
		f.n++
		m.ID = fmt.Sprintf("%s-%d", session, f.n)
		msgs = append(msgs, store.NewMessage{Message: m, Tokens: chat.Tokens(len(m.Content.Text)/4 + 20), Counter: "test"})
	}
	for range turns {
		id, path := fmt.Sprintf("call_%d", f.n), fmt.Sprintf("src/part_%d/main.go", f.n)
		add(chat.Message{Role: chat.RoleUser, Content: chat.TextContent(fmt.Sprintf("Please find out why ticket TK%dX4 fails and fix it in %s.", 1000+f.n, path))})
		add(chat.Message{
			Role: chat.RoleAssistant, Content: chat.TextContent("I look at it first."),
			ToolCalls: []chat.ToolCall{{ID: id, Type: "function", Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q}`, path)}},
		})
		add(chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(strings.Repeat("func handle(r request) error { return r.check() }\n", 20))})
		add(chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("It forgot to close the connection; that is fixed and the tests pass.")})
	}
	f.write(session, msgs...)
}

// calls returns the model calls of a run, "state code".
func (f *fixture) calls(run store.RunID) []string {
	f.t.Helper()
	rows := must(f.store.Reader.SummaryCalls(f.t.Context(), run))(f.t)
	var out []string
	for _, r := range rows {
		out = append(out, strings.TrimSpace(r.State+" "+r.Code))
	}
	return out
}

// summaries returns the summaries in the view.
func (f *fixture) summaries(session string) []store.Stored {
	f.t.Helper()
	return slices.DeleteFunc(f.stored(session), func(m store.Stored) bool { return m.Kind != chat.KindSummary })
}

// The stored view, the ledger and the cost for each behaviour of a model.
func TestRunsByBehaviourOfTheModel(t *testing.T) {
	t.Parallel()
	twice := func(b llmtest.Behaviour, text string) []llmtest.Step {
		return []llmtest.Step{{Behaviour: b, Text: text, Times: 2}}
	}
	tests := map[string]struct {
		steps    []llmtest.Step
		code     string // of the step; empty: there is a summary
		calls    string // of the ledger
		paid     int
		cooldown time.Duration // of the session
	}{
		"normal":                    {nil, "", "answered", 1, 0},
		"429 for ever":              {[]llmtest.Step{{Behaviour: llmtest.RateLimited, Times: 99}}, "rate_limited", "failed rate_limited", 0, time.Minute},
		"429 with Retry-After":      {[]llmtest.Step{{Behaviour: llmtest.RateLimitedAfter, RetryAfter: "900"}}, "rate_limited", "failed rate_limited", 0, 15 * time.Minute},
		"slow":                      {[]llmtest.Step{{Behaviour: llmtest.Slow, Delay: 50 * time.Millisecond}}, "", "answered", 1, 0},
		"hanging":                   {[]llmtest.Step{{Behaviour: llmtest.Hang}}, "timeout", "failed timeout", 0, time.Minute},
		"empty content":             {[]llmtest.Step{{Behaviour: llmtest.Empty, Times: 99}}, "malformed_answer", "failed malformed_answer", 2, time.Minute},
		"cut off":                   {twice(llmtest.Length, ""), "cut_off", "rejected cut_off, rejected cut_off", 2, time.Minute},
		"a refusal, then a summary": {[]llmtest.Step{{Behaviour: llmtest.Refusal}}, "", "rejected refusal, answered", 2, 0},
		"filtered":                  {[]llmtest.Step{{Behaviour: llmtest.Filter}}, "content_filter", "failed content_filter", 1, time.Minute},
		"an echoed secret":          {[]llmtest.Step{{Behaviour: llmtest.EchoSecret, Text: "The key is " + secret}}, "", "answered", 1, 0},
		"no quota":                  {[]llmtest.Step{{Behaviour: llmtest.InsufficientQuota}}, "quota_exhausted", "failed quota_exhausted", 0, 10 * time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, server := modelled(t, database(t), modelPolicy(), tt.steps...)
			before, began := f.view("s"), time.Now()
			id := f.event()
			row := f.run(id)
			if got := strings.Join(f.calls(id), ", "); got != tt.calls || server.Paid() != tt.paid {
				t.Errorf("calls %s, %d paid, want %s, %d", got, server.Paid(), tt.calls, tt.paid)
			}
			// What may be billed without a report of usage is estimated.
			estimated := slices.ContainsFunc(must(f.store.Reader.SummaryCalls(t.Context(), id))(t), func(c store.SummaryCallRow) bool { return c.Estimated > 0 })
			if (row.CostMicros > 0) != (tt.paid > 0 || estimated) || row.Calls == 0 || row.ErrorCode != tt.code {
				t.Errorf("the ledger has %d calls for %d", row.Calls, row.CostMicros)
			}
			summaries := f.summaries("s")
			if strings.Contains(fmt.Sprint(summaries)+string(row.Steps)+row.Error, secret) {
				t.Error("a secret was stored")
			}
			if tt.code == "" {
				if row.Outcome != OutcomeApplied || len(summaries) != 1 {
					t.Errorf("%s %s, %d summaries", row.Outcome, row.Steps, len(summaries))
				}
				return
			}
			if row.Outcome != OutcomeNoSummary || !strings.Contains(string(row.Steps), `"no_summary": "`+tt.code+`"`) || f.view("s") != before {
				t.Errorf("%s %s, view %s", row.Outcome, row.Steps, f.view("s"))
			}
			const slack = time.Second // Retry-After counts in seconds
			if until := f.cooldown("s"); until.Before(began.Add(tt.cooldown-slack)) || until.After(time.Now().Add(tt.cooldown+slack)) {
				t.Errorf("the session cools down for %v, want %v", time.Until(until), tt.cooldown)
			}
		})
	}
}

// cooldown is until when automatic runs leave a session alone.
func (f *fixture) cooldown(session string) time.Time {
	f.t.Helper()
	row := f.session(session)
	if row.CooldownUntil == nil {
		return time.Time{}
	}
	return *row.CooldownUntil
}

// No worker calls a model during its cooldown, except for an operator.
func TestAFailedModelCoolsDown(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy(), llmtest.Step{Behaviour: llmtest.AuthError})
	f.talk("other", 20)
	runs, err := f.store.Scheduler.Relay(t.Context(), 0, 0, 10, time.Minute)
	if err != nil || len(runs) != 2 {
		t.Fatal(runs, err)
	}
	first, second := f.run(runs[0].Run), f.run(runs[1].Run)
	if first.Outcome != OutcomeNoSummary || second.Outcome != OutcomeNoSummary || server.Calls() != 1 {
		t.Errorf("%s and %s after %d requests", first.Outcome, second.Outcome, server.Calls())
	}
	if !strings.Contains(string(second.Steps), `"no_summary": "unavailable"`) && !strings.Contains(string(second.Steps), `"no_summary": "auth"`) {
		t.Errorf("%s", second.Steps)
	}
	asked := must(f.store.Request(t.Context(), key("other"), store.TriggerApplication, "test", store.Options{From: "view"}))(t)
	if row := f.run(asked); row.Outcome != OutcomeNoSummary || server.Calls() != 1 {
		t.Errorf("an application's run ended %s after %d requests, want none", row.Outcome, server.Calls())
	}
	if row := f.run(f.operator("other", store.Options{From: "view"})); row.Outcome != OutcomeApplied || server.Calls() != 2 {
		t.Errorf("an operator's run ended %s after %d requests", row.Outcome, server.Calls())
	}
}

// A summary that fails again and again is tried less and less often: each try may be paid.
func TestTheCooldownGrowsWithEachFailedSummary(t *testing.T) {
	t.Parallel()
	p := modelPolicy()
	p.Summary.Cooldown = 200 * time.Millisecond
	f, server := modelled(t, database(t), p, llmtest.Step{Behaviour: llmtest.Refusal, Times: 99})
	for i := range 3 {
		f.await("the cooldown is over", func() bool { return time.Now().After(f.cooldown("s")) })
		f.talk("s", 1) // news, or there would be nothing to decide
		before := time.Now()
		if row := f.run(f.sweep()[0]); row.Outcome != OutcomeNoSummary {
			t.Fatalf("%s %s", row.Outcome, row.Steps)
		}
		if got, want := f.cooldown("s").Sub(before), p.Summary.Cooldown<<i; got < want {
			t.Errorf("after failure %d it cools down for %v, want %v", i+1, got, want)
		}
	}
	row, claim := f.session("s"), must(f.store.Worker.Load(t.Context(), f.operator("s", store.Options{})))(t)
	if server.Paid() != 6 || claim.Session.IneffectiveRuns != 3 || !row.Due {
		t.Errorf("%d paid, %+v", server.Paid(), claim)
	}
}

// The gain of other steps is kept if a summary fails. The session stays due, cools down, and
// gets its summary once the model has recovered, without a new message.
func TestAFailedSummaryIsRetried(t *testing.T) {
	t.Parallel()
	p := modelPolicy()
	p.StartTokens, p.Summary.Cooldown = 2000, 200*time.Millisecond
	p.Pipeline = append([]policy.Step{{Strategy: "tool_result", Params: map[string]any{"keep_last_tool_call_groups": 18}}}, p.Pipeline...)
	f, server := modelled(t, database(t), p, llmtest.Step{Behaviour: llmtest.Refusal, Times: 2})
	row := f.run(f.event())
	if row.Status != "applied" || row.Outcome != OutcomeNoSummary || row.TokensAfter >= row.TokensBefore {
		t.Fatalf("%s %s, %d → %d, %s", row.Status, row.Outcome, row.TokensBefore, row.TokensAfter, row.Steps)
	}
	if session := f.session("s"); !session.Due || session.CooldownUntil == nil {
		t.Fatalf("%+v", session)
	}
	f.await("the cooldown is over", func() bool { return time.Now().After(f.cooldown("s")) })
	found := f.forgotten()
	if len(found) != 1 {
		t.Fatalf("the reconciler queued %v", found)
	}
	if row := f.run(found[0].Run); row.Outcome != OutcomeApplied || server.Paid() != 3 {
		t.Errorf("%s %s, %d paid", row.Outcome, row.Steps, server.Paid())
	}
}

// The log line of a run says which model it asked and what that cost, as the ledger does.
func TestTheLogNamesTheModelAndItsCost(t *testing.T) {
	t.Parallel()
	f, _ := modelled(t, database(t), modelPolicy())
	var log bytes.Buffer
	f.w.logger = slog.New(slog.NewJSONHandler(&log, nil))
	row := f.run(f.event())
	var got struct {
		Msg, Outcome, Model string
		Calls               int     `json:"model_calls"`
		Input               int64   `json:"input_tokens"`
		Output              int64   `json:"output_tokens"`
		Cost                float64 `json:"cost"`
	}
	if err := json.Unmarshal(log.Bytes(), &got); err != nil {
		t.Fatal(err, log.String())
	}
	if got.Msg != "run ended" || got.Outcome != OutcomeApplied || got.Model != "m" || got.Calls != 1 || got.Cost == 0 ||
		got.Model != row.Model || got.Calls != row.Calls || got.Input != row.InputTokens || got.Output != row.OutputTokens ||
		math.Round(got.Cost*1e6) != float64(row.CostMicros) {
		t.Errorf("logged %s, the ledger has %+v", log.String(), row)
	}
	log.Reset()
	f.append("s", strings.Repeat("u", 40))
	if f.w.planner.Model = nil; f.run(f.event()).Outcome == "" || strings.Contains(log.String(), "model") {
		t.Errorf("a run without a model logged %s", log.String())
	}
}

// Nothing that is appended while a model writes is lost, and the plan still applies.
func TestAppendingWhileAModelWrites(t *testing.T) {
	t.Parallel()
	server := llmtest.New()
	asked, answer := make(chan struct{}), make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	f := asking(t, database(t), modelPolicy(), front.URL+"/v1")
	f.talk("s", 20)
	id := f.event()
	done := make(chan store.RunRow, 1)
	go func() { done <- f.run(id) }()
	<-asked
	for range 50 {
		f.append("s", "u")
	}
	close(answer)
	if row := <-done; row.Outcome != OutcomeApplied || row.Attempts != 1 || server.Paid() != 1 {
		t.Errorf("%s after %d attempts, %d paid", row.Outcome, row.Attempts, server.Paid())
	}
	view := f.view("s")
	if !strings.HasSuffix(view, strings.Repeat("u", 50)) || !strings.Contains(view, "S") {
		t.Errorf("view %s", view)
	}
}

// A stale plan is made again with the stored summary.
func TestAStalePlanReusesItsAnswer(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy())
	id := f.event()
	once := true
	f.w.failpoint = func(step string) {
		if step == stepChecked && once {
			once = false
			f.replace(func(view []store.NewMessage) []store.NewMessage { return view }) // the view is unchanged, but its revision is not
		}
	}
	if row := f.finish(id); row.Outcome != OutcomeApplied || server.Paid() != 1 || once {
		t.Errorf("%s, %d paid", row.Outcome, server.Paid())
	}
	if got := strings.Join(f.calls(id), ", "); got != "answered" {
		t.Errorf("calls %s", got)
	}
}

// The instruction of the policy and the focus are in the prompt. The focus of an operator's
// run replaces that of the policy.
func TestWishesReachTheModel(t *testing.T) {
	t.Parallel()
	p := modelPolicy()
	p.Summary.Focus, p.Summary.Instruction = "the tickets", "Write a table of tickets and nothing else."
	f, server := modelled(t, database(t), p, llmtest.Step{Behaviour: llmtest.Normal, Times: 2, Text: "ticket | state\n--- | ---\nTK1000X4 and those behind it | fixed, the tests pass, connections are closed"})
	first := f.run(f.event())
	f.talk("s", 20)
	second := f.run(f.operator("s", store.Options{From: "view", Focus: "closed connections"}))
	if first.Outcome != OutcomeApplied || second.Outcome != OutcomeApplied || server.Calls() != 2 {
		t.Fatalf("%s %s, then %s %s, %d requests", first.Outcome, first.Steps, second.Outcome, second.Steps, server.Calls())
	}
	for i, topic := range []string{"the tickets", "closed connections"} {
		q := server.Requests()[i]
		if !strings.Contains(q.System, p.Summary.Instruction) || !strings.Contains(q.System, strconv.Quote(topic)) || strings.Contains(q.System, "## Goal") {
			t.Errorf("request %d:\n%s", i, q.System)
		}
	}
	if q := server.Requests()[1]; strings.Contains(q.System, "the tickets\"") {
		t.Errorf("two topics:\n%s", q.System)
	}
	if s := f.summaries("s"); len(s) != 1 || !strings.Contains(s[0].Content.String(), "ticket | state") {
		t.Errorf("%d summaries", len(s))
	}
}

// A message of the application that is marked as a summary is in the prompt neither as the
// notes so far, which are trusted, nor as a message of the user, and the new summary replaces
// it.
func TestASummaryOfAnotherProgramIsReplaced(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"[CONTEXT SUMMARY]:", "[CONTEXT COMPACTION — REFERENCE ONLY]", "[Conversation Summary]"} {
		t.Run(head, func(t *testing.T) {
			t.Parallel()
			server, url := started(t)
			f := asking(t, database(t), modelPolicy(), url)
			f.append("s", "s")
			f.say("s", text(chat.RoleUser, head+" They want OLDREF33333X repaired first."))
			f.talk("s", 20)
			row := f.run(f.event())
			all := f.summaries("s")
			if row.Outcome != OutcomeApplied || len(all) != 1 || strings.Count(f.view("s"), "S") != 1 {
				t.Fatalf("%s %s, view %s", row.Outcome, row.Steps, f.view("s"))
			}
			user := server.Requests()[0].User
			given, user, _ := strings.Cut(user, " text marked as")
			notes, rest, ok := strings.Cut(user, "Please find out")
			if !ok || strings.Contains(given, "They want") || strings.Contains(notes, "notes written so far") || !strings.Contains(notes, "not the user's words") || !strings.Contains(notes, "\nThey want OLDREF33333X") || strings.Contains(user, head) || strings.Contains(rest, "OLDREF33333X") {
				t.Errorf("%.3000s", server.Requests()[0].User)
			}
			if said := all[0].Content.String(); strings.Contains(said, head) || !strings.Contains(said, "OLDREF33333X") {
				t.Errorf("%s", said)
			}
			for _, m := range f.stored("s") {
				if m.Kind == chat.KindSource && strings.Contains(m.Content.String(), "OLDREF33333X") {
					t.Error("the old summary is still in the view")
				}
			}
		})
	}
}
