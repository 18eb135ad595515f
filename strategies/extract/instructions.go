package extract

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// IsGenerated reports whether a program wrote a user message: it consists of one element
// of markup or of one remark in brackets, or begins with what agents add.
func IsGenerated(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 1 && (s[0] == '<' && s[len(s)-1] == '>' || s[0] == '[' && s[len(s)-1] == ']') ||
		strings.HasPrefix(s, "<local-command-") || strings.HasPrefix(s, "<task-notification>") ||
		strings.Contains(text.Head(s, 200), "<command-name>") ||
		strings.HasPrefix(s, "# Fix any errors below") || strings.HasPrefix(s, "Caveat: ") || strings.HasPrefix(s, "Operation stopped by hook")
}

// isInstruction reports whether a program wrote a user message that holds the text of a skill, or shows
// another task as an example: it is kept, but it is not what the user asked for.
func isInstruction(s string) bool {
	return strings.HasPrefix(s, chat.SkillPrefix) || strings.HasPrefix(s, demonstration)
}

// demonstration begins a message that shows another task as an example.
const demonstration = "Here is a demonstration of "

// commandTag and commandArguments are of a command to the program of the agent, in its notes.
var (
	commandTag       = text.Pattern(`<command-name>\s*(/?[^<]+)</command-name>`)
	commandArguments = text.Pattern(`(?s)<command-args>(.*?)</command-args>`)
)

// instruction reports whether a program wrote a message of the user that tells the agent how to work, and the command
// that it stands for if the message before was one.
func (s *history) instruction(head string) (command string, program bool) {
	launched := s.launched
	if command = s.command; IsGenerated(head) {
		command, launched = "", false
	}
	s.command, s.launched = "", false
	if m := commandTag().FindStringSubmatch(text.Head(head, maxLine)); m != nil && !controlling().MatchString(strings.TrimSpace(m[1])) {
		s.command = strings.TrimSpace(m[1])
		if args := commandArguments().FindStringSubmatch(text.Head(head, maxRequest)); args != nil {
			s.command += " " + oneLine(args[1])
		}
		s.command = strings.Clone(strings.TrimSpace(s.command))
	}
	return command, command == "" && (launched || isInstruction(head))
}
