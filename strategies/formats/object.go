package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

type object = rawjson.Object

// takeTime removes key if it is a time in RFC 3339, as logs write it.
func takeTime(o object, key string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, o.String(key))
	if t = t.UTC(); err != nil || t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	delete(o, key)
	return t
}

// takeInput removes the input of a call: the text of a string, or another value as JSON.
func takeInput(o object, key string) string {
	raw := o.Take(key)
	if rawjson.Kind(raw) != '"' {
		return string(raw)
	}
	return rawjson.Text(raw)
}

// own returns a copy of the object at key, an empty one if there is none.
func own(o object, key string) object {
	if in := o.Object(key); in != nil {
		return in
	}
	return object{}
}

// objects calls f with each object of an array. An error begins with the name of the
// array and the index.
func objects(raw json.RawMessage, name string, f func(o object, raw json.RawMessage) error) error {
	all, err := rawjson.ParseArray(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i, raw := range all {
		o, err := rawjson.ParseObject(raw)
		if err == nil {
			err = f(o, raw)
		}
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
	}
	return nil
}

// blank reports whether a raw value is null or empty.
func blank(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "[]", "{}":
		return true
	}
	return false
}

// quoteIf returns a string as JSON, nil if it is empty.
func quoteIf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return rawjson.Quote(s)
}

// timestamp returns a time as logs write it, nil for none.
func timestamp(t time.Time) json.RawMessage {
	if t.IsZero() {
		return nil
	}
	return rawjson.Quote(t.UTC().Format(time.RFC3339Nano))
}

func boolean(v bool) json.RawMessage { return strconv.AppendBool(nil, v) }

// setExtra sets a key of the Extra of a message or session, unless raw is nil.
func setExtra(extra *map[string]json.RawMessage, key string, raw json.RawMessage) {
	if raw == nil {
		return
	}
	if *extra == nil {
		*extra = map[string]json.RawMessage{}
	}
	(*extra)[key] = raw
}

// mergeExtra adds keys to those that a message keeps for a format.
func mergeExtra(m *chat.Message, format string, more object) {
	all := own(m.Extra, format)
	maps.Copy(all, more)
	setExtra(&m.Extra, format, all.JSON())
}

// setFlag sets a key of the Extra of a message to true.
func setFlag(m *chat.Message, key string) { setExtra(&m.Extra, key, isTrue) }

// takeFlag removes a boolean from o; if it is true it sets the flag of the message.
func takeFlag(o object, key string, m *chat.Message, flag string) bool {
	set := o.TakeTrue(key)
	if set {
		setFlag(m, flag)
	}
	return set
}

// flagged reports whether a key of Extra is true.
func flagged(m *chat.Message, key string) bool { return string(m.Extra[key]) == "true" }

var isTrue = json.RawMessage("true")
