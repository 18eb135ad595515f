package formats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// detect returns the name of a file's format by its beginning, which may end anywhere: that of
// the first value that shows one, "chat" for none. looks is the program or API whose format was
// found instead, on that line.
func detect(head []byte) (name, looks string, line int) {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	if start := bytes.TrimLeft(head, " \t\r\n\x00"); len(start) == 0 || start[0] != '{' && start[0] != '[' {
		// A line that is not JSON may come first.
		if _, rest, ok := bytes.Cut(start, []byte("\n")); ok {
			name, looks, line = detect(rest)
			return name, looks, line + bytes.Count(head[:len(head)-len(rest)], []byte("\n"))
		}
		return "chat", "", 1
	}
	found := detection{}
	if found.values(head, 1) {
		return found.result()
	}
	// One document over several lines, or lines of which the first is broken.
	n := 0
	for rest := head; len(rest) > 0; {
		line, next, _ := bytes.Cut(rest, []byte("\n"))
		rest = next
		n++
		if clean, _ := chat.SanitizeJSON(bytes.Trim(line, "\x00 \t\r")); json.Valid(clean) && found.values(clean, n) {
			break
		}
	}
	return found.result()
}

// detection holds the format that the values of a file have shown.
type detection struct {
	name, looks string
	line        int
}

func (d *detection) result() (name, looks string, line int) {
	return cmp.Or(d.name, "chat"), d.looks, max(d.line, 1)
}

// values reads the values of text, which begins on that line, up to one that shows its format,
// and reports whether there was one. A record that is no message shows it only if none follows.
func (d *detection) values(text []byte, line int) bool {
	clean, _ := chat.SanitizeJSON(text)
	dec := json.NewDecoder(bytes.NewReader(clean))
	for {
		at := dec.InputOffset()
		f := facts{}
		more := f.value(dec, "", 0)
		name, sure := f.format()
		if name == "" && more { // a value that is cut off may have more
			if looks := f.foreign(); looks != "" && d.looks == "" && d.name == "" {
				start := len(clean) - len(bytes.TrimLeft(clean[at:], " \t\r\n"))
				d.looks, d.line = looks, line+bytes.Count(clean[:start], []byte("\n"))
				return true
			}
		}
		d.name = cmp.Or(d.name, name)
		if sure && d.name == name || !more {
			return sure && d.name == name
		}
	}
}

// foreignValue returns the program or API whose format a value has, "" for none.
func foreignValue(value []byte) string {
	f := facts{}
	f.value(json.NewDecoder(bytes.NewReader(value)), "", 0)
	return f.foreign()
}

// notRead returns the error for a file that looks like a format that is not read.
func notRead(looks string) error {
	return fmt.Errorf("looks like %s, which is not read; read are %s", looks, strings.Join(Names(), ", "))
}

// facts describe a value: "path" for a key, "path=text" for a short string, and "path#k" for the
// kind of a value: s, [, { or another.
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
		f.add(path+"#s", depth)
		if len(t) <= 40 {
			f.add(path+"="+t, depth)
		}
	case json.Delim:
		f.add(path+"#"+t.String(), depth)
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

// all reports whether the facts hold that are separated by spaces; one with ! does not hold.
func (f facts) all(rule string) bool {
	for fact := range strings.FieldsSeq(rule) {
		if not, is := strings.CutPrefix(fact, "!"); f[not] == is {
			return false
		}
	}
	return true
}

// is reports whether the string at path is one of the space-separated values.
func (f facts) is(path, values string) bool {
	return slices.ContainsFunc(strings.Fields(values), func(v string) bool { return f[path+"="+v] })
}

// format returns the format that matches the facts of a value, "" for none or several. sure
// reports that no other program writes such a value.
func (f facts) format() (name string, sure bool) {
	message := f[".message.role"] && f[".message.content"]
	switch {
	case f[".payload.type"] && f[".type=response_item"], f[".type=session_meta"] && f[".payload.id"], f.all(".record_type#s !.role"):
		return "codex", true
	case f.all(".id .timestamp .instructions !.type !.messages !.input"):
		return "codex", true
	case f.is(".type", "session_meta turn_context event_msg compacted") && f[".payload"]:
		return "codex", false
	case f.is(".type", "user assistant") && message && f.any(".sessionId", ".session_id", ".uuid"):
		return "claude-code", true
	case f.is(".type", "user assistant") && f[".message"]:
		return "", false // as Claude Code, with the text elsewhere
	case f[".type"] && f.any(".uuid", ".sessionId", ".leafUuid") && !f[".data"],
		f.all(".type=file-history-snapshot .snapshot"), f.all(".type=queue-operation"):
		return "claude-code", false
	case f.all(".type=message .message.role") && (message || f.is(".message.role", "bashExecution branchSummary compactionSummary")):
		return "pi", true
	case f[".type=session"] && f.any(".cwd", ".version", ".modelId"),
		f.is(".type", "model_change thinking_level_change compaction branch_summary custom_message") && f[".timestamp"] && !f[".role"]:
		return "pi", false
	}
	for _, at := range []string{".conversations[]", ".conversation[]", "[]", ""} {
		if f[at+".from"] && f[at+".value"] {
			return "sharegpt", true
		}
	}
	for _, at := range []string{".messages[]", "[]", ""} {
		if f[at+".role"] {
			if name := f.messages(at); name != "" {
				return name, true
			}
		}
	}
	switch {
	case f.all(".messages[].role .messages[].content .system#s"), f.all(".messages[].role .messages[].content .system[].type"):
		return "anthropic", true
	case f[".messages"]:
		return "", false
	case f.all(".object=response .output"), f.all(".output[].type") && f.items(".output[]"), f.items(".input[]"),
		f.all(".input#s .model !.output#s"), f.items("[]"), f.items(""):
		return "responses", true
	}
	return "", false
}

// items reports whether the value at a path is an item of Responses, which items with a role
// alone do not show.
func (f facts) items(at string) bool {
	const calls = "function_call function_call_output custom_tool_call custom_tool_call_output " +
		"local_shell_call local_shell_call_output web_search_call"
	switch {
	case f[at+".message"] || f[at+".type=message"] && !f[at+".role"]:
		return false
	case f.is(at+".type", calls) && f.any(at+".call_id", at+".id", at+".action"), f[at+".type=reasoning"] && f[at+".summary#["],
		f[at+".type=message"] && f[at+".content"], f[at+".type=compaction"] && f[at+".encrypted_content"]:
		return true
	}
	return at == ".input[]" && f[at+".role"] && f[at+".content"]
}

// messages distinguishes chat-completions from Anthropic messages at a path; it returns ""
// if both match, or none.
func (f facts) messages(at string) string {
	parts := at + ".content[]"
	switch {
	case f[at+".tool_calls"], f[at+".tool_call_id"], f.is(at+".role", "tool system developer") && f[at+".content"]:
		if f.foreign() == "" {
			return "chat"
		}
	case f[parts+".type=tool_use"] && f[parts+".name"], f[parts+".type=tool_result"] && !f[parts+".toolUseID"],
		f.is(parts+".type", "image document redacted_thinking"):
		return "anthropic"
	}
	return ""
}
