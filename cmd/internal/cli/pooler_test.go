package cli

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
)

// Two processes of serve and several applications share the four server connections.
func TestServeWorksThroughPgBouncer(t *testing.T) {
	t.Parallel()
	for name, pipeline := range pipelines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			direct := p.config.Database.URL.Reveal()
			p.config.Database.URL = config.Secret(storetest.PgBouncer(t, direct))
			p.config.Policy.Pipeline = pipeline
			p.backlog(20)
			p.start(schedules, works)
			p.start(schedules, works)
			p.sweep()
			var applications sync.WaitGroup
			for a := range 6 {
				applications.Go(func() {
					st, err := store.Open(t.Context(), StoreConfig(p.config))
					if err != nil {
						t.Error(err)
						return
					}
					defer st.Close()
					for i := range 4 {
						k := store.Key{Session: fmt.Sprintf("application-%d-%d", a, i)}
						if _, _, err := st.Append(t.Context(), k, "gpt-4o", transcript(k.Session, overStart)); err != nil {
							t.Error(err)
						}
						if view, _, err := st.View(t.Context(), k); err != nil || len(view) == 0 {
							t.Errorf("a view of %d messages, %v", len(view), err)
						}
					}
				})
			}
			applications.Go(func() { // one that uses SQL, as the README shows it
				c, err := pgx.ParseConfig(p.config.Database.URL.Reveal())
				if err != nil {
					t.Error(err)
					return
				}
				c.DefaultQueryExecMode = pgx.QueryExecModeExec
				conn, err := pgx.ConnectConfig(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close(t.Context())
				for i := range 50 {
					if _, err := conn.Exec(t.Context(), `SELECT compactor.append('default', 'sql', json_build_array(
						json_build_object('id', $1::text, 'role', 'user', 'content', 'hello')), 'gpt-4o')`, fmt.Sprint(i)); err != nil {
						t.Error(err)
					}
				}
			})
			applications.Wait()
			p.awaitRest()
			p.wantOneEffect()
			if n := p.number(`SELECT count(*) FROM compactor.runs WHERE status = 'failed' OR failures > 0`); n != 0 {
				t.Errorf("%d runs have failed", n)
			}
			if n := p.number(`SELECT count(*) FROM compactor.sessions WHERE id LIKE 'application-%' AND revision > 0`); n != 24 {
				t.Errorf("%d of 24 sessions of applications were compacted", n)
			}
		})
	}
}

func TestCommandsWorkThroughPgBouncer(t *testing.T) {
	t.Parallel()
	db := database(t)
	direct := db[0]
	db[0] = "DATABASE_URL=" + storetest.PgBouncer(t, direct[len("DATABASE_URL="):])
	startWorker(t, db, map[string]string{"policy.start_tokens": "600", "policy.target_tokens": "300", "policy.min_gain_tokens": "50"})
	for _, args := range [][]string{
		{"migrate", "up"},
		{"migrate", "status"},
		{"import", file(t, "s.jsonl", conversation("chat", 8))},
		{"sessions"},
		{"view", "chat", "--all"},
		append([]string{"compact", "chat"}, small...),
		{"runs", "chat"},
		{"undo", "1"},
		{"export", "chat"},
		{"import", "--from-sql", db[0][len("DATABASE_URL="):], "--query", "SELECT 'copy' AS session_id, 'user' AS role, 'hello' AS content"},
		{"doctor", "--deep"},
	} {
		invoke(t, db, args...).want(t, 0)
	}
	invoke(t, db, "doctor").want(t, 0, "through a pooler")
	invoke(t, []string{direct, db[1]}, "doctor").want(t, 0)
}
