package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	after := time.Date(2026, time.March, 7, 12, 0, 30, 0, time.UTC)
	tests := map[string]struct {
		cron, zone string
		want       []string // RFC 3339
		err        string
	}{
		"every night at three, UTC": {
			cron: "0 3 * * *", zone: "UTC",
			want: []string{"2026-03-08T03:00:00Z", "2026-03-09T03:00:00Z"},
		},
		"a descriptor is read in the zone": {
			cron: "@daily", zone: "Europe/Berlin",
			want: []string{"2026-03-08T00:00:00+01:00", "2026-03-09T00:00:00+01:00"},
		},
		"an interval is aligned, whoever asks and when": {
			cron: "@every 15m", zone: "UTC",
			want: []string{"2026-03-07T12:15:00Z", "2026-03-07T12:30:00Z"},
		},
		"white space around a spec does not matter": {
			cron: " 30 4 * * 1-5 ", zone: "UTC",
			want: []string{"2026-03-09T04:30:00Z", "2026-03-10T04:30:00Z"},
		},
		"a zone in the spec, on which the parser panics, is refused": {cron: "TZ=UTC", zone: "UTC", err: "the zone in timezone, not in cron"},
		"a zone in the spec is refused":                              {cron: "CRON_TZ=UTC 0 3 * * *", zone: "UTC", err: "the zone in timezone, not in cron"},
		"a day that never comes is refused":                          {cron: "0 0 31 2 *", zone: "UTC", err: "at least once a year"},
		"a day that comes every four years is refused":               {cron: "0 0 29 2 *", zone: "UTC", err: "at least once a year"},
		"less than a minute is refused":                              {cron: "@every 59s", zone: "UTC", err: "@every with whole seconds, 1m to 8784h"},
		"no interval is refused":                                     {cron: "@every 0s", zone: "UTC", err: "@every with whole seconds, 1m to 8784h"},
		"broken seconds are refused":                                 {cron: "@every 1m0.5s", zone: "UTC", err: "@every with whole seconds, 1m to 8784h"},
		"seconds as a sixth field are refused":                       {cron: "0 0 3 * * *", zone: "UTC", err: "expected exactly 5 fields, found 6"},
		"nothing is refused":                                         {cron: "", zone: "UTC", err: "empty spec string"},
		"a zone of this machine is refused":                          {cron: "0 3 * * *", zone: "Local", err: "UTC or an IANA zone"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Default()
			p.Cron, p.Timezone = tc.cron, tc.zone
			times, err := p.Schedule().Times()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got error %v, want %q", err, tc.err)
				}
				if p.Validate() == nil {
					t.Error("Validate accepts it")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range times.NextN(2, after) {
				got = append(got, r.Format(time.RFC3339))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"0 3 * * *", "TZ=", "CRON_TZ=UTC", "@every 1h", "*/0 * * * *", "1-5/2,7 * ? JAN-DEC mon", "@", "- - - - -"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		p := Default()
		p.Cron = spec
		times, err := p.Schedule().Times()
		if err != nil {
			return
		}
		if next := times.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); next.IsZero() || next.Year() > 2027 {
			t.Errorf("%q is accepted and runs at %v", spec, next)
		}
	})
}
