package summary

import (
	"context"
	"time"
)

// Answers keep what was paid for, so that it is paid for once. Their errors end the run:
// it is delivered again, and asks again.
type AnswerStore interface {
	// Ask is called before a model is. An answer, with what it cost, means that it was paid
	// for before, and rejected, if not empty, that it is known to be no summary; otherwise
	// id is the call to make.
	Ask(ctx context.Context, key, promptHash string) (id int64, a *StoredAnswer, rejected string, err error)
	// Answer stores the answer to a call, before anything is done with it, and even if the
	// run's time is up: it was paid for.
	Answer(ctx context.Context, id int64, a StoredAnswer) error
	// Fail stores that a call had no answer, and what it cost all the same, even if the
	// run's time is up.
	Fail(ctx context.Context, id int64, code string, a StoredAnswer) error
	// Reject stores that the answer under a key is no summary.
	Reject(ctx context.Context, key, code string) error
}

// Answer is what a model said, and what that took.
type StoredAnswer struct {
	Text, Model, FinishReason string
	Attempts                  int
	// Tokens.
	Input, Cached, Output, Reasoning int64
	CostMicros                       int64
	Took                             time.Duration
}

// forgetful pays for every answer.
type noStore struct{}

func (noStore) Ask(context.Context, string, string) (int64, *StoredAnswer, string, error) {
	return 1, nil, "", nil
}
func (noStore) Answer(context.Context, int64, StoredAnswer) error       { return nil }
func (noStore) Fail(context.Context, int64, string, StoredAnswer) error { return nil }
func (noStore) Reject(context.Context, string, string) error            { return nil }
