package formats

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/sessionstore/compactor/strategies/chat"
)

// roundTrips reports whether reading the written session returns an equal one. Writers count
// the expected losses; this finds the others, such as a name that is a list.
func roundTrips(s chat.Session, written []byte, format string) bool {
	r, err := NewReader(bytes.NewReader(written), format)
	if err != nil {
		return false
	}
	read, err := r.Next()
	if err != nil {
		return len(s.Messages) == 0 && len(s.Extra) == 0
	}
	was, err := plainSession(s)
	if err != nil {
		return false
	}
	is, err := plainSession(read.Session)
	return err == nil && reflect.DeepEqual(was, is)
}

// plainSession returns a session as chat-completions JSON in which equivalent forms are equal
// (see the documentation of the package).
func plainSession(s chat.Session) (any, error) {
	var b bytes.Buffer
	if err := chat.WriteSession(&b, s); err != nil {
		return nil, err
	}
	var o map[string]any
	if err := json.Unmarshal(b.Bytes(), &o); err != nil {
		return nil, err
	}
	messages, _ := o["messages"].([]any)
	for _, m := range messages {
		if m, ok := m.(map[string]any); ok {
			plainMessage(m)
		}
	}
	return o, nil
}

func plainMessage(m map[string]any) {
	parts, isList := m["content"].([]any)
	for i, p := range parts {
		if text, ok := p.(string); ok {
			parts[i] = map[string]any{"type": "text", "text": text}
		}
	}
	if len(parts) == 1 {
		if p, ok := parts[0].(map[string]any); ok && len(p) == 2 && p["type"] == "text" {
			m["content"] = p["text"]
		}
	}
	if s, ok := m["content"].(string); ok && s == "" || isList && len(parts) == 0 {
		m["content"] = nil
	}
	for _, key := range []string{"reasoning", "reasoning_content"} {
		if m[key] == "" {
			delete(m, key)
		}
	}
	calls, _ := m["tool_calls"].([]any)
	for _, c := range calls {
		c, _ := c.(map[string]any)
		if fn, ok := c["function"].(map[string]any); ok {
			fn["arguments"] = plainArguments(fn["arguments"])
		}
	}
}

// plainArguments returns the decoded arguments of a call, or the arguments themselves if they
// are not JSON.
func plainArguments(given any) any {
	args, _ := given.(string)
	var v any
	switch {
	case args == "":
		return map[string]any{}
	case json.Unmarshal([]byte(args), &v) != nil:
		return args
	}
	return v
}
