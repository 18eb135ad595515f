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

// detect returns the format that a file shows by its beginning, which may end anywhere.
func detect(head []byte) detection {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	if start := bytes.TrimLeft(head, " \t\r\n\x00"); len(start) == 0 || start[0] != '{' && start[0] != '[' {
		// A line that is not JSON may come first.
		if _, rest, ok := bytes.Cut(start, []byte("\n")); ok {
			found := detect(rest)
			found.line += bytes.Count(head[:len(head)-len(rest)], []byte("\n"))
			return found
		}
		return detection{line: 1}
	}
	found := detection{}
	if found.values(head, 1) {
		return found
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
	return found
}

// detection holds the format that the values of a file have shown: that of the first value that shows
// one, "" for none.
type detection struct {
	name  string
	looks string // what was found instead, which is not read
	line  int    // of that
	first facts  // of the first value
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
		if shape := f.shape(more); shape != "" && !sure {
			_, err := Lookup(shape)
			switch {
			case err == nil:
				name, sure, d.name = shape, true, shape
			case name == "" && d.looks == "" && d.name == "":
				start := len(clean) - len(bytes.TrimLeft(clean[at:], " \t\r\n"))
				d.looks, d.line = shape, line+bytes.Count(clean[:start], []byte("\n"))
				return true
			}
		}
		if d.first == nil {
			d.first = f
		}
		d.name = cmp.Or(d.name, name)
		if sure && d.name == name || !more {
			return sure && d.name == name
		}
	}
}

// notRead returns the error for a file that looks like a format that is not read, or like another than
// it is read in.
func notRead(looks, read string) error {
	if slices.Contains(Names(), looks) {
		return fmt.Errorf("looks like the format %s, not %s", looks, read)
	}
	if hint := hints[looks]; hint != "" {
		return fmt.Errorf("looks like %s, which is not read: %s", looks, hint)
	}
	return fmt.Errorf("looks like %s, which is not read; read are %s", looks, strings.Join(Names(), ", "))
}

// shows returns the format that a value shows, or the name of a shape that is not read.
func shows(value []byte) string {
	f := facts{}
	f.value(json.NewDecoder(bytes.NewReader(value)), "", 0)
	if name, sure := f.format(); sure {
		return name
	}
	return f.shape(true)
}

// shapeOf returns the name in shapes that a value shows, "" for none.
func shapeOf(value []byte) string {
	f := facts{}
	f.value(json.NewDecoder(bytes.NewReader(value)), "", 0)
	return f.shape(true)
}

// facts describe a value: "path" for a key, "path=text" for a short string, and "path#k" for the
// kind of a value: s, [, { or another.
type facts map[string]bool

// wholeFact is behind the path of a value that was read to its end.
const wholeFact = "#whole"

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
			f.add(at+wholeFact, depth)
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
	case at == "[]" && f[at+".ts"] && !f[at+".ts#s"] && f.is(parts+".type", "tool_use tool_result thinking"):
		return "cline"
	case f[at+".tool_calls"], f[at+".tool_call_id"], f.is(at+".role", "tool system developer") && f[at+".content"]:
		if f.shape(true) == "" {
			return "chat"
		}
	case f[parts+".type=tool_use"] && f[parts+".name"], f[parts+".type=tool_result"] && !f[parts+".toolUseID"],
		f.is(parts+".type", "image document redacted_thinking"):
		return "anthropic"
	}
	return ""
}
