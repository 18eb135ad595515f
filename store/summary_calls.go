package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// SummaryCall names a question to a model: what is asked, and for which claimed run.
type SummaryCall struct {
	Run   RunID
	Fence int64
	// Key is the hash of everything that shapes the answer, PromptHash that of the prompt.
	Key, PromptHash string
}

// SummaryAnswer is what a model answered, and what that took.
type SummaryAnswer struct {
	Text, Model, FinishReason        string
	Attempts                         int
	Input, Cached, Output, Reasoning int64 // tokens
	CostMicros                       int64 // millionths of the unit that prices are in
	Took                             time.Duration
}

// AskSummary is to be called before a model is. Where the question was answered
// before, that answer comes back (id 0), with what it cost, and nothing may be paid
// again; rejected is not empty where it is known to be no summary. Otherwise id is the call to make
// and to end with AnswerSummary or FailSummary. ErrNotApplicable: another worker has
// the run.
func (s *Store) AskSummary(ctx context.Context, c SummaryCall) (id int64, a *SummaryAnswer, rejected string, err error) {
	const query = `
		SELECT a.code, coalesce((a.call).id, 0), coalesce((a.call).answer, ''), coalesce((a.call).model, ''), coalesce((a.call).finish_reason, ''),
			coalesce((a.call).code, ''), coalesce((a.call).cost_micros, 0)
		FROM compactor.ask_summary($1, $2, $3, $4) a`
	var code, why string
	a = &SummaryAnswer{}
	err = s.pool.QueryRow(ctx, s.q(query), c.Run, c.Fence, c.Key, c.PromptHash).Scan(&code, &id, &a.Text, &a.Model, &a.FinishReason, &why, &a.CostMicros)
	switch {
	case err != nil:
		return 0, nil, "", fmt.Errorf("ask for a summary in run %d: %w", c.Run, mapError(err))
	case code == "fenced":
		return 0, nil, "", fmt.Errorf("ask for a summary in run %d: another worker has it: %w", c.Run, ErrNotApplicable)
	case code == "ask":
		return id, nil, "", nil
	}
	return 0, a, why, nil
}

// AnswerSummary stores the answer of a call, before anything is done with it. Storing it
// again changes nothing. ErrNotApplicable: another worker has the run and has asked, too;
// what this answer cost is stored all the same.
func (s *Store) AnswerSummary(ctx context.Context, id int64, a SummaryAnswer) error {
	return s.endCall(ctx, id, "answered", "", &a.Text, a)
}

// FailSummary ends a call that was not answered; a holds what it cost all the same.
func (s *Store) FailSummary(ctx context.Context, id int64, code string, a SummaryAnswer) error {
	return s.endCall(ctx, id, "failed", code, nil, a)
}

func (s *Store) endCall(ctx context.Context, id int64, state, code string, text *string, a SummaryAnswer) error {
	const query = `
		UPDATE compactor.summary_calls c SET state = CASE WHEN late THEN 'lost' ELSE $2 END, code = nullif($3, ''),
			answer = CASE WHEN NOT late THEN $4::text END, model = $5, finish_reason = $6, attempts = $7,
			input_tokens = $8, cached_tokens = $9, output_tokens = $10, reasoning_tokens = $11, cost_micros = $12, took_us = $13,
			ended_at = clock_timestamp()
		FROM (SELECT $2 = 'answered' AND EXISTS (SELECT FROM compactor.summary_calls m JOIN compactor.summary_calls o ON o.key = m.key
			WHERE m.id = $1 AND o.id <> m.id AND o.state IN ('asked', 'answered')) AS late) x
		WHERE c.id = $1 AND c.state IN ('asked', 'lost', $2) RETURNING late`
	late := false
	err := s.pool.QueryRow(ctx, s.q(query), id, state, code, text, a.Model, a.FinishReason, a.Attempts,
		a.Input, a.Cached, a.Output, a.Reasoning, a.CostMicros, a.Took.Microseconds()).Scan(&late)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && late:
		return fmt.Errorf("store the answer to summary call %d: %w", id, ErrNotApplicable)
	case err != nil:
		return fmt.Errorf("store the answer to summary call %d: %w", id, mapError(err))
	}
	return nil
}

// RejectSummary marks the answer under a key as no summary, with the code of why, whichever
// run had bought it: a later run asks again, this one does not.
func (s *Store) RejectSummary(ctx context.Context, run RunID, key, code string) error {
	const query = `UPDATE compactor.summary_calls SET state = 'rejected', code = $3, rejected_in = $1 WHERE key = $2 AND state = 'answered'`
	_, err := s.pool.Exec(ctx, s.q(query), run, key, code)
	return wrap("reject a summary", err)
}

// SummaryCallRow is one call of the ledger.
type SummaryCallRow struct {
	ID                               int64
	Run                              RunID
	State, Code, PromptHash          string
	Model, FinishReason              string
	Attempts                         int
	Input, Cached, Output, Reasoning int64
	CostMicros                       int64
	TookMicros                       int64
	AskedAt                          time.Time
}

// SummaryCalls returns the calls of a run, in order.
func (s *Store) SummaryCalls(ctx context.Context, run RunID) ([]SummaryCallRow, error) {
	const query = `
		SELECT id, run, state, coalesce(code, ''), prompt_hash, coalesce(model, ''), coalesce(finish_reason, ''), attempts,
			input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_micros, coalesce(took_us, 0), asked_at
		FROM compactor.summary_calls WHERE run = $1 ORDER BY id`
	rows, err := s.pool.Query(ctx, s.q(query), run)
	if err != nil {
		return nil, wrap("summary calls", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SummaryCallRow])
	return out, wrap("summary calls", err)
}

// PurgeAnswers forgets the words of answers that ended longer ago than that, at most
// limit of them, and says how many. What they cost stays; a summary that was applied
// is a message and stays, too.
func (s *Store) PurgeAnswers(ctx context.Context, age time.Duration, limit int) (int64, error) {
	const query = `
		UPDATE compactor.summary_calls SET answer = NULL, state = CASE WHEN state = 'answered' THEN 'forgotten' ELSE state END
		WHERE id IN (SELECT id FROM compactor.summary_calls WHERE answer IS NOT NULL AND ended_at < now() - $1::interval
			ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	tag, err := s.pool.Exec(ctx, s.q(query), age, limit)
	return tag.RowsAffected(), wrap("purge answers", err)
}
