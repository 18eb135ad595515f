package extract

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
)

func says(r chat.Role, text string) *chat.Message {
	return &chat.Message{Role: r, Content: chat.TextContent(text)}
}

func user(text string) *chat.Message      { return says(chat.RoleUser, text) }
func assistant(text string) *chat.Message { return says(chat.RoleAssistant, text) }

// calls returns an assistant message that makes one call; arguments are keys and values.
func calls(text, id, name string, arguments ...string) *chat.Message {
	m := assistant(text)
	fields := map[string]string{}
	for i := 0; i < len(arguments); i += 2 {
		fields[arguments[i]] = arguments[i+1]
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // strings always have a form
	}
	m.ToolCalls = []chat.ToolCall{{ID: id, Name: name, Arguments: string(raw)}}
	return m
}

func result(id, text string) *chat.Message {
	m := says(chat.RoleTool, text)
	m.ToolCallID = id
	return m
}

func digestOf(o Options, ms ...*chat.Message) *Digest {
	d := New(o)
	for _, m := range ms {
		d.Add(m)
	}
	return d
}

// wantWellFormed checks the properties of every text: it is UTF-8, it is no longer than its budget, its sections stand in
// their order, each of their lines begins with a mark, and each quotation is a part of a message of the user; nil asks are
// not compared.
func wantWellFormed(t interface {
	Helper()
	Errorf(string, ...any)
}, text string, budget int, asks []string,
) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("no UTF-8: %q", text)
	}
	if n := (utf8.RuneCountInString(text) + 3) / 4; text != "" && n > budget {
		t.Errorf("%d tokens of %d: %q", n, budget, text)
	}
	body, references := Split(text)
	last := -1
	for i, l := range strings.Split(body, "\n") {
		at := slices.IndexFunc(sections, func(s sectionRow) bool { return s.heading == l })
		switch {
		case body == "", i == 0 && IsExtract(l):
		case at >= 0:
			if at <= last {
				t.Errorf("%q is not in its place in %q", l, text)
			}
			last = at
		case last < 0 || !strings.HasPrefix(l, "- ") && !strings.HasPrefix(l, "  ") && !strings.HasPrefix(l, quoteMark) && !isDay.MatchString(l):
			t.Errorf("%q begins like nothing in %q", l, text)
		}
		marks := []string{quoteMark, "- " + quoteMark}
		if last == 0 {
			marks = append(marks, "- Before: "+quoteMark)
		}
		for _, mark := range marks {
			if q, ok := strings.CutPrefix(l, mark); ok && asks != nil && !isSaid(asks, q) {
				t.Errorf("no message of %q says %q in %q", asks, q, text)
			}
		}
	}
	for i, l := range strings.Split(references, "\n") {
		label, values, ok := strings.Cut(strings.TrimPrefix(l, quoteMark), ": ")
		if references != "" && i > 0 && l+"\n" != reference.ToolsLine && (!ok || label == "" || values == "" || strings.ContainsAny(label, " #")) {
			t.Errorf("%q is no line of references", l)
		}
	}
}

var isDay = regexp.MustCompile(`^\d{4}-\d\d-\d\d:$`)

// isSaid reports whether the messages contain q, or the parts of q around masks and gaps in order.
func isSaid(asks []string, q string) bool {
	parts := strings.Split(strings.NewReplacer("***", "…", "...", "…", "[…]", "…").Replace(q), "…")
	return slices.ContainsFunc(asks, func(s string) bool {
		s = prose.OneLine(s)
		return !slices.ContainsFunc(parts, func(part string) bool {
			_, rest, found := strings.Cut(s, strings.TrimSpace(prose.OneLine(part)))
			s = rest
			return !found
		})
	})
}

// wantLines checks that a text has some lines, or parts of lines, and not others, which begin with !.
func wantLines(t *testing.T, text string, want ...string) {
	t.Helper()
	text += "\n"
	for _, w := range want {
		if without, ok := strings.CutPrefix(w, "!"); ok && strings.Contains(text, without) || !ok && !strings.Contains(text, w) {
			t.Errorf("%q in:\n%s", w, text)
		}
	}
}
