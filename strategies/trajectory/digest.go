package trajectory

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/stub"
)

// Bounds of the length of a line of a digest, in characters.
const (
	widest    = 160
	narrowest = 40
)

// Digest returns a deterministic summary made without a model: a line per turn with its
// beginning, and for a tool's response with the call. It holds no secret that Redact
// finds, and has at most limit characters and a line; if that is too few for all turns,
// those in the middle are only counted.
func Digest(turns []Turn, limit int) string {
	lines := make([]string, len(turns))
	var open []call
	for i, t := range turns {
		var text string
		if isResponse(t) {
			text, open = response(t.Value, open)
		} else {
			text, open = callsIn(t.Value)
			words := append(make([]string, 0, 1+len(open)), text)
			for _, c := range open {
				words = append(words, "→ "+c.Name)
			}
			text = strings.TrimSpace(strings.Join(words, " "))
		}
		lines[i] = text
	}
	if len(lines) == 0 {
		return ""
	}
	mask(lines)
	for i, text := range lines {
		lines[i] = turns[i].From + ": " + text
	}
	width := min(widest, max(narrowest, limit/len(lines)-1))
	for i, l := range lines {
		if c := text.Head(l, width); c != l {
			lines[i] = text.Head(l, width-1) + "…"
		}
	}
	if most := max(1, limit/(width+1)); len(lines) > most {
		first := (most + 1) / 2
		last := len(lines) - (most - first)
		lines = append(append(lines[:first:first], fmt.Sprintf("… %d more turns …", last-first)), lines[last:]...)
	}
	return strings.Join(lines, "\n")
}

// call is a tool call in the value of a turn.
type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// callsIn returns the first line of a turn's text and its calls, which are in <tool_call>
// tags.
func callsIn(value string) (text string, calls []call) {
	var b strings.Builder
	rest := value
	for {
		before, inside, after, ok := tagged(rest, "tool_call")
		if !ok {
			break
		}
		var c call
		if json.Unmarshal([]byte(inside), &c) == nil && c.Name != "" {
			calls = append(calls, c)
		}
		b.WriteString(before)
		rest = after
	}
	b.WriteString(rest)
	text = b.String()
	if before, _, after, ok := tagged(text, "think"); ok && strings.TrimSpace(before+after) != "" {
		text = before + after
	}
	return firstLine(text), calls
}

// response returns a line about a turn that answers calls, and the unanswered calls.
func response(value string, open []call) (string, []call) {
	var lines []string
	for rest := value; ; {
		_, inside, after, ok := tagged(rest, "tool_response")
		if !ok {
			break
		}
		rest = after
		var r struct {
			Name    string          `json:"name"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal([]byte(inside), &r) != nil {
			r.Content = json.RawMessage(inside)
		}
		text := string(r.Content)
		_ = json.Unmarshal(r.Content, &text) // other values are shown as JSON
		var c call
		if len(open) > 0 {
			c, open = open[0], open[1:]
		}
		if c.Name == "" {
			c.Name = r.Name
		}
		lines = append(lines, resultLine(c, text))
	}
	if lines == nil {
		if len(open) != 1 {
			return firstLine(value), nil
		}
		lines = []string{resultLine(open[0], value)}
		open = nil
	}
	return strings.Join(lines, " "), open
}

func resultLine(c call, result string) string {
	if c.Name == "" {
		return firstLine(result)
	}
	return firstLine(stub.Line(c.Name, string(c.Arguments), result))
}

// tagged splits s around the first <tag>…</tag>.
func tagged(s, tag string) (before, inside, after string, ok bool) {
	before, inside, ok = strings.Cut(s, "<"+tag+">")
	if ok {
		inside, after, ok = strings.Cut(inside, "</"+tag+">")
	}
	return before, strings.TrimSpace(inside), after, ok
}

// firstLine returns the first non-blank line of s.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}
