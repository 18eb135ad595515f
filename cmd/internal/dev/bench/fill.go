package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

const (
	fleetStart, fleetTarget = 20_000, 10_000
	fleetMessages           = 21 // so that an answer is the last
	fleetTenant             = "fleet"
	templateTenant          = "template"
	templates               = 32 // of sessions that are due, and as many of others
	fillBatch               = 20_000
)

// fillFleet adds sessions to those that there are, as copies of imported ones: of so many the
// first due, then the others. Their messages have no words, which no sweep reads.
func (s *system) fillFleet(ctx context.Context, sessions, due int) error {
	// The reference costs a third of the time, and the copies have it by the way that they are made.
	const unbind = `ALTER TABLE message_log DROP CONSTRAINT message_log_sid_fkey`
	const bind = `ALTER TABLE message_log ADD CONSTRAINT message_log_sid_fkey FOREIGN KEY (sid) REFERENCES sessions NOT VALID`
	if _, err := s.db.pool.Exec(ctx, unbind); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	for done := 0; done < sessions; {
		kind, most := "due", due
		if done >= due {
			kind, most = "calm", sessions
		}
		n := min(fillBatch, most-done)
		if err := s.copySessions(ctx, kind, n); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		done += n
		s.env.Progress("filling", done, sessions)
	}
	if _, err := s.db.pool.Exec(ctx, bind); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return s.db.vacuum(ctx)
}

// makeTemplates imports the sessions that are copied, and holds them.
func (s *system) makeTemplates(ctx context.Context, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // reproducible
	for i := range templates {
		for kind, least := range map[string]int{"due": fleetStart + fleetMessages, "calm": fleetStart / 4} {
			each := chat.Tokens((least + random.IntN(fleetStart/2)) / fleetMessages)
			k := store.Key{Tenant: templateTenant, Session: fmt.Sprint(kind, i)}
			if _, _, err := s.store.Import(ctx, k, "job", session(fleetMessages, 60, each, true)); err != nil {
				return err
			}
		}
	}
	_, err := s.db.pool.Exec(ctx, `UPDATE sessions SET due = false, hold_seq = last_source_seq WHERE tenant = $1`, templateTenant)
	return err
}

// copySessions adds n copies of the templates of a kind.
func (s *system) copySessions(ctx context.Context, kind string, n int) error {
	const copies = ` FROM (SELECT $1::bigint + i AS sid, k.sid AS of FROM generate_series(1, $2::int) i
		JOIN (SELECT sid, row_number() OVER (ORDER BY sid) - 1 AS n FROM sessions WHERE tenant = $3 AND id LIKE $4 || '%') k ON k.n = i % $5::int) c `
	return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		var last int64
		if err := tx.QueryRow(ctx, `SELECT max(sid) FROM sessions`).Scan(&last); err != nil {
			return err
		}
		args := []any{last, n, templateTenant, kind, templates}
		own, err := columns(ctx, tx, "sessions", "sid", "tenant", "id", "due", "hold_seq")
		if err != nil {
			return err
		}
		insert := `INSERT INTO sessions (sid, tenant, id, due` + own("") + `) OVERRIDING SYSTEM VALUE
			SELECT c.sid, $6, 's' || c.sid, $4 = 'due'` + own("t.") + copies + `JOIN sessions t ON t.sid = c.of ORDER BY c.sid`
		if _, err := tx.Exec(ctx, insert, append(args, fleetTenant)...); err != nil {
			return err
		}
		if own, err = columns(ctx, tx, "message_log", "sid"); err != nil {
			return err
		}
		insert = `INSERT INTO message_log (sid` + own("") + `) SELECT c.sid` + own("t.") + copies + `JOIN message_log t ON t.sid = c.of ORDER BY c.sid, t.seq`
		if _, err := tx.Exec(ctx, insert, args...); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT setval(pg_get_serial_sequence('sessions', 'sid'), $1)`, last+int64(n))
		return err
	})
}

// columns returns a list of the columns of a table but some, each after a comma and a qualifier.
func columns(ctx context.Context, tx pgx.Tx, table string, but ...string) (list func(qualifier string) string, err error) {
	rows, _ := tx.Query(ctx, `SELECT quote_ident(attname) FROM pg_attribute
		WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attname <> ALL ($2::text[]) ORDER BY attnum`, table, but) // rows hold the error
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return func(qualifier string) string {
		var b strings.Builder
		for _, n := range names {
			b.WriteString(", " + qualifier + n)
		}
		return b.String()
	}, err
}
