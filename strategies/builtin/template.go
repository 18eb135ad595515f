package builtin

import (
	"fmt"
	"strings"
)

// template is text with placeholders in braces; literal braces are doubled.
type template []templatePart

// templatePart is text, or the name of a placeholder.
type templatePart struct {
	text        string
	placeholder bool
}

// parseTemplate parses a template. It accepts any placeholder name.
func parseTemplate(s string) (template, error) {
	var out template
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		rest := s[i+1:]
		if rest != "" && rest[0] == s[i] {
			b.WriteByte(s[i])
			s = rest[1:]
			continue
		}
		end := strings.IndexAny(rest, "{}")
		if s[i] == '}' || end < 0 || rest[end] != '}' || !isName(rest[:end]) {
			return nil, fmt.Errorf("a single %q that is no placeholder at %q", s[i], s[i:])
		}
		out = append(out, templatePart{text: b.String()}, templatePart{rest[:end], true})
		b.Reset()
		s = rest[end+1:]
	}
	return append(out, templatePart{text: b.String()}), nil
}

// isName reports whether s is a word of letters, digits and underscores that does not begin
// with a digit.
func isName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// fill returns the text with each placeholder replaced by its value.
func (t template) fill(value func(placeholder string) string) string {
	var b strings.Builder
	for _, p := range t {
		if p.placeholder {
			b.WriteString(value(p.text))
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}
