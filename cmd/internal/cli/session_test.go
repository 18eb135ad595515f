package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

var small = []string{"--start=600", "--target=300", "--policy-min-gain-tokens=50"}

// withSession returns a database that holds one long session.
func withSession(t *testing.T) []string {
	t.Helper()
	db := database(t)
	invoke(t, db, "import", file(t, "s.jsonl", conversation("chat", 8))).want(t, 0)
	return db
}

// scrubTimes replaces the times in an output, which differ between runs.
func scrubTimes(text string) string {
	text = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(`(time +).*`).ReplaceAllString(text, "${1}TOOK")
}

func TestCompactAndUndo(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	startWorker(t, db, map[string]string{"policy.start_tokens": "600", "policy.target_tokens": "300", "policy.min_gain_tokens": "50"})
	compact := func(args ...string) []string { return append(append([]string{"compact", "chat"}, small...), args...) }

	golden(t, "sessions", scrubTimes(invoke(t, db, append([]string{"sessions"}, small...)...).want(t, 0).stdout))
	golden(t, "view", invoke(t, db, "view", "chat").want(t, 0).stdout)
	golden(t, "view_groups", invoke(t, db, "view", "chat", "--groups").want(t, 0).stdout)

	dry := decode[reports.Run](t, invoke(t, db, compact("--dry-run", "--json")...).want(t, 0))
	if dry.Outcome != "dry_run" || dry.TokensAfter >= dry.TokensBefore || dry.RequestedBy != "cli:ada" || len(dry.Steps) == 0 {
		t.Errorf("%+v", dry)
	}
	golden(t, "compact", scrubTimes(invoke(t, db, compact()...).want(t, 0).stdout))
	golden(t, "view_all", invoke(t, db, "view", "chat", "--all").want(t, 0).stdout)
	golden(t, "view_all_groups", invoke(t, db, "view", "chat", "--all", "--groups").want(t, 0).stdout)
	invoke(t, db, compact()...).want(t, 0, "nothing_to_compact: nothing changed: the view is already what the steps lead to")

	// An operator's own pipeline plans over the log, so more comes back.
	r := decode[reports.Run](t, invoke(t, db, compact("--strategy=sliding_window:keep_last_groups=6", "--allow-growth", "--json")...).want(t, 0))
	if r.Status != "applied" {
		t.Errorf("%+v", r)
	}
	for _, at := range []strategies.Counts{r.Steps[0].Before, r.Steps[0].After} {
		if at.TotalTokens < at.Tokens || at.TotalMessages < at.Messages || at.TotalGroups < at.Groups || at.TotalToolCalls < at.ToolCalls || at.Groups == 0 {
			t.Errorf("counts of a step: %+v", at)
		}
	}
	groups := decode[struct {
		Groups []groupJSON
		Totals strategies.Counts
	}](t, invoke(t, db, "view", "chat", "--all", "--groups", "--json").want(t, 0))
	if n := len(groups.Groups); n != groups.Totals.TotalGroups || groups.Totals.Groups >= n || groups.Groups[n-1].Index != n-1 || !groups.Groups[n-1].Included {
		t.Errorf("groups: %+v", groups.Totals)
	}
	golden(t, "runs", scrubTimes(invoke(t, db, "runs", "chat").want(t, 0).stdout))
	invoke(t, db, "runs", "--outcome=bogus").want(t, 0, "bogus", "above_target, applied, dry_run, nothing_to_compact")
	invoke(t, db, "runs", "--outcome=floor_above_trigger", "--json").want(t, 0, `"runs": []`)
	invoke(t, db, "runs", "--outcome=dry_run", "--before=1").want(t, 0, "no runs")
	first := strconv.FormatInt(2, 10)
	invoke(t, db, "undo", first).want(t, exitRefused, "later runs", "4")
	invoke(t, db, "undo", first, "--cascade").want(t, 0, "run 2 was undone")
	invoke(t, db, "undo", first).want(t, exitRefused, "not in force")
	invoke(t, db, "undo", "1").want(t, exitRefused, "only an applied run")
	invoke(t, db, "runs", "--run=2").want(t, 0, "requested by  cli:ada", "in force      no")
	s := decode[struct{ Sessions []store.SessionRow }](t, invoke(t, db, "sessions", "--json").want(t, 0)).Sessions
	if len(s) != 1 || s[0].LiveMessages != s[0].Messages {
		t.Errorf("%+v", s)
	}
	invoke(t, db, "doctor").want(t, 0, "all checks passed", "✓ views are valid: 1 of 1", "✓ queues: installation compactor:")
}

func TestACompactionWouldGrow(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	startWorker(t, db, nil)
	invoke(t, db, "compact", "chat", "--strategy=sliding_window:keep_last_groups=4").want(t, 0, "applied")
	invoke(t, db, "compact", "chat", "--strategy=sliding_window:keep_last_groups=8").want(t, exitRefused, "--allow-growth", "would_grow")
	invoke(t, db, "compact", "chat", "--strategy=sliding_window:keep_last_groups=8", "--dry-run").want(t, exitRefused, "--allow-growth", "would_grow")
	file := filepath.Join(t.TempDir(), "summary.txt")
	if err := os.WriteFile(file, []byte("They talked."), 0o600); err != nil {
		t.Fatal(err)
	}
	invoke(t, db, "compact", "chat", "--strategy=summarization:target_count=7,threshold=1", "--summary="+file).want(t, exitRefused, "--summary: ", "would not be smaller")
	invoke(t, db, "compact", "chat", "--strategy=sliding_window:keep_last_groups=8", "--allow-growth").want(t, 0)
}

func TestCompactWithoutAWorkerOrRedis(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	invoke(t, db, "compact", "chat", "--timeout=20ms").
		want(t, exitInternal, "run 1 is still queued", "no worker has taken it", "runs --run 1")
	invoke(t, db, "compact", "chat", "--no-wait").want(t, 0, "run 1 of session chat is queued")
	invoke(t, db, "compact", "chat", "--dry-run").want(t, exitRefused, "run 1 is queued already with other options")
	away := []string{db[0], "REDIS_URL=redis://:hush@127.0.0.1:1"}
	r := invoke(t, away, "compact", "chat", "--no-wait").want(t, 0, "Redis could not be reached", "queued in Postgres")
	if strings.Contains(r.stderr, "hush") {
		t.Errorf("password: %s", r.stderr)
	}
	invoke(t, db[:1], "compact", "chat", "--no-wait").want(t, 0, "no Redis is configured")
}

func TestMissingSessionsRunsAndMessages(t *testing.T) {
	t.Parallel()
	db := database(t)
	for _, args := range [][]string{
		{"view", "ghost"}, {"compact", "ghost"}, {"export", "ghost"}, {"pin", "ghost", "m"}, {"unpin", "ghost", "m"}, {"runs", "ghost"},
	} {
		invoke(t, db, args...).want(t, exitNotFound, "ghost")
	}
	invoke(t, db, "undo", "77").want(t, exitNotFound, "run 77")
	invoke(t, db, "runs", "--run=77").want(t, exitNotFound, "run 77")
	invoke(t, db, "sessions").want(t, 0, "no sessions")
	invoke(t, db, "runs").want(t, 0, "no runs")
}

func TestPin(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	view := decode[struct{ Messages []store.MessageRow }](t, invoke(t, db, "view", "chat", "--json", "--all"))
	id := view.Messages[2].ID
	invoke(t, db, "pin", "chat", id).want(t, 0, "pinned message "+id)
	invoke(t, db, "view", "chat", "--all").want(t, 0, "[pinned]")
	invoke(t, db, "pin", "chat", "nothing").want(t, exitNotFound, "nothing")
	invoke(t, db, "unpin", "chat", id, "--json").want(t, 0, `"pinned": false`)
	invoke(t, db, "unpin", "chat", id).want(t, exitNotFound, id)
}

func TestExportComesBackTheSame(t *testing.T) {
	t.Parallel()
	db := database(t)
	invoke(t, db, "import", file(t, "x.jsonl", conversation("a", 2)+conversation("b", 1))).want(t, 0)
	one := invoke(t, db, "export", "a").want(t, 0).stdout
	if strings.Count(one, "\n") != 1 || !strings.Contains(one, `"session_id":"a"`) {
		t.Errorf("%s", one)
	}
	out := filepath.Join(t.TempDir(), "all.jsonl")
	invoke(t, db, "export", "--all-sessions", "--log", "-o", out, "--json").want(t, 0, `"sessions": 2`)
	if again := importedOf(t, invoke(t, db, "import", "--json", out).want(t, 0)); again.New != 0 || again.Messages != 14 {
		t.Errorf("%+v", again)
	}
	elsewhere := database(t)
	invoke(t, elsewhere, "import", out).want(t, 0)
	if diff := cmp.Diff(one, invoke(t, elsewhere, "export", "a").want(t, 0).stdout); diff != "" {
		t.Error(diff)
	}
	invoke(t, db, "export", "a", "ghost", "-o", out+"2").want(t, exitNotFound)
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	invoke(t, db, "export", "a", "-o", "/no/such/folder/x").want(t, exitUsage, "/no/such/folder")
}

func TestTextsCannotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	db := database(t)
	evil := `{"session_id":"e\u001b[31m","messages":[{"role":"user","name":"us\u001b[2Jer","content":"a\u001b]0;owned\u0007b\nnext\u202eline"}]}`
	invoke(t, db, "import", file(t, "e.jsonl", evil)).want(t, 0)
	for _, args := range [][]string{{"view", "e\x1b[31m"}, {"view", "e\x1b[31m", "--full"}, {"sessions"}, {"view", "e\x1b[31m", "--json"}} {
		r := invoke(t, db, args...).want(t, 0)
		if strings.ContainsAny(r.stdout, "\x1b\x07") || args[len(args)-1] != "--json" && strings.Contains(r.stdout, "\u202e") {
			t.Errorf("%v: %q", args, r.stdout)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	type report struct {
		OK     bool
		Checks []check
	}
	got := decode[report](t, invoke(t, db, "doctor", "--json").want(t, 0))
	if !got.OK || len(got.Checks) < 15 {
		t.Errorf("%+v", got)
	}
	invoke(t, db[:1], "doctor").want(t, exitFindings, "✗ connection: not configured", "✓ migrations")
	invoke(t, []string{db[0], "REDIS_URL=redis://:hush@127.0.0.1:1"}, "doctor").want(t, exitFindings, "✗ connection", "runs wait in Postgres")
	invoke(t, db, "doctor", "--policy-timezone=Europe/Berlin", "--policy-cron=30 2 * * *").
		want(t, 0, "2026-02-01 02:30 CET", "2026-03-29 02:30 is skipped: no sweep starts", "2026-10-25 02:30 occurs twice: a sweep starts at both")
}

func TestDoctorChecksTheModels(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	invoke(t, db, "doctor").want(t, 0, "✓ configured: none: summaries are extracts")
	keyFile := filepath.Join(t.TempDir(), "key")
	db = append(db, "A_KEY=hush", `COMPACTOR_LLM_MODELS=[
		{name: a, base_url: "http://one.test/v1", key_env: A_KEY, window_tokens: 8000},
		{name: b, base_url: "http://two.test/v1", key_file: "`+keyFile+`", window_tokens: 8000},
		{name: c, base_url: "http://localhost:1/v1", window_tokens: 8000}]`)
	got := invoke(t, db, "doctor").want(t, exitFindings, "– a@one.test: key in the variable A_KEY (doctor calls no model, and no worker has for a day)", "✗ b@two.test: llm.models[1].key_file "+keyFile+": no such file",
		"– c@localhost:1: no key required")
	if strings.Contains(got.stdout+got.stderr, "hush") {
		t.Error("a key shows")
	}
	if err := os.WriteFile(keyFile, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Config{URL: strings.TrimPrefix(db[0], "DATABASE_URL=")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	until := time.Now().Add(time.Hour)
	if err := st.Worker.Cooldowns().Set(t.Context(), "a@one.test", until, "auth"); err != nil {
		t.Fatal(err)
	}
	invoke(t, db, "doctor").want(t, 0, "! a@one.test: key in the variable A_KEY; in cooldown until "+until.UTC().Format("2006-01-02 15:04"), "after auth", "– b@two.test: key in the file", "all checks passed")
}

func TestServeStopsInOrder(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	logs, lines := logPipe(t)
	codes := make(chan int, 1)
	go func() {
		codes <- Main(ctx, append([]string{"serve", "--log-format=json"}, small...), os.Stdout, logs, db, builtin.Registry())
		_ = logs.Close()
	}()
	for line := range lines {
		if strings.Contains(line, `"role started"`) && strings.Contains(line, `"worker"`) {
			break
		}
	}
	r := decode[reports.Run](t, invoke(t, db, append([]string{"compact", "chat", "--json"}, small...)...).want(t, 0))
	if r.Status != "applied" {
		t.Errorf("%+v", r)
	}
	cancel()
	last := ""
	for line := range lines {
		last = line
	}
	if code := <-codes; code != 0 || !strings.Contains(last, `"stopped"`) {
		t.Errorf("exit code %d, last line %s", code, last)
	}
}

// A run leads to its summary, and that to the messages it covers.
func TestSummariesAreFound(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	startWorker(t, db, map[string]string{"policy.min_gain_tokens": "50"})
	invoke(t, db, "compact", "chat", "--strategy=summarization:target_count=4").want(t, 0, "applied", "step 1: summary of ", "written by no model: an extract")
	run := decode[reports.Run](t, invoke(t, db, "runs", "--run=1", "--json").want(t, 0))
	if len(run.Summaries) != 1 {
		t.Fatalf("summaries %q", run.Summaries)
	}
	id := run.Summaries[0]
	invoke(t, db, "runs", "--run=1").want(t, 0, "summary       "+id+" (`compactor summary show "+id+"`)", "written by no model: an extract")
	if run.Cache != nil {
		t.Errorf("a cache whose prices are not known: %+v", run.Cache)
	}
	invoke(t, db, "set-model", "chat", "gpt-5-mini").want(t, 0)
	run = decode[reports.Run](t, invoke(t, db, "runs", "--run=1", "--json").want(t, 0))
	if c := run.Cache; c == nil || c.Before != chat.Tokens(run.TokensBefore) || c.Read <= 0 || c.Written <= 0 || c.Read+c.Written != chat.Tokens(run.TokensAfter) || c.Requests < 1 {
		t.Errorf("the prompt cache: %+v", c)
	}
	invoke(t, db, "runs", "--run=1").want(t, 0, "prompt cache  reads ", "paid back after ")
	shown := decode[reports.Summary](t, invoke(t, db, "summary", "show", id, "--json").want(t, 0))
	if shown.Session != "chat" || !shown.InView || shown.Prose == "" || shown.Report == nil || shown.Report.WrittenBy != "extractive" {
		t.Errorf("%+v", shown)
	}
	invoke(t, db, "summary", "show", id).want(t, 0, "in the view", "written by  no model: an extract", "covers      messages 2-", shown.Prose[:40])
	expanded := decode[struct{ Messages []store.MessageRow }](t, invoke(t, db, "summary", "expand", id, "--json").want(t, 0))
	if len(expanded.Messages) != shown.Report.Messages {
		t.Errorf("%d messages, %d were summarized", len(expanded.Messages), shown.Report.Messages)
	}
	for _, m := range expanded.Messages {
		if m.SummarizedBy != id {
			t.Errorf("message %d is not the summary's: %q", m.Seq, m.SummarizedBy)
		}
	}
	invoke(t, db, "summary", "show", "summary-1-99").want(t, exitNotFound, "not found")
	invoke(t, db, "summary", "expand", "nope").want(t, exitNotFound, "an id ends in the number of its run")
}

// A session has the limits of its model from its first append on, however a provider
// spells the model: the database finds those that Go does.
func TestASessionStartsWithTheLimitsOfItsModel(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(), store.Config{URL: migratedDB(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	pol := policy.Default()
	pol.Windows = map[string]chat.Tokens{"azure/House-": 20_000, "gpt-4o-mini": 50_000, "azure": 1_000}
	all := scheduler.Thresholds(pol, tokens.Models(), tokens.Window, tokens.BindsReasoning)
	if err := st.Scheduler.SavePolicy(t.Context(), pol.FleetHash(), []byte(`{}`), all); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{
		"gpt-4", "GPT-4o", "openai/gpt-4o", "azure/house-13b", "ft:gpt-4o-mini:org::id", "openrouter/anthropic/claude-opus-4.7",
		"us.anthropic.claude-opus-4-7-v1:0", "anthropic.claude-instant-v1", "meta.llama2-70b-chat-v1", "deepseek.r1-v1:0", "mistral.mistral-large-2402-v1:0", "qwen/qwq-32b", "us.meta.llama3-1-8b-instruct-v1:0",
		"models/gemini-2.5-pro", "llama3.1:8b", "qwen/qwen3-coder:free", "no such model", "",
	} {
		k := store.Key{Session: "of " + model}
		if _, _, err := st.Append(t.Context(), k, model, transcript("m", "u")); err != nil {
			t.Fatal(err)
		}
		row, err := st.Session(t.Context(), k)
		if want := pol.Limits(model, tokens.Window).Start; err != nil || row.DueTokens != want {
			t.Errorf("%q is due above %d tokens, want %d; %v", model, row.DueTokens, want, err)
		}
	}
}

func TestSetModel(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	invoke(t, db, "set-model", "chat", "claude-x").want(t, 0, "session chat has the model claude-x")
	invoke(t, db, "sessions").want(t, 0, "claude-x")
	invoke(t, db, "set-model", "chat", "gpt-4o", "--json").want(t, 0, `"model": "gpt-4o"`)
	invoke(t, db, "set-model", "ghost", "gpt-4o").want(t, exitNotFound, "ghost")
	invoke(t, db, "set-model", "chat", "").want(t, exitUsage, "empty model")
}

// Numbers that name something are printed as commands take them.
func TestIDsArePrintedPlain(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	damage(t, db, `ALTER TABLE runs ALTER id RESTART 1105; ALTER TABLE sweeps ALTER id RESTART 2105; ALTER TABLE erasures ALTER id RESTART 3105; ALTER TABLE bulk_operations ALTER id RESTART 4105`)
	startWorker(t, db, map[string]string{"policy.start_tokens": "600", "policy.target_tokens": "300"})
	invoke(t, db, append([]string{"compact", "chat"}, small...)...).want(t, 0, "1105")
	shown := []string{}
	for _, args := range [][]string{
		{"runs"},
		{"runs", "--run=1105"},
		{"policy", "explain", "chat"},
		{"bulk-undo", "start", "--trigger=operator", "--yes"},
		{"bulk-undo", "list"},
		{"undo", "1105"},
		{"erase", "session", "chat", "--note=x", "--yes"},
		{"erase", "list"},
		{"sweep", "start"},
		{"sweep", "list"},
		{"sweep", "show", "2105"},
		{"runs"},
		{"sessions"},
	} {
		r := invoke(t, db, args...)
		if r.code == exitUsage {
			t.Errorf("%v: %s", args, r.stderr)
		}
		shown = append(shown, r.stdout+r.stderr)
	}
	if all := strings.Join(shown, "\n"); regexp.MustCompile(`[1-4],1[01]\d`).MatchString(all) || !strings.Contains(all, "1105") || !strings.Contains(all, "2105") || !strings.Contains(all, "310") || !strings.Contains(all, "4105") {
		t.Errorf("ids with separators, or none:\n%s", all)
	}
}
