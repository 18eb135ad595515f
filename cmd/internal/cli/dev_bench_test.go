//go:build !nodev

package cli

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/bench"
	"github.com/sessionstore/compactor/store/storetest"
)

func TestHelpOfFleetBenchesIsGolden(t *testing.T) {
	t.Parallel()
	golden(t, "help_bench_sweep", invoke(t, nil, "bench", "sweep", "--help").want(t, 0).stdout)
	golden(t, "help_bench_fleet", invoke(t, nil, "bench", "fleet", "--help").want(t, 0).stdout)
}

// The benches of a fleet do what they measure: each due session is compacted once, by the
// database or by a worker, and all sessions follow a change of the policy.
func TestBenchesOfAFleet(t *testing.T) {
	t.Parallel()
	environ := []string{
		"DATABASE_URL=" + storetest.DB(t, "bench", func(context.Context, string) error { return nil }),
		"REDIS_URL=" + storetest.RealRedis(t), "HOME=" + t.TempDir(),
	}
	for how, truncated := range map[string]int64{"--set-based": 30, "--seed=2": 0} {
		var r bench.SweepResult
		out := invoke(t, environ, "bench", "sweep", "--sessions", "60", "--due", "0.5", how, "--json").want(t, 0).stdout
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if r.Sessions != 60 || r.Due != 30 || r.Truncated != truncated || r.RunTwice != 0 || r.Seconds <= 0 || r.WALBytes <= 0 || r.CPUMicros <= 0 {
			t.Errorf("%s: %+v", how, r)
		}
	}
	var r bench.FleetResult
	out := invoke(t, environ, "bench", "fleet", "--sessions", "60", "--due", "10", "--idle", "50ms", "--json").want(t, 0).stdout
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Sizes) == 0 || r.Sizes[0].Found <= 0 || r.Sizes[0].Claimed <= 0 || r.Sizes[0].CPUMicros <= 0 || r.PolicyChanged < 1 || r.PolicyChanged > 10 || r.PolicySeconds <= 0 {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"sweep", "--due", "2"}, {"sweep", "--due", "some"}, {"fleet", "--due", "0"}} {
		invoke(t, environ, append([]string{"bench"}, args...)...).want(t, 1)
	}
}

// A policy is measured on generated sessions, or on those of a file that are large enough.
func TestBenchOfAPolicy(t *testing.T) {
	t.Parallel()
	environ := []string{
		"DATABASE_URL=" + storetest.DB(t, "bench", func(context.Context, string) error { return nil }),
		"REDIS_URL=" + storetest.RealRedis(t), "HOME=" + t.TempDir(),
	}
	var r bench.CompactResult
	args := []string{"bench", "compact", "--tokens=6000", "--rounds=1", "--json"}
	out := invoke(t, environ, append(args, "--policy=default", "--sessions=3")...).want(t, 0).stdout
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Applied != 3 || r.BaselinePerSecond != 0 || r.Bytes < 10_000 || r.Messages < 10 || r.TokensAfter <= 0 || r.TokensAfter > 6000 || r.P50 <= 0 || r.P95 < r.P50 || r.CPUMicros <= 0 {
		t.Errorf("%+v", r)
	}
	_, path := evalFile(t)
	for want, tc := range map[string]struct {
		code  int
		wrong []string
	}{
		"--from: want --policy, too":       {2, []string{"--from=" + path}},
		"unknown policy: want a preset":    {2, []string{"--policy=none"}},
		"no session has more than 6000":    {1, []string{"--policy=default", "--from=" + path}},
		"want --rounds and --tenants of 1": {1, []string{"--policy=default", "--rounds=0"}},
	} {
		invoke(t, environ, append(args, tc.wrong...)...).want(t, tc.code, want)
	}
}
