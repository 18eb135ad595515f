package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/store"
)

// Attachment is an attached table. Its methods are safe for concurrent use, also by several processes.
type Attachment struct {
	Spec
	Schema    string    `json:"schema"`
	CreatedAt time.Time `json:"created_at"`

	st     *store.Store
	preset Preset
	names  *strings.Replacer
}

// List returns the attachments of an installation, by name.
func List(ctx context.Context, st *store.Store) (all []*Attachment, err error) {
	err = store.InTx(ctx, st, "list attachments", func(tx pgx.Tx) error {
		query := `SELECT spec, in_schema, created_at FROM ` + store.Schema(st) + `.attachments ORDER BY name`
		rows, _ := tx.Query(ctx, query) // rows hold the error
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Attachment, error) {
			a := &Attachment{st: st}
			if err := row.Scan(&a.Spec, &a.Schema, &a.CreatedAt); err != nil {
				return nil, err
			}
			for _, p := range Presets() {
				if p.Name == a.Preset {
					a.preset = p
				}
			}
			a.names = strings.NewReplacer("@.", a.Schema+".", "compactor.", store.Schema(st)+".")
			return a, nil
		})
		return err
	})
	return all, err
}

// Get returns an attachment by its name. store.ErrNotFound: there is none.
func Get(ctx context.Context, st *store.Store, name string) (*Attachment, error) {
	all, err := List(ctx, st)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range all {
		_, table, _ := strings.Cut(a.Table, ".")
		if slices.Contains([]string{a.Name, a.Table, table}, name) {
			return a, nil
		}
		names = append(names, a.Name)
	}
	attached := "no table is attached"
	if len(names) > 0 {
		attached = "attached are: " + strings.Join(names, ", ")
	}
	return nil, &store.Error{Kind: store.ErrNotFound, Message: fmt.Sprintf("there is no attachment %s (%s)", name, attached)}
}

// Tries of statements that wait for a lock on the application's table, and how long one waits. While it waits,
// writers wait behind it.
const (
	lockTries = 20
	lockWait  = time.Second
)

// Apply attaches the table: see SQL. It waits for transactions that write to the table, a second at a time, so that
// writers do not wait longer than that. store.ErrBusy: the table was never free.
func (p *Plan) Apply(ctx context.Context, st *store.Store) (*Attachment, error) {
	statements, err := p.SQL(store.Schema(st))
	if err != nil {
		return nil, err
	}
	failed := retryLock(ctx, st, "attach", statements)
	a, err := Get(ctx, st, p.Name)
	if failed != nil && err == nil { // by another process, since it was planned
		return nil, &store.Error{Kind: store.ErrInUse, Message: p.Name + " is attached already"}
	}
	return a, cmp.Or(failed, err)
}

// Detach drops all of the attachment, when the last notes are drained: a deletion that was noted is not forgotten.
// The table and its rows stay as they are, and so do the sessions in the log. store.ErrInUse: notes cannot be drained
// now; force drops them.
func (a *Attachment) Detach(ctx context.Context, force bool) error {
	if !force {
		if err := a.drainAll(ctx); err != nil {
			return err
		}
	}
	if others, err := a.others(ctx); err != nil || len(others) > 0 {
		return cmp.Or(err, error(&store.Error{
			Kind: store.ErrInUse, Message: fmt.Sprintf("the schema %s has tables of others: %s", a.Schema, strings.Join(others, ", ")),
			Hint: "move them to their schema (ALTER TABLE … SET SCHEMA public): they would be dropped",
		}))
	}
	drop := `DROP SCHEMA ` + a.Schema + ` CASCADE; DELETE FROM compactor.attachments WHERE name = ` + literal(a.Name)
	return retryLock(ctx, a.st, "detach", a.names.Replace(drop))
}

// others returns the tables in the schema of the attachment that are not its own, as a program whose search_path begins
// with it has made them.
func (a *Attachment) others(ctx context.Context) (names []string, err error) {
	err = store.InTx(ctx, a.st, "detach", func(tx pgx.Tx) error {
		const query = `SELECT coalesce(array_agg(c.relname::text ORDER BY c.relname), '{}') FROM pg_class c
			WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p', 'm', 'f') AND c.relname <> ALL ('{sessions,rows,notes,backfill}')`
		return tx.QueryRow(ctx, query, a.Schema).Scan(&names)
	})
	return names, err
}

// Grant gives roles that have got rights on the table since it was attached the same on the view.
func (a *Attachment) Grant(ctx context.Context) error {
	return store.InTx(ctx, a.st, "grant rights", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, a.names.Replace(`SELECT @.grant_rights()`))
		return err
	})
}

// drainAll drains until no notes are left. store.ErrInUse: some cannot be drained.
func (a *Attachment) drainAll(ctx context.Context) error {
	var left int64
	for range 3 { // what is busy the first time may be free the next
		for more := true; more; {
			var err error
			if _, more, err = a.Drain(ctx); err != nil {
				return fmt.Errorf("detach: rows that were noted cannot be read (force forgets them): %w", err)
			}
		}
		s, err := a.Status(ctx)
		if left = s.Notes; err != nil || left == 0 {
			return err
		}
	}
	return &store.Error{
		Kind: store.ErrInUse, Message: fmt.Sprintf("%d noted rows of %s cannot be drained now, such as those of an open tool loop", left, a.Table),
		Hint: "try it later, or --force forgets them",
	}
}

// retryLock executes statements in a transaction, and tries again if a lock is not acquired in time.
func retryLock(ctx context.Context, st *store.Store, op, statements string) error {
	for try := 1; ; try++ {
		err := store.InTx(ctx, st, op, func(tx pgx.Tx) error {
			set := fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL client_min_messages = warning", lockWait.Milliseconds())
			if _, err := tx.Exec(ctx, set); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, statements)
			return err
		})
		if try == lockTries || !errors.Is(err, store.ErrBusy) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockWait / 4):
		}
	}
}

// Difference is a row of which the log has something else than the table.
type Difference struct {
	Session string `json:"session"`
	Key     string `json:"key"`
	Text    string `json:"difference"`
}

// Status is how an attachment stands.
type Status struct {
	Sessions int64 `json:"sessions"`
	Rows     int64 `json:"rows"`
	Messages int64 `json:"messages"` // of these rows
	// Notes are rows that are to be read.
	Notes int64 `json:"notes"`
	// Faults are rows that are no message.
	Faults int64 `json:"faults"`
	// Fenced reports that the table has got row-level security, which the view does not heed.
	Fenced bool `json:"row_level_security,omitempty"`
	// Ungranted are roles with rights on the table that they have not on the view, as they were granted later.
	Ungranted []string `json:"roles_without_rights,omitempty"`
	// Backfilled is false while rows that were there before are being read.
	Backfilled bool `json:"backfilled"`
}

// Status counts.
func (a *Attachment) Status(ctx context.Context) (s Status, err error) {
	err = store.InTx(ctx, a.st, "count attached rows", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		const query = `
			SELECT (SELECT count(*) FROM @.sessions), count(*), coalesce(sum(cardinality(ids)), 0),
				(SELECT count(*) FROM @.notes), count(*) FILTER (WHERE fault IS NOT NULL),
				(SELECT done FROM @.backfill), EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
					WHERE c.relrowsecurity AND n.nspname || '.' || c.relname = $1 AND to_regproc($2) IS NOT NULL)
			FROM @.rows WHERE NOT gone`
		err := tx.QueryRow(ctx, a.names.Replace(query), a.Table, a.Schema+".history").Scan(
			&s.Sessions, &s.Rows, &s.Messages, &s.Notes, &s.Faults, &s.Backfilled, &s.Fenced)
		var view bool
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT to_regproc($1) IS NOT NULL`, a.Schema+".lacking").Scan(&view)
		}
		if err == nil && view {
			err = tx.QueryRow(ctx, a.names.Replace(`SELECT coalesce(array_agg(role), '{}') FROM @.lacking()`)).Scan(&s.Ungranted)
		}
		return err
	})
	return s, err
}

// Check compares each row of the table with what was read of it and with the log, and returns the number of rows that
// differ with the first of them. It reads the whole table. Rows whose notes wait are left out. With repair, the next
// drain reads the rows that differ.
func (a *Attachment) Check(ctx context.Context, most int, repair bool) (total int64, first []Difference, err error) {
	err = store.InTx(ctx, a.st, "compare attached rows", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0; SET LOCAL work_mem = '64MB'; SET LOCAL jit = off"); err != nil {
			return err
		}
		query := `WITH d AS MATERIALIZED (SELECT * FROM @.differences())`
		if repair {
			query += `, noted AS (INSERT INTO @.notes (session, key) SELECT session, key FROM d WHERE session IS NOT NULL)`
		}
		query += ` SELECT count(*) OVER (), coalesce(session::text, ''), key, difference FROM d ORDER BY session, key LIMIT $1`
		rows, _ := tx.Query(ctx, a.names.Replace(query), max(1, most)) // rows hold the error
		var d Difference
		_, err := pgx.ForEachRow(rows, []any{&total, &d.Session, &d.Key, &d.Text}, func() error {
			first = append(first, d)
			return nil
		})
		return err
	})
	return total, first, err
}

// CutOff counts sessions whose view has more rows than the application reads.
type CutOff struct {
	Rows     int   `json:"rows"`
	Sessions int64 `json:"sessions"`
}

// CutOff counts the sessions whose view has more than so many messages; 0 is the default of the program whose table
// it is, if it has one. An application that reads no more than its newest rows does not see the summary of such a
// session.
func (a *Attachment) CutOff(ctx context.Context, rows int) (c CutOff, err error) {
	if c.Rows = cmp.Or(rows, a.preset.Rows); c.Rows == 0 {
		return c, nil
	}
	err = store.InTx(ctx, a.st, "count sessions", func(tx pgx.Tx) error {
		const query = `
			SELECT count(*) FROM @.sessions a JOIN compactor.sessions s ON s.tenant = a.tenant AND s.id = a.id
			WHERE s.live_messages > $1 AND s.revision > 0`
		return tx.QueryRow(ctx, a.names.Replace(query), c.Rows).Scan(&c.Sessions)
	})
	return c, err
}

// WindowSetting names the setting by which the program limits how many rows it reads.
func (a *Attachment) WindowSetting() string { return cmp.Or(a.preset.Window, "raise its limit") }

// isData reports whether an error is one of the values in rows, such as text that is no JSON, or of a name.
func isData(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pg.Code, "22") || pg.Code == "42602")
}
