package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/builtin"
)

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
