package formats

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// keptKeys has those of formats also for calls. The SQL function parse_messages has the same.
var keptKeys = []string{
	"anthropic", "claude_code", "codex", "is_compact_summary", "is_error", "is_meta", "parent_id", "pi", "responses", "sharegpt",
}

// KeptKeys returns the keys that the readers of this package set in messages beside those of chat-completions.
func KeptKeys() []string { return slices.Clone(keptKeys) }

// WithoutKeys returns a message without KeptKeys, also of its calls, as providers refuse what they do not know, and
// counts them in losses. m is not changed.
func WithoutKeys(m chat.Message, losses Losses) chat.Message {
	lose := func(o object, kind string) (rest object, n int) {
		rest = o.Without(keptKeys...)
		if n = len(o) - len(rest); n > 0 {
			losses[kind] += n
		}
		return rest, n
	}
	m.Extra, _ = lose(m.Extra, "extra")
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i, c := range m.ToolCalls {
		o, err := rawjson.ParseObject(c.Raw)
		if err != nil || m.Legacy {
			continue
		}
		if rest, n := lose(o, "call extra"); n > 0 {
			m.ToolCalls[i].Raw = rest.JSON()
		}
	}
	return m
}
