package extract

import (
	"encoding/json"
	"slices"
	"strings"
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

// continued returns a Digest of an earlier summary and what was said since.
func continued(summary string, ms ...*chat.Message) *Digest {
	d := New(Options{})
	d.AddPrevious(summary)
	for _, m := range ms {
		d.Add(m)
	}
	return d
}

// chars4 returns the count of the default.
func chars4(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }

// wantWellFormed checks the properties of every text: it is UTF-8, it is no longer than its
// budget, each line is a heading in its place or begins with a mark, and each quotation
// is a part of a user message.
func wantWellFormed(t interface {
	Helper()
	Errorf(string, ...any)
}, text string, budget int, count func(string) int, asks []string,
) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("no UTF-8: %q", text)
	}
	if n := count(text); text != "" && n > budget {
		t.Errorf("%d tokens of %d: %q", n, budget, text)
	}
	if text == "" {
		return
	}
	if !strings.Contains(strings.SplitN(text, "\n", 2)[0], "without a model") && !strings.HasPrefix(text, reference.Heading) {
		t.Errorf("it does not say that no model wrote it: %q", text)
	}
	p := parsePrevious(text)
	if first := slices.IndexFunc(p.prose, isHeading); first > 1 || first < 0 && len(p.prose) > 1 {
		t.Errorf("a line without a section: %q", p.prose)
	}
	last := -1
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if s, ok := sectionOf(line); ok {
			if int(s) <= last {
				t.Errorf("%q is not in its place in %q", line, text)
			}
			last = int(s)
		}
	}
	if n := strings.Count("\n"+text, "\n"+reference.Heading); n > 1 {
		t.Errorf("%d headings of references", n)
	}
	for s, lines := range p.sections {
		for _, line := range lines {
			if !strings.HasPrefix(line, bulletMark) && !strings.HasPrefix(line, indentMark) && !strings.HasPrefix(line, quoteMark) {
				t.Errorf("%s: %q begins like nothing", sectionTable[s].heading, line)
			}
			q, ok := quotation(line)
			for q := range strings.SplitSeq(q, requestSeparator) {
				if ok && asks != nil && !said(asks, q) {
					t.Errorf("%s: no message says %q", sectionTable[s].heading, q)
				}
			}
		}
	}
	for _, line := range p.references {
		label, values, ok := strings.Cut(strings.TrimPrefix(line, quoteMark), ": ")
		if line+"\n" != reference.ToolsLine && (!ok || label == "" || values == "" || strings.ContainsAny(label, " #")) {
			t.Errorf("%q is no line of references", line)
		}
	}
}

func isHeading(line string) bool {
	_, ok := sectionOf(line)
	return ok
}

// quotation returns the text that a line attributes to the user.
func quotation(line string) (string, bool) {
	for _, mark := range []string{quoteMark, beforeMark, bulletMark + quoteMark, indentMark + quoteMark, askedMark} {
		if q, ok := strings.CutPrefix(line, mark); ok {
			return strings.TrimSuffix(q, prose.Ellipsis), true
		}
	}
	return "", false
}

var commandTags = strings.NewReplacer("<command-name>", " ", "</command-name>", " ", "<command-args>", " ", "</command-args>", " ")

// said reports whether the requests contain q, or the parts of q around masks: joining lines
// can produce a secret.
func said(asks []string, q string) bool {
	parts := strings.Split(strings.NewReplacer("***", "...", prose.Ellipsis, "...").Replace(q), "...")
	inOrder := func(s string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool {
			_, rest, found := strings.Cut(s, strings.TrimSpace(part))
			s = rest
			return !found
		})
	}
	return slices.ContainsFunc(asks, func(s string) bool { // a command as the user typed it, and what was said without one
		return inOrder(s) || inOrder(prose.OneLine(s)) || inOrder(prose.OneLine(commandTags.Replace(s))) || inOrder(prose.OneLine(withoutCommands(s)))
	})
}
