package summary

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// scratchpad is the tag that the prompt offers for thoughts.
const scratchpad = "scratchpad"

var (
	// thoughtTags matches the tags that models put around their reasoning.
	thoughtTags = text.Pattern(`(?i)<(/?)(` + scratchpad + `|think|thinking|thought|reasoning|analysis)(?:\s[^<>\n]{0,80})?>`)
	// withinNotes matches those that are thoughts behind the first line, too.
	withinNotes = text.Pattern(`^(?:` + scratchpad + `|think|thinking)$`)
)

// maxThoughts is how many blocks of reasoning are removed from an answer.
const maxThoughts = 64

// withoutThoughts removes the blocks of reasoning that begin an answer, or a line of it
// outside of code, and the text before a lone closing tag, which some templates leave.
// thinking reports a block without an end.
func withoutThoughts(s string) (answer string, thinking bool) {
	for range maxThoughts {
		s = text.Trim(s)
		start, end := nextThought(s)
		switch {
		case start < 0:
			return withoutLoneThought(s), false
		case end < 0:
			return "", true
		}
		s = s[:start] + s[end:]
	}
	return "", true
}

// nextThought returns where the first block of reasoning begins, -1 without one, and where it
// ends, -1 without an end.
func nextThought(s string) (start, end int) {
	tags := thoughtTags().FindAllStringSubmatchIndex(s, -1)
	if tags == nil {
		return -1, -1
	}
	code := codeIn(s)
	last := map[string]int{} // closing tags by name
	for _, t := range tags {
		if t[2] < t[3] {
			last[strings.ToLower(s[t[4]:t[5]])] = t[0]
		}
	}
	for i, t := range tags {
		tag := strings.ToLower(s[t[4]:t[5]])
		lead := strings.TrimRight(s[:t[0]], " \t")
		switch {
		case t[2] < t[3]:
		case lead != "" && (lead[len(lead)-1] != '\n' || code.has(t[0]) || !withinNotes().MatchString(tag)):
		case last[tag] > t[0]:
			return t[0], closingTag(s, tags[i:])
		case lead == "" || tag == scratchpad:
			return t[0], -1
		}
	}
	return -1, -1
}

// closingTag returns where the block ends that the first of some tags opens: behind its
// closing tag or, if not all are closed, behind the last one.
func closingTag(s string, tags [][]int) int {
	depth, end := 0, -1
	for _, t := range tags {
		switch {
		case !strings.EqualFold(s[t[4]:t[5]], s[tags[0][4]:tags[0][5]]):
		case t[2] == t[3]:
			depth++
		default:
			end = t[1]
			if depth--; depth == 0 {
				return end
			}
		}
	}
	return end
}

// withoutLoneThought removes the text before a closing tag of reasoning without an opening
// one that is alone on its line or at the end of one.
func withoutLoneThought(s string) string {
	from, opened, code := 0, map[string]bool{}, codeIn(s)
	for _, t := range thoughtTags().FindAllStringSubmatchIndex(s, -1) {
		tag := strings.ToLower(s[t[4]:t[5]])
		rest := strings.TrimLeft(s[t[1]:], " \t\r")
		switch {
		case t[2] == t[3]:
			opened[tag] = true
		case !opened[tag] && withinNotes().MatchString(tag) && (rest == "" || rest[0] == '\n') && !code.has(t[0]):
			from = t[1]
		}
	}
	return text.Trim(s[from:])
}
