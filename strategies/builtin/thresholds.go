package builtin

import "github.com/sessionstore/compactor/strategies/chat"

// Thresholds are token limits derived from a model's context window.
type Thresholds struct {
	// Compress is the prompt size from which compression starts.
	Compress chat.Tokens
	// Tail is the size of the newest messages to keep.
	Tail chat.Tokens
	// Summary is the maximum size of a summary.
	Summary chat.Tokens
}

const (
	minimumThreshold = chat.Tokens(64_000)
	maximumSummary   = chat.Tokens(12_000)
)

// ThresholdsWithin returns Compress as the share percent (for example 0.5) of the window, but
// at least 64,000, or 85 percent of a window that is not larger than that; Tail as the share
// ratio of Compress, between 0.1 and 0.8; and Summary as a twentieth of the window, at most
// 12,000. Fractions are truncated.
func ThresholdsWithin(window chat.Tokens, percent, ratio float64) Thresholds {
	compress := max(chat.Tokens(float64(window)*percent), minimumThreshold)
	if compress >= window {
		compress = chat.Tokens(float64(window) * 0.85)
	}
	return thresholdsFrom(compress, window, ratio)
}

func thresholdsFrom(compress, window chat.Tokens, ratio float64) Thresholds {
	return Thresholds{
		Compress: compress,
		Tail:     chat.Tokens(float64(compress) * min(max(ratio, 0.10), 0.80)),
		Summary:  min(chat.Tokens(float64(window)*0.05), maximumSummary),
	}
}
