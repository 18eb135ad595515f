package agent

import (
	"fmt"
	"reflect"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Feedback is the message to a user who requested a compression.
type Feedback struct {
	// Noop reports whether the messages are unchanged.
	Noop bool
	// Headline states the number of messages, TokenLine that of tokens.
	Headline, TokenLine string
	// Note explains an unexpected result, empty for none.
	Note string
}

// FeedbackOn compares a transcript before and after a compression. The caller estimates the
// tokens.
func FeedbackOn(before, after []chat.Message, beforeTokens, afterTokens chat.Tokens) Feedback {
	f := Feedback{Noop: len(before) == len(after)}
	for i := 0; f.Noop && i < len(before); i++ {
		f.Noop = reflect.DeepEqual(before[i], after[i])
	}
	f.Headline = fmt.Sprintf("Compressed: %d → %d messages", len(before), len(after))
	if f.Noop {
		f.Headline = fmt.Sprintf("No changes from compression: %d messages", len(before))
	}
	f.TokenLine = fmt.Sprintf("Rough transcript estimate: ~%s → ~%s tokens", chat.Thousands(beforeTokens), chat.Thousands(afterTokens))
	if f.Noop && beforeTokens == afterTokens {
		f.TokenLine = fmt.Sprintf("Rough transcript estimate: ~%s tokens (unchanged)", chat.Thousands(beforeTokens))
	}
	if !f.Noop && len(after) < len(before) && afterTokens > beforeTokens {
		f.Note = "Note: there are fewer messages, but the summary that was written is larger than what it replaces."
	}
	return f
}
