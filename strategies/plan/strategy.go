package plan

import (
	"context"
	"errors"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Strategy plans a compaction. Implementations are immutable and safe for concurrent use.
type Strategy interface {
	// Name returns the name of the strategy. It is shown as the reason for exclusions that
	// give none.
	Name() string
	// Plan returns the changes to the view; an empty plan changes nothing. It must not
	// change the transcript. It need not satisfy the invariants of a view, which the guard
	// enforces.
	Plan(ctx context.Context, t *Transcript) (chat.Plan, error)
}

// Reader is implemented by strategies that read content. Reads names the messages that Plan
// reads; the pipeline loads them before it calls Plan and releases them afterwards.
type Reader interface {
	Reads(t *Transcript) []chat.Seq
}

// Pinner is implemented by strategies that pin messages for the rest of a run: later steps,
// the fallback and the guard leave them unchanged. Pins is called after Plan with the same
// transcript.
type Pinner interface {
	Pins(t *Transcript) ([]chat.Seq, error)
}

// Truncator is implemented by strategies that, in a view without pins, only drop the oldest groups.
type Truncator interface {
	Strategy
	Truncation() Truncation
}

// Truncation describes which groups go: of a view of more than Most messages, or tokens, the oldest until
// at most Leave are left, except for the newest and, with PreserveSystem, system messages.
type Truncation struct {
	Most, Leave    int64
	Tokens         bool
	PreserveSystem bool
}

// ErrNoSummarizer is returned when a strategy that needs a summarizer is created without
// one.
var ErrNoSummarizer = errors.New("needs a summarizer, and none is configured")

// ErrNoSummary is wrapped by the error of a strategy that got no summary. It does not fail
// the run: the plan returned with it is applied, and the step reports the reason.
var ErrNoSummary = errors.New("no summary")

// ErrEmptySummary is wrapped together with ErrNoSummary if the model's answer is empty.
var ErrEmptySummary = errors.New("the answer is empty")

// Loader reads the content of messages. The result holds every requested seq.
type Loader func(ctx context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error)

// Counter counts the tokens of a message.
type Counter interface {
	Name() string
	Message(m *chat.Message) chat.Tokens
}

// AdditionCounter is implemented by counters whose count of an addition depends on the
// covered messages. The addition has no ID when it is counted.
type AdditionCounter interface {
	Addition(a *chat.Addition) chat.Tokens
}
