package attach

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/store"
)

// Drain reads rows that were noted, and a page of the backfill, and brings them into the log. It returns the number of
// sessions that it has read, and whether there may be more.
func (a *Attachment) Drain(ctx context.Context) (n int, more bool, err error) {
	var noted []string
	var last *string
	var done, changed bool
	err = store.InTx(ctx, a.st, "read notes", func(tx pgx.Tx) error {
		const query = `
			SELECT array(SELECT DISTINCT session::text
				FROM (SELECT session FROM @.notes WHERE session IS NOT NULL LIMIT 25 * $1) n LIMIT $1), last, done,
				EXISTS (SELECT FROM @.notes WHERE session IS NULL) FROM @.backfill`
		return tx.QueryRow(ctx, a.names.Replace(query), sessionsPage).Scan(&noted, &last, &done, &changed)
	})
	if changed {
		defer func() {
			err = errors.Join(err, &store.Error{
				Kind: store.ErrNotApplicable, Message: a.Table + " was changed while it was attached, and rows are not read since: detach and attach it again",
			})
		}()
	}
	if err == nil {
		err = each(ctx, noted, func(ctx context.Context, session string) error { return later(a.DrainSession(ctx, session)) })
	}
	if done || ctx.Err() != nil {
		return len(noted), err == nil && len(noted) == sessionsPage, err
	}
	n, failed := a.backfill(ctx, last)
	return len(noted) + n, n > 0 || err == nil && len(noted) == sessionsPage, errors.Join(err, failed)
}

// later returns nil in place of an error that the next drain, for which the notes are there, may not meet.
func later(err error) error {
	if errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrInUse) {
		return nil
	}
	return err
}

// each calls f for several sessions at once. A session that cannot be read keeps no other from being read: the first
// error is returned at the end.
func each[T any](ctx context.Context, list []T, f func(context.Context, T) error) error {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, x := range list {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return f(ctx, x)
		})
	}
	return g.Wait()
}

// backfill reads the sessions behind last, as many as have rowsPage rows together, and returns their number: 0 when
// there are no more. The rows of all are read at once, as a table without an index of its sessions is read as a whole
// for that.
func (a *Attachment) backfill(ctx context.Context, last *string) (int, error) {
	type page struct {
		session string
		rows    []*row
	}
	var pages []*page
	of := map[string]*page{}
	err := store.InTx(ctx, a.st, "backfill", func(tx pgx.Tx) error {
		var names []string
		var counts []int64
		const behind = `SELECT coalesce(array_agg(session::text), '{}'), coalesce(array_agg(rows), '{}') FROM @.sessions_behind($1, $2)`
		if err := tx.QueryRow(ctx, a.names.Replace(behind), last, rowsPage).Scan(&names, &counts); err != nil {
			return err
		}
		total := int64(0)
		for i, n := range counts {
			if total += n; i > 0 && total > rowsPage {
				break
			}
			pages = append(pages, &page{session: names[i]})
			of[names[i]] = pages[i]
		}
		rows, _ := tx.Query(ctx, a.names.Replace(`SELECT session::text, `+rowColumns+` FROM @.read_sessions($1)`), names[:len(pages)]) // rows hold the error
		var session string
		var r row
		_, err := pgx.ForEachRow(rows, append([]any{&session}, r.fields()...), func() error {
			if p := of[session]; p != nil {
				one := r
				p.rows = append(p.rows, &one)
			}
			return nil
		})
		return err
	})
	var failed error
	if err == nil {
		failed = each(ctx, pages, func(ctx context.Context, p *page) error {
			err := store.InTx(ctx, a.st, "drain rows of session "+p.session, func(tx pgx.Tx) error {
				return (&drain{Attachment: a, ctx: ctx, tx: tx, session: p.session}).first(p.rows)
			})
			if errors.Is(err, errLogged) {
				err = a.DrainSession(ctx, p.session)
			}
			if err != nil { // the next drains try it again
				err = errors.Join(later(err), store.InTx(ctx, a.st, "note session "+p.session, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, a.names.Replace(`INSERT INTO @.notes (session) VALUES ($1)`), p.session)
					return err
				}))
			}
			return err
		})
		err = ctx.Err()
	}
	if err != nil {
		return 0, err
	}
	if len(pages) > 0 {
		last = &pages[len(pages)-1].session
	}
	return len(pages), errors.Join(failed, store.InTx(ctx, a.st, "backfill", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, a.names.Replace(`UPDATE @.backfill SET last = $1, done = $2`), last, len(pages) == 0)
		return err
	}))
}
