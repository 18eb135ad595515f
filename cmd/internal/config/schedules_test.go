package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/policy"
)

func loadText(t *testing.T, text string, environ ...string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(LoadOptions{Path: path, Environ: environ})
	if err != nil {
		text := strings.ReplaceAll(err.Error(), path, "c.yaml")
		return c, &SettingError{Problem: text}
	}
	return c, nil
}

func TestSchedulesAreRead(t *testing.T) {
	t.Parallel()
	const text = `schedules:
  nightly: {cron: "0 3 * * *", timezone: Europe/Berlin, window: 4h, overlap: skip, catch_up: 6h, jitter: 5m, canary: 0.05}
  weekly-archive: {every: 12h, tenant: acme, pause_after_failure: true}
`
	c, err := loadText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]policy.Schedule{
		"nightly": {
			Cron: "0 3 * * *", Timezone: "Europe/Berlin", Window: 4 * time.Hour, Overlap: policy.OverlapSkip, CatchUp: 6 * time.Hour, Jitter: 5 * time.Minute, Canary: 0.05,
		},
		"weekly-archive": {Every: 12 * time.Hour, Timezone: "UTC", Tenant: "acme", Overlap: policy.OverlapBufferOne, PauseAfterFailure: true},
	}
	if diff := cmp.Diff(want, c.Schedules); diff != "" {
		t.Error(diff)
	}
	for _, e := range c.Entries() {
		if e.Key == "schedules" && (!strings.Contains(e.Value, `"window":"4h"`) || !strings.HasSuffix(e.Origin, "c.yaml:1")) {
			t.Errorf("printed as %+v", e)
		}
	}
	// A variable replaces all of them.
	c, err = loadText(t, text, "COMPACTOR_SCHEDULES={hourly: {cron: '@hourly'}}")
	if err != nil || len(c.Schedules) != 1 || c.Schedules["hourly"].Cron != "@hourly" || c.Origin("schedules.nightly.cron").Source != FromEnv {
		t.Errorf("%+v, %v", c.Schedules, err)
	}
}

func TestFaultsOfSchedulesNameLineAndReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a bad cron":           {"schedules:\n  nightly:\n    cron: 0 25 * * *\n", `c.yaml:3: schedules.nightly.cron: "0 25 * * *": want five cron fields`},
		"no time":              {"schedules:\n  nightly:\n    window: 1h\n", `c.yaml:2: schedules.nightly.cron: "": want five cron fields`},
		"a bad name":           {"schedules:\n  Night Shift: {cron: '@daily'}\n", `c.yaml:2: schedules.Night Shift: "Night Shift": want a name of 1 to 63`},
		"an unknown key":       {"schedules:\n  nightly: {cron: '@daily', overlapp: skip}\n", "c.yaml:2: schedules.nightly.overlapp: unknown key, did you mean overlap?"},
		"a bad unit":           {"schedules:\n  nightly: {cron: '@daily', window: 4}\n", "c.yaml:2: schedules.nightly.window: 4: want a duration such as"},
		"a bad overlap":        {"schedules:\n  nightly:\n    cron: '@daily'\n    overlap: queue\n", `c.yaml:4: schedules.nightly.overlap: "queue": want buffer_one, skip, cancel_other`},
		"a bad canary":         {"schedules:\n  nightly: {cron: '@daily', canary: 5}\n", "c.yaml:2: schedules.nightly.canary: 5: want a share up to 1, such as 0.05, or 0 for none"},
		"a list":               {"schedules: [nightly]\n", "c.yaml:1: schedules: a list: want a map from name to schedule"},
		"no schedule":          {"schedules:\n  nightly: daily\n", `c.yaml:2: schedules.nightly: "daily": want {cron: …, every: …`},
		"a name twice":         {"schedules:\n  a: {cron: '@daily'}\n  a: {cron: '@hourly'}\n", "c.yaml:3: schedules.a: given twice, first in line 2"},
		"a bad tenant":         {"schedules:\n  a: {cron: '@daily', tenant: \"a\\tb\"}\n", `c.yaml:2: schedules.a.tenant: "a\tb": want 1 to 200 characters`},
		"the policy's cron":    {"policy:\n  cron: 0 4 * * *\nschedules:\n  a: {cron: '@daily'}\n", "c.yaml:2: policy.cron: given beside schedules: want one of them: as schedules.nightly.cron, or no schedules"},
		"the policy's zone":    {"policy:\n  timezone: Europe/Berlin\nschedules:\n  a: {cron: '@daily'}\n", "c.yaml:2: policy.timezone: given beside schedules"},
		"the window of sweeps": {"scheduler:\n  sweep_window: 1h\nschedules:\n  a: {cron: '@daily'}\n", "c.yaml:2: scheduler.sweep_window: given beside schedules"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadText(t, c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one error: %v", err)
			}
		})
	}
}
