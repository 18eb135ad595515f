//go:build !nodev

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/policy"
)

// evalFile returns a file of eight short talks about orders; the last has nothing to
// measure.
func evalFile(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "orders.jsonl")
	type message = map[string]any
	say := func(role, text string) message {
		return message{"role": role, "content": text, "created_at": "2026-03-02T09:00:00Z"}
	}
	var b strings.Builder
	for i := range 8 {
		ms := []message{say("system", "You help with orders.")}
		for k := range 4 {
			order := fmt.Sprintf("#W%d00%d", 100+i, k)
			call := message{"id": fmt.Sprint("call", k), "type": "function", "function": message{"name": "look_up", "arguments": fmt.Sprintf(`{"order":%q}`, order)}}
			result := say("tool", fmt.Sprintf("parcel: %d, state: sent, %s", 55501234+100*i+k, strings.Repeat("log line of the warehouse, ", 4+3*((i+k)%4))))
			result["tool_call_id"] = call["id"]
			ms = append(ms,
				say("user", fmt.Sprintf("What about order %s, the one in list_%d.csv?", order, i)),
				message{"role": "assistant", "content": nil, "tool_calls": []message{call}, "created_at": "2026-03-02T09:00:00Z"}, result,
				say("assistant", strings.Repeat("Let me see. ", 1+(i+k)%4)+"It was sent."),
			)
		}
		for k := range 4 {
			ms = append(ms, say("assistant", fmt.Sprintf("Order #W%d00%d of list_%d.csv is done, parcel %d; %s", 100+i, 3-k%(1+i%4), i, 55501234+100*i+3-k%3, strings.Repeat("I told the customer so. ", 20))))
		}
		if i == 7 {
			ms = []message{say("user", "Hello?"), say("assistant", "Hello!"), say("user", "Never mind.")}
		}
		line, err := json.Marshal(map[string]any{"session_id": fmt.Sprintf("orders-%d", i), "messages": ms})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// figuresOf returns the figures that eval --json has written, a line each.
func figuresOf(t *testing.T, r result) (out []eval.Figure) {
	t.Helper()
	for line := range strings.Lines(r.stdout) {
		out = append(out, decode[eval.Figure](t, result{stdout: line}))
	}
	return out
}

func TestEvalIsGolden(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	home := []string{"HOME=" + dir}
	csv, html := filepath.Join(dir, "figures.csv"), filepath.Join(dir, "report.html")
	args := []string{
		"eval", "--from", path, "--cut=0.5", "--budget=0.1,0.3,0.6", "--policy=stub200,drop_oldest", "--policy=id_list,sliding_window:keep_last_groups=2",
		"--compare=id_list,drop_oldest", "--compare=sliding_window:keep_last_groups=2,stub200", "--samples=1", "--csv", csv, "--html", html,
	}
	r := invoke(t, home, args...).want(t, 0)
	golden(t, "eval", r.stdout)
	read := func(path string) string {
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(all), dir, "")
	}
	golden(t, "eval_csv", read(csv))
	report := read(html)
	golden(t, "eval_html", report)
	for _, part := range []string{"http://", "https://", "<script", "src=", "@import", "url(", "ZgotmplZ"} {
		if strings.Contains(report, part) {
			t.Errorf("the report is not complete by itself: it has %q", part)
		}
	}
	golden(t, "eval_json", invoke(t, home, append(args, "--json")...).want(t, 0).stdout)
	golden(t, "help_eval", invoke(t, nil, "eval", "--help").want(t, 0).stdout)
}

// The answers that a file annotates are looked for, also in a session that uses no
// identifier again.
func TestEvalCountsAnnotatedFacts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "visits.jsonl")
	talk := `{"role":"user","content":"The table is for seven."},{"role":"assistant","content":"Fine, at Marigold House."},{"role":"user","content":"Thank you."},` +
		`{"role":"assistant","content":"Anything else? ` + strings.Repeat("Do ask. ", 20) + `"}`
	text := `{"session_id":"a","messages":[` + talk + `],"facts":[{"answer":"Marigold House","message":1,"slot":"place"},{"answer":"for seven","message":0},{"answer":"Do ask","message":3}]}` + "\n"
	text += `{"session_id":"b","messages":[` + talk + `],"facts":"of another kind"}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := invoke(t, nil, "eval", path, "--cut=0.1", "--budget=0.6", "--policy=drop_oldest", "--json").want(t, 0, "1 session measured, 1 skipped")
	f := decode[eval.Figure](t, r)
	if f.Facts == nil || *f.Facts != 0.5 || f.Loose != nil || f.Asks == nil || f.Errors != nil {
		t.Errorf("%s", r.stdout)
	}
}

// Budgets in tokens come after shares, and are the same for every session.
func TestEvalBudgetsOfTokens(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	r := invoke(t, []string{"HOME=" + dir}, "eval", path, "--budget=90t,0.5,200t,90t", "--policy=extractive", "--json", "--samples=7", "--counter=chars4").want(t, 0)
	var got []string
	for line := range strings.Lines(r.stdout) {
		var f struct {
			eval.Figure
			Samples []eval.Sample
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Limit())
		if strings.Contains(line, `"budget":`) == strings.Contains(line, `"budget_tokens":`) {
			t.Errorf("both budgets or none: %s", line)
		}
		for _, s := range f.Samples {
			if s.Setting != f.Setting || f.BudgetTokens > 0 && (s.Tokens > f.BudgetTokens || s.Tokens < f.BudgetTokens/2) {
				t.Errorf("%s: %v tokens in %v", f.Limit(), s.Tokens, s.Setting)
			}
		}
	}
	if want := "50 %, 90 t, 200 t"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	invoke(t, []string{"HOME=" + dir}, "eval", path, "--budget=90t", "--policy=extractive").want(t, 0, "90 t")
}

// Budgets and sizes are those of the counter of the sessions' model, for baselines, summaries and
// pipelines.
func TestEvalCountsAsTheModelOfTheSession(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	tokensAfter := func(args ...string) map[string]float64 {
		out := map[string]float64{}
		r := invoke(t, []string{"HOME=" + dir}, append([]string{"eval", path, "--budget=120t", "--policy=extractive,truncation,id_list", "--json"}, args...)...).want(t, 0)
		for _, f := range figuresOf(t, r) {
			out[f.Policy] = f.TokensAfter / float64(f.Sessions)
		}
		return out
	}
	chars, exact, claude := tokensAfter("--counter=chars4"), tokensAfter("--model=gpt-4o"), tokensAfter("--model=claude-opus-4-6")
	for name := range chars {
		if chars[name] == exact[name] || exact[name] == claude[name] {
			t.Errorf("%s: %v tokens by characters, %v by gpt-4o, %v by Claude", name, chars[name], exact[name], claude[name])
		}
		for _, kept := range []map[string]float64{chars, exact, claude} {
			if name != "truncation" && kept[name] > 120 { // the last messages stay whole
				t.Errorf("%s: %v tokens in 120", name, kept[name])
			}
		}
	}
	invoke(t, []string{"HOME=" + dir}, "eval", path, "--counter=words").want(t, exitUsage, "--counter", "session", "chars4")
}

// Extracts, pipelines and baselines go through several rounds within their budget.
func TestEvalInRounds(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	r := invoke(t, []string{"HOME=" + dir}, "eval", path, "--budget=0.3", "--rounds=3", "--policy=extractive,default,user+tail", "--json").want(t, 0, "×3: the session")
	rounds := map[int]int{}
	for _, f := range figuresOf(t, r) {
		rounds[f.Rounds]++
		if f.Sessions != 7 || f.Failed != 0 || *f.TokensKept > 0.3 || *f.TokensKept < 0.05 {
			t.Errorf("%s: %d sessions, %d failed, %v of the tokens", f.Policy+f.Limit(), f.Sessions, f.Failed, *f.TokensKept)
		}
	}
	if rounds[1] != 3 || rounds[3] != 3 || len(rounds) != 2 {
		t.Errorf("%v", rounds)
	}
}

func TestEvalWrongUsage(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	empty, idle, broken := filepath.Join(dir, "empty.jsonl"), filepath.Join(dir, "idle.jsonl"), filepath.Join(dir, "broken.jsonl")
	for file, text := range map[string]string{
		empty: "", idle: `{"session_id":"a","messages":[{"role":"user","content":"hello"},{"role":"user","content":"there"}]}` + "\n",
		broken: `{"session_id":"a","messages":[]}` + "\n{\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		args  []string
		parts []string
	}{
		"no sessions":          {nil, []string{"--from FILE", "--session ID", "--limit N"}},
		"two places":           {[]string{"--from", path, "--session=a"}, []string{"--from or --session"}},
		"shares":               {[]string{path, "--cut=0,1", "--budget=-1,1.5,nan"}, []string{"--cut: 0: want a number between 0 and 1", "--cut: 1:", "--budget: -1:", "--budget: 1.5:", "--budget: nan: want a share above 0 and up to 1"}},
		"tokens":               {[]string{path, "--budget=0t,1.5t,t,-3t,600,nant,inft,6e99t"}, []string{"--budget: 0t: want a share above 0 and up to 1, such as 0.05, a whole number of tokens, such as 600t, or policy", "--budget: 1.5t:", "--budget: t:", "--budget: -3t:", "--budget: 600:", "--budget: nant:", "--budget: inft:", "--budget: 6e99t:"}},
		"an unknown policy":    {[]string{path, "--policy=magic,stub200"}, []string{"magic", "drop_oldest, head20+tail, user+tail, drop_tool_results, stub200, id_list, random, extractive", "tool_heavy", "default, configured", "truncation"}},
		"an unknown step":      {[]string{path, "--policy=truncation+magic"}, []string{"truncation+magic", "unknown policy"}},
		"a wrong parameter":    {[]string{path, "--policy=clamp:nope=1,max_chars=5"}, []string{"clamp", "nope", "max_chars"}},
		"comparing one":        {[]string{path, "--compare=stub200"}, []string{"--compare stub200", "A,B"}},
		"comparing others":     {[]string{path, "--compare=stub200,magic"}, []string{"magic is not measured", "drop_oldest"}},
		"an empty file":        {[]string{path, "--from", empty}, []string{empty + ": no session in it"}},
		"nothing to measure":   {[]string{"--from", idle}, []string{"no session could be measured", "none of 1 sessions uses an identifier"}},
		"a broken line":        {[]string{"--from", broken}, []string{broken + ": line 2"}},
		"a file that is none":  {[]string{"--from", filepath.Join(dir, "none")}, []string{"no such file"}},
		"an unknown format":    {[]string{path, "--format=magic"}, []string{"--format", "magic", "claude-code"}},
		"a foreign state":      {[]string{path, "--state", path}, []string{"--state", "line 1 is not a row of an eval state"}},
		"a folder that is not": {[]string{path, "--html", filepath.Join(dir, "no", "report.html")}, []string{"--html", "report.html"}},
		"negative numbers":     {[]string{path, "--jobs=-1", "--samples=-2", "--limit=-3", "--rounds=0"}, []string{"--rounds: 0", "--jobs: -1", "--samples: -2", "--limit: -3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invoke(t, []string{"HOME=" + dir}, append([]string{"eval"}, tc.args...)...).want(t, exitUsage, tc.parts...)
		})
	}
}

// In a further round, a model gets only the messages that it has not read; what the user said before is given.
func TestEvalOfAModelInRounds(t *testing.T) {
	t.Parallel()
	server := llmtest.Script{}.Server()
	url, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	settings := llm.Default()
	settings.Models = []llm.Profile{{Name: "m", BaseURL: url, Window: 32_000}}
	client, err := llm.New(settings, llm.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session := eval.Session{Name: "a"}
	for i := range 40 {
		session.Messages = append(session.Messages,
			chat.Message{Role: chat.RoleUser, Content: chat.TextContent(fmt.Sprintf("What of order #AB%05d? %s", i, strings.Repeat("It should be there. ", 30)))},
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(fmt.Sprintf("Order #AB%05d is open. %s", i/2, strings.Repeat("Somebody looks at it. ", 30)))})
	}
	all := func(yield func(eval.Session, error) bool) { yield(session, nil) }
	r, err := eval.Run(t.Context(), all, eval.Options{
		Cuts: []float64{0.5}, TokenBudgets: []float64{2000}, Rounds: 2, Policies: []eval.Policy{evalModel(policy.DefaultSummary(), client)},
	})
	if err != nil || len(r.Failures) > 0 || r.Figures[0].Calls != 1 || r.Figures[1].Calls != 2 || r.Figures[1].TokensAfter > 2000 {
		t.Fatalf("%v, %v\n%+v", err, r.Failures, r.Figures)
	}
	prompts := server.Requests()
	const first, last = " user\nWhat of order #AB00000? It", " user\nWhat of order #AB00019? It"
	for i, want := range [][2]bool{{true, true}, {true, false}, {false, true}} {
		if got := [2]bool{strings.Contains(prompts[i].User, first), strings.Contains(prompts[i].User, last)}; got != want {
			t.Errorf("prompt %d has the first and the last message: %v, want %v", i, got, want)
		}
	}
}

// TestTheDefaultsAreMeasuredWithinTheConfiguredLimits: they would not be due otherwise, beside a policy
// that starts early, and say nothing.
func TestTheDefaultsAreMeasuredWithinTheConfiguredLimits(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	out := invoke(t, []string{"HOME=" + dir}, "eval", "--from", path, "--policy=configured,default", "--budget=policy", "--start=300", "--target=200", "--policy-min-gain-tokens=1", "--json").want(t, 0).stdout
	var kept []float64
	for line := range strings.Lines(out) {
		got := decode[struct {
			Kept float64 `json:"tokens_kept_share"`
		}](t, result{stdout: line})
		kept = append(kept, got.Kept)
	}
	if len(kept) != 2 || kept[0] != kept[1] || kept[0] >= 1 {
		t.Errorf("kept %v\n%s", kept, out)
	}
}

func TestSplitPolicies(t *testing.T) {
	t.Parallel()
	got := splitPolicies([]string{"a,b:x=1,y=2,c", "d:z=[1,2]+e, f", "g:k={\"a\":1,\"b\":2},h=3"})
	want := []string{"a", "b:x=1,y=2", "c", "d:z=[1,2]+e", "f", "g:k={\"a\":1,\"b\":2},h=3"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
}

func TestEvalReadsStoredSessionsAndOtherFormats(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	t.Parallel()
	dir, path := evalFile(t)
	environ := append(database(t), "HOME="+dir)
	invoke(t, environ, "import", path).want(t, 0)
	startWorker(t, environ, nil)
	// Messages that a run excluded are measured too.
	invoke(t, environ, "compact", "orders-1", "--strategy=sliding_window:keep_last_groups=2").want(t, 0)
	figures := func(args ...string) string {
		return invoke(t, environ, append([]string{"eval", "--budget=0.3", "--json"}, args...)...).want(t, 0).stdout
	}
	want := figures("--from", path)
	if got := figures("--limit=100"); got != want {
		t.Errorf("stored sessions:\n%s\nthe file:\n%s", got, want)
	}
	if got, want := figures("--session=orders-1", "--session=orders-3"), figures("--session=orders-3", "--session=orders-1", "--jobs=1"); !strings.Contains(got, `"sessions":2`) || strings.Count(got, `"sessions":2`) != strings.Count(want, `"sessions":2`) {
		t.Errorf("two sessions:\n%s", got)
	}
	if got := figures("--from", path, "--limit=3"); !strings.Contains(got, `"sessions":3`) {
		t.Errorf("three sessions:\n%s", got)
	}
	invoke(t, environ, "eval", "--session=nobody").want(t, exitNotFound, "nobody")
	other := filepath.Join(dir, "orders.sharegpt")
	invoke(t, environ, "export", "orders-1", "orders-2", "--log", "--format=sharegpt", "-o", other).want(t, 0)
	if got := figures("--from", other); !strings.Contains(got, `"sessions":2`) {
		t.Errorf("another format:\n%s", got)
	}
}

// A configuration with models does not cost anything, and needs no key, where no policy
// asks them.
func TestModelsAreCalledOnlyByPoliciesThatNeedThem(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	server := llmtest.Script{}.Server()
	url, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	config := filepath.Join(dir, "models.yaml")
	text := fmt.Sprintf("llm: {models: [{name: m, base_url: %q, key_env: MODEL_KEY, window_tokens: 32000}]}\n", url)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := []string{"HOME=" + dir}
	set := append(slices.Clone(bare), "MODEL_KEY=hush")
	const noKey = "models[0].key_env MODEL_KEY: holds no key"

	for _, args := range [][]string{
		{"eval", "--from", path},
		{"eval", "--from", path, "--policy", "extractive,strict,tool_result+truncation"},
		{"compact-file", path, "--policy", "strict"},
		{"compact-file", path, "--policy-summary-writer", "extractive"},
		{"eval", "--from", path, "--policy", "configured", "--policy-summary-writer", "extractive"},
		{"compact-file", path, "--strategy", "sliding_window:keep_last_groups=4"},
	} {
		invoke(t, bare, append(args, "--config", config)...).want(t, 0)
	}
	for _, args := range [][]string{
		{"eval", "--from", path, "--policy", "model"},
		{"eval", "--from", path, "--policy", "configured"},
		{"eval", "--from", path, "--policy", "default"},
		{"eval", "--from", path, "--policy", `token_budget:token_budget=300,strategies=[{"strategy":"handoff"}]`},
		{"compact-file", path},
		{"compact-file", path, "--policy", "research"},
	} {
		invoke(t, bare, append(args, "--config", config)...).want(t, exitUsage, noKey)
	}
	if n := server.Calls(); n != 0 {
		t.Errorf("%d requests", n)
	}
	if invoke(t, set, "eval", "--from", path, "--limit=1", "--config", config, "--policy=model", "--json").want(t, 0); server.Calls() == 0 {
		t.Error("no calls")
	}
	invoke(t, bare, "eval", "--from", path, "--policy=model").want(t, exitUsage, "model: no models are configured")
}

// With the configured policy alone, the figures and the advice are of each file, too.
func TestEvalAdvisesOnEachFile(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(raw), "\n")
	var files []string
	for name, part := range map[string][]string{"a.jsonl": lines[:6], "b.jsonl": lines[6:]} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte(strings.Join(part, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"eval", "--policy=configured", "--budget=0.5"}, files...)
	home := []string{"HOME=" + dir}
	text := invoke(t, home, args...).want(t, 0).stdout
	for name, want := range map[string]string{"a.jsonl": "none does better than configured", "b.jsonl": "fewer than 6 sessions tell no difference"} {
		if _, after, _ := strings.Cut(text, "/"+name+", cut 50 %, budget 50 %: "); !strings.HasPrefix(after, want) {
			t.Errorf("%s: no %q in\n%s", name, want, text)
		}
	}
	sessions := map[string]int{}
	for _, f := range figuresOf(t, invoke(t, home, append(args, "--json")...).want(t, 0)) {
		if f.Policy == configuredPolicy {
			sessions[filepath.Base(f.Corpus)] = f.Sessions
		}
	}
	if sessions["."] != 7 || sessions["a.jsonl"] != 6 || sessions["b.jsonl"] != 1 {
		t.Errorf("sessions of the files: %v", sessions)
	}
}
