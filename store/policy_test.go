package store

import (
	std "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// put adds a version of a policy and puts it in force. Its hash is its thresholds.
func put(t fataler, s *Store, c PolicyChange) int {
	t.Helper()
	rows := must(s.Policies(context.Background(), ""))(t)
	for _, v := range rows {
		if v.Name == c.Name {
			c.Expect = v.Version
		}
	}
	if c.Spec == nil {
		c.Spec = json.RawMessage(fmt.Sprintf(`{"x": %q}`, fmt.Sprint(c.Thresholds)))
	}
	c.Hash, c.FleetHash = "hash", fmt.Sprint(c.Thresholds)
	versions := must(s.Operator.ChangePolicies(context.Background(), []PolicyChange{c}, "test"))(t)
	return versions[0]
}

// named returns a policy whose sessions are due above tokens, for those that match.
func named(name string, tokens chat.Tokens, match string) PolicyChange {
	c := PolicyChange{Name: name, Match: map[string]string{}, Thresholds: []Threshold{{DueTokens: tokens}}}
	for pair := range strings.FieldsSeq(match) {
		key, value, _ := strings.Cut(pair, "=")
		c.Match[key] = value
	}
	return c
}

// refresh updates sessions in pages until all follow the policies, and returns the pages as
// "3 page".
func refresh(t fataler, s *Store, limit int) (pages []string) {
	t.Helper()
	for len(pages) < 100 {
		n, state := must2(s.Scheduler.RefreshSessions(context.Background(), limit))(t)
		if state == RefreshIdle {
			return pages
		}
		pages = append(pages, fmt.Sprintf("%d %s", n, state))
	}
	t.Fatalf("no end: %v", pages)
	return nil
}

// policies returns the sessions as "session policy start", as they are shown.
func policies(t fataler, s *Store) []string {
	t.Helper()
	return list[string](t, s, `SELECT format('%s %s %s', s.id, s.policy, s.due_tokens) FROM compactor.sessions x, compactor.shown_session(x.tenant, x.id) s ORDER BY s.tenant, s.id`)
}

func TestTheMostSpecificPolicyThatASessionMatchesIsItsPolicy(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1, 0, false, Counts{}})
	for _, p := range []PolicyChange{
		named("by-hand", 2, ""), named("acme", 3, "tenant=acme"), named("gpt", 4, "model=gpt-"), named("gpt-5", 5, "model=gpt-5"),
		named("azure", 6, "model=azure/gpt-5"), named("planner", 7, "agent=planner"), named("planner-gpt", 8, "agent=planner model=gpt-"),
		named("a-planner", 9, "agent=planner"), named("acme-planner", 10, "tenant=acme agent=planner"), named("off", 11, "tenant=acme model=gpt-5"),
		named("all", 12, "tenant=acme agent=planner application=shop"),
	} {
		put(t, s, p)
	}
	must(s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "off", Expect: 1}}, ""))(t)
	inForce := map[string]policy.Match{}
	for _, v := range must(s.Policies(t.Context(), ""))(t) {
		inForce[v.Name] = v.Match
	}
	for name, tt := range map[string]struct{ tenant, model, labels, override, want string }{
		"nothing matches":                          {want: "default"},
		"a tenant":                                 {tenant: "acme", want: "acme"},
		"a prefix of the model":                    {model: "gpt-4o", want: "gpt"},
		"the longer prefix":                        {model: "gpt-5-mini", want: "gpt-5"},
		"the model of a provider":                  {model: "azure/gpt-5", want: "azure"},
		"the model of another provider":            {model: "openai/gpt-5", want: "gpt-5"},
		"upper case":                               {model: "GPT-4o", want: "gpt"},
		"a label, the first name of two":           {labels: `{"agent": "planner", "x": "y"}`, want: "a-planner"},
		"more keys":                                {model: "gpt-5", labels: `{"agent": "planner"}`, want: "planner-gpt"},
		"the model prefix decides between as many": {tenant: "acme", model: "gpt-5", labels: `{"agent": "planner"}`, want: "planner-gpt"},
		"all of three keys":                        {tenant: "acme", model: "gpt-5", labels: `{"agent": "planner", "application": "shop"}`, want: "all"},
		"two of three keys are not enough":         {labels: `{"agent": "planner", "application": "shop"}`, want: "a-planner"},
		"another value":                            {labels: `{"agent": "Planner"}`, want: "default"},
		"one of the same keys that is disabled":    {tenant: "acme", model: "gpt-5", want: "gpt-5"},
		"an override":                              {tenant: "acme", override: "by-hand", want: "by-hand"},
		"an override that does not match":          {override: "planner", want: "planner"},
		"an override of the default":               {tenant: "acme", override: "default", want: "default"},
		"an override of another tenant's policy":   {tenant: "other", override: "acme", want: "default"},
		"an override that is disabled":             {tenant: "acme", override: "off", want: "acme"},
		"a policy without a match is for nobody":   {tenant: "x", model: "y", labels: `{"by": "hand"}`, want: "default"},
		"a label called tenant is not the tenant":  {labels: `{"tenant": "acme"}`, want: "default"},
		"one of several labels":                    {labels: `{"application": "shop"}`, want: "default"},
	} {
		got := one[string](t, s, `SELECT compactor.policy_of($1, $2, $3, nullif($4, ''))`, tt.tenant, tt.model, std.Or(tt.labels, "{}"), tt.override)
		equal(t, tt.want, got, "%s", name)
		subject := policy.Subject{Tenant: tt.tenant, Model: tt.model, Override: tt.override}
		noError(t, json.Unmarshal([]byte(std.Or(tt.labels, "{}")), &subject.Labels))
		chosen, candidates := policy.Choose(subject, inForce)
		if chosen != tt.want || !candidates[0].Chosen || candidates[0].Name != tt.want {
			t.Errorf("%s: Go chooses %s of %+v, want %s", name, chosen, candidates, tt.want)
		}
	}
}

func TestASessionHasItsPolicyAtOnce(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1000, 0, false, Counts{}})
	put(t, s, named("small", 5, "agent=planner"))
	put(t, s, named("gpt", 20, "model=gpt-"))
	k := Key{Session: "s"}
	want := func(what, session string) {
		t.Helper()
		equal(t, []string{session}, policies(t, s), "%s", what)
	}
	noError(t, s.SetLabels(t.Context(), k, map[string]string{"agent": "planner"}))
	want("labels before the first message", "s small 5")
	add(t, s, k, counted(user("m", "x"), 10))
	equal(t, []string{"s 1"}, gens(t, s), "outbox")
	noError(t, s.SetLabels(t.Context(), k, map[string]string{}))
	want("no labels", "s default 1000")
	noError(t, s.SetModel(t.Context(), k, "gpt-4o"))
	want("a model", "s gpt 20")
	noError(t, s.SetPolicy(t.Context(), k, "small"))
	want("an override", "s small 5")
	equal(t, []string{"s 2"}, gens(t, s), "outbox of a session that became due again")
	noError(t, s.SetPolicy(t.Context(), k, ""))
	want("no override", "s gpt 20")
	if err := s.SetPolicy(t.Context(), k, "unknown"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("an unknown policy: %v, want not found", err)
	}
	for _, labels := range []string{`[]`, `{"a": 1}`, `{"": "x"}`, `{"a": "` + strings.Repeat("x", 5000) + `"}`} {
		if _, err := s.pool.Exec(t.Context(), `SELECT compactor.set_labels('default', 's', $1)`, labels); !errors.Is(mapError(err), ErrInvalid) {
			t.Errorf("labels %.40s: %v, want invalid", labels, err)
		}
	}
	wantConsistent(t, s)
}

func TestSessionsFollowTheirPolicies(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 5)
	must2(s.Append(t.Context(), Key{Session: "big"}, "gpt-x", talk("m", 2)))(t)
	refresh(t, s, 9)
	thresholds(t, s, Threshold{"", 1000, 0, false, Counts{}}, Threshold{"gpt-", 5, 0.5, false, Counts{}})
	tx := begin(t, s, `SELECT FROM compactor.sessions WHERE id = 's02' FOR UPDATE`)
	var pages []string
	for range 5 {
		n, state := must2(s.Scheduler.RefreshSessions(t.Context(), 2))(t)
		pages = append(pages, fmt.Sprintf("%d %s", n, state))
	}
	equal(t, []string{"0 page", "2 page", "1 page", "1 page", "0 pass"}, pages, "pages beside a writer")
	noError(t, tx.Rollback(t.Context()))
	pages = refresh(t, s, 2)
	equal(t, []string{"1 page", "0 done"}, pages, "pages after it")
	equal(t, len(keys), one[int](t, s, `SELECT count(*) FROM compactor.sessions WHERE due_tokens = 1000 AND NOT due`), "sessions follow")
	if row := session(t, s, Key{Session: "big"}); row.DueTokens != 5 || !row.Due {
		t.Errorf("big is %+v", row)
	}
	p := must(s.PolicyProgress(t.Context()))(t)
	if p.Pending || p.Percent != 100 || p.Changed != 5 || p.ReachedAt == nil {
		t.Errorf("progress: %+v", p)
	}
	// A worker with another configuration left thresholds of that.
	exec(t, s, `UPDATE compactor.sessions SET due_tokens = 1, policy_hash = 'another' WHERE id = 's03'`)
	exec(t, s, `UPDATE compactor.policy_refresh SET reached_at = reached_at - interval '61 minutes'`)
	// Without a run there was none: the sessions are not looked at.
	if pages := refresh(t, s, 9); len(pages) != 1 {
		t.Errorf("after an hour without a run: %v", pages)
	}
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, ended_at) SELECT sid, 'event', 'skipped', 'ineffective', now() FROM compactor.sessions WHERE id = 's03'`)
	exec(t, s, `UPDATE compactor.policy_refresh SET reached_at = reached_at - interval '61 minutes'`)
	if pages := refresh(t, s, 9); len(pages) < 2 || one[int](t, s, `SELECT due_tokens FROM compactor.sessions WHERE id = 's03'`) != 1000 {
		t.Errorf("after an hour: %v", pages)
	}
	thresholds(t, s, Threshold{"", 1000, 0, false, Counts{}}, Threshold{"gpt-", 5, 0.5, false, Counts{}})
	if again := must(s.PolicyProgress(t.Context()))(t); again.Pending {
		t.Errorf("the same thresholds again are a change: %+v", again)
	}
	put(t, s, named("gpt", 7, "model=gpt-"))
	refresh(t, s, 2)
	put(t, s, named("none", 8, "agent=x")) // concerns no session
	refresh(t, s, 2)
	equal(t, []string{"big gpt 7", "s01 default 1000"}, policies(t, s)[:2], "sessions")
	must(s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "gpt", Expect: 1}}, ""))(t)
	refresh(t, s, 2)
	equal(t, "big default 5", policies(t, s)[0], "under a disabled policy")
}

func TestARunDoesNotUndoAChangeOfThePolicy(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1000, 0, false, Counts{}})
	hash := one[string](t, s, `SELECT policy_hash FROM compactor.thresholds`)
	for name, followed := range map[string]bool{"the session follows before the end": true, "the session follows behind it": false} {
		k := Key{Session: name}
		add(t, s, k, talk("m", 3)...)
		c := start(t, s, k)
		put(t, s, named("p", 50, "tenant=default"))
		if followed {
			refresh(t, s, 9)
		}
		state := PostRunState{Model: &c.Session.Model, BaseHash: c.Session.PolicyHash, DueTokens: 777, PolicyHash: hash}
		noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "ineffective", Policy: "default"}, &state))
		refresh(t, s, 9)
		equal(t, "p 50", one[string](t, s, `SELECT policy || ' ' || due_tokens FROM compactor.sessions WHERE id = $1`, name), "%s", name)
		must(s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "p", Expect: len(must(s.Operator.PolicyHistory(t.Context(), "p"))(t))}}, ""))(t)
		refresh(t, s, 9)
	}
	wantConsistent(t, s)
}

func TestVersionsOfPoliciesComeAndGo(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1000, 0, false, Counts{}})
	first := named("p", 10, "agent=x")
	first.Note = "the first"
	if a, b := put(t, s, first), put(t, s, named("p", 20, "")); a != 1 || b != 2 {
		t.Errorf("versions %d and %d, want 1 and 2", a, b)
	}
	v := must(s.Policy(t.Context(), "p", 1))(t)
	if v.InForce || v.Note != "the first" || v.CreatedBy != "test" || v.Match["agent"] != "x" || must(s.Policy(t.Context(), "p", 0))(t).Version != 2 {
		t.Errorf("version 1: %+v", v)
	}
	// Two that saw the same version: the second is refused, with all of its changes.
	_, err := s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "q", Hash: "h", Spec: []byte(`{}`)}, {Name: "p", Expect: 1, Version: 1}}, "")
	if !errors.Is(err, ErrStale) && !errors.Is(err, ErrBusy) {
		t.Errorf("a change of a version that is not in force: %v", err)
	}
	wantError(t, second(s.Policy(t.Context(), "q", 0)), ErrNotFound, "half of a change")
	if _, err := s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "p", Expect: 2, Version: 9}}, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("back to a version that does not exist: %v", err)
	}
	must(s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "p", Expect: 2, Version: 1, FleetHash: "h", Thresholds: first.Thresholds}}, "ada"))(t)
	must(s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "p", Expect: 1}}, "ada"))(t)
	equal(t, 0, len(must(s.Policies(t.Context(), ""))(t)), "policies in force")
	var got []string
	for _, c := range must(s.Operator.PolicySwitches(t.Context(), "p"))(t) {
		got = append(got, fmt.Sprintf("%d %s", c.Version, c.ChangedBy))
	}
	equal(t, []string{"0 ada", "1 ada", "2 test", "1 test"}, got, "changes")
	equal(t, 2, len(must(s.Operator.PolicyHistory(t.Context(), "p"))(t)), "versions")
	for _, change := range []string{`UPDATE compactor.policy_versions SET note = 'y'`, `DELETE FROM compactor.policy_versions`} {
		if _, err := s.pool.Exec(t.Context(), change); err == nil {
			t.Errorf("%s: a version was changed", change)
		}
	}
	// Thresholds of a version that is not in force any more come too late.
	noError(t, s.Scheduler.SaveThresholds(t.Context(), "p", 1, "x", first.Thresholds))
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.thresholds WHERE policy = 'p'`), "thresholds of a disabled policy")
}

func TestAVersionOfTheDefaultPolicyReplacesThatOfTheConfiguration(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1000, 0, false, Counts{}})
	add(t, s, Key{Session: "s"}, talk("m", 1)...)
	must(s.Operator.DefaultPolicy(t.Context()))(t)
	put(t, s, named("default", 50, ""))
	thresholds(t, s, Threshold{"", 2000, 0, false, Counts{}}) // a scheduler starts
	refresh(t, s, 9)
	equal(t, []string{"s default 50"}, policies(t, s), "with a version")
	wantError(t, second(s.Operator.DefaultPolicy(t.Context())), ErrNotFound, "the configuration is in force beside a version")
	if v := start(t, s, Key{Session: "s"}).Session; v.Policy != "default" || v.PolicyVersion != 1 {
		t.Errorf("runs under %s@%d", v.Policy, v.PolicyVersion)
	}
	must(s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "default", Expect: 1}}, ""))(t)
	thresholds(t, s, Threshold{"", 2000, 0, false, Counts{}})
	refresh(t, s, 9)
	equal(t, []string{"s default 2000"}, policies(t, s), "without one")
}

func TestAPreviewSaysWhatWouldHappenAndChangesNothing(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 15, 0, false, Counts{}})
	put(t, s, named("old", 15, "agent=x"))
	for i, tokens := range []chat.Tokens{10, 20, 30} {
		for _, agent := range []string{"x", "y"} {
			k := Key{Session: fmt.Sprintf("%s%d", agent, i)}
			noError(t, s.SetLabels(t.Context(), k, map[string]string{"agent": agent}))
			add(t, s, k, counted(user("m", "x"), tokens))
		}
	}
	refresh(t, s, 9)
	before := list[string](t, s, `SELECT to_jsonb(s)::text FROM compactor.sessions s ORDER BY sid`)
	changes := []PolicyChange{named("new", 25, "agent=x tenant=default"), named("all", 5, "tenant=default")}
	for i := range changes {
		changes[i].Spec, changes[i].Hash, changes[i].FleetHash = []byte(`{}`), "h", fmt.Sprint(i)
	}
	got := must(s.Operator.PreviewPolicies(t.Context(), changes))(t)
	want := []PolicyEffect{{"default", "all", 3, 1, 0}, {"old", "new", 3, 0, 1}}
	equal(t, want, got, "effects")
	equal(t, before, list[string](t, s, `SELECT to_jsonb(s)::text FROM compactor.sessions s ORDER BY sid`), "sessions")
	if p := must(s.PolicyProgress(t.Context()))(t); p.Pending || len(must(s.Policies(t.Context(), ""))(t)) != 1 {
		t.Errorf("the preview is in force: %+v", p)
	}
	must(s.Operator.ChangePolicies(t.Context(), changes, ""))(t)
	refresh(t, s, 2)
	equal(t, []string{"x0 new 25", "x1 new 25", "x2 new 25", "y0 all 5", "y1 all 5", "y2 all 5"}, policies(t, s), "sessions")
	equal(t, []string{"x2", "y0", "y1", "y2"}, list[string](t, s, `SELECT id FROM compactor.sessions WHERE due ORDER BY id`), "due")
}

// A sweep that is started after a change of policies begins when the sessions have them: it passes over
// those that are due.
func TestASweepWaitsForPolicies(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 100, 0, false, Counts{}})
	must2(s.Append(t.Context(), Key{Session: "s"}, "model", []NewMessage{counted(user("m1", "x"), 11)}))(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	sweep := startSweep(t, s, "", 0)
	waits := func() bool {
		open, shown := must(s.Scheduler.OpenSweeps(t.Context()))(t), must(s.Operator.Sweep(t.Context(), sweep))(t)
		if len(open) != 1 || open[0].Waits != shown.AwaitsPolicies {
			t.Fatalf("%+v, %+v", open, shown)
		}
		return open[0].Waits
	}
	if !waits() {
		t.Error("it does not wait")
	}
	exec(t, s, `UPDATE compactor.policy_refresh SET changed_at = changed_at - interval '61 minutes'`)
	if waits() {
		t.Error("it waits for more than an hour")
	}
	exec(t, s, `UPDATE compactor.policy_refresh SET changed_at = now()`)
	// It does not wait for a transaction that keeps the policies from being followed by all.
	begin(t, s, `LOCK TABLE compactor.sessions IN ROW SHARE MODE`)
	for state := ""; state != RefreshPass; {
		if !waits() {
			t.Error("it begins before the first pass is over")
		}
		_, next := must2(s.Scheduler.RefreshSessions(t.Context(), 10))(t)
		state = next
	}
	if got, _ := page(t, s, sweep, 10); waits() || len(got) != 1 {
		t.Errorf("runs %v, want that of the session which has become due", got)
	}
}
