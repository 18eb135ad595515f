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
	return slices.ContainsFunc(programs, func(p string) bool { return strings.HasPrefix(s, p) })
}

// isMarkup reports whether a text that begins with < has no text outside of its elements, or begins with one of a program.
func isMarkup(s string) bool {
	name, _, _ := strings.Cut(s[1:], ">")
	if strings.HasPrefix(name, "local-command-") || name == "task-notification" || name == "command-name" || name == "command-message" {
		return true
	}
	outside, elements := splitElements(s)
	if strings.TrimSpace(outside) != "" {
		return false
	}
	for _, e := range elements {
		if carriers[e.name] {
			return false
		}
	}
	return len(elements) > 0
}

// element is an element of markup with its content.
type element struct{ name, content string }

// splitElements returns the outermost elements of a text, and the text outside of them.
func splitElements(s string) (outside string, elements []element) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		open, rest, ok := strings.Cut(s[i+1:], ">")
		name, _, _ := strings.Cut(open, " ")
		end := strings.Index(rest, "</"+name+">")
		if !ok || end < 0 || !isElementName(name) {
			b.WriteString(s[:i+1])
			s = s[i+1:]
			continue
		}
		b.WriteString(s[:i])
		elements = append(elements, element{name, rest[:end]})
		s = rest[end+len("</"+name+">"):]
	}
	b.WriteString(s)
	return b.String(), elements
}

// isElementName reports whether a word may be the name of an element.
func isElementName(s string) bool { return s != "" && s[0] != '/' && !strings.ContainsAny(s, "\n<=(") }

// request returns the words of the user in a message: a slash command with its arguments, the content of the elements in which
// agents put them, without the elements beside these. It returns "" if a program wrote all of it.
func request(message string) string {
	message = text.Trim(message)
	if !strings.Contains(message, "</") {
		if IsGenerated(message) {
			return ""
		}
		return message
	}
	outside, elements := splitElements(message)
	command, carried, generated := "", "", 0
	for _, e := range elements {
		switch content := text.Trim(e.content); {
		case e.name == "command-name":
			command = strings.TrimSpace(content + command)
		case e.name == "command-args" && content != "":
			command += " " + content
		case carriers[e.name]:
			carried += content + "\n"
		case additions[e.name]:
			generated++
		}
	}
	switch {
	case strings.HasPrefix(command, "/") && strings.Contains(command, " "):
		return command
	case carried != "":
		return text.Trim(carried)
	case generated > 0:
		return text.Trim(withoutAdditions(message))
	case IsGenerated(message) || command != "" && text.Trim(outside) == "":
		return ""
	}
	return message
}

// withoutAdditions returns a message without the elements that agents put beside the words of the user.
func withoutAdditions(s string) string {
	for name := range additions {
		for {
			before, rest, ok := strings.Cut(s, "<"+name+">")
			_, after, closed := strings.Cut(rest, "</"+name+">")
			if !ok || !closed {
				break
			}
			s = before + after
		}
	}
	return s
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
	if _, elements := splitElements(s); strings.HasSuffix(s, ">") && len(elements) > 0 {
		return text.Trim(elements[len(elements)-1].content)
	}
	return s[strings.LastIndexByte(s, '\n')+1:]
}
