package plan

import (
	"context"
	"errors"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Strategy plans a compaction. Implementations are immutable and safe for
// concurrent use.
type Strategy interface {
	// Name is the name the strategy is registered under; it is the reason that
	// users see on what it excludes unless the plan says otherwise.
	Name() string
	// Plan returns what the strategy wants done to the transcript. It must not
	// change the transcript, and it need not care about invariants: the guard
	// does. An empty plan means there is nothing to do.
	Plan(ctx context.Context, t *Transcript) (chat.Plan, error)
}

// Reader is implemented by strategies that read content. Reads names the
// messages Plan will look at; the pipeline loads them before it calls Plan and
// drops them afterwards.
type Reader interface {
	Reads(t *Transcript) []chat.Seq
}

// Pinner is implemented by strategies that pin messages for the rest of a run: every
// later step, the fallback and the guard keep them as they are. Pins is asked behind
// Plan, with the same transcript.
type Pinner interface {
	Pins(t *Transcript) ([]chat.Seq, error)
}

// ErrNoSummarizer is the error of making a strategy that needs a summarizer where
// none is configured.
var ErrNoSummarizer = errors.New("needs a summarizer, and none is configured")

// ErrNoSummary is wrapped by the error of a strategy that got no summary. That is
// no fault of the strategy: what it planned without one, mostly nothing, is done,
// the step says so, and the pipeline goes on.
var ErrNoSummary = errors.New("no summary")

// errEmptySummary is wrapped with ErrNoSummary where the answer holds nothing.
var ErrEmptySummary = errors.New("the answer is empty")

// Loader reads the content of messages. The result holds every seq asked for.
type Loader func(ctx context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error)

// Counter counts what a message costs in tokens.
type Counter interface {
	Name() string
	Message(m *chat.Message) chat.Tokens
}

// AdditionCounter is implemented by counters to which it matters what a written
// message takes the place of (its id is not known yet when it is counted).
type AdditionCounter interface {
	Addition(a *chat.Addition) chat.Tokens
}
