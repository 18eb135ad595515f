package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const supportPolicy = `name: support
match: {agent: support}
note: shorter prompts
start_tokens: 600
target_tokens: 300
min_gain_tokens: 50
pin_tools: [load_policy]
`

// fleet returns a database with sessions of an agent support and without one, and a policy
// file.
func fleet(t *testing.T) (db []string, path string) {
	t.Helper()
	db = database(t)
	invoke(t, db, "import", file(t, "s.jsonl", conversation("chat", 8))).want(t, 0)
	for i := range 3 {
		invoke(t, db, "import", file(t, "s.jsonl", conversation(fmt.Sprintf("help-%d", i), 3*(i+1)))).want(t, 0)
	}
	st := openStore(t, db)
	for i := range 3 {
		if err := st.SetLabels(t.Context(), store.Key{Session: fmt.Sprintf("help-%d", i)}, map[string]string{"agent": "support"}); err != nil {
			t.Fatal(err)
		}
	}
	return db, file(t, "support.yaml", supportPolicy)
}

// scrubRun replaces what differs between runs: times, ages, hashes and folders.
func scrubRun(text string) string {
	text = scrubTimes(text)
	text = regexp.MustCompile(`/\S*/`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`hash( +)[0-9a-f]{16}`).ReplaceAllString(text, "hash${1}HASH")
	return regexp.MustCompile(`of \S+( \S+)? ago`).ReplaceAllString(text, "of AGO ago")
}

// follow takes policies to the sessions, as a scheduler does.
func follow(t *testing.T, st *store.Store) {
	t.Helper()
	for state := ""; state != store.RefreshIdle; {
		var err error
		if _, state, err = st.Scheduler.RefreshSessions(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPoliciesAreAppliedAfterALookAtTheirEffect(t *testing.T) {
	t.Parallel()
	db, path := fleet(t)
	st := openStore(t, db)

	dry := invoke(t, db, "policy", "apply", path, "--dry-run").want(t, 0)
	golden(t, "policy_apply", scrubRun(dry.stdout))
	invoke(t, db, "policy", "show", "support").want(t, exitNotFound, "support")
	invoke(t, db, "policy", "apply", path).want(t, exitUsage, "standard input is not a terminal", "--yes")
	no := &Env{Environ: db, Stdin: strings.NewReader("n\n"), asks: true}
	invokeWith(t, no, "policy", "apply", path).want(t, 0, "Put this in force? [y/N]", "nothing was changed")
	invoke(t, db, "policy", "show", "support").want(t, exitNotFound)
	yes := &Env{Environ: db, Stdin: strings.NewReader("yes\n"), asks: true}
	invokeWith(t, yes, "policy", "apply", path).want(t, 0, "support@1 is in force")
	invoke(t, db, "policy", "apply", path, "--yes").want(t, 0, "support@1 is in force already")

	golden(t, "policy_list_pending", scrubRun(invoke(t, db, "policy", "list").want(t, 0).stdout))
	later := &Env{Environ: db, now: func() time.Time { return time.Now().Add(time.Minute) }}
	invokeWith(t, later, "policy", "list").want(t, 0, "is a scheduler running?")
	follow(t, st)
	golden(t, "policy_list", scrubRun(invoke(t, db, "policy", "list").want(t, 0).stdout))
	golden(t, "policy_show", scrubRun(invoke(t, db, "policy", "show", "support", "--model", "gpt-4o").want(t, 0).stdout))
	invoke(t, db, "policy", "show", "support@1", "--all").want(t, 0, "summary.size.share", "estimate_margin")

	other := strings.Replace(supportPolicy, "start_tokens: 600", "start_tokens: 1200", 1)
	invoke(t, db, "policy", "apply", file(t, "two.yaml", other), "--yes").want(t, 0, "support@2 is in force", "start_tokens  600 → 1200")
	golden(t, "policy_diff", scrubRun(invoke(t, db, "policy", "diff", "support").want(t, 0).stdout))
	invoke(t, db, "policy", "diff", "support@1", "support@2").want(t, 0, "start_tokens  600 → 1200")
	invoke(t, db, "policy", "diff", "support", path).want(t, 0, "start_tokens  1200 → 600")
	invoke(t, db, "policy", "diff", "support@x").want(t, exitUsage, "NAME@VERSION")
	golden(t, "policy_rollback", scrubRun(invoke(t, db, "policy", "rollback", "support", "--yes").want(t, 0).stdout))
	invoke(t, db, "policy", "rollback", "support", "--to", "9").want(t, exitNotFound, "support@9")
	golden(t, "policy_disable", scrubRun(invoke(t, db, "policy", "disable", "support", "--yes").want(t, 0).stdout))
	golden(t, "policy_history", scrubRun(invoke(t, db, "policy", "history", "support").want(t, 0).stdout))
	invoke(t, db, "policy", "history", "unknown").want(t, exitNotFound, "never been applied")
	invoke(t, db, "policy", "rollback", "support", "--yes").want(t, 0, "support@1 is in force")

	invoke(t, db, "policy", "assign", "chat", "support").want(t, 0, "session chat has the policy support")
	invoke(t, db, "policy", "assign", "chat", "unknown").want(t, exitNotFound, "compactor: set policy: no policy unknown is in force")
	invoke(t, db, "policy", "assign", "chat").want(t, 0, "session chat has the policy default")

	theirs := strings.NewReplacer("name: support", "name: orchard", "{agent: support}", "{tenant: orchard}").Replace(supportPolicy)
	invoke(t, db, "policy", "apply", file(t, "three.yaml", theirs), "--yes").want(t, 0, "orchard@1 is in force")
	invoke(t, db, "policy", "list").want(t, 0, "other tenants have 1 policy: see --all-tenants")
	if r := invoke(t, db, "policy", "list", "--all-tenants").want(t, 0, "orchard"); strings.Contains(r.stdout, "other tenants") {
		t.Error(r.stdout)
	}
}

func TestPoliciesAsJSON(t *testing.T) {
	t.Parallel()
	db, path := fleet(t)
	type result struct {
		Policies []policies.Described
		Effects  []store.PolicyEffect
		Applied  bool
	}
	dry := decode[result](t, invoke(t, db, "policy", "apply", path, "--dry-run", "--json").want(t, 0))
	if dry.Applied || len(dry.Policies) != 1 || dry.Policies[0].To != 0 || len(dry.Policies[0].Changes) != 4 || len(dry.Effects) != 1 || dry.Effects[0].Sessions != 3 {
		t.Errorf("%+v", dry)
	}
	invoke(t, db, "policy", "apply", path, "--json").want(t, exitUsage, "--yes")
	if r := decode[result](t, invoke(t, db, "policy", "apply", path, "--yes", "--json").want(t, 0)); !r.Applied || r.Policies[0].To != 1 {
		t.Errorf("%+v", r)
	}
	if r := decode[result](t, invoke(t, db, "policy", "apply", path, "--yes", "--json").want(t, 0)); r.Applied || len(r.Policies) != 0 {
		t.Errorf("applied again: %+v", r)
	}
	list := decode[struct {
		Policies []policies.Row
		Progress store.PolicyProgress
	}](t, invoke(t, db, "policy", "list", "--json").want(t, 0))
	if len(list.Policies) != 2 || list.Policies[0].Version != 1 || !list.Progress.Pending {
		t.Errorf("%+v", list)
	}
	if v := decode[store.PolicyVersion](t, invoke(t, db, "policy", "show", "support", "--json").want(t, 0)); v.Match["agent"] != "support" || v.CreatedBy != "cli:ada" {
		t.Errorf("%+v", v)
	}
	invoke(t, db, "policy", "history", "support", "--json").want(t, 0, `"changed_by": "cli:ada"`)
	invoke(t, db, "policy", "assign", "chat", "support", "--json").want(t, 0, `"policy": "support"`)
}

func TestAllFaultsOfAllPolicyFilesAreListed(t *testing.T) {
	t.Parallel()
	db := database(t)
	a := file(t, "a.yaml", "name: a\nbegin_at: 1\ncron: \"@daily\"\n")
	b := file(t, "b.yaml", "name: b\ncooldown: 10\n")
	c := file(t, "c.yaml", supportPolicy)
	invoke(t, db, "policy", "apply", a, b, c, file(t, "d.yaml", supportPolicy), "missing.yaml").want(t, exitUsage,
		"a.yaml:2: begin_at: unknown key", "a.yaml:3: cron: has no effect", "b.yaml:2: cooldown: 10", "d.yaml: name: support is that of", "missing.yaml")
	invokeWith(t, &Env{Environ: db, Stdin: strings.NewReader(supportPolicy)}, "policy", "apply", "-", "--yes").want(t, 0, "support@1 is in force")
}

// The policy default is that of the configuration until a version of it is applied.
func TestTheDefaultPolicyCanBeReplaced(t *testing.T) {
	t.Parallel()
	db, _ := fleet(t)
	invoke(t, db, "policy", "show", "default").want(t, exitNotFound, "no scheduler has saved")
	app := openStore(t, db)
	saveDefault(t, app)
	invoke(t, db, "policy", "show", "default").want(t, 0, "default (configuration)")
	path := file(t, "default.yaml", "name: default\nstart_tokens: 600\ntarget_tokens: 300\nmin_gain_tokens: 50\n")
	invoke(t, db, "policy", "apply", path, "--yes").want(t, 0, "default@1 is in force", "new settings")
	follow(t, app)
	invoke(t, db, "policy", "list").want(t, 0, "all others", "all sessions follow")
	invoke(t, db, "policy", "disable", "default", "--yes").want(t, 0, "default is disabled")
}

func openStore(t *testing.T, db []string) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), store.Config{URL: strings.TrimPrefix(db[0], "DATABASE_URL=")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// saveDefault saves the default policy of a configuration, as a scheduler does.
func saveDefault(t *testing.T, st *store.Store) {
	t.Helper()
	p := policy.Default()
	spec, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Scheduler.SavePolicy(t.Context(), p.FleetHash(), spec, scheduler.Thresholds(p, nil, tokens.Window, tokens.BindsReasoning)); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorAndRolesKnowPolicies(t *testing.T) {
	t.Parallel()
	db, path := fleet(t)
	dsn := strings.TrimPrefix(db[0], "DATABASE_URL=")
	operator := append([]string{"DATABASE_URL=" + roleLogin(t, dsn, "compactor_operator")}, db[1:]...)
	reader := append([]string{"DATABASE_URL=" + roleLogin(t, dsn, "compactor_reader")}, db[1:]...)
	invoke(t, reader, "policy", "apply", path, "--yes").want(t, exitRefused, "permission denied")
	invoke(t, operator, "policy", "apply", path, "--yes").want(t, 0, "support@1 is in force")
	invoke(t, operator, "policy", "assign", "chat", "support").want(t, 0)
	for _, args := range [][]string{
		{"list"}, {"show", "support"}, {"history", "support"}, {"explain", "chat"}, {"explain", "--errors-only"}, {"test", "chat"},
	} {
		invoke(t, reader, append([]string{"policy"}, args...)...).want(t, 0)
	}
	invoke(t, db, "doctor").want(t, 0, "✓ in force: 1 policy beside that of the configuration", "✓ sessions follow")
	damage(t, db, `UPDATE policy_versions SET spec = spec || '{"a_setting_of_tomorrow": 1}'; UPDATE policy_refresh SET changed_at = '2026-01-31 11:00Z'`)
	invoke(t, db, "doctor").want(t, exitFindings, "✗ support@1: ", "a_setting_of_tomorrow", "not yet, 1h after the last change")
	invoke(t, db, "policy", "explain", "chat").want(t, 0, "invalid_policy", "a_setting_of_tomorrow")
	invoke(t, db, "policy", "test", "chat").want(t, exitInternal, "a_setting_of_tomorrow")
}
