package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// ledgerOf returns a store with runs of a tenant with many sessions, among which each hundredth is of
// one with few, and of each the oldest has failed.
func ledgerOf(t *testing.T, runs int) *Store {
	t.Helper()
	s, _ := openRoles(t)
	exec(t, s, `SELECT compactor.set_labels(CASE WHEN n > 2 THEN 'large' ELSE 'small' END, 's' || n, '{}') FROM generate_series(1, 122) n`)
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, ended_at)
		SELECT s.sid, 'nightly', CASE WHEN n <= 100 THEN 'failed' ELSE 'skipped' END, CASE WHEN n <= 100 THEN 'rare' ELSE 'not_due' END, now()
		FROM generate_series(1, $1) n JOIN compactor.sessions s ON s.id = 's' || CASE WHEN n % 100 = 0 THEN 1 + n / 100 % 2 ELSE 3 + n % 120 END ORDER BY n`, runs)
	exec(t, s, `VACUUM ANALYZE compactor.runs`)
	exec(t, s, `VACUUM ANALYZE compactor.sessions`)
	return s
}

func TestAPageOfRunsReadsABoundedPartOfTheLedger(t *testing.T) {
	t.Parallel()
	const runs, most = 60_000, 1000
	s := ledgerOf(t, runs)
	for _, c := range []struct {
		tenant, session string
		blocks          int
	}{
		{"", "", 600},           // of some 2,000
		{"large", "", 4 * most}, // with a look at the session of each
		{"small", "", 4 * most},
		{"large", "s3", 4 * most},
	} {
		for name, db := range map[string]*Store{"all": s, "a bound store": s.Bound(c.tenant, true)} {
			for _, filter := range []string{"'', 'rare', 0", "'failed', '', 0", "'', '', 9", "'', '', 0"} {
				call := fmt.Sprintf("compactor.runs_page('%s', '%s', %s, 0, 100, %d)", c.tenant, c.session, filter, most)
				rows, _ := db.pool.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM "+call) // rows hold the error
				var out []struct{ Plan planOf }
				noError(t, json.Unmarshal(must(pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]byte]))(t), &out))
				if n := out[0].Plan.Hit + out[0].Plan.Read; n > c.blocks {
					t.Errorf("%s, by %s: %d blocks, want at most %d", call, name, n, c.blocks)
				}
			}
		}
	}
}

func TestPagesOfRunsHaveEachOfThemOnce(t *testing.T) {
	t.Parallel()
	s := ledgerOf(t, 3000)
	for _, tenant := range []string{"", "large", "small"} {
		for _, session := range []string{"", "s2", "s5"} {
			for _, outcome := range []string{"", "rare", "not_due", "none"} {
				want := list[RunID](t, s, `SELECT r.id FROM compactor.runs r JOIN compactor.sessions s USING (sid)
					WHERE $1 IN ('', s.tenant) AND $2 IN ('', s.id) AND $3 IN ('', r.outcome) ORDER BY r.id DESC`, tenant, session, outcome)
				for _, size := range []struct{ limit, most int }{{100, 10}, {7, 250}, {5000, 20_000}} {
					var got []RunID
					pages := 0
					for before := RunID(0); ; pages++ {
						var ids []RunID
						err := s.pool.QueryRow(t.Context(), `SELECT ids, coalesce(next, 0) FROM compactor.runs_page($1, $2, '', $3, 0, $4, $5, $6)`,
							tenant, session, outcome, before, size.limit, size.most).Scan(&ids, &before)
						noError(t, err)
						if got = append(got, ids...); before == 0 || pages > 3000 {
							break
						}
					}
					if !slices.Equal(want, got) {
						t.Errorf("%q %q %q in %v: %d runs in %d pages, want %d", tenant, session, outcome, size, len(got), pages, len(want))
					}
				}
			}
		}
	}
}

// A page may be empty and have a next one.
func TestARareOutcomeIsFoundPageByPage(t *testing.T) {
	t.Parallel()
	s := ledgerOf(t, 20_200)
	f := RunFilter{Outcome: "rare", Limit: 1000}
	rows, next := must2(s.Reader.RunsPage(t.Context(), f))(t)
	if len(rows) > 0 || next == 0 {
		t.Errorf("%d runs, next %d", len(rows), next)
	}
	f.Before = next
	rows, next = must2(s.Reader.RunsPage(t.Context(), f))(t)
	if len(rows) != 100 || next != 0 || rows[0].ID < rows[99].ID {
		t.Errorf("%d runs, next %d", len(rows), next)
	}
	f.Before = 0
	equal(t, 100, len(must(s.Operator.Runs(t.Context(), f))(t)), "runs in all pages")
	equal(t, 100, len(must(s.Operator.Runs(t.Context(), RunFilter{Limit: 100}))(t)), "the newest runs")
}
