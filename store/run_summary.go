package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// SummaryCall identifies a request to a model and the claimed run that makes it.
type SummaryCall struct {
	Run   RunID
	Fence int64
	// Key is the hash of all inputs of the answer, PromptHash that of the prompt.
	Key, PromptHash string
}

// SummaryAnswer is the answer of a model with its usage and cost.
type SummaryAnswer struct {
	Text, Model, FinishReason        string
	Attempts                         int
	Input, Cached, Output, Reasoning int64 // tokens
	CostMicros                       int64 // millionths of the unit that prices are in
	Took                             time.Duration
	Estimated                        int    // attempts whose tokens are estimated, as the server reported none
	HTTPStatus                       int    // of the last failed attempt, 0 without a response
	ServerError                      string // of it, as a text that may be shown
}

// AskSummary records a request to a model before it is made. If an answer is stored under the
// key, AskSummary returns it with id 0 and its cost, and the model must not be called; rejected
// is the code of its rejection, empty if it was not rejected. Otherwise id identifies the call
// to make, which AnswerSummary or FailSummary ends. ErrNotApplicable: another worker has the
// run. ErrSpendingLimit: a limit is reached, see LimitSpending.
func (s Worker) AskSummary(ctx context.Context, c SummaryCall) (id int64, a *SummaryAnswer, rejected string, err error) {
	const query = `SELECT ` + askedColumns + ` FROM compactor.ask_summary($1, $2, $3, $4) a`
	return s.ask(ctx, fmt.Sprintf("ask for a summary in run %d", c.Run), query, c.Run, c.Fence, c.Key, c.PromptHash)
}

const askedColumns = `a.code, coalesce((a.call).id, 0), coalesce((a.call).answer, ''), coalesce((a.call).model, ''),
	coalesce((a.call).finish_reason, ''), coalesce((a.call).code, ''), coalesce((a.call).cost_micros, 0)`

func (s Worker) ask(ctx context.Context, name, query string, args ...any) (id int64, a *SummaryAnswer, rejected string, err error) {
	var code, why string
	a = &SummaryAnswer{}
	err = s.pool.QueryRow(ctx, s.q(query), args...).Scan(&code, &id, &a.Text, &a.Model, &a.FinishReason, &why, &a.CostMicros)
	switch {
	case err != nil:
		return 0, nil, "", fmt.Errorf("%s: %w", name, mapError(err))
	case code == "fenced":
		return 0, nil, "", fmt.Errorf("%s: another worker has it: %w", name, ErrNotApplicable)
	case code == "waiting":
		return 0, nil, "", fmt.Errorf("%s: it is being answered: %w", name, ErrBusy)
	case code == "limited":
		return 0, nil, "", ErrSpendingLimit
	case code == "ask":
		return id, nil, "", nil
	}
	return 0, a, why, nil
}

// AskStateless is AskSummary for messages of a tenant that are in no session: Run and Fence of the
// call are not used. Answers are shared by all calls with the key, and so are rejected ones.
// ErrBusy: another caller has asked less than patience ago, and has no answer yet.
func (s Worker) AskStateless(
	ctx context.Context, tenant string, c SummaryCall, patience time.Duration,
) (id int64, a *SummaryAnswer, rejected string, err error) {
	const query = `SELECT ` + askedColumns + ` FROM compactor.ask_stateless($1, $2, $3, $4) a`
	return s.ask(ctx, "ask for a summary", query, tenant, c.Key, c.PromptHash, patience)
}

// AnswerSummary stores the answer of a call; call it before using the answer. Idempotent.
// ErrNotApplicable: another worker has taken over the run and made the same call; the
// cost of this one is stored nevertheless.
func (s Worker) AnswerSummary(ctx context.Context, id int64, a SummaryAnswer) error {
	return s.endCall(ctx, id, "answered", "", &a.Text, a)
}

// ForgetSummary ends a call whose answer is not to be stored; a holds its usage and cost.
func (s Worker) ForgetSummary(ctx context.Context, id int64, a SummaryAnswer) error {
	return s.endCall(ctx, id, "forgotten", "", nil, a)
}

// FailSummary ends a call that failed with code; a holds its usage and cost.
func (s Worker) FailSummary(ctx context.Context, id int64, code string, a SummaryAnswer) error {
	return s.endCall(ctx, id, "failed", code, nil, a)
}

// endCall ends a call in a state. An answer to a call that another worker has repeated, or about
// messages that were erased since, is lost.
func (s Worker) endCall(ctx context.Context, id int64, state, code string, text *string, a SummaryAnswer) error {
	const query = `
		UPDATE compactor.summary_calls c SET state = CASE WHEN late OR $2 = 'answered' AND c.run IS NULL AND c.state = 'lost' THEN 'lost' ELSE $2 END,
			code = nullif($3, ''),
			-- without a run, of a tenant that was erased since
			answer = CASE WHEN NOT late AND (c.run IS NOT NULL OR c.state <> 'lost') THEN $4::text END, model = $5, finish_reason = $6, attempts = $7,
			input_tokens = $8, cached_tokens = $9, output_tokens = $10, reasoning_tokens = $11, cost_micros = $12, took_us = $13,
			ended_at = CASE WHEN c.attempts > 0 THEN c.ended_at ELSE clock_timestamp() END, -- a repeat: its minute may be summed up
			estimated = $14, http_status = nullif($15, 0), server_error = CASE WHEN NOT erased AND c.run IS NOT NULL THEN nullif($16, '') END
		FROM (SELECT erased, $2 = 'answered' AND (erased OR EXISTS (
				SELECT FROM compactor.summary_calls m JOIN compactor.summary_calls o ON o.key = m.key
				WHERE m.id = $1 AND o.id <> m.id AND o.state IN ('asked', 'answered'))) AS late
			FROM (SELECT EXISTS ( -- it was asked about messages that were erased since
				SELECT FROM compactor.summary_calls m JOIN compactor.runs r ON r.id = m.run AND r.fence <> m.fence
				JOIN compactor.runs e ON e.sid = m.sid AND e.id > m.run AND e.kind = 'erase' WHERE m.id = $1) AS erased) e) x
		WHERE c.id = $1 AND c.state IN ('asked', 'lost', $2) RETURNING c.state = 'lost'`
	late := false
	err := s.pool.QueryRow(ctx, s.q(query), id, state, code, text, a.Model, a.FinishReason, a.Attempts,
		a.Input, a.Cached, a.Output, a.Reasoning, a.CostMicros, a.Took.Microseconds(),
		a.Estimated, a.HTTPStatus, a.ServerError).Scan(&late)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && late:
		return fmt.Errorf("store the answer to summary call %d: %w", id, ErrNotApplicable)
	case err != nil:
		return fmt.Errorf("store the answer to summary call %d: %w", id, mapError(err))
	}
	return nil
}

// RejectSummary marks the answer under a key as invalid, with a code, whichever run stored
// it. A later run calls the model again; this run does not.
func (s Worker) RejectSummary(ctx context.Context, run RunID, key, code string) error {
	const query = `
		UPDATE compactor.summary_calls SET state = 'rejected', code = $3, rejected_in = $1
		WHERE key = $2 AND state = 'answered'`
	return execute(ctx, s.Store, "reject a summary", query, run, key, code)
}
