package plan

import "context"

// Request is a prompt for a summarizer. It is a function of the messages alone, above all
// not of the clock. Prompts made by Turns and Handoff have secrets masked (see Redact);
// other strategies pass messages on unchanged.
type Request struct {
	// System is the system prompt, empty if User contains everything.
	System string
	// User is the user prompt with the messages to summarize.
	User string
	// Focus is the topic to favour. It is already part of User.
	Focus string
	// MaxTokens limits the answer; 0 leaves the limit to the model.
	MaxTokens int
}

// Summarizer writes summaries. Implementations are safe for concurrent use and return the
// model's answer unchanged, even if it is empty.
type Summarizer interface {
	Summarize(ctx context.Context, r Request) (string, error)
}

// Func adapts a function to a Summarizer.
type Func func(ctx context.Context, r Request) (string, error)

// Summarize implements Summarizer.
func (f Func) Summarize(ctx context.Context, r Request) (string, error) { return f(ctx, r) }
