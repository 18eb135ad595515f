package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

func spec(t *testing.T, p Policy) json.RawMessage {
	t.Helper()
	raw, err := Spec(p)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestASpecIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, preset := range append(PresetNames(), "") {
		p := Default()
		if preset != "" {
			s, err := PresetNamed(preset)
			if err != nil {
				t.Fatal(err)
			}
			p = s.Over(p)
		}
		p.Cooldown, p.Summary.CooldownNoModel = 90*time.Second, 3*time.Hour
		p.Summary.PreTrim = []PreTrim{{Step: TailLines, Lines: 7}}
		p.Windows = map[string]chat.Tokens{"a": 5000}
		p.Guards.MinInterval, p.Guards.AutoCompactLimits = 90*time.Second, map[string]chat.Tokens{"gpt": 5000}
		p.Pipeline = append(p.Pipeline, Step{Strategy: "x", Params: map[string]any{"n": 1e15, "list": []any{"a", 0.1}}})
		got, err := ReadSpec(spec(t, p))
		if err != nil {
			t.Fatal(err)
		}
		if got.FleetHash() != p.FleetHash() || got.Cooldown != p.Cooldown || got.Summary.CooldownNoModel != p.Summary.CooldownNoModel || got.Guards.MinInterval != p.Guards.MinInterval {
			t.Errorf("preset %q: %+v", preset, got)
		}
		if a, b := spec(t, p), spec(t, got); string(a) != string(b) {
			t.Errorf("preset %q (-written +read):\n%s", preset, cmp.Diff(string(a), string(b)))
		}
	}
}

func TestASpecLeavesTheScheduleToTheConfiguration(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Cron, p.Timezone, p.Debounce, p.MaxDelay, p.ModelTable = "@daily", "Europe/Berlin", time.Second, time.Minute, "v"
	if a, b := spec(t, p), spec(t, Default()); string(a) != string(b) {
		t.Errorf("(-default +got):\n%s", cmp.Diff(string(b), string(a)))
	}
}

func TestASpecOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ from, to, want string }{
		"a setting that is not known":            {`"fallback":`, `"new_setting": 1, "fallback":`, "new_setting"},
		"a setting of summaries":                 {`"writer":`, `"new_setting": 1, "writer":`, "new_setting"},
		"a setting of the size":                  {`"share":`, `"new_setting": 1, "share":`, "new_setting"},
		"a parameter of a step that has another": {`"strategy":`, `"new_setting": 1, "strategy":`, "new_setting"},
		"a value that is not valid":              {`"start":0.75`, `"start":7.5`, "start: 7.5"},
		"a duration without a unit":              {`"cooldown":"10m0s"`, `"cooldown":"10"`, "missing unit"},
		"an unknown guard":                       {`"guards":{`, `"guards":{"min_intervall":"1m",`, "min_intervall"},
		"no JSON":                                {`{`, `[`, "cannot be read"},
	} {
		raw := strings.Replace(string(spec(t, Default())), tt.from, tt.to, 1)
		if _, err := ReadSpec([]byte(raw)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	// A setting that it lacks has the default, as for one that a later version adds.
	raw := strings.Replace(string(spec(t, Default())), `"estimate_margin":0.1,`, "", 1)
	if p, err := ReadSpec([]byte(raw)); err != nil || p.EstimateMargin != Default().EstimateMargin {
		t.Errorf("a setting that is missing: %v, %v", p.EstimateMargin, err)
	}
	// A policy without pins was stored without the setting.
	for _, paths := range [][]string{nil, {"RULES.md"}} {
		pins := Default()
		pins.PinPaths = paths
		if p, err := ReadSpec(spec(t, pins)); err != nil || !slices.Equal(p.PinPaths, paths) {
			t.Errorf("pins %v: %v, %v", paths, p.PinPaths, err)
		}
	}
}

func TestDiffNamesSettings(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Start, p.Summary.Size.Max, p.PinTools, p.Summary.Cooldown = 0.7, 9000, []string{"a"}, 2*time.Minute
	got, err := Diff(spec(t, Default()), spec(t, p))
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{"pin_tools", "", `["a"]`}, {"start", "0.75", "0.7"}, {"summary.cooldown", `"1m0s"`, `"2m0s"`}, {"summary.size.max_tokens", "12000", "9000"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	reordered := strings.Replace(string(spec(t, Default())), `{"strategy":"handoff"}`, `{ "strategy" : "handoff" }`, 1)
	if got, err := Diff(spec(t, Default()), json.RawMessage(reordered)); err != nil || len(got) > 0 {
		t.Errorf("another form of the same: %v, %v", got, err)
	}
}
