package cli

import (
	"regexp"
	"strings"
	"testing"
)

func TestTheDiskBudgetIsShownAndWhatHelpsWhenItIsExceeded(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	var out strings.Builder
	show := func(env []string, what string, flags ...string) {
		for _, command := range []string{"doctor", "stats"} {
			for line := range strings.Lines(invoke(t, env, append([]string{command}, flags...)...).want(t, 0).stdout) {
				if strings.Contains(line, "disk") {
					out.WriteString(what + ": " + regexp.MustCompile(`[0-9.]+ MB of `).ReplaceAllString(line, "SIZE of "))
				}
			}
		}
	}
	show(db, "without a budget")
	show(db, "below it", "--scheduler-disk-budget=1TB")
	show(db, "above it", "--scheduler-disk-budget=1MB")
	damage(t, db, `INSERT INTO runs (sid, trigger, status, outcome, queued_at, ended_at) SELECT sid, 'event', 'skipped', 'ineffective', now() - interval '2 days', now() - interval '2 days' FROM sessions`)
	show(db, "with more to archive", "--scheduler-disk-budget=1MB")
	damage(t, db, `INSERT INTO disk_passes (run, words, freed) VALUES (1000, 0, 200000000)`)
	show(db, "with room that was freed", "--scheduler-disk-budget=1MB")
	reader := append([]string{"DATABASE_URL=" + roleLogin(t, db[0][len("DATABASE_URL="):], "compactor_reader")}, db[1:]...)
	show(reader, "for a reader, below it", "--scheduler-disk-budget=1TB")
	damage(t, db, `INSERT INTO tenant_bindings SELECT rolname, 'default' FROM pg_roles WHERE rolcanlogin AND NOT rolsuper`)
	show(reader, "for a reader of one tenant", "--scheduler-disk-budget=1TB")
	golden(t, "disk_budget", out.String())
	if got := decode[statsJSON](t, invoke(t, db, "stats", "--json", "--scheduler-disk-budget=2MB").want(t, 0)); got.Disk == nil || got.Disk.Budget != 2e6 || got.Disk.Freed != 2e8 || got.Disk.Bytes < 1e6 {
		t.Errorf("%+v", got.Disk)
	}
	invoke(t, db, "stats", "--scheduler-disk-budget=200").want(t, exitUsage, "scheduler.disk_budget: 200: want a size with its unit")
}
