package redact

import "strings"

// inLogin reports whether a line begins at i, perhaps behind the sign of a client, in a log of a login to a server of mail
// or files.
func inLogin(s string, i int) bool {
	before := s[max(0, i-maxBlank):i]
	return hasAnySuffix(before, "> ", "C: ") && !hasAnySuffix(before, "-> ", "=> ") || lineStart(s, i) && (strings.Contains(before, "USER ") || strings.Contains(before, "+OK") || strings.Contains(before, "331 "))
}

// maskAccounts masks the passwords of a list of accounts, user:password, below the name of the list at i, and returns its
// end.
func maskAccounts(s string, i int, e *edits) int {
	for end := min(len(s), i+maxBlock); i < end; {
		i = space.end(s[:end], i)
		line := i + strings.IndexByte(s[i:end]+"\n", '\n')
		user, password, ok := strings.Cut(strings.TrimRight(strings.TrimLeft(s[i:line], "- "), " \r"), ":")
		switch v := strings.TrimSpace(password); {
		case !ok:
			return i
		case v == "" || v == "|" || isAny(user, []string{"expire"}):
		default:
			if start := i + strings.Index(s[i:line], v); !placeholder(v) && v != "RANDOM" {
				e.mask(s, start, start+len(v), KindAssignment)
			}
		}
		i = line
	}
	return i
}

// isTag reports whether a text before a command ends as one of IMAP begins: a1, perhaps behind the sign of a client.
func isTag(before string) bool {
	before = strings.TrimSuffix(before, " ")
	tag := before[strings.LastIndexAny(before, " \"")+1:]
	return digit.any(tag) && alnum.has(tag)
}
