package cli

import (
	"fmt"
	"testing"
	"time"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/policy"
)

func TestInstallationsOnOneRedisKeepTheirRuns(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(t *testing.T, first string) (dsn, schema string){
		"two schemas of a database": func(t *testing.T, first string) (dsn, schema string) {
			t.Helper()
			if _, err := migrations.Up(t.Context(), first, "staging"); err != nil {
				t.Fatal(err)
			}
			return first, "staging"
		},
		// Both are copies of one template, as databases restored from a dump are.
		"two databases of a server": func(t *testing.T, _ string) (dsn, schema string) {
			t.Helper()
			return migratedDB(t), migrations.DefaultSchema
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const sessions = 200
			redis, dsn := storetest.RealRedis(t), migratedDB(t)
			plants := map[string]*plant{"first": newPlantIn(t, redis, dsn, migrations.DefaultSchema)}
			dsn, schema := second(t, dsn)
			plants["second"] = newPlantIn(t, redis, dsn, schema)
			for name, p := range plants {
				// Metadata decides, but more than the database does without a worker.
				p.config.Worker.Name, p.config.Policy.Pipeline = name, []policy.Step{{Strategy: "sliding_window", Params: map[string]any{"keep_last_groups": 2}}}
				p.config.Scheduler.RedeliverAfter = time.Hour // a task that is taken by the other is not replaced
				for i := range sessions {
					k := store.Key{Session: fmt.Sprintf("s%d", i)}
					if _, _, err := p.store.Import(t.Context(), k, "", transcript(k.Session, overStart)); err != nil {
						t.Fatal(err)
					}
				}
				p.start(schedules, works)
				p.sweep()
			}
			for name, p := range plants {
				p.await("all runs of the "+name+" have ended", func() bool {
					b, err := p.store.Scheduler.Backlog(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return b.Due+b.Queued+b.Running == 0
				})
				runs, err := p.store.Operator.Runs(t.Context(), store.RunFilter{Limit: 10 * sessions})
				if err != nil {
					t.Fatal(err)
				}
				own := 0
				for _, r := range runs {
					if r.Status == "applied" && r.Worker == name {
						own++
					}
				}
				if own != sessions || len(runs) != sessions {
					t.Errorf("%d of %d runs of the %s are applied by its worker, want %d", own, len(runs), name, sessions)
				}
			}
		})
	}
}
