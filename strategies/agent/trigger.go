package agent

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Trigger decides when a host that compacts inside its own loop does so: once a share of
// the context window is used. The zero Trigger always fires.
type Trigger struct {
	// Ratio is the share, such as 0.75; if it is 0 the trigger always fires.
	Ratio float64
	// Window is the model's context window in tokens; if it is 0 the trigger always fires.
	Window chat.Tokens
}

// Fires reports whether to compact with the given number of tokens in use, that is, at
// Ratio of the window or above. utilization is the share in use; known is false if the
// trigger fires without computing it.
//
// A Trigger is stateless: it continues to fire if earlier compactions had no effect.
func (t Trigger) Fires(used chat.Tokens) (fires bool, utilization float64, known bool) {
	if t.Ratio <= 0 || t.Window <= 0 {
		return true, 0, false
	}
	utilization = float64(used) / float64(t.Window)
	return utilization >= t.Ratio, utilization, true
}

// UsedTokens returns the total of a provider's usage report, with keys such as
// "model:input_tokens", "model:cache_read_input_tokens", "model:output_text_tokens": all
// input, cached or not, and all output. Keys that break down another one, and keys of other
// units, are ignored. ok is false for an empty report.
func UsedTokens(usage map[string]int64) (used chat.Tokens, ok bool) {
	for key, n := range usage {
		tokens := strings.Contains(key, "token")
		switch {
		case tokens && (strings.Contains(key, ":input") || strings.Contains(key, ":output")),
			strings.HasSuffix(key, ":cache_creation_input_tokens"),
			strings.HasSuffix(key, ":cache_read_input_tokens"):
			used += chat.Tokens(n)
		}
	}
	return used, len(usage) > 0
}

// EstimateTokens returns a rough count for a Trigger without a usage report: a quarter of
// the characters of texts, tool names, arguments and results, at least 1. Unlike Rough it
// ignores media and the structure of the request. In an unfinished tool loop, pass the head
// of SplitMidLoop, as the tail cannot be compacted.
func EstimateTokens(messages []chat.Message) chat.Tokens {
	n := 0
	for i := range messages {
		n += tokens.MessageLength(&messages[i])
	}
	return max(1, chat.Tokens(n/4))
}
