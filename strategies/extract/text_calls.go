package extract

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Agents without tool calls write what they run at the end of their text, and what comes of it is the next
// message of the user. Both are read as a call and its result.

// textTool is the tool of what is run in a text, textID the id of its call, which no other has.
const (
	textTool = "shell"
	textID   = "\x00"
)

// textCalls tells how an agent runs commands in its text.
type textCalls struct {
	// returned reports that outputs come back as messages of the user, called that there were calls of tools:
	// then what a text shows is not run.
	returned, called bool
	// pending is what the newest message runs, "" for nothing.
	pending string
	// asked reports that the message before was one of the program that ends with a question.
	asked bool
	// folder and file are those of the shell and of its editor, as the newest output tells them.
	folder, file string
}

// splitCommand returns what a message says and what it runs at its end: the lines in a fence of a shell or in an
// element of markup for commands, "" for nothing.
func splitCommand(s string) (said, command string) {
	s = strings.TrimSpace(s)
	if m := closingTag().FindStringSubmatch(text.Tail(s, maxClosingTag)); m != nil {
		if at := strings.LastIndex(s, "<"+m[1]+">"); at >= 0 {
			return s[:at], strings.TrimSpace(s[at+len(m[1])+2 : len(s)-len(m[0])])
		}
	}
	if !strings.HasSuffix(s, "\n```") {
		return s, ""
	}
	begin, named, at := -1, -1, 0 // of the open block, of the last with a language, of the line
	for l := range strings.Lines(s[:len(s)-len("```")]) {
		switch language, fence := strings.CutPrefix(strings.TrimSpace(l), "```"); {
		case !fence:
		case language != "" && begin < 0:
			begin, named = at, at
		case language == "" && begin < 0:
			begin = at
		case language == "":
			begin = -1
		}
		at += len(l)
	}
	if begin < 0 {
		begin = named // of a block with fences within
	}
	if begin < 0 {
		return s, ""
	}
	language, command, _ := strings.Cut(s[begin:len(s)-len("```")], "\n")
	if !shellFence().MatchString(strings.TrimSpace(language)) {
		return s, ""
	}
	return s[:begin], strings.TrimSpace(command)
}

var (
	closingTag = text.Pattern(`</(command|execute_bash|bash|shell|execute)>$`)
	shellFence = text.Pattern("^```(?:bash|sh|shell|zsh|console|\\w+_bash_\\w+)?$")
	// prompting is the end of what was in a shell: its prompt.
	prompting = text.Pattern(`(?s)\n(?:\([^\n]*\)\n)?[\w@:~/.-]*[$#]\s*$`)
	// editorPrompt is that of the shell that SWE-agent has, returning begins an output, and observing begins one
	// behind a command.
	editorPrompt = text.Pattern(`(?s)(?:^|\n)(?:(?:\([A-Z][a-z]+ [a-z]+: [^\n]*\)\n)+[\w@:~/.-]*|bash-)[$#]\s*$`)
	returning    = text.Pattern(`^\s*(?:OBSERVATION:\n|<(?:observation|returncode|tool_result|tool_response|function_results?)>|EXECUTION RESULT of \[)`)
	observing    = text.Pattern(`^\s*Observation:`)
	openFile     = text.Pattern(`\(Open file: ([^)\n]+)\)`)
	openFolder   = text.Pattern(`\(Current directory: ([^)\n]+)\)`)
)

// readPrompt reads where the shell and its editor are at the end of an output.
func (c *textCalls) readPrompt(output string) {
	end := editorPrompt().FindString(text.Tail(output, maxRequest))
	if m := openFolder().FindStringSubmatch(end); m != nil {
		c.folder = strings.Clone(m[1])
	}
	if m := openFile().FindStringSubmatch(end); m != nil {
		if c.file = strings.Clone(m[1]); c.file == "n/a" {
			c.file = ""
		}
	}
}

// ofOpenFile returns the arguments of a call of an editor that changes its open file as those of an edit of that file.
func (s *history) ofOpenFile(tool string, fs []argument.Field) []argument.Field {
	file, opened := s.text.file, ""
	if file == "" || tool != "edit" && tool != "insert" || slices.ContainsFunc(fs, func(f argument.Field) bool { return isPathKey(f.Key) }) {
		return fs
	}
	for p := range s.files {
		if len(p) > len(opened) && strings.HasSuffix(file, "/"+p) { // it was opened by that name
			opened = p
		}
	}
	out := []argument.Field{{Key: "path", Value: cmp.Or(opened, file), Object: 1}}
	for _, f := range fs {
		f.Key = cmp.Or(editorKeys[f.Key], f.Key)
		out = append(out, f)
	}
	return out
}

// editorKeys are arguments of the editor of SWE-agent, as those of other editors.
var editorKeys = map[string]string{"search": "old_string", "replace": "new_string", "replacement_text": "new_string", "text": "new_string"}

// addText adds a message of the assistant without calls.
func (s *history) addText(head, tail string) {
	said, command := splitCommand(tail)
	runs := s.text.returned && !s.text.called && command != ""
	if runs && head == tail {
		head, tail = said, said
	}
	s.addAssistant(head, tail)
	if s.text.pending = strings.Clone(text.Head(command, maxReply)); runs {
		s.callInText()
	}
}

// takeOutput returns an output without the prompt at its end, and notes that outputs come back as messages of
// the user.
func (s *history) takeOutput(output string) string {
	if !s.text.returned && s.text.pending != "" {
		s.callInText()
	}
	s.text.returned, s.text.pending = true, ""
	s.text.readPrompt(output)
	return output[:len(output)-len(editorPrompt().FindString(text.Tail(output, maxRequest)))]
}

// isReturned reports whether a message of the user is what came of a command in the text before it, or of one that an
// earlier summary covers.
func (s *history) isReturned(content string) bool {
	if s.text.called || s.text.pending == "" && (s.spoken || s.restored == 0) {
		return false
	}
	return IsOutput(content) || s.text.pending != "" && observing().MatchString(text.Head(content, maxLine))
}

// IsOutput reports whether a message of the user reads like what an agent is given as the output of its command: it
// begins with a mark for that, or ends with the prompt of the agent's shell.
func IsOutput(message string) bool {
	return returning().MatchString(text.Head(message, maxLine)) || editorPrompt().MatchString(text.Tail(message, maxRequest))
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
		s.addCall(textID, verb, command, []argument.Field{{Key: "path", Value: s.text.file}, {Key: "lines", Value: name}, {Key: "new_string", Value: body}})
	case verb == "create" && body == "":
		s.addCall(textID, verb, command, []argument.Field{{Key: "path", Value: path.Join(s.text.folder, name)}})
	default:
		s.addCall(textID, textTool, command, []argument.Field{{Key: "command", Value: command}})
	}
}

// maxClosingTag is the number of characters at the end of a text in which a closing tag is looked for.
const maxClosingTag = 40
