package plan

import "context"

// Request is what a summarizer is asked. It depends on nothing but what is to be
// summarized, above all not on the clock. What Redact recognises is masked where it
// comes from Turns and Handoff; other strategies pass on what was said.
type Request struct {
	// System is the instruction, empty where User holds everything.
	System string
	// User is what is to be summarized, with what frames it.
	User string
	// Focus is a topic that the summary should favour, already part of User.
	Focus string
	// MaxTokens bounds the answer; 0 leaves that to the model.
	MaxTokens int
}

// Summarizer writes a summary. Implementations are safe for concurrent use and
// return the model's words as they are; an empty answer is no error here, though a
// strategy may not accept it.
type Summarizer interface {
	Summarize(ctx context.Context, r Request) (string, error)
}

// Func is a Summarizer made of a function.
type Func func(ctx context.Context, r Request) (string, error)

// Summarize implements Summarizer.
func (f Func) Summarize(ctx context.Context, r Request) (string, error) { return f(ctx, r) }
