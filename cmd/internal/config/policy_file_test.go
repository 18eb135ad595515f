package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

func registry() *plan.Registry { return builtin.Registry().With(summary.New(summary.Options{})) }

func TestAPolicyFileHasTheKeysOfTheConfiguration(t *testing.T) {
	t.Parallel()
	f, err := ReadPolicy("support.yaml", []byte(`
name: support
match: {tenant: acme, agent: planner}
note: shorter
preset: strict
start_tokens: 9000
target_tokens: 4000
cooldown: 90s
summary: {size: {max_tokens: 3000}}
`), registry())
	if err != nil {
		t.Fatal(err)
	}
	preset, err := policy.PresetNamed("strict")
	if err != nil {
		t.Fatal(err)
	}
	want := PolicyFile{Name: "support", Match: policy.Match{"tenant": "acme", "agent": "planner"}, Note: "shorter", Policy: preset.Over(policy.Default())}
	want.Policy.StartTokens, want.Policy.TargetTokens, want.Policy.Cooldown, want.Policy.Summary.Size.Max = 9000, 4000, 90*time.Second, 3000
	want.Given = []string{"cooldown", "preset", "start_tokens", "summary.size.max_tokens", "target_tokens"}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConditionsOfTriggersMayBeNested(t *testing.T) {
	t.Parallel()
	f, err := ReadPolicy("p.yaml", []byte(`
name: a
triggers:
  - {name: budget, when: used > 0.75 && turn_completed}
  - name: events
    when:
      any:
        - overflow
        - all: [closed, "tokens > 8000", {not: has_pending_input}]
    target: 0.05
`), registry())
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Trigger{
		{Name: "budget", When: "used > 0.75 && turn_completed"},
		{Name: "events", When: "(overflow) || ((closed) && (tokens > 8000) && (not (has_pending_input)))", Target: 0.05},
	}
	if diff := cmp.Diff(want, f.Policy.Triggers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPolicyFileIsReadStrictly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, want string }{
		"no name":                                 {"start: 0.5\ntarget: 0.4", `p.yaml: name: "": want 1 to 63`},
		"a bad name":                              {"name: Support Team", `p.yaml:1: name: "Support Team": want 1 to 63`},
		"an unknown key":                          {"name: a\nstartt: 0.5", `p.yaml:2: startt: unknown key, did you mean start?`},
		"an unknown key of a section":             {"name: a\nsummary:\n  writter: model", `p.yaml:3: summary.writter: unknown key, did you mean summary.writer?`},
		"a key twice":                             {"name: a\nstart: 0.5\nstart: 0.6", `p.yaml:3: start: given twice, first in line 2`},
		"the section of the configuration":        {"name: a\npolicy: {start: 0.5}", `p.yaml:2: policy: unknown key`},
		"a duration without a unit":               {"name: a\ncooldown: 10", `p.yaml:2: cooldown: 10: want a duration such as 500ms`},
		"a value out of range":                    {"name: a\nstart: 80", `p.yaml:2: start: 80: want a fraction of the window`},
		"a target above the start":                {"name: a\nstart: 0.5\ntarget: 0.6", `p.yaml:3: target: 0.6: want less than start (0.5)`},
		"a start in tokens, and a fraction":       {"name: a\nstart_tokens: 9000\ntarget: 0.3", `p.yaml: target_tokens: 0: want a number of tokens below start_tokens`},
		"a gain that cannot be reached":           {"name: a\nstart_tokens: 900\ntarget_tokens: 800\nmin_gain_tokens: 500", `p.yaml:4: min_gain_tokens: 500: want at most start_tokens − target_tokens (100)`},
		"an unknown strategy":                     {"name: a\npipeline:\n  - strategy: truncate", `p.yaml:3: pipeline[0]: truncate: want a step that can be run (unknown strategy`},
		"an unknown parameter":                    {"name: a\npipeline:\n  - strategy: truncation\n    params: {max: 3}", `p.yaml:3: pipeline[0]: truncation: want a step that can be run`},
		"an unknown preset":                       {"name: a\npreset: chatty", `p.yaml:2: preset: "chatty": want one of chat,`},
		"a match that is no map":                  {"name: a\nmatch: agent", `p.yaml:2: match: "agent": want a map of texts`},
		"a match with a number":                   {"name: a\nmatch: {agent: 3}", `p.yaml:2: match[agent]: 3: want text (put it in quotes)`},
		"a match without a value":                 {"name: a\nmatch: {agent: \"\"}", `p.yaml:2: match[agent]: "": want a key and a text`},
		"a match of the default":                  {"name: default\nmatch: {agent: x}", `p.yaml:2: match: want none`},
		"a schedule":                              {"name: a\ncron: \"@daily\"", `p.yaml:2: cron: has no effect: schedules are those of the configuration (policy.cron)`},
		"a debounce":                              {"name: a\ndebounce: 3s", `p.yaml:2: debounce: has no effect`},
		"a fraction beside tokens":                {"name: a\nstart: 0.5\nstart_tokens: 9000\ntarget_tokens: 5000", `p.yaml:2: start: has no effect: start_tokens replaces it`},
		"summaries that no step writes":           {"name: a\npipeline: [{strategy: truncation}]\nsummary: {focus: x}", `p.yaml:3: summary.focus: has no effect: no step of the pipeline writes summaries`},
		"a prompt that no model gets":             {"name: a\nsummary: {writer: extractive, instruction: x}", `p.yaml:2: summary.instruction: has no effect: summary.writer is extractive`},
		"a guard that another one makes needless": {"name: a\nguards:\n  min_interval: 30m\n  max_per_hour: 2", `p.yaml:4: guards.max_per_hour: 2: want less than the 2 that min_interval (30m) allows`},
		"a guard out of range":                    {"name: a\nguards: {max_per_day: -1}", `p.yaml:2: guards.max_per_day: -1: want 0 to 1000`},
		"an unknown guard":                        {"name: a\nguards:\n  midturn: wait", `p.yaml:3: guards.midturn: unknown key, did you mean guards.mid_turn?`},
		"a guard of sessions that are left alone": {"name: a\nguards:\n  service_managed: true\n  max_per_day: 3", `p.yaml:4: guards.max_per_day: has no effect: guards.service_managed leaves the sessions alone`},
		"a limit without tokens":                  {"name: a\nguards:\n  auto_compact_limits: {gpt: many}", `p.yaml:3: guards.auto_compact_limits[gpt]: "many": want a whole number`},
		"a trigger with an unknown word":          {"name: a\ntriggers:\n  - {name: x, when: usd > 0.8}", `p.yaml:3: triggers[0].when: "usd > 0.8": want a condition over the words of`},
		"a trigger with an unknown key":           {"name: a\ntriggers:\n  - {name: x, if: used > 0.8}", `p.yaml:3: triggers[0].if: unknown key`},
		"a trigger without a limit":               {"name: a\ntriggers:\n  - {name: x, when: turn_completed}", `p.yaml:3: triggers[0].when: "turn_completed": want in each alternative of ||`},
		"a trigger below the target":              {"name: a\ntriggers:\n  - {name: x, when: used > 0.4}\ntarget: 0.5", `p.yaml:3: triggers[0].when: "used > 0.4": want a size above the target`},
		"an unknown way to nest conditions":       {"name: a\ntriggers:\n  - {name: x, when: {some: [closed]}}", `p.yaml:3: triggers[0].when: a map: want a condition such as`},
		"a start that triggers replace":           {"name: a\nstart: 0.8\ntriggers:\n  - {name: x, when: used > 0.8}", `p.yaml:2: start: has no effect: triggers say when a session is due`},
		"two documents":                           {"name: a\n---\nname: b", `p.yaml: more than one YAML document`},
		"no YAML":                                 {"name: [", `p.yaml: `},
	} {
		_, err := ReadPolicy("p.yaml", []byte(tt.file), registry())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	_, err := ReadPolicy("p.yaml", []byte("name: A\nbegin_at: 1\ncron: x\nstart: 7"), registry())
	if n := len(strings.Split(err.Error(), "\n")); n < 4 {
		t.Errorf("not all that is wrong is listed: %v", err)
	}
}
