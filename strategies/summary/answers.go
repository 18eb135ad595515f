package summary

import (
	"context"
	"time"
)

// AnswerStore stores the answers of models, so that each is paid for once. Its errors end
// the delivery of the run, which is then retried.
type AnswerStore interface {
	// Ask is called before each model call. It returns the stored answer with its cost, and
	// the code it was rejected with, if any; without an answer, id identifies the new call.
	// A *plan.Failure means that no model may be asked now: there is no summary, with its code.
	Ask(ctx context.Context, key, promptHash string) (id int64, a *StoredAnswer, rejected string, err error)
	// Answer stores the answer to a call before it is validated, even if ctx is done: it
	// was paid for.
	Answer(ctx context.Context, id int64, a StoredAnswer) error
	// Fail stores that a call failed, and its cost, even if ctx is done.
	Fail(ctx context.Context, id int64, code string, a StoredAnswer) error
	// Reject stores that the answer under a key was rejected.
	Reject(ctx context.Context, key, code string) error
}

// StoredAnswer is the answer of a model, with its usage and cost.
type StoredAnswer struct {
	Text, Model, FinishReason string
	Attempts                  int
	// Tokens.
	Input, Cached, Output, Reasoning int64
	CostMicros                       int64
	Took                             time.Duration
	Estimated                        int    // attempts whose tokens are estimated, as the server reported none
	HTTPStatus                       int    // of the last failed attempt, 0 without a response
	ServerError                      string // of it: see llm.ServerError
}

// noStore is an AnswerStore that stores nothing.
type noStore struct{}

func (noStore) Ask(context.Context, string, string) (int64, *StoredAnswer, string, error) {
	return 1, nil, "", nil
}
func (noStore) Answer(context.Context, int64, StoredAnswer) error       { return nil }
func (noStore) Fail(context.Context, int64, string, StoredAnswer) error { return nil }
func (noStore) Reject(context.Context, string, string) error            { return nil }
