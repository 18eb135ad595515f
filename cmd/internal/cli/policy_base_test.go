package cli

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// A policy has what it does not say from another one, by default from that which its sessions have.
func TestAPolicyInheritsFromAnother(t *testing.T) {
	t.Parallel()
	db, _ := fleet(t)
	st := openStore(t, db)
	conf := file(t, "compactor.yaml", `policy:
  start_tokens: 5000
  target_tokens: 4000
  pin_tools: [load_policy]
  retention: {archive_after: 720h}
  summary: {instruction: never write PII, max_cost: 0.5}
`)
	of := func(name string) policy.Policy {
		t.Helper()
		v, err := st.Policy(t.Context(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.ReadSpec(v.Spec)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	apply := func(args ...string) result {
		return invoke(t, db, append([]string{"policy", "apply", "--yes", "--config", conf}, args...)...)
	}
	billing := file(t, "billing.yaml", "name: billing\nmatch: {agent: support}\nstart: 0.5\ntarget: 0.2\nsummary: {max_cost: 0.1}\n")
	r := apply(billing).want(t, 0, "differs from default, which it extends, in", "start_tokens      5000 → none (start counts)", "summary.max_cost  0.5 → 0.1")
	if strings.Contains(r.stdout, "lose") || strings.Contains(r.stdout, "pin_tools") {
		t.Errorf("what is inherited is shown as a change:\n%s", r.stdout)
	}
	p := of("billing")
	if p.PinTools == nil || p.Retention.ArchiveAfter == 0 || p.Summary.Instruction != "never write PII" || p.Summary.MaxCost != 0.1 || p.StartTokens != 0 || p.Start != 0.5 {
		t.Errorf("billing is %+v", p)
	}
	follow(t, st)
	// One that extends nothing loses it, and says so.
	bare := file(t, "bare.yaml", "name: bare\nmatch: {agent: support, model: gpt}\nextends: none\nstart: 0.5\ntarget: 0.2\n")
	for _, s := range []string{"help-0", "help-1", "help-2"} {
		if err := st.SetModel(t.Context(), store.Key{Session: s}, "gpt-4o"); err != nil {
			t.Fatal(err)
		}
	}
	invoke(t, db, "policy", "apply", bare, "--dry-run", "--config", conf).want(t, 0, "3 sessions that have billing now get other settings in",
		`its sessions lose pin_tools: ["load_policy"] → none`, "its sessions lose retention.archive_after", "its sessions lose summary.instruction: never write PII → none", "its sessions lose summary.max_cost: 0.1 → none")
	// Files that are applied together, in any order, and a chain.
	one := file(t, "one.yaml", "name: one\nextends: two\nfallback: false\n")
	two := file(t, "two.yaml", "name: two\nextends: billing\ncooldown: 3m\n")
	apply(one, two).want(t, 0, "one@1 is in force", "two@1 is in force")
	if p := of("one"); p.Fallback || p.Cooldown.Minutes() != 3 || p.Summary.MaxCost != 0.1 || p.Retention.ArchiveAfter == 0 {
		t.Errorf("one is %+v", p)
	}
	invoke(t, db, "policy", "show", "one", "--config", conf).want(t, 0, "extends   two\n", "fallback                 true → false\n", "cooldown                 10m → 3m (from two)")
	// What it extends changes: it keeps what it has until it is applied again.
	apply(file(t, "two.yaml", "name: two\nextends: billing\ncooldown: 4m\n")).want(t, 0, "two@2 is in force")
	invoke(t, db, "policy", "show", "one", "--config", conf).want(t, 0, "two, which has changed since: apply the file again to follow", "→ 3m (from two)")
	apply(one).want(t, 0, "one@2 is in force")
	if p := of("one"); p.Cooldown.Minutes() != 4 {
		t.Errorf("one is %+v", p)
	}
	apply(one).want(t, 0, "one@2 is in force already")
	// Circles and names that are none.
	apply(file(t, "x.yaml", "name: billing\nextends: one\n")).want(t, exitUsage, "extends", "billing → one → two → billing")
	apply(file(t, "x.yaml", "name: x\nextends: x\n")).want(t, exitUsage, "x would extend itself")
	apply(file(t, "x.yaml", "name: x\nextends: y\n"), file(t, "y.yaml", "name: y\nextends: x\n")).want(t, exitUsage, "would extend itself")
	apply(file(t, "x.yaml", "name: x\nextends: biling\n")).want(t, exitUsage, `"biling": no policy of that name is in force`, "billing, configuration, default, none")
	// The policy default extends the configuration.
	apply(file(t, "d.yaml", "name: default\ncooldown: 7m\n")).want(t, 0, "default@1 is in force")
	if p := of("default"); p.Retention.ArchiveAfter == 0 || p.Cooldown.Minutes() != 7 {
		t.Errorf("default is %+v", p)
	}
}

// A name that nothing has is said, and taken where it may be meant for later.
func TestNamesThatNothingHasAreSaid(t *testing.T) {
	t.Parallel()
	db, path := fleet(t)
	for _, args := range [][]string{
		{"pause", "--tenant", "nope"},
		{"resume", "--tenant", "nope"},
		{"limit", "set", "--tenant", "nope", "--calls-per-hour", "5"},
		{"limit", "clear", "--tenant", "nope"},
		{"stats", "--tenant", "nope"},
		{"sweep", "start", "--tenant", "nope"},
		{"sessions", "--tenant", "nope"},
		{"runs", "--tenant", "nope"},
		{"policy", "list", "--tenant", "nope"},
		{"policy", "test", "--sample", "3", "--tenant", "nope", "--file", path},
	} {
		if r := invoke(t, db, args...); !strings.Contains(r.stderr, "warning: tenant nope has no sessions (tenants in use: default)") {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.stderr)
		}
	}
	invoke(t, db, "import", file(t, "s.jsonl", conversation("x", 2)), "--tenant", "later").want(t, 0)
	if r := invoke(t, db, "stats", "--tenant", "later").want(t, 0); strings.Contains(r.stderr, "warning") {
		t.Error(r.stderr)
	}
	invoke(t, db, "pause", "--model", "gptt", "--note", "x").want(t, 0, "no session has a model whose name begins with gptt")
	typo := strings.NewReplacer("{agent: support}", "{agnet: support, tenant: nope, model: gptt}").Replace(supportPolicy)
	invoke(t, db, "policy", "apply", "--yes", file(t, "p.yaml", typo)).want(t, 0, "no session has the label agnet (labels in use: agent)",
		"tenant nope has no sessions (tenants in use: default, later)", "no session has a model whose name begins with gptt", "support@1 is in force")
	// A policy of a tenant is tried on that tenant.
	theirs := strings.Replace(supportPolicy, "{agent: support}", "{tenant: later}", 1)
	invoke(t, db, "policy", "test", "--sample", "3", "--file", file(t, "q.yaml", theirs)).want(t, 0, "x")
}
