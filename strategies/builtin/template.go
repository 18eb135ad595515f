package builtin

import (
	"fmt"
	"regexp"
	"strings"
)

// template is text with placeholders in braces; literal braces are doubled.
type template string

var templateMark = regexp.MustCompile(`\{\{|\}\}|\{[A-Za-z_][A-Za-z0-9_]*\}|[{}]`)

// parseTemplate checks a template. It accepts any placeholder name.
func parseTemplate(s string) (template, error) {
	for _, at := range templateMark.FindAllStringIndex(s, -1) {
		if at[1] == at[0]+1 {
			return "", fmt.Errorf("a single %q that is no placeholder at %q", s[at[0]], s[at[0]:])
		}
	}
	return template(s), nil
}

// fill returns the text with each placeholder replaced by its value, unknown ones by nothing.
func (t template) fill(values map[string]string) string {
	return templateMark.ReplaceAllStringFunc(string(t), func(mark string) string {
		if mark == "{{" || mark == "}}" {
			return mark[:1]
		}
		return values[strings.Trim(mark, "{}")]
	})
}
