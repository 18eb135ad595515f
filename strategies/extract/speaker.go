package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// IsGenerated reports whether a program wrote a message of the user: it consists of elements of markup or of a remark in
// brackets, begins with an element that programs write, or is the text of a skill.
func IsGenerated(s string) bool {
	switch s = strings.TrimSpace(s); {
	case s == "":
		return false
	case s[0] == '[':
		return strings.IndexByte(s, ']') == len(s)-1
	case s[0] == '<':
		return isMarkup(s)
	}
	return text.HasAnyPrefix(s, programs...)
}

// isMarkup reports whether a text that begins with < has no text outside of its elements, or begins with one of a program.
func isMarkup(s string) bool {
	name, _, _ := strings.Cut(text.Head(s[1:], maxTag), ">")
	if strings.HasPrefix(name, "local-command-") || slices.Contains([]string{"task-notification", "command-name", "command-message"}, name) {
		return true
	}
	all := elements(s)
	return len(all) > 0 && text.Trim(without(s, all, nil)) == "" && !slices.ContainsFunc(all, func(e element) bool { return carriers[e.name] })
}

// element is an element of markup with its content, and where it stands in its text.
type element struct {
	name, content string
	from, to      int
}

// maxTag is the size of the beginning of an element, with its attributes.
const maxTag = 500

// elements returns the outermost elements of a text, in linear time.
func elements(s string) []element {
	ends := map[string]int{} // where the last element of a name ends
	for at := 0; ; {
		i := strings.Index(s[at:], "</")
		if i < 0 {
			break
		}
		at += i + len("</")
		if name, _, ok := strings.Cut(text.Head(s[at:], maxTag), ">"); ok && isElementName(name) {
			ends[name] = at
		}
	}
	var out []element
	for at := 0; len(ends) > 0; {
		i := strings.IndexByte(s[at:], '<')
		if i < 0 {
			break
		}
		from := at + i
		at = from + 1
		tag, _, ok := strings.Cut(text.Head(s[at:], maxTag), ">")
		name, _, _ := strings.Cut(tag, " ")
		if start := at + len(tag) + 1; ok && ends[name] > start {
			content, _, _ := strings.Cut(s[start:], "</"+name+">")
			at = start + len(content) + len("</"+name+">")
			out = append(out, element{name, content, from, at})
		}
	}
	return out
}

// isElementName reports whether a word may be the name of an element.
func isElementName(s string) bool { return s != "" && !strings.ContainsAny(s, " \n<=(") }

// without returns a text without those of its elements whose names are given, nil for all of them.
func without(s string, all []element, names map[string]bool) string {
	var b strings.Builder
	at := 0
	for _, e := range all {
		if names == nil || names[e.name] {
			b.WriteString(s[at:e.from])
			at = e.to
		}
	}
	b.WriteString(s[at:])
	return b.String()
}

// contents returns what is in the elements with one of the names.
func contents(all []element, names map[string]bool) string {
	var out []string
	for _, e := range all {
		if names[e.name] {
			out = append(out, text.Trim(e.content))
		}
	}
	return strings.Join(out, "\n")
}

// request returns the words of the user in a message: a slash command with its arguments, the content of the elements in which
// agents put them, without the elements beside these. They are empty if a program wrote all of it. It also returns a slash command
// without arguments, which may be one of the agent itself.
func request(message string) (said, command string) {
	message = text.Trim(message)
	all := elements(message)
	command = commandOf(all)
	carried := contents(all, carriers)
	switch {
	case strings.HasPrefix(command, "/") && strings.Contains(command, " "):
		return command, command
	case carried != "":
		return carried, command
	case slices.ContainsFunc(all, func(e element) bool { return additions[e.name] }):
		return text.Trim(without(message, all, additions)), command
	case IsGenerated(message) || command != "" && text.Trim(without(message, all, nil)) == "":
		return "", command
	}
	return message, command
}

// commandOf returns the command that a user gave to the agent itself, with its arguments, "" for none.
func commandOf(all []element) string {
	name, arguments := "", ""
	for _, e := range all {
		switch e.name {
		case "command-name":
			name = text.Trim(e.content)
		case "command-args":
			arguments = text.Trim(e.content)
		}
	}
	return text.Trim(name + " " + arguments)
}

// IsOutput reports whether a message of the user is the output of a command that the assistant ran in its text: it ends with
// the prompt of a shell.
func IsOutput(message string) bool {
	before, last := lastLine(text.Trim(text.Tail(message, 1000)))
	_, before = lastLine(before)
	return before != "" && (isPrompt(last) || isState(before) && strings.HasSuffix(last, "$"))
}

// lastLine returns the text before the last line, and this line.
func lastLine(s string) (before, line string) {
	i := strings.LastIndexByte(s, '\n')
	return strings.TrimRight(s[:max(i, 0)], " \r\n"), s[i+1:]
}

// isPrompt reports whether a line is the prompt of a shell, with its name, or with the host and the folder.
func isPrompt(line string) bool {
	line, prompt := strings.CutSuffix(strings.Replace(line, "#", "$", 1), "$")
	return prompt && len(line) < 60 && (strings.HasSuffix(line, "sh-") || strings.Contains(line, "@") && strings.Contains(line, ":")) && !strings.Contains(line, " ")
}

// isState reports whether a line tells the state of an editor in front of a prompt.
func isState(line string) bool {
	return strings.HasPrefix(line, "(") && strings.HasSuffix(line, ")") && strings.Contains(line, ": ")
}

// ranInText returns the command with which a text of the assistant ends: its last block of code, its last element, or its
// last line. Agents without calls run it.
func ranInText(s string) string {
	s = text.Trim(s)
	if body, ok := strings.CutSuffix(s, "```"); ok {
		if at := strings.LastIndex(body, "```"); at >= 0 {
			_, code, _ := strings.Cut(body[at:], "\n")
			return text.Trim(code)
		}
	}
	if all := elements(s); strings.HasSuffix(s, ">") && len(all) > 0 {
		return text.Trim(all[len(all)-1].content)
	}
	return s[strings.LastIndexByte(s, '\n')+1:]
}
