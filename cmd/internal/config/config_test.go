package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// write puts a configuration file into a folder of its own.
func write(t *testing.T, text string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "compactor.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

func same() []cmp.Option {
	return []cmp.Option{cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()}
}

func TestDefaultIsValidAndLoaded(t *testing.T) {
	t.Parallel()
	c, err := Load(LoadOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), c, same()...); diff != "" {
		t.Error(diff)
	}
	if c.File() != "" || c.Origin("worker.lease").String() != "default" || c.PoolSize() != 20 {
		t.Errorf("file %q, origin %s, pool %d", c.File(), c.Origin("worker.lease"), c.PoolSize())
	}
}

func TestExampleChangesNothing(t *testing.T) {
	t.Parallel()
	dir, path := write(t, Example())
	c, err := Load(LoadOptions{Dir: dir})
	if err != nil {
		t.Fatalf("%v\n%s", err, Example())
	}
	if diff := cmp.Diff(Default(), c, same()...); diff != "" {
		t.Error(diff)
	}
	if c.File() != path {
		t.Errorf("read %q", c.File())
	}
	lines := strings.Split(Example(), "\n")
	for _, key := range Keys() {
		o := c.Origin(key)
		if o.Source != FromFile || o.Line == 0 {
			t.Errorf("%s is not in the example: %v", key, o)
			continue
		}
		if !strings.HasPrefix(strings.TrimSpace(lines[o.Line-2]), "# ") {
			t.Errorf("%s has no comment", key)
		}
		if names := EnvNames(key); len(names) > 1 {
			if want := "# Environment: " + strings.Join(names, ", then ") + "."; strings.TrimSpace(lines[o.Line-2]) != want {
				t.Errorf("%s: want %q", key, want)
			}
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	t.Parallel()
	dir, path := write(t, `
tenant: acme
database: &db {url: "postgres://u:geheim@db/app", schema: from_file}
worker:
  concurrency: 4
  lease: 90s
policy:
  windows:
    gpt-4.1: 1_000_000
  pipeline:
    - strategy: sliding_window
      params: {keep_last_groups: 20, nested: {deep: [1, x]}}
models:
  - {prefix: house-, window: 32_000, factor: 1.3}
log:
`)
	c, err := Load(LoadOptions{
		Dir: dir,
		Environ: []string{
			"DATABASE_URL=postgres://weak", "COMPACTOR_DATABASE_URL=postgres://u:strong@db/env", "REDIS_URL=redis://r:6379",
			"COMPACTOR_WORKER_CONCURRENCY=8", "COMPACTOR_POLICY_START=0.9", "COMPACTOR_POLICY_DEBOUNCE=0",
			"COMPACTOR_LOG_LEVEL=", "COMPACTOR_POLICY_PIN_TOOLS=[load_policy, read_skill]", "COMPACTOR_POLICY_FALLBACK=false", "HOME=/nowhere", "OTHER=1",
			"COMPACTOR_SERVICE_HOST=10.0.0.1", "COMPACTOR_PORT_8080_TCP_ADDR=10.0.0.1", "COMPACTOR_REDIS_PORT=tcp://10.0.0.2:6379",
		},
		Flags: map[string]string{"worker.concurrency": "2", "policy.pipeline": "[{strategy: truncation}]", "tenant": "7"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Tenant = "7"
	want.Models = tokens.Table{{Prefix: "house-", Window: 32_000, Factor: 1.3}}
	want.Database = Database{URL: "postgres://u:strong@db/env", Schema: "from_file"}
	want.Redis.URL = "redis://r:6379"
	want.Worker.Concurrency, want.Worker.Lease = 2, 90*time.Second
	want.Policy.Start, want.Policy.Debounce, want.Policy.Fallback = 0.9, 0, false
	want.Policy.Windows = map[string]chat.Tokens{"gpt-4.1": 1_000_000}
	want.Policy.PinTools = []string{"load_policy", "read_skill"}
	want.Policy.Pipeline = []policy.Step{{Strategy: "truncation"}}
	if diff := cmp.Diff(want, c, same()...); diff != "" {
		t.Error(diff)
	}
	for key, origin := range map[string]string{
		"tenant":                      "flag --tenant",
		"database.url":                "env COMPACTOR_DATABASE_URL",
		"database.schema":             path + ":3",
		"redis.url":                   "env REDIS_URL",
		"worker.concurrency":          "flag --worker-concurrency",
		"worker.lease":                path + ":6",
		"policy.windows[gpt-4.1]":     path + ":9",
		"policy.pipeline[0].strategy": "flag --policy-pipeline",
		"log.level":                   "default",
	} {
		if got := c.Origin(key).String(); got != origin {
			t.Errorf("%s comes from %s, want %s", key, got, origin)
		}
	}
}

func TestWhereTheFileIsFound(t *testing.T) {
	t.Parallel()
	here, local := write(t, "tenant: local\n")
	_, named := write(t, "tenant: named\n")
	xdg := t.TempDir()
	inXDG := filepath.Join(xdg, "compactor", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(inXDG), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inXDG, []byte("tenant: xdg\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := t.TempDir()
	tests := map[string]struct {
		o    LoadOptions
		want string
		err  string
	}{
		"the flag goes first":                   {LoadOptions{Path: named, Dir: here, Environ: []string{"COMPACTOR_CONFIG=/none"}}, named, ""},
		"then the variable":                     {LoadOptions{Dir: here, Environ: []string{"COMPACTOR_CONFIG=" + named}}, named, ""},
		"then the working directory":            {LoadOptions{Dir: here, Environ: []string{"XDG_CONFIG_HOME=" + xdg}}, local, ""},
		"then the user's folder":                {LoadOptions{Dir: nowhere, Environ: []string{"XDG_CONFIG_HOME=" + xdg}}, inXDG, ""},
		"without any the environment is enough": {LoadOptions{Dir: nowhere, Environ: []string{"HOME=" + nowhere}}, "", ""},
		"a file that is named has to be there":  {LoadOptions{Path: nowhere + "/x.yaml", Dir: here}, nowhere + "/x.yaml", "no such file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := Load(tc.o)
			if c.File() != tc.want {
				t.Errorf("read %q, want %q", c.File(), tc.want)
			}
			if tc.err == "" && err != nil || tc.err != "" && !strings.Contains(fmt.Sprint(err), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestRequireNamesTheWays(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Redis.URL = "redis://h"
	err := c.Require("database.url", "redis.url")
	want := "database.url: not set; give COMPACTOR_DATABASE_URL or DATABASE_URL, --database-url, or database.url in the configuration file"
	if fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := c.Require("redis.url"); err != nil {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add(Example())
	f.Add("a: &x [*x]\nworker: *x\n")
	f.Add("policy: {pipeline: [{strategy: a, params: &p {x: *p}}]}")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		path := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(LoadOptions{Path: path})
		var invalid faults
		if c.validate(&invalid, nil); err == nil && len(invalid) > 0 {
			t.Errorf("loaded and not valid: %v", invalid.err())
		}
	})
}

func TestAPresetGoesUnderEverythingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, []byte("policy: {preset: chat, target: 0.4}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(LoadOptions{Path: file, Environ: []string{"COMPACTOR_POLICY_START=0.6"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	p := c.Policy
	if p.Preset != "chat" || p.Target != 0.4 || p.Start != 0.6 || len(p.Pipeline) != 1 || p.Pipeline[0].Strategy != "preserve_recent_turns" {
		t.Errorf("%+v", p)
	}
	if o := c.Origin("policy.pipeline[0]").String() + ", " + c.Origin("policy.target").String(); o != "preset chat, "+file+":1" {
		t.Error(o)
	}
	c, err = Load(LoadOptions{Path: file, Flags: map[string]string{"policy.preset": "tool_heavy", "policy.pipeline": "[{strategy: truncation}]"}})
	if err != nil || c.Policy.Preset != "tool_heavy" || c.Policy.Pipeline[0].Strategy != "truncation" {
		t.Errorf("%v, %+v", err, c.Policy)
	}
	_, err = Load(LoadOptions{Flags: map[string]string{"policy.preset": "chatty"}, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), `policy.preset: "chatty": want one of chat, coding, research, strict, support, tool_heavy`) {
		t.Errorf("%v", err)
	}
}

// A value alone is enough, wherever it comes from: defaults fit it.
func TestDefaultsFitWhatIsGiven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := Load(LoadOptions{Dir: dir, Flags: map[string]string{"policy.target_tokens": "100"}})
	if p := c.Policy; err != nil || p.StartTokens != 150 || p.TargetTokens != 100 || p.MinGainTokens != 50 {
		t.Errorf("%v: %d %d %d", err, p.StartTokens, p.TargetTokens, p.MinGainTokens)
	}
	c, err = Load(LoadOptions{Dir: dir, Environ: []string{"COMPACTOR_POLICY_START=0.2"}, Flags: map[string]string{"policy.preset": "chat"}})
	if p := c.Policy; err != nil || p.Target != 0.133 {
		t.Errorf("%v: %v", err, p.Target)
	}
	c, err = Load(LoadOptions{Dir: dir, Flags: map[string]string{"policy.preset": "strict", "policy.target_tokens": "50000"}})
	if p := c.Policy; err != nil || p.StartTokens != 75_000 { // that of the preset would be below
		t.Errorf("%v: %v", err, p.StartTokens)
	}
	_, err = Load(LoadOptions{Dir: dir, Flags: map[string]string{"policy.start_tokens": "200", "policy.target_tokens": "150", "policy.min_gain_tokens": "500"}})
	if err == nil || !strings.Contains(err.Error(), "policy.min_gain_tokens: 500: want at most start_tokens − target_tokens (50)") {
		t.Errorf("two given values that contradict each other: %v", err)
	}
	f, err := ReadPolicy("p.yaml", []byte("name: a\nstart_tokens: 900\n"), registry())
	if p := f.Policy; err != nil || p.TargetTokens != 600 || p.MinGainTokens != 300 {
		t.Errorf("%v: %d %d", err, p.TargetTokens, p.MinGainTokens)
	}
	if f, err = ReadPolicy("p.yaml", []byte("name: a\ntriggers: [{name: x, when: used > 0.3}]\n"), registry()); err != nil || f.Policy.Target != 0.2 {
		t.Errorf("%v: %v", err, f.Policy.Target)
	}
}
