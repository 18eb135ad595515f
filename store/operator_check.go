package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

const (
	queryCheck = `SELECT live::text, reasoning_out::text, reasoning_since IS NOT NULL FROM compactor.sessions WHERE sid = $1`
	// queryPast returns the past views of a session, without the first.
	queryPast = `
		SELECT r.applied_seq, r.live_after::text,
			(coalesce(CASE WHEN r.kind = 'undo' THEN u.reasoning_before ELSE r.reasoning_before END, '{}')
				+ coalesce(r.reasoning_taken, '{}'))::text
		FROM compactor.runs r LEFT JOIN compactor.runs u ON u.id = r.undoes
		WHERE r.sid = $1 AND r.status = 'applied' ORDER BY r.revision`
	queryLog = selectMetas + ` FROM compactor.message_log m WHERE m.sid = $1`
)

// snapshotTx reads all rows as of one moment.
var snapshotTx = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// Violations returns the violations of a session's view: those of chat.Check, and where the
// session's model binds reasoning to the messages before it, those of chat.CheckReasoning.
func (s Admin) Violations(ctx context.Context, sid int64) (found []chat.Violation, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, snapshotTx, func(tx pgx.Tx) error {
		metas := func(query string) ([]chat.Meta, error) {
			rows, _ := tx.Query(ctx, s.q(query), sid) // rows hold the error
			return collectMetas(rows, 0, chat.Open)
		}
		var now chat.Past
		var binds bool
		if err := tx.QueryRow(ctx, s.q(queryCheck), sid).Scan(rangesText{&now.Live}, rangesText{&now.Out}, &binds); err != nil {
			return err
		}
		view, err := metas(queryViewMetas)
		if err == nil {
			view, err = s.withReasoning(ctx, tx, sid, view, &now.Out)
		}
		if err != nil {
			return err
		}
		found = chat.Check(view)
		if !binds || !slices.ContainsFunc(view, func(m chat.Meta) bool { return m.Signed() }) {
			return nil
		}
		past := []chat.Past{{Live: chat.Ranges{{Lo: 1, Hi: chat.Open}}}}
		var p chat.Past
		rows, _ := tx.Query(ctx, s.q(queryPast), sid) // rows hold the error
		_, err = pgx.ForEachRow(rows, []any{&p.Since, rangesText{&p.Live}, rangesText{&p.Out}}, func() error {
			past = append(past, p)
			return nil
		})
		if err != nil {
			return err
		}
		log, err := metas(queryLog)
		if err == nil {
			found = append(found, chat.CheckReasoning(log, now, past)...)
		}
		return err
	})
	return found, wrap("check view", err)
}
