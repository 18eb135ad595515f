package chat

import (
	"encoding/json"
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
	first, last := -1, -1 // calls of the batch, in out
	end := func() {
		if first < last {
			if m, err := merged(out[first : last+1]); err == nil { // else a raw value is no JSON
				out = slices.Replace(out, first, last+1, m)
			}
		}
		first, last = -1, -1
	}
	for i := range view {
		m := &view[i]
		switch {
		case isCall(m) && m.Has(Parallel) && first >= 0:
			last = len(out)
		case isCall(m):
			end()
			first, last = len(out), len(out)
		case !m.reasoningOnly():
			end()
		}
		out = append(out, messages[i])
	}
	end()
	return out
}

// joinedTexts are the keys of texts that merged joins.
var joinedTexts = []string{"content", "reasoning", "reasoning_content", "reasoning_text", "thinking"}

// merged returns the messages of one batch as one, with what they have for each key but null and "".
func merged(batch []Message) (m Message, err error) {
	given := map[string][]json.RawMessage{}
	var calls []ToolCall // those made in Go stay without Raw
	for i := range batch {
		calls = append(calls, batch[i].ToolCalls...)
		o, err := rawjson.ParseObject(batch[i].Body().AppendJSON(nil))
		if err != nil {
			return m, err
		}
		for key, raw := range o {
			if s := string(raw); s != "null" && s != `""` {
				given[key] = append(given[key], raw)
			}
		}
	}
	all := rawjson.Object{}
	for key, values := range given {
		all[key] = joined(key, values)
	}
	err = m.UnmarshalJSON(all.JSON())
	m.ToolCalls, m.ID, m.SourceID, m.CreatedAt = calls, batch[0].ID, batch[0].SourceID, batch[0].CreatedAt
	return m, err
}

// joined returns the values of a key as one: lists, texts of joinedTexts and parts of content are
// joined, of others the first stays.
func joined(key string, values []json.RawMessage) json.RawMessage {
	var texts []string
	var list []json.RawMessage
	for _, raw := range values {
		switch rawjson.Kind(raw) {
		case '"':
			texts = append(texts, rawjson.Text(raw))
			if key == "content" {
				list = append(list, rawjson.Build("type", "text", "text", raw).JSON())
			}
		case '[':
			more, _ := rawjson.ParseArray(raw) // which is valid
			list = append(list, more...)
		}
	}
	switch kind := rawjson.Kind(values[0]); {
	case kind == '[', key == "content" && len(texts) < len(values):
		return rawjson.List(list)
	case kind == '"' && slices.Contains(joinedTexts, key):
		return appendString(nil, strings.Join(texts, "\n\n"))
	}
	return values[0]
}
