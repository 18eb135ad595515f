package attach

import (
	"crypto/md5" //nolint:gosec // tells messages of a row apart, and guards nothing
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// row is a row of the table as read by the function read.
type row struct {
	Key, Digest, Tenant, Role, Content, ToolCalls, ToolCallID string
	At                                                        time.Time

	known    *known
	messages []message
	elements []int
	fault    string
}

// rowColumns are those of the functions that read the table, for row.fields.
const rowColumns = `key, digest::text, coalesce(tenant, ''), coalesce(role, ''), coalesce(content, ''), coalesce(tool_calls, ''),
	coalesce(tool_call_id, ''), coalesce(created_at, '0001-01-01Z')`

func (r *row) fields() []any {
	return []any{&r.Key, &r.Digest, &r.Tenant, &r.Role, &r.Content, &r.ToolCalls, &r.ToolCallID, &r.At}
}

// known is the entry of a row in the map.
type known struct {
	Key      string   `json:"key"`
	Seq      int64    `json:"seq,omitempty"`
	Version  int      `json:"version"`
	IDs      []string `json:"ids"`
	Digests  []string `json:"digests"`
	Elements []int    `json:"elements,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	Fault    string   `json:"fault,omitempty"`
	Gone     bool     `json:"gone"`
}

// message is one of a row, as JSON without and with its envelope.
type message struct {
	id, digest string
	raw        []byte
}

// decode reads the messages of a row, or says why it is none.
func (d *drain) decode(r *row) {
	if r.Tenant != "" && r.Tenant != d.tenant {
		r.fault = "is of another tenant than the first row of its session"
		return
	}
	role := r.Role
	if role != "" {
		if role = d.Roles[strings.ToLower(role)]; role == "" && d.preset.Format == "" {
			r.fault = fmt.Sprintf("role %q is none of those that --role-map names", r.Role)
			return
		}
	}
	if role == "tool" && d.preset.Format == "" && r.ToolCallID == "" {
		r.fault = "a result without the id of its call"
		return
	}
	value, format := json.RawMessage(r.Content), d.preset.Format
	if format == "" {
		format, value = "chat", d.columns(r)
	}
	if len(value) == 0 {
		return
	}
	value, _ = chat.SanitizeJSON(value)
	if d.preset.reads.content != "" {
		value = unwrapped(value)
	}
	if !json.Valid(value) {
		r.fault = "the content is no JSON"
		return
	}
	all, err := formats.Record(format, value, role)
	if err != nil {
		r.fault = err.Error()
		return
	}
	for _, m := range all {
		r.messages = append(r.messages, message{digest: digestOf(m), raw: m.Body().AppendJSON(nil)})
	}
	r.elements = elements(value, all)
}

// unwrapped returns an object of columns with the lists of those that hold JSON as text.
func unwrapped(value json.RawMessage) json.RawMessage {
	var columns map[string]json.RawMessage
	if json.Unmarshal(value, &columns) != nil {
		return value
	}
	for name, column := range columns {
		var text string
		if name != "content" && json.Unmarshal(column, &text) == nil && strings.HasPrefix(text, "[") && json.Valid([]byte(text)) {
			columns[name] = json.RawMessage(text)
		}
	}
	out, err := json.Marshal(columns)
	if err != nil {
		return value
	}
	return out
}

// columns returns the message of a row whose columns are its fields, nil for an empty one.
func (d *drain) columns(r *row) json.RawMessage {
	quote := func(s string) json.RawMessage { q, _ := json.Marshal(s); return q } // strings have a JSON form
	content := quote(r.Content)
	if trimmed := strings.TrimSpace(r.Content); d.JSON && trimmed != "" {
		content = json.RawMessage(trimmed)
	}
	m := map[string]json.RawMessage{"role": quote(d.Roles[strings.ToLower(r.Role)]), "content": content}
	if calls := strings.TrimSpace(r.ToolCalls); calls != "" && calls != "null" && calls != "[]" {
		m["tool_calls"] = json.RawMessage(calls)
	} else if r.Content == "" {
		return nil // created empty, and filled later
	}
	if r.ToolCallID != "" {
		m["tool_call_id"] = quote(r.ToolCallID)
	}
	raw, err := json.Marshal(m)
	if err != nil { // a column is no JSON
		return json.RawMessage("{")
	}
	return raw
}

// use notes the messages of a row as those that the log has.
func (r *row) use() {
	k := r.known
	k.IDs, k.Digests, k.Elements = make([]string, len(r.messages)), make([]string, len(r.messages)), r.elements
	for i, m := range r.messages {
		k.IDs[i], k.Digests[i] = m.id, m.digest
	}
}

// json returns the messages of a row with their envelopes.
func (r *row) json() (all []json.RawMessage) {
	for _, m := range r.messages {
		all = append(all, r.one(m))
	}
	return all
}

func (r *row) one(m message) json.RawMessage {
	id, _ := json.Marshal(m.id) // strings have a JSON form
	key, _ := json.Marshal(r.Key)
	b := slices.Concat([]byte(`{"id":`), id, []byte(`,"source_id":`), key)
	if !r.At.IsZero() && r.At.Year() > 1 {
		b = append(b, `,"created_at":"`+r.At.UTC().Format(time.RFC3339Nano)+`"`...)
	}
	return append(append(b, ','), m.raw[1:]...)
}

// digestOf tells messages of a row apart.
func digestOf(m chat.Message) string {
	sum := md5.Sum(m.Body().AppendJSON(nil)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

func keysOf(all []*known) (keys []string) {
	for _, k := range all {
		keys = append(keys, k.Key)
	}
	return keys
}
