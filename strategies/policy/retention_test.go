package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestRetentionIsOffUnlessItIsWrittenAndPurgesOnlyWhatWasArchived(t *testing.T) {
	t.Parallel()
	if p := Default(); p.Retention != (Retention{}) {
		t.Errorf("by default %+v", p.Retention)
	}
	for _, c := range []struct {
		r    Retention
		want string
	}{
		{Retention{}, ""},
		{Retention{30 * day, 0}, ""},
		{Retention{30 * day, 365 * day}, ""},
		{Retention{time.Hour, 0}, "retention.archive_after: 1h: want 0s, or 1d to 3650d"},
		{Retention{30 * day, -day}, "retention.purge_after"},
		{Retention{0, 30 * day}, "retention.purge_after: 720h: want archive_after, too"},
	} {
		p := Default()
		p.Retention = c.r
		err := p.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.r, err, c.want)
		}
		if err != nil {
			continue
		}
		spec, err := Spec(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ReadSpec(spec); err != nil || again.Retention != c.r {
			t.Errorf("%+v is read as %+v, %v", c.r, again.Retention, err)
		}
	}
	var r Retention
	if err := json.Unmarshal([]byte(`{"archive_before": "1h"}`), &r); err == nil {
		t.Error("an unknown key is read")
	}
}

func TestDurationsMayHaveDays(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{"30d": 30 * day, "1d12h": 36 * time.Hour, "90m": 90 * time.Minute, "0d": 0} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "d", "1.5d", "3 days", "1dx"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("%q is read as %v", in, got)
		}
	}
	if Days(30*day) != "30d" || Days(90*time.Minute) != "1h30m" {
		t.Errorf("%s, %s", Days(30*day), Days(90*time.Minute))
	}
}
