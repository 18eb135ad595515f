package chat

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// Merge returns what a provider is sent of a view: the calls of one batch that stand in several
// messages are one message, as providers want them, with the reasoning between them. view
// describes messages, in the same order; messages is returned as it is if nothing is to be
// merged. The SQL function view does the same.
func Merge(view []Meta, messages []Message) []Message {
	if !slices.ContainsFunc(view, func(m Meta) bool { return isCall(&m) && m.Has(Parallel) }) {
		return messages
	}
	out := make([]Message, 0, len(messages))
	first, last := -1, -1 // of the batch, in out
	for i := range view {
		m := &view[i]
		switch {
		case isCall(m) && m.Has(Parallel) && first >= 0:
			for _, x := range append(slices.Clone(out[last+1:]), messages[i]) {
				out[first] = out[first].merged(x)
			}
			out, last = out[:first+1], first
			continue
		case isCall(m):
			first, last = len(out), len(out)
		case !m.reasoningOnly():
			first = -1
		}
		out = append(out, messages[i])
	}
	return out
}

// merged returns m followed by more of the same batch as one message.
func (m Message) merged(more Message) Message {
	m.ToolCalls = slices.Concat(m.ToolCalls, more.ToolCalls)
	m.Content = m.Content.merged(more.Content)
	if m.Reasoning = joined(m.Reasoning, more.Reasoning); m.ReasoningKey == "" {
		m.ReasoningKey = more.ReasoningKey
	}
	if len(more.Extra) == 0 {
		return m
	}
	if m.Extra = maps.Clone(m.Extra); m.Extra == nil {
		m.Extra = map[string]json.RawMessage{}
	}
	for key, raw := range more.Extra {
		old := m.Extra[key]
		a, errA := rawjson.ParseArray(old)
		b, errB := rawjson.ParseArray(raw)
		switch {
		case old == nil || string(old) == "null":
			m.Extra[key] = raw
		case errA == nil && errB == nil && len(b) > 0:
			m.Extra[key] = rawjson.List(slices.Concat(a, b))
		case rawjson.Kind(old) == '"' && rawjson.Kind(raw) == '"' && strings.Contains(key, "reasoning"):
			m.Extra[key] = json.RawMessage(appendString(nil, joined(rawjson.Text(old), rawjson.Text(raw))))
		}
	}
	return m
}

func (c Content) merged(more Content) Content {
	if c.Parts == nil && more.Parts == nil {
		return Content{Text: joined(c.Text, more.Text), Null: c.Null && more.Null || joined(c.Text, more.Text) == ""}
	}
	return Content{Parts: slices.Concat(c.parts(), more.parts())}
}

// parts returns the content as parts.
func (c Content) parts() []Part {
	if c.Parts != nil || c.Text == "" {
		return c.Parts
	}
	return []Part{{Type: "text", Text: c.Text, Raw: json.RawMessage(append(appendString([]byte(`{"type":"text","text":`), c.Text), '}'))}}
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}
