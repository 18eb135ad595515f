package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// RunDiff is the change of a view by a run.
type RunDiff struct {
	// Out are the messages that it took out of the view, by reason, and In those that it brought back.
	Out []DiffPart `json:"out"`
	In  []DiffPart `json:"in"`
	// Stays are those that it left in the view.
	Stays DiffPart `json:"stays"`
	// Wrote are the summaries and replacements that it wrote.
	Wrote []MessageRow `json:"wrote"`
}

// DiffPart is a part of the messages of a change.
type DiffPart struct {
	Reason string `json:"reason,omitempty"`
	// SummarizedBy is the id of the summary or replacement in their place; empty for none.
	SummarizedBy string      `json:"summarized_by,omitempty"`
	Seqs         string      `json:"seqs"` // as ranges: {[3,8),[9,10)}
	Messages     int64       `json:"messages"`
	Tokens       chat.Tokens `json:"tokens"` // as they are stored
}

// Diff returns the change of the view by an applied run. ErrNotFound names it; ErrNotApplicable: it
// changed nothing.
func (s Reader) Diff(ctx context.Context, id RunID) (RunDiff, error) {
	r, err := s.Run(ctx, id)
	if err != nil {
		return RunDiff{}, err
	}
	if r.Status != StatusApplied {
		return RunDiff{}, fmt.Errorf("run %d is %s and changed nothing: %w", id, r.Status, ErrNotApplicable)
	}
	d, wrote, err := s.diff(ctx, s.pool, id)
	if err != nil || len(wrote) == 0 {
		return d, wrap(fmt.Sprintf("run %d", id), err)
	}
	msgs, err := s.Among(ctx, Key{r.Tenant, r.Session}, wrote)
	d.Wrote = MessageRows(msgs)
	return d, err
}

// diff returns the change of the view by an applied run, and the seqs of what it wrote.
func (s Reader) diff(ctx context.Context, db querier, id RunID) (d RunDiff, wrote chat.Ranges, err error) {
	const query = `
		WITH r AS (
			SELECT sid, kind, live_before - live_after AS gone, live_after - live_before AS back, coalesce(appended, '{}') AS wrote,
				live_before * live_after * int8multirange(int8range(1, applied_seq + 1)) AS stays
			FROM compactor.runs WHERE id = $1 AND status = 'applied'),
		parts AS (
			SELECT 'out' AS part, e.reason, (SELECT l.id FROM compactor.message_log l WHERE l.sid = e.sid AND l.seq = e.summary_seq) AS summary, e.seqs * r.gone AS seqs
			FROM r JOIN compactor.exclusions e ON e.sid = r.sid AND e.run = $1
			UNION ALL SELECT 'out', CASE r.kind WHEN 'undo' THEN 'undone' ELSE r.kind END, NULL, r.gone - coalesce((SELECT range_agg(x)
				FROM compactor.exclusions e CROSS JOIN LATERAL unnest(e.seqs) x WHERE e.sid = r.sid AND e.run = $1), '{}') FROM r
			UNION ALL SELECT 'in', '', NULL, r.back FROM r
			UNION ALL SELECT 'stays', '', NULL, r.stays FROM r)
		SELECT p.part, p.reason, coalesce(p.summary, ''), p.seqs::text, c.messages, c.tokens, r.wrote::text FROM r CROSS JOIN parts p
		CROSS JOIN LATERAL (SELECT count(*) AS messages, coalesce(sum(l.token_count), 0) AS tokens FROM unnest(p.seqs) x
			CROSS JOIN LATERAL (SELECT m.token_count FROM compactor.message_log m
				WHERE m.sid = r.sid AND m.seq >= lower(x) AND m.seq < upper(x) OFFSET 0) l) c
		WHERE p.part = 'stays' OR NOT isempty(p.seqs)`
	d = RunDiff{Out: []DiffPart{}, In: []DiffPart{}, Wrote: []MessageRow{}}
	var part string
	var p DiffPart
	rows, _ := db.Query(ctx, s.q(query), id) // rows hold the error
	_, err = pgx.ForEachRow(rows, []any{&part, &p.Reason, &p.SummarizedBy, &p.Seqs, &p.Messages, &p.Tokens, rangesText{&wrote}}, func() error {
		switch part {
		case "out":
			d.Out = append(d.Out, p)
		case "in":
			d.In = append(d.In, p)
		default:
			d.Stays = p
		}
		return nil
	})
	return d, wrote, err
}

// UndoPreview says what an undo with cascade would do.
type UndoPreview struct {
	Run RunID `json:"run"`
	// Later are the runs that it would take along, the newest first.
	Later []RunID `json:"later"`
	// Restores counts the messages whose content it would bring back from the archive.
	Restores       int64   `json:"restores"`
	MessagesBefore int64   `json:"messages_before"`
	MessagesAfter  int64   `json:"messages_after"`
	TokensBefore   int64   `json:"tokens_before"`
	TokensAfter    int64   `json:"tokens_after"`
	Diff           RunDiff `json:"diff"`
}

// PreviewUndo returns the effects of an Undo, which it makes and rolls back: its errors are those of
// Undo.
func (s Reader) PreviewUndo(ctx context.Context, k Key, run RunID) (p UndoPreview, err error) {
	const inForce = `SELECT r.id FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid
		WHERE s.tenant = $1 AND s.id = $2 AND r.in_force AND r.id > $3 ORDER BY r.id DESC`
	p = UndoPreview{Run: run, Later: []RunID{}}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		before, err := collectRows(ctx, s.Store, tx, pgx.RowTo[RunID], inForce, k.tenant(), k.Session, run)
		if err != nil {
			return err
		}
		undo, err := restoringOn(ctx, s.Store, tx, k, func(n int64) { p.Restores += n }, func() (id RunID, err error) {
			err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				return mapError(tx.QueryRow(ctx, s.q(queryUndo), k.tenant(), k.Session, run, true, "").Scan(&id))
			})
			return id, err
		})
		if err != nil {
			return err
		}
		after, err := collectRows(ctx, s.Store, tx, pgx.RowTo[RunID], inForce, k.tenant(), k.Session, run)
		if err != nil {
			return err
		}
		for _, id := range before {
			if !slices.Contains(after, id) {
				p.Later = append(p.Later, id)
			}
		}
		err = tx.QueryRow(ctx, s.q(`SELECT messages_before, messages_after, tokens_before, tokens_after FROM compactor.runs WHERE id = $1`), undo).
			Scan(&p.MessagesBefore, &p.MessagesAfter, &p.TokensBefore, &p.TokensAfter)
		if err == nil {
			p.Diff, _, err = s.diff(ctx, tx, undo)
		}
		return cmp.Or(err, errRollback)
	})
	if errors.Is(err, errRollback) {
		err = nil
	}
	return p, wrap("undo", err)
}

const queryUndo = `SELECT compactor.undo_run($1, $2, $3, $4, $5)`
