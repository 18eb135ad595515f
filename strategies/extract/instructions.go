package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// IsGenerated reports whether a program wrote a user message: it consists of elements of
// markup or of one remark in brackets, or begins with what agents add.
func IsGenerated(s string) bool {
	s = strings.TrimSpace(s)
	return isMarkup(s) || len(s) > 1 && s[0] == '[' && strings.IndexByte(s, ']') == len(s)-1 ||
		strings.HasPrefix(s, "<local-command-") || strings.HasPrefix(s, "<task-notification>") ||
		strings.Contains(text.Head(s, 200), "<command-name>") ||
		strings.HasPrefix(s, "# Fix any errors below") || strings.HasPrefix(s, "Caveat: ") || strings.HasPrefix(s, "Operation stopped by hook")
}

var (
	// carriers are the elements in which agents put what the user said, who may write of elements, additions those that they put beside it.
	carriers  = text.Set(`task feedback answer user_query user_message user_input user_request user_feedback`)
	additions = text.Set(`environment_details system-reminder system_reminder`)
)

// isMarkup reports whether a message consists of elements in which the user said nothing.
func isMarkup(message string) bool {
	if !strings.HasPrefix(message, "<") || !strings.HasSuffix(message, ">") {
		return false
	}
	names, parts := prose.Elements(message, carriers)
	for i, name := range names {
		if carriers[name] || name == "" && strings.TrimSpace(parts[i]) != "" {
			return false
		}
	}
	return len(names) > 1
}

// spokenIn returns what the user said in a message, without what the program of the agent put around and beside it.
func spokenIn(message string) string {
	if !strings.Contains(message, "</") {
		return message
	}
	names, parts := prose.Elements(message, carriers)
	carried := slices.ContainsFunc(names, func(n string) bool { return carriers[n] })
	if !carried && !slices.ContainsFunc(names, func(n string) bool { return additions[n] }) {
		return message
	}
	var said []string
	for i, name := range names {
		switch part := strings.TrimSpace(parts[i]); {
		case part == "" || additions[name] || carried && name != "" && !carriers[name]:
		case name != "" && !carriers[name]:
			said = append(said, "<"+name+">"+parts[i]+"</"+name+">")
		default:
			said = append(said, part)
		}
	}
	if len(said) == 0 {
		return message
	}
	return strings.Join(said, "\n")
}

// isInstruction reports whether a program wrote a user message that holds the text of a skill, or shows
// another task as an example: it is not what the user asked for.
func isInstruction(s string) bool {
	return strings.HasPrefix(s, chat.SkillPrefix) || strings.HasPrefix(s, demonstration)
}

// demonstration begins a message in which SWE-agent shows another task as an example.
const demonstration = "Here is a demonstration of how to correctly accomplish this task"

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
			s.command += " " + prose.OneLine(args[1])
		}
		s.command = strings.Clone(strings.TrimSpace(s.command))
	}
	return command, command == "" && (launched || isInstruction(head))
}
