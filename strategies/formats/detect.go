package formats

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Detect returns the name of a file's format by its beginning, which may end anywhere. It
// returns "chat" if no other format matches.
func Detect(head []byte) string {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	if start := bytes.TrimLeft(head, " \t\r\n"); len(start) == 0 || start[0] != '{' && start[0] != '[' {
		// A line that is not JSON may come first.
		if _, rest, ok := bytes.Cut(start, []byte("\n")); ok {
			return Detect(rest)
		}
		return "chat"
	}
	if name := detectValues(head); name != "" {
		return name
	}
	// One document over several lines, or lines of which the first is broken.
	for rest := head; len(rest) > 0; {
		line, next, _ := bytes.Cut(rest, []byte("\n"))
		rest = next
		if clean, _ := chat.SanitizeJSON(line); json.Valid(clean) {
			if name := detectValues(clean); name != "" {
				return name
			}
		}
	}
	return "chat"
}

// detectValues returns the format of the first value of head that shows one, or "".
func detectValues(head []byte) string {
	clean, _ := chat.SanitizeJSON(head)
	d := json.NewDecoder(bytes.NewReader(clean))
	for {
		f := facts{}
		more := f.value(d, "", 0)
		if name := f.format(); name != "" {
			return name
		}
		if !more {
			return ""
		}
	}
}

// facts describe a value: "path" for a key, and "path=text" for a short string.
type facts map[string]bool

// maxDepth is how deep facts go: messages[].content[].type.
const maxDepth = 6

// value adds the facts of the next value and reports whether it was complete.
func (f facts) value(d *json.Decoder, path string, depth int) bool {
	t, err := d.Token()
	if err != nil || depth > 1000 {
		return false
	}
	switch t := t.(type) {
	case string:
		if len(t) <= 40 {
			f.add(path+"="+t, depth)
		}
	case json.Delim:
		for d.More() {
			at := path + "[]"
			if t == '{' {
				key, _ := d.Token()
				name, ok := key.(string)
				if !ok {
					return false
				}
				at = path + "." + name
			}
			if depth > maxDepth || len(at) > 200 {
				at = "…" // too deep for any rule
			}
			f.add(at, depth)
			if !f.value(d, at, depth+1) {
				return false
			}
		}
		_, err := d.Token()
		return err == nil
	}
	return true
}

func (f facts) add(fact string, depth int) {
	if depth <= maxDepth {
		f[fact] = true
	}
}

func (f facts) any(paths ...string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return f[p] })
}

// is reports whether the string at path is one of the space-separated values.
func (f facts) is(path, values string) bool {
	return slices.ContainsFunc(strings.Fields(values), func(v string) bool { return f[path+"="+v] })
}

// format returns the format that matches the facts of a value, or "" if several do.
func (f facts) format() string {
	switch {
	case f.is(".type", "session_meta response_item event_msg turn_context compacted") && f[".payload"],
		f[".record_type"], f[".id"] && f[".timestamp"] && f[".instructions"] && !f[".type"]:
		return "codex"
	case f.is(".type", "user assistant system summary") && f.any(".uuid", ".sessionId", ".leafUuid"),
		f.is(".type", "file-history-snapshot queue-operation"), f[".type"] && f[".uuid"] && f[".sessionId"]:
		return "claude-code"
	case f[".type=session"] && f.any(".cwd", ".version", ".modelId"),
		f[".type=message"] && f[".message.role"], f[".type"] && f[".parentId"],
		f.is(".type", "model_change thinking_level_change") && f[".timestamp"]:
		return "pi"
	case f[".conversations[].from"], f[".conversation[].from"], f["[].from"] && f["[].value"], f[".from"] && f[".value"]:
		return "sharegpt"
	}
	for _, at := range []string{".messages[]", "[]", ""} {
		if f[at+".role"] {
			if name := f.messages(at); name != "" {
				return name
			}
		}
	}
	const itemTypes = "message reasoning function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call web_search_call compaction"
	switch {
	case f[".messages"] && f[".system"]:
		return "anthropic"
	case f[".object=response"], f[".input"] && !f[".messages"], f[".output[].type"] && !f[".messages"],
		f.is("[].type", itemTypes) && !f["[].message"], f.is(".type", itemTypes) && f.any(".call_id", ".role", ".summary"):
		return "responses"
	}
	return ""
}

// messages distinguishes chat-completions from Anthropic messages at a path; it returns ""
// if both match.
func (f facts) messages(at string) string {
	switch {
	case f[at+".tool_calls"], f[at+".tool_call_id"], f.is(at+".role", "tool system developer"):
		return "chat"
	case f.is(at+".content[].type", "tool_use tool_result image document redacted_thinking"):
		return "anthropic"
	}
	return ""
}
