package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/builtin"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr, os.Environ(), builtin.Registry()))
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set(strconv.Itoa(3 * runtime.GOMAXPROCS(0))) // most tests wait for servers and processes
	}
	_ = os.Unsetenv("COLUMNS") // kong wraps help to it
	goleak.VerifyTestMain(m)
}

// result holds the output and the exit code of a command.
type result struct {
	code           int
	stdout, stderr string
}

// invoke runs the command line as main does.
func invoke(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	return invokeWith(t, &Env{Environ: environ}, args...)
}

func invokeWith(t *testing.T, e *Env, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	e.Out, e.Err = term.Output{W: &stdout}, term.Output{W: &stderr}
	if e.Stdin == nil {
		e.Stdin = strings.NewReader("")
	}
	if e.now == nil {
		e.now = func() time.Time { return time.Date(2026, time.January, 31, 12, 0, 0, 0, time.UTC) }
	}
	if e.Registry == nil {
		e.Registry = builtin.Registry()
	}
	code := run(t.Context(), args, e)
	return result{code, stdout.String(), stderr.String()}
}

func (r result) want(t *testing.T, code int, parts ...string) result {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	for _, p := range parts {
		if !strings.Contains(r.stdout+r.stderr, p) {
			t.Errorf("output lacks %q:\n%s%s", p, r.stdout, r.stderr)
		}
	}
	return r
}

// decode decodes the output of --json.
func decode[T any](t *testing.T, r result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("no JSON: %v\n%s%s", err, r.stdout, r.stderr)
	}
	return v
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

// database returns a fresh, migrated database and a Redis, as an environment.
func database(t *testing.T) []string {
	t.Helper()
	dsn := storetest.DB(t, "cli-"+migrations.Fingerprint(), func(ctx context.Context, dsn string) error {
		_, err := migrations.Up(ctx, dsn, migrations.DefaultSchema)
		return err
	})
	return []string{"DATABASE_URL=" + dsn, "REDIS_URL=" + storetest.Redis(t), "USER=ada"}
}

// startWorker runs the worker role for the time of the test.
func startWorker(t *testing.T, environ []string, flags map[string]string) {
	t.Helper()
	startRoles(t, environ, flags, func(app *App) ([]Role, error) { return []Role{app.WorkerRole()}, nil })
}

// startRoles runs roles for the time of the test.
func startRoles(t *testing.T, environ []string, flags map[string]string, of func(*App) ([]Role, error)) {
	t.Helper()
	c, err := config.Load(config.LoadOptions{Environ: environ, Flags: flags, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	app, err := NewApp(t.Context(), c, slog.New(slog.DiscardHandler), AppOptions{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := of(app)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- RunRoles(ctx, roles...) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestHelpIsGolden(t *testing.T) {
	t.Parallel()
	golden(t, "help", invoke(t, nil, "--help").want(t, 0).stdout)
	golden(t, "help_compact", invoke(t, nil, "compact", "--help").want(t, 0).stdout)
	if diff := cmp.Diff(invoke(t, nil, "--help"), invoke(t, nil), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("without arguments (-help +got):\n%s", diff)
	}
}

func TestHelpIsACommandToo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"undo"}, {"bulk-undo", "start"}} {
		want := invoke(t, nil, append(slices.Clone(args), "--help")...).want(t, 0)
		if got := invoke(t, nil, append([]string{"help"}, args...)...).want(t, 0); got.stdout != want.stdout {
			t.Errorf("help %s:\n%s", args, got.stdout)
		}
	}
}

func TestEverySettingHasAFlag(t *testing.T) {
	t.Parallel()
	for _, k := range config.Keys() {
		name := config.FlagName(k)
		r := invoke(t, []string{"HOME=" + t.TempDir()}, "config", "print", "--json", "--"+name+"=\x01")
		if strings.Contains(r.stderr, "unknown flag") {
			t.Errorf("no flag --%s", name)
		}
	}
	r := invoke(t, nil, "config", "print", "--json", "--start", "8000", "--target", "6000", "--policy-fallback=false",
		"--worker-concurrency=3", "--database-url", "postgres://u:hush@h/db").want(t, 0)
	got := decode[struct{ Settings []config.Entry }](t, r)
	seen := map[string]string{}
	for _, s := range got.Settings {
		if strings.HasPrefix(s.Origin, "flag") {
			seen[s.Key] = s.Value
		}
	}
	want := map[string]string{
		"policy.start_tokens": "8000", "policy.target_tokens": "6000", "policy.fallback": "false", "worker.concurrency": "3",
		"database.url": "postgres://u:xxxxx@h/db",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsAreJSONWithJSON(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"usage":    {"sessions", "--json", "--limit=0"},
		"internal": {"sessions", "--json", "--database-url=postgres://u:hush@127.0.0.1:1/x"},
	} {
		r := invoke(t, nil, args...)
		var got struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(r.stderr), &got); err != nil || got.Error.Code != want || got.Error.Message == "" {
			t.Errorf("%v: %q: %+v, %v", args, r.stderr, got, err)
		}
		if strings.Contains(r.stderr, "hush") || strings.Count(r.stderr, "refused") > 1 {
			t.Errorf("%v: %s", args, r.stderr)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	db := "DATABASE_URL=postgres://u:hush@127.0.0.1:1/db"
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"unknown command":           {[]string{"compct"}, []string{"unexpected argument compct", `did you mean "compact"?`, "compactor --help"}},
		"unknown flag":              {[]string{"sessions", "--dew"}, []string{"unknown flag --dew", "compactor sessions --help"}},
		"missing argument":          {[]string{"view"}, []string{`expected "<session>"`, "compactor view --help"}},
		"setting by its short flag": {[]string{"sessions", "--start=abc"}, []string{"flag --start: policy.start_tokens: "}},
		"setting by its long flag":  {[]string{"sessions", "--policy-start-tokens=abc"}, []string{"flag --policy-start-tokens: policy.start_tokens: "}},
		"limit out of range":        {[]string{"sessions", "--limit=0"}, []string{"--limit: 0: want 1 to 100000"}},
		"status that is none":       {[]string{"runs", "--status=done"}, []string{"--status: done: want queued, running, applied, skipped, failed"}},
		"count that is none":        {[]string{"import", "x", "--count=guess"}, []string{"--count must be one of", `"guess"`}},
		"nothing to import":         {[]string{"import"}, []string{"give at least one file"}},
		"files and sql":             {[]string{"import", "x", "--from-sql=y", "--query=z"}, []string{"not both"}},
		"sql without query":         {[]string{"import", "--from-sql=y"}, []string{"give the --query"}},
		"a file that is missing":    {[]string{"import", "/no/such.jsonl", "/nor/this.jsonl"}, []string{"/no/such.jsonl", "/nor/this.jsonl"}},
		"export without sessions":   {[]string{"export"}, []string{"name sessions, or give --all-sessions"}},
		"view and log":              {[]string{"export", "a", "--view", "--log"}, []string{"--view", "--log"}},
		"run that is no number":     {[]string{"undo", "abc"}, []string{"abc"}},
		"a run and a session":       {[]string{"runs", "a", "--run=1"}, []string{"give it alone"}},
		"from that is none":         {[]string{"compact", "a", "--from=nowhere"}, []string{"--from must be one of"}},
		"timeout":                   {[]string{"compact", "a", "--timeout=0s"}, []string{"--timeout"}},
		"strategies, all faults at once": {
			[]string{"compact", "a", "--strategy=magic", "--strategy=sliding_window:keep_last_groups=-1,huh=2", "--strategy=:x", "--strategy=truncation:max_n"},
			[]string{"unknown strategy", "magic", "truncation", "keep_last_groups: got -1", "huh", "want NAME", `"max_n": want param=value`},
		},
		"settings, all faults at once": {
			[]string{"sessions", "--log-level=loud", "--worker-concurrency=0"}, []string{"flag --log-level", "flag --worker-concurrency"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := invoke(t, []string{db}, c.args...).want(t, exitUsage, c.want...)
			for line := range strings.Lines(r.stderr) {
				if !strings.HasPrefix(line, "compactor: ") {
					t.Errorf("line without the program's name: %q", line)
				}
			}
			if r.stdout != "" {
				t.Errorf("stdout: %s", r.stdout)
			}
		})
	}
}

func TestMissingConnectionsAreNamed(t *testing.T) {
	t.Parallel()
	invoke(t, nil, "sessions").want(t, exitUsage, "database.url: not set", "DATABASE_URL", "--database-url")
	r := invoke(t, nil, "serve").want(t, exitUsage, "database.url: not set", "redis.url: not set")
	if strings.Contains(r.stderr, "metrics") {
		t.Errorf("roles begin without a database:\n%s", r.stderr)
	}
	invoke(t, nil, "doctor").want(t, exitFindings, "set DATABASE_URL or --database-url", "set REDIS_URL or --redis-url")
}

func TestAnUnreachableDatabaseIsNamedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=postgres://u:hush@127.0.0.1:1/db?connect_timeout=1", "REDIS_URL=redis://:hush@127.0.0.1:1"}
	for _, args := range [][]string{
		{"sessions"}, {"migrate", "up"}, {"migrate", "status"}, {"worker", "--wait-timeout=0"}, {"doctor"}, {"compact", "a"}, {"undo", "1"},
	} {
		code := exitInternal
		if args[0] == "doctor" {
			code = exitFindings
		}
		r := invoke(t, env, args...).want(t, code, "127.0.0.1:1")
		if n := strings.Count(r.stderr, "compactor: "); code == exitInternal && n > 1 {
			t.Errorf("%v: an error of %d lines: %s", args, n, r.stderr)
		}
		if strings.Contains(r.stdout+r.stderr, "hush") {
			t.Errorf("%v shows the password: %s%s", args, r.stdout, r.stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	invoke(t, nil, "version").want(t, 0, "compactor ", "go1")
	if v := decode[buildVersion](t, invoke(t, nil, "version", "--json")); v.Go == "" || v.Version == "" {
		t.Errorf("%+v", v)
	}
}

func TestConfigCommands(t *testing.T) {
	t.Parallel()
	if got := invoke(t, nil, "config", "example").want(t, 0).stdout; got != config.Example() {
		t.Error("another example")
	}
	invoke(t, []string{"HOME=" + t.TempDir()}, "config", "print", "--model=gpt-4", "--tenant=acme").
		want(t, 0, "acme", "flag --tenant", "start 6,144 tokens")
	invoke(t, nil, "config", "print", "--config=/no/such.yaml").want(t, exitUsage, "/no/such.yaml")
}

func TestInterruptedEndsWith130(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err bytes.Buffer
	code := Main(ctx, []string{"sessions", "--database-url=postgres://127.0.0.1:1/x"}, &out, &err, nil, builtin.Registry())
	if code != exitInterrupted {
		t.Errorf("exit code %d: %s", code, err.String())
	}
}

// As its help says, also while it waits for Postgres.
func TestAStoppedServerEndsWith0(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var out, err bytes.Buffer
	code := Main(ctx, []string{"serve", "--database-url=postgres://127.0.0.1:1/x", "--redis-url=redis://127.0.0.1:1", "--metrics-listen=off"}, &out, &err, nil, builtin.Registry())
	if code != 0 {
		t.Errorf("exit code %d: %s", code, err.String())
	}
}

func TestAShareForTokensNamesTheSettingThatIsOne(t *testing.T) {
	t.Parallel()
	invoke(t, nil, "serve", "--target=20%").want(t, exitUsage, `"20%": want a whole number of tokens; policy.target is a share of the window, such as 0.2`)
}

func TestAMistypedNameGetsTheNearestOnes(t *testing.T) {
	t.Parallel()
	r := invoke(t, nil, "compact", "chat", "--policy=x").want(t, exitUsage, `did you mean one of "--policy-cron", "--policy-start", "--policy-preset", or one of `,
		"see `compactor compact --help`, and `compactor config example` for the settings")
	if len(r.stderr) > 300 {
		t.Errorf("%d characters: %s", len(r.stderr), r.stderr)
	}
	invoke(t, nil, "poli").want(t, exitUsage, `did you mean "policy"? (see `+"`compactor --help`)")
}

func TestEveryHelpTextIsThatOfACommand(t *testing.T) {
	t.Parallel()
	entries, err := helpTexts.ReadDir("help")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := helpTexts.ReadFile("help/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), " ")
		command := strings.Split(strings.TrimSuffix(entry.Name(), ".txt"), ".")
		if r := invoke(t, nil, append(command, "--help")...).want(t, 0, "Usage: compactor "+strings.Join(command, " "), first); strings.Contains(r.stdout, "{{") {
			t.Errorf("%s: a list that is not known:\n%s", entry.Name(), r.stdout)
		}
	}
}
