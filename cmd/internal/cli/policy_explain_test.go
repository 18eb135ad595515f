package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

// What holds a session back, and when it runs next, at a fixed time.
func TestExplanationsAreGolden(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.January, 31, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	reported := chat.Tokens(97_000)
	seq := chat.Seq(9)
	last := func(outcome string) *store.RunRow {
		return &store.RunRow{ID: 31, Status: "skipped", Outcome: outcome, Policy: "support", PolicyVersion: 2, EndedAt: ago(5 * time.Minute)}
	}
	held := func(reason string, until *time.Time, endsBy, detail string) []store.Held {
		return []store.Held{{Reason: reason, Sessions: 1, Since: ago(5 * time.Minute), Until: until, EndsBy: endsBy, Detail: detail}}
	}
	const ends = "compactor compact chat-42 --tenant acme"
	limits := func(tenant string, perSecond, started float64) []store.Spending {
		return []store.Spending{{SpendingLimit: store.SpendingLimit{Tenant: tenant, RunsPerSecond: &perSecond}, Started: started}}
	}
	cases := []struct {
		name string
		set  func(x *reports.Explainer)
		want string // a code that holds it back, "" for none
	}{
		{"below the limit", func(x *reports.Explainer) { x.LiveTokens, x.ContextTokens, x.Due = 60_000, 60_000, false }, ""},
		{"at the limit", func(x *reports.Explainer) { x.LiveTokens, x.ContextTokens, x.Due = 96_000, 96_000, false }, ""},
		{"above the limit, just written", func(x *reports.Explainer) { x.WrittenAt, x.FirstWrittenAt = ago(time.Second), ago(time.Second) }, ""},
		{"written again and again", func(x *reports.Explainer) { x.WrittenAt, x.FirstWrittenAt = ago(0), ago(29*time.Second) }, ""},
		{"written long ago", func(x *reports.Explainer) { x.WrittenAt, x.FirstWrittenAt = ago(time.Minute), ago(time.Hour) }, ""},
		{"found by the scheduler", func(*reports.Explainer) {}, ""},
		{"estimates", func(x *reports.Explainer) {
			x.LiveTokens, x.ContextTokens, x.LiveEstimatedTokens = 90_000, 90_000, 90_000
		}, ""},
		{"reported usage", func(x *reports.Explainer) {
			x.ContextTokens, x.ReportedPromptTokens, x.TokensSinceReport = 96_500, &reported, -500
		}, ""},
		{"learned usage", func(x *reports.Explainer) {
			x.ContextTokens, x.Line, x.Reports = 113_000, store.Line{Overhead: 3000, Scale: 1.1}, 12
		}, ""},
		{"a cooldown", func(x *reports.Explainer) {
			until := now.Add(5 * time.Minute)
			x.CooldownUntil, x.Last, x.Held = &until, last("ineffective"), held("cooldown", &until, ends, "")
		}, "cooldown"},
		{"a cooldown that is over", func(x *reports.Explainer) { x.CooldownUntil, x.Last = ago(0), last("ineffective") }, ""},
		{"an undo", func(x *reports.Explainer) {
			x.Due, x.Last, x.Held = false, last("undone"), held("waiting_after_undo", nil, "the next message, or "+ends, "")
		}, "waiting_after_undo"},
		{"an open tool loop", func(x *reports.Explainer) {
			x.LoopSeq, x.LoopOpen, x.Due, x.Last, x.Held = &seq, true, false, last("open_tool_loop"), held("open_tool_loop", nil, "the end of the loop, or "+ends, "")
		}, "open_tool_loop"},
		{"a tool loop that has ended", func(x *reports.Explainer) { x.LoopSeq, x.Last = &seq, last("open_tool_loop") }, ""},
		{"quarantine", func(x *reports.Explainer) {
			x.Due, x.Last = false, last("floor_above_trigger")
			x.Held = held("quarantined", nil, "the next message, another policy, or "+ends, "98,000 tokens are left that must stay, above the start of 96,000")
		}, "quarantined"},
		{"a service", func(x *reports.Explainer) {
			x.Due, x.Last, x.Held = false, last("service_managed"), held("service_managed", nil, "another policy or label, or "+ends, "")
		}, "service_managed"},
		{"an unanswered message", func(x *reports.Explainer) {
			x.LoopSeq, x.AwaitsAnswer, x.DueTokens, x.Due, x.Last = &seq, true, 128_000, false, last("mid_turn")
			x.Held = held("mid_turn", nil, "the agent's answer, or "+ends, "")
		}, "mid_turn"},
		{"as many runs as an hour may have", func(x *reports.Explainer) {
			until := now.Add(40 * time.Minute)
			x.CooldownUntil, x.Last, x.Held = &until, last("max_per_hour"), held("max_per_hour", &until, ends, "")
		}, "max_per_hour"},
		{"as many runs as a day may have, before the next one is due", func(x *reports.Explainer) {
			x.InForce.Guards.MaxPerDay, x.Ages = 2, []time.Duration{time.Hour, 20 * time.Hour}
			x.LiveTokens, x.ContextTokens, x.Due, x.PolicyHash = 60_000, 60_000, false, x.InForce.FleetHash()
		}, "max_per_day"},
		{"a limit of the runs of its tenant", func(x *reports.Explainer) {
			x.Limits, x.Held = limits("acme", 2.5, 2.5), held("run_limit", nil, "compactor limit clear --tenant acme", "a limit of the runs of tenant acme")
		}, "run_limit"},
		{"a limit of runs that has room", func(x *reports.Explainer) {
			x.WrittenAt, x.FirstWrittenAt, x.Limits = ago(time.Minute), ago(time.Hour), limits("", 2.5, 1)
		}, ""},
		{"a request that waits for a limit of runs", func(x *reports.Explainer) {
			x.Limits, x.Held = limits("acme", 0.1, 1), held("run_limit", nil, "compactor limit clear --tenant acme", "a limit of the runs of tenant acme")
			x.Active = []store.RunRow{{ID: 32, Status: "queued", ErrorCode: store.CodeRunLimit}}
		}, "run_limit"},
		{"a sweep that was cancelled", func(x *reports.Explainer) {
			until := now.Add(23 * time.Hour)
			x.Held = held("stopped_sweep", &until, "compactor sweep release 3", "sweep 3 is cancelled by ada")
		}, "stopped_sweep"},
		{"no leader, and a pause", func(x *reports.Explainer) {
			x.Held = append(held("no_leader", nil, "start compactor serve, or compactor scheduler", ""), held("paused", nil, "compactor resume --all", "by ada")...)
		}, "no_leader paused"},
		{"a limit of what models cost", func(x *reports.Explainer) {
			calls := int64(3)
			x.Limits, x.Config.LLM.Models = []store.Spending{{SpendingLimit: store.SpendingLimit{Tenant: "acme", CallsPerHour: &calls}, Calls: 3}}, make([]llm.Profile, 1)
		}, "spending_limit"},
		{"triggers", func(x *reports.Explainer) {
			x.InForce.Triggers = []policy.Trigger{{Name: "budget", When: "used > 0.75 && turn_completed"}, {Name: "long", When: "turns_since_run >= 30"}}
			x.Triggers = []worker.TriggerState{
				{Name: "budget", When: "used > 0.75 && turn_completed", Values: []string{"used 0.78", "turn_completed false"}},
				{Name: "long", When: "turns_since_run >= 30", Values: []string{"turns_since_run 12"}},
			}
			x.LoopSeq, x.AwaitsAnswer, x.DueTokens, x.Due, x.Last, x.PolicyHash = &seq, true, 128_000, false, last("not_triggered"), x.InForce.FleetHash()
			x.Held = held("not_triggered", nil, "the agent's answer, or "+ends, "")
		}, "not_triggered"},
		{"a trigger that holds, and no size", func(x *reports.Explainer) {
			x.InForce.Triggers = []policy.Trigger{{Name: "long", When: "turns_since_run >= 30"}}
			x.Triggers = []worker.TriggerState{{Name: "long", When: "turns_since_run >= 30", Holds: true, Values: []string{"turns_since_run 31"}}}
			x.DueTokens, x.PolicyHash, x.WrittenAt, x.FirstWrittenAt = policy.Never, x.InForce.FleetHash(), ago(time.Second), ago(time.Second)
			x.Last = last("applied")
			x.Last.Fired = "long"
		}, ""},
		{"a trigger that waits", func(x *reports.Explainer) {
			x.InForce.Triggers = []policy.Trigger{{Name: "idle", When: "idle >= 1 * day"}}
			x.Triggers = []worker.TriggerState{{Name: "idle", When: "idle >= 1 * day", Values: []string{"idle 2h"}}}
			next := now.Add(22 * time.Hour)
			x.DueTokens, x.Due, x.NextCheckAt, x.PolicyHash = policy.Never, false, &next, x.InForce.FleetHash()
		}, ""},
		{"an interval that is over", func(x *reports.Explainer) {
			x.InForce.Guards.MinInterval, x.Ages = time.Hour, []time.Duration{time.Hour}
			x.PolicyHash = x.InForce.FleetHash()
		}, ""},
		{"a queued run", func(x *reports.Explainer) {
			x.Active = []store.RunRow{{ID: 32, Status: "queued", QueuedAt: *ago(3 * time.Second)}}
		}, "queued"},
		{"a running run", func(x *reports.Explainer) {
			x.Active = []store.RunRow{{ID: 32, Status: "running", QueuedAt: *ago(time.Minute), StartedAt: ago(9 * time.Second), Worker: "host/7"}}
		}, "running"},
		{"a floor above the start", func(x *reports.Explainer) {
			x.DueTokens, x.Due, x.Last = 120_500, false, last("floor_above_trigger")
		}, ""},
		{"a run that has seen everything", func(x *reports.Explainer) {
			x.Last, x.Held = last("no_summary"), held("unchanged", nil, "the next message, or "+ends, "the last run ended as no_summary")
		}, "unchanged"},
		{"a pause of its tenant", func(x *reports.Explainer) {
			x.Held = held("paused", nil, "compactor resume --tenant acme", "by ada: provider is down")
		}, "paused"},
		{"an invalid view", func(x *reports.Explainer) { x.LiveTokens, x.ContextTokens, x.Suspect = 900, 900, true }, ""},
		{"a policy that cannot be read", func(x *reports.Explainer) { x.Unreadable = fmt.Errorf("unknown field x") }, "invalid_policy"},
		{"limits of another policy", func(x *reports.Explainer) { x.PolicyHash, x.Policy = "other", "default" }, ""},
	}
	var out bytes.Buffer
	e := &Env{Out: term.Output{W: &out}, Registry: builtin.Registry(), now: func() time.Time { return now }}
	for _, tt := range cases {
		x := reports.Explainer{Now: now, Config: config.Default(), InForce: policy.Default(), Version: store.PolicyVersion{Name: "support", Version: 3}}
		x.Tenant, x.Session, x.Model, x.Policy, x.Labels = "acme", "chat-42", "gpt-4o", "support", map[string]string{"agent": "support"}
		x.LiveTokens, x.ContextTokens, x.DueTokens, x.Due, x.PolicyHash = 100_000, 100_000, 96_000, true, policy.Default().FleetHash()
		_, x.Candidates = policy.Choose(policy.Subject{Tenant: "acme", Labels: x.Labels}, map[string]policy.Match{
			"support": {"agent": "support", "tenant": "acme"}, "acme": {"tenant": "acme"},
		})
		tt.set(&x)
		got := x.Explain(e.Registry)
		var codes []string
		for _, h := range got.HeldBack {
			codes = append(codes, h.Code)
		}
		if strings.Join(codes, " ") != tt.want {
			t.Errorf("%s: held back by %v, want %q", tt.name, codes, tt.want)
		}
		fmt.Fprintf(&out, "## %s\n", tt.name)
		printExplanation(e, got, x)
		out.WriteByte('\n')
	}
	for line := range strings.Lines(out.String()) {
		if term.Width(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	golden(t, "policy_explain", out.String())
}

func TestExplainReadsTheDatabase(t *testing.T) {
	t.Parallel()
	db, path := fleet(t)
	st := openStore(t, db)
	saveDefault(t, st)
	invoke(t, db, "policy", "apply", path, "--yes").want(t, 0)
	follow(t, st)
	x := decode[reports.Explanation](t, invoke(t, db, "policy", "explain", "help-2", "--json").want(t, 0))
	if x.Policy != "support" || x.Version != 1 || !x.Follows || !x.Due || x.Start != 600 || x.Target != 300 || x.Tokens <= 600 || len(x.HeldBack) != 1 || x.HeldBack[0].Code != store.HeldNoLeader || x.Steps[0] != "handoff" {
		t.Errorf("%+v", x)
	}
	invoke(t, db, "policy", "explain", "chat").want(t, 0, "default (configuration): no other one matches", "when it is due")
	invoke(t, db, "compact", "help-2", "--no-wait").want(t, 0)
	invoke(t, db, "policy", "explain", "help-2").want(t, 0, "held back", "run 1 waits for a worker")
	invoke(t, db, "policy", "explain", "ghost").want(t, exitNotFound, "ghost")
	invoke(t, db, "policy", "explain").want(t, exitUsage, "want a session")
	invoke(t, db, "policy", "explain", "--errors-only").want(t, 0, "no last run has failed")
	run, err := st.Worker.Claim(t.Context(), 1, "w", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	text := "policy newer@1: unknown field"
	if err := st.Worker.Finish(t.Context(), run, store.StatusFailed, store.Ledger{Outcome: "invalid_policy", Error: &text}, nil); err != nil {
		t.Fatal(err)
	}
	invoke(t, db, "policy", "explain", "--errors-only").want(t, 0, "help-2", "invalid_policy", "unknown field")
	rows := decode[struct{ Errors []store.ErrorRow }](t, invoke(t, db, "policy", "explain", "--errors-only", "--json").want(t, 0))
	if len(rows.Errors) != 1 || rows.Errors[0].Run != 1 {
		t.Errorf("%+v", rows)
	}
}

func TestPoliciesAreTestedWithoutARun(t *testing.T) {
	t.Parallel()
	db, path := fleet(t)
	st := openStore(t, db)
	saveDefault(t, st)
	out := invoke(t, db, "policy", "test", "help-2", "--file", path).want(t, 0).stdout
	invoke(t, db, "set-model", "help-1", "gpt-5-mini").want(t, 0) // whose cache has known prices
	out += "\n" + invoke(t, db, "policy", "test", "help-1", "--file", path).want(t, 0).stdout
	for line := range strings.Lines(out) {
		if term.Width(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	golden(t, "policy_test", out)
	type result struct {
		Sessions []reports.Preview
		Totals   reports.TrialTotals
	}
	r := decode[result](t, invoke(t, db, "policy", "test", "--sample=9", "--file", path, "--json").want(t, 0))
	if r.Totals.Sessions != 3 || r.Totals.TokensAfter >= r.Totals.TokensBefore || len(r.Sessions) != 3 || r.Sessions[0].Policy != "support" || r.Totals.Calls != 0 {
		t.Errorf("a sample of those that match: %+v", r.Totals)
	}
	if r = decode[result](t, invoke(t, db, "policy", "test", "chat", "--json").want(t, 0)); r.Sessions[0].Outcome != "nothing_to_compact" || !r.Sessions[0].TargetMet {
		t.Errorf("%+v", r.Sessions)
	}
	model := file(t, "model.yaml", `llm: {models: [{name: house, base_url: "http://127.0.0.1:1/v1", window_tokens: 100000, price_per_million: {input: 10, output: 20}}]}`)
	// In a smaller target no answer of a model fits beside its references.
	larger := file(t, "larger.yaml", "name: larger\nstart_tokens: 2400\ntarget_tokens: 1800\nmin_gain_tokens: 50\n")
	r = decode[result](t, invoke(t, append(db, "COMPACTOR_CONFIG="+model), "policy", "test", "help-2", "--file", larger, "--json").want(t, 0))
	if c := r.Sessions[0].Calls; c.Name != "house" || c.Calls != 1 || c.Input < 100 || c.Output < 50 || c.Cost != (10*float64(c.Input)+20*float64(c.Output))/1e6 {
		t.Errorf("the price of the model: %#v", c)
	}
	invoke(t, db, "policy", "test", "--sample=2").want(t, 0, "target met", "2 of 2")
	invoke(t, db, "policy", "test", "ghost").want(t, exitNotFound, "ghost")
	invoke(t, db, "policy", "test").want(t, exitUsage, "want sessions or --sample")
	invoke(t, db, "policy", "test", "--sample=2", "--file", file(t, "bad.yaml", "name: x\nstart: 7\n")).want(t, exitUsage, "bad.yaml:2: start: 7")
	invoke(t, db, "runs").want(t, 0, "no runs")
}
