package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sessionstore/compactor/strategies/builtin"
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

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file  string
		env   []string
		flags map[string]string
		want  []string // PATH stands for the file
	}{
		"unknown keys name their line and what was probably meant": {
			file: "workr:\n  lease: 1m\nworker:\n  concurency: 3\nlease: 2m\nnonsense: 1\n",
			want: []string{
				"PATH:1: workr: unknown key, did you mean worker?",
				"PATH:4: worker.concurency: unknown key, did you mean worker.concurrency?",
				"PATH:5: lease: unknown key, did you mean worker.lease?",
				"PATH:6: nonsense: unknown key (`compactor config example` lists them)",
			},
		},
		"wrong types name their line and what is wanted": {
			file: "tenant: 5\nworker:\n  concurrency: many\n  lease: 60\npolicy:\n  start: [1]\n  fallback: yes\n  windows: 3\n  pipeline: {}\nredis: redis://x\ndatabase:\n  url: [secret]\n",
			want: []string{
				"PATH:1: tenant: 5: want text (put it in quotes)",
				`PATH:3: worker.concurrency: "many": want a whole number`,
				"PATH:4: worker.lease: 60: want a duration such as 500ms, 30s or 10m",
				"PATH:6: policy.start: a list: want a number such as 0.75",
				`PATH:7: policy.fallback: "yes": want true or false`,
				"PATH:8: policy.windows: 3: want a map from model to tokens, such as {gpt-4: 8192}",
				"PATH:9: policy.pipeline: a map: want a list of {strategy: …, params: …}",
				`PATH:10: redis: "redis://x": want a section of keys`,
				"PATH:12: database.url: the value: want text (put it in quotes)",
			},
		},
		"lists and maps are strict inside": {
			file: "policy:\n  windows: {a: x, b: 1.5}\n  pipeline:\n    - strategy: 3\n    - params: []\n      strategey: x\n    - truncation\n",
			want: []string{
				`PATH:2: policy.windows[a]: "x": want a whole number`,
				"PATH:2: policy.windows[b]: 1.5: want a whole number",
				"PATH:4: policy.pipeline[0].strategy: 3: want text (put it in quotes)",
				"PATH:5: policy.pipeline[1].params: a list: want a map of parameters",
				"PATH:6: policy.pipeline[1].strategey: unknown key, did you mean strategy?",
				`PATH:7: policy.pipeline[2]: "truncation": want {strategy: …, params: …}`,
				`PATH:5: policy.pipeline[1].strategy: "": want the name of a strategy`,
				`PATH:7: policy.pipeline[2].strategy: "": want the name of a strategy`,
			},
		},
		"models and how summaries are written": {
			file: "llm:\n  models:\n    - {name: m, base_url: \"http://h/v1\", key: hush, window_tokens: 8000}\n    - {name: n, base_url: \"http://h/v1\", key_env: sk-hush, window_tokens: 8000}\n" +
				"  deadline: {max: 1s}\npolicy:\n  summary: {on_failure: extract}\n",
			want: []string{
				"PATH:3: llm.models[0].key: unknown key: want name, base_url, key_env, key_file, window_tokens, max_output_tokens, max_tokens_field, " +
					"fixed_temperature, reasoning_effort, reasoning_tokens, price_per_million, requests_per_minute, tokens_per_minute",
				`PATH:7: policy.summary.on_failure: "extract": want one of keep, extractive, truncate, marker`,
				"PATH:4: llm.models[1].key_env: the value: want the name of an environment variable, not the key itself",
				"PATH:5: llm.deadline.max: 1s: want 2m to 24h",
			},
		},
		"a form of URL is named once": {
			env: []string{"REDIS_URL=localhost:6379"},
			want: []string{
				"env REDIS_URL: redis.url: xxxxx: want redis://user:password@host:6379/0, redis-socket:///path?db=0, redis-cluster://host:6379,host:6379 or redis-sentinel://host:26379,host:26379/0?master=name, or rediss, rediss-cluster or rediss-sentinel for TLS (scheme \"localhost\")",
			},
		},
		"entries of the table of models": {
			file: "models:\n  - {prefix: house, window: -1}\n  - {window: 5}\n  - {prefix: m, encoding: p50k}\n  - {prefix: m, factor: 9, windw: 1}\n",
			want: []string{
				"PATH:5: models[3].windw: unknown key, did you mean window?",
				"PATH:2: models[0]: window -1: want 0 (that of the table) to 1000000000",
				"PATH:3: models[1]: want a model's name or its beginning as prefix",
				`PATH:4: models[2]: encoding "p50k": want o200k_base or cl100k_base`,
				"PATH:5: models[3]: factor 9: want 0 (that of the table), or 0.2 to 5",
			},
		},
		"values out of range name where they come from": {
			file:  "worker:\n  lease: 10s\npolicy:\n  target: 1.9\n  windows:\n    tiny: -1\n",
			env:   []string{"COMPACTOR_LOG_LEVEL=loud", "COMPACTOR_POLICY_CRON=TZ=UTC"},
			flags: map[string]string{"worker.concurrency": "0"},
			want: []string{
				"PATH:6: policy.windows[tiny]: -1: want 1 to 1000000000",
				"PATH:4: policy.target: 1.9: want a fraction of the window, more than 0 and less than 1 (target_tokens takes tokens)",
				`env COMPACTOR_POLICY_CRON: policy.cron: "TZ=UTC": want the zone in timezone, not in cron`,
				"flag --worker-concurrency: worker.concurrency: 0: want 1 to 10000",
				"worker.heartbeat: 15s: want at most half of worker.lease (10s), or the lease of a live worker expires",
				`env COMPACTOR_LOG_LEVEL: log.level: "loud": want debug, info, warn or error`,
			},
		},
		"variables and flags are as strict as the file": {
			env:   []string{"COMPACTOR_WORKER_CONCURENCY=4", "COMPACTOR_WORKER_LEASE=soon", "COMPACTOR_POLICY_PIPELINE=: :"},
			flags: map[string]string{"worker.lase": "1", "policy.start": ""},
			want: []string{
				`env COMPACTOR_POLICY_PIPELINE: policy.pipeline: ": :": want a list of {strategy: …, params: …}`,
				`env COMPACTOR_WORKER_LEASE: worker.lease: "soon": want a duration such as 500ms, 30s or 10m`,
				"env COMPACTOR_WORKER_CONCURENCY: unknown variable, did you mean COMPACTOR_WORKER_CONCURRENCY?",
				`flag --policy-start: policy.start: "": want a number such as 0.75`,
				"flag --worker-lase: worker.lase: unknown key",
			},
		},
		"connections are refused without their passwords": {
			env: []string{"DATABASE_URL=mysql://u:hush@h/db", "REDIS_URL=redis://:hu/sh%zz@h"},
			want: []string{
				"env DATABASE_URL: database.url: mysql://u:xxxxx@h/db: want postgres://user:password@host:5432/database, or key=value pairs",
				"env REDIS_URL: redis.url: redis://:xxxxx@h: want redis://user:password@host:6379/0, redis-socket:///path?db=0, redis-cluster://host:6379,host:6379 or redis-sentinel://host:26379,host:26379/0?master=name, or rediss, rediss-cluster or rediss-sentinel for TLS (not a URL: special characters of the password must be escaped)",
			},
		},
		"databases of a fleet": {
			file: "database: {url: postgres://one/x}\ndatabases:\n  East: {url: postgres://e/x}\n  north: {}\n" +
				"  south: {url: \"mysql://u:hush@h/db\"}\n  west: {url: postgres://a/x, shema: s}\n  wild: {url: postgres://a/x, max_conns: 4}\n",
			want: []string{
				"PATH:6: databases.west.shema: unknown key, did you mean schema?",
				"PATH:2: databases: given beside database.url: want one of the two",
				`PATH:3: databases.East: "East": want a name of lower-case letters, digits, _ and -, at most 32`,
				"PATH:4: databases.north.url: not set: want the URL of the database",
				"PATH:5: databases.south.url: mysql://u:xxxxx@h/db: want postgres://user:password@host:5432/database, or key=value pairs",
				"PATH:7: databases.wild: the same as west: want another database or schema",
			},
		},
		"the name of an installation is part of queues": {
			env:  []string{"COMPACTOR_REDIS_INSTALLATION=a:b"},
			want: []string{`env COMPACTOR_REDIS_INSTALLATION: redis.installation: "a:b": want letters, digits, _, . and -, at most 64`},
		},
		"a disk budget without its unit": {
			file: "scheduler:\n  disk_budget: 200\n  disk_high_water: 90\n",
			want: []string{
				"PATH:2: scheduler.disk_budget: 200: want a size with its unit (MB, GB, TB, MiB, GiB or TiB), such as 200GB, or 0",
				"PATH:3: scheduler.disk_high_water: 90: want more than 0, at most 1",
			},
		},
		"a disk budget out of range": {
			env:   []string{"COMPACTOR_SCHEDULER_DISK_BUDGET=5kB"},
			flags: map[string]string{"scheduler.disk_high_water": "0"},
			want: []string{
				"env COMPACTOR_SCHEDULER_DISK_BUDGET: scheduler.disk_budget: 5kB: want 0, or 1MB to 1000TB",
				"flag --scheduler-disk-high-water: scheduler.disk_high_water: 0: want more than 0, at most 1",
			},
		},
		"a key given twice": {
			file: "tenant: a\ntenant: b\n",
			want: []string{"PATH:2: tenant: given twice, first in line 1"},
		},
		"merge keys": {
			file: "worker: &w {lease: 60s}\nscheduler:\n  <<: *w\n",
			want: []string{"PATH:3: scheduler: want plain keys, without merge keys"},
		},
		"two documents": {
			file: "tenant: a\n---\ntenant: b\n",
			want: []string{"PATH: more than one YAML document"},
		},
		"no mapping at all": {
			file: "hello\n",
			want: []string{`PATH:1: "hello": want a section of keys`},
		},
		"no YAML at all": {
			file: "tenant: [\n",
			want: []string{"PATH: line 1: did not find expected node content"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, path := write(t, tc.file)
			_, err := Load(LoadOptions{Dir: dir, Environ: tc.env, Flags: tc.flags})
			got := strings.ReplaceAll(fmt.Sprint(err), path, "PATH")
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), got); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(got, "hu") && strings.Contains(got, "sh%") || strings.Contains(got, "hush") {
				t.Errorf("a password shows: %s", got)
			}
		})
	}
}

func TestStrategiesAreChecked(t *testing.T) {
	t.Parallel()
	dir, path := write(t, "policy:\n  pipeline:\n    - strategy: truncation\n    - strategy: magic\n")
	_, err := Load(LoadOptions{Dir: dir, Registry: builtin.Registry()})
	want := path + `:4: policy.pipeline[1]: magic: want a step that can be run (unknown strategy "magic", want one of `
	if !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The configuration rejects a setting that the package that uses it would reject.
func TestRangesAreThoseOfTheOwners(t *testing.T) {
	t.Parallel()
	dir, path := write(t, "scheduler:\n  page_size: 50000\nworker:\n  drain_timeout: 0s\n")
	_, err := Load(LoadOptions{Dir: dir})
	want := path + ":4: worker.drain_timeout: 0s: want 1ms to 1h\n" + path + ":2: scheduler.page_size: 50000: want 1 to 10000"
	if fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFormerKeysAreReadWithANotice(t *testing.T) {
	t.Parallel()
	former := map[string]string{"jobs.rest": "policy.cooldown", "worker.beat": "worker.heartbeat", "worker.slots": "worker.concurrency"}
	dir, path := write(t, "jobs:\n  rest: 3m\nworker:\n  beat: 5s\n")
	c, err := Load(LoadOptions{Dir: dir, deprecated: former, Environ: []string{"COMPACTOR_WORKER_SLOTS=7"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Policy.Cooldown != 3*time.Minute || c.Worker.Heartbeat != 5*time.Second || c.Worker.Concurrency != 7 {
		t.Errorf("%v, %v, %d", c.Policy.Cooldown, c.Worker.Heartbeat, c.Worker.Concurrency)
	}
	want := []string{
		path + ":2: jobs.rest is deprecated, use policy.cooldown",
		path + ":4: worker.beat is deprecated, use worker.heartbeat",
		"env COMPACTOR_WORKER_SLOTS: worker.slots is deprecated, use worker.concurrency",
	}
	if diff := cmp.Diff(want, c.Notices()); diff != "" {
		t.Error(diff)
	}
	if got := c.Origin("worker.heartbeat").String(); got != path+":4" {
		t.Errorf("the heartbeat comes from %s", got)
	}
	c, err = Load(LoadOptions{Dir: dir, deprecated: former, Environ: []string{"COMPACTOR_WORKER_SLOTS=7", "COMPACTOR_WORKER_CONCURRENCY=8"}})
	if err != nil || c.Worker.Concurrency != 8 {
		t.Errorf("the key of now does not go before the former one: %d, %v", c.Worker.Concurrency, err)
	}
	dir, path = write(t, "worker:\n  beat: 5s\n  heartbeat: 6s\n")
	_, err = Load(LoadOptions{Dir: dir, deprecated: former})
	if want := path + ":3: worker.heartbeat: given twice, first in line 2"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Every former key leads to one that exists, and is none itself.
func TestFormerKeysLeadSomewhere(t *testing.T) {
	t.Parallel()
	for old, now := range deprecated() {
		if slices.Contains(Keys(), old) || !slices.Contains(Keys(), now) {
			t.Errorf("%s → %s", old, now)
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
