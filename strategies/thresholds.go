package strategies

import "github.com/sessionstore/compactor/strategies/chat"

// Thresholds are sizes in tokens that follow from a model's context window.
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

// ThresholdsOf computes them: the share percent (0.5, say) of the window, 64,000 at
// least, even where the window is smaller; of that the share ratio, between 0.1 and
// 0.8, for the tail; a twentieth of the window, 12,000 at most, for a summary.
// Fractions of a token are cut off.
func ThresholdsOf(window chat.Tokens, percent, ratio float64) Thresholds {
	return thresholdsFrom(max(chat.Tokens(float64(window)*percent), minimumThreshold), window, ratio)
}

func thresholdsFrom(compress, window chat.Tokens, ratio float64) Thresholds {
	return Thresholds{
		Compress: compress,
		Tail:     chat.Tokens(float64(compress) * min(max(ratio, 0.10), 0.80)),
		Summary:  min(chat.Tokens(float64(window)*0.05), maximumSummary),
	}
}

// thresholdsWithin returns those of ThresholdsOf, or of 85 percent of the window where it
// would be full before it is compressed, or hold nothing but the tail.
func thresholdsWithin(window chat.Tokens, percent, ratio float64) Thresholds {
	if t := ThresholdsOf(window, percent, ratio); t.Compress < window {
		return t
	}
	return thresholdsFrom(chat.Tokens(float64(window)*0.85), window, ratio)
}
