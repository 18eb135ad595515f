package extract

import (
	"path"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Agents without tool calls write what they run at the end of their text, and what comes of it is the next
// message of the user. Both are read as a call and its result.

// textTool is the tool of what is run in a text.
const textTool = "shell"

// textCalls tells how an agent runs commands in its text.
type textCalls struct {
	// returned reports that outputs come back as messages of the user.
	returned bool
	// pending is what the newest message runs, "" for nothing.
	pending string
	// folder and file are those of the shell and of its editor, as the newest output tells them.
	folder, file string
}

// splitCommand returns what a message says and what it runs at its end: the lines in a fence or in an element of
// markup, "" for nothing.
func splitCommand(s string) (said, command string) {
	s = strings.TrimSpace(s)
	begin, end := "```", "```"
	if m := closingTag().FindStringSubmatch(text.Tail(s, maxKey)); m != nil {
		begin, end = "<"+m[1]+">", m[0]
	}
	body, ends := strings.CutSuffix(s, end)
	at := strings.LastIndex(body, begin)
	if !ends || at < 0 {
		return s, ""
	}
	if command = body[at+len(begin):]; begin == end { // after the language
		_, command, _ = strings.Cut(command, "\n")
	}
	return body[:at], strings.TrimSpace(command)
}

var (
	closingTag = text.Pattern(`</(\w+)>$`)
	// prompting is the end of an output: the prompt of a shell, with what an editor tells before it.
	prompting = text.Pattern(`(?s)\n(?:\([^\n]*\)\n)*[\w@:~/.-]*[$#]\s*$`)
	// returning begins an output.
	returning  = text.Pattern(`^\s*(?:(?i:observation):|<(?:observation|returncode|tool_result|tool_response|function_results?)>|EXECUTION RESULT of \[)`)
	openFile   = text.Pattern(`\(Open file: ([^)\n]+)\)`)
	openFolder = text.Pattern(`\(Current directory: ([^)\n]+)\)`)
)

// readPrompt reads where the shell and its editor are at the end of an output.
func (c *textCalls) readPrompt(output string) {
	end := prompting().FindString(text.Tail(output, maxRequest))
	if m := openFolder().FindStringSubmatch(end); m != nil {
		c.folder = strings.Clone(m[1])
	}
	if m := openFile().FindStringSubmatch(end); m != nil {
		c.file = strings.Clone(m[1])
	}
}

// addText adds a message of the assistant without calls.
func (s *history) addText(head, tail string) {
	said, command := splitCommand(tail)
	runs := s.text.returned && command != ""
	if runs && head == tail {
		head, tail = said, said
	}
	s.addAssistant(head, tail)
	if s.text.pending = strings.Clone(command); runs {
		s.callInText()
	}
}

// returned returns an output without the prompt at its end, and notes that outputs come back as messages of
// the user.
func (s *history) returned(output string) string {
	if !s.text.returned {
		s.text.returned = true
		s.callInText()
	}
	s.text.pending = ""
	s.text.readPrompt(output)
	return output[:len(output)-len(prompting().FindString(text.Tail(output, maxRequest)))]
}

// isReturned reports whether a message of the user is what came of a command in the text before it.
func (s *history) isReturned(content string) bool {
	return s.text.pending != "" && IsOutput(content) && (s.text.returned || returning().MatchString(text.Head(content, maxLine)))
}

// IsOutput reports whether a message of the user reads like the output of a command: it begins with a mark that agents
// put before one, or ends with the prompt of a shell.
func IsOutput(message string) bool {
	return returning().MatchString(text.Head(message, maxLine)) || prompting().MatchString(text.Tail(message, maxRequest))
}

// callInText adds what a message of the assistant runs in its text as a call. The commands of an editor that
// change its file are calls of their own.
func (s *history) callInText() {
	command := s.text.pending
	first, body, _ := strings.Cut(command, "\n")
	verb, name, _ := strings.Cut(first, " ")
	switch {
	case verb == "edit" && s.text.file != "":
		body, _, _ = strings.Cut(body, "\nend_of_edit")
		s.addCall("", verb, command, []argument{{key: "path", value: s.text.file}, {key: "new_string", value: body}})
	case verb == "create" && body == "":
		s.addCall("", verb, command, []argument{{key: "path", value: path.Join(s.text.folder, name)}})
	default:
		s.addCall("", textTool, command, []argument{{key: "command", value: command}})
	}
}
