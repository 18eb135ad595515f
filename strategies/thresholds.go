package strategies

import "github.com/sessionstore/compactor/strategies/chat"

// Thresholds are the sizes that follow from a model's context window.
type Thresholds struct {
	// Compress is the size of a prompt from which on it is compressed.
	Compress chat.Tokens
	// Tail is how much of the newest messages stays as it is.
	Tail chat.Tokens
	// Summary is the most that a summary may have.
	Summary chat.Tokens
}

const (
	minimumThreshold = chat.Tokens(64_000)
	maximumSummary   = chat.Tokens(12_000)
)

// ThresholdsOf computes them: percent of the window, 64,000 at least; of that the
// ratio, between 0.1 and 0.8, for the tail; a twentieth of the window, 12,000 at
// most, for a summary. Fractions of a token are cut off.
func ThresholdsOf(window chat.Tokens, percent, ratio float64) Thresholds {
	compress := max(chat.Tokens(float64(window)*percent), minimumThreshold)
	return Thresholds{
		Compress: compress,
		Tail:     chat.Tokens(float64(compress) * min(max(ratio, 0.10), 0.80)),
		Summary:  min(chat.Tokens(float64(window)*0.05), maximumSummary),
	}
}
