package summary

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// reservedTitles are the titles of sections that the program writes, in words.
var reservedTitles = []string{wordsOf(ActiveTask), "pinned", "references", "action log", wordsOf(lastUserTitle)}

var (
	// headingMarks matches a heading that is marked as one, in any container.
	headingMarks = text.Pattern(`(?i)^[\s>*+-]*(?:\d{1,3}[.)]\s*)?(?:#{1,9}|<h\d[^<>]{0,80}>|(?:<details[^<>]{0,80}>\s*)?<summary>)`)
	// boldLabel matches bold text that begins a line, listedLabel that of an item or a cell.
	boldLabel   = text.Pattern(`(?i)^[\s>]*(?:\d{1,3}[.)]\s*)?(?:\*\*|__|<(?:b|strong)>)`)
	listedLabel = text.Pattern(`^[\s>*+-]*(?:\*\*|__)|^\s*\|`)
	// underline matches the line below a heading of two lines.
	underline = text.Pattern(`^[\s>]*(?:={2,}|-{2,})\s*$`)
	// roleLabel matches a line that begins with a role, as in transcripts.
	roleLabel = text.Pattern(`(?i)^([\s>#*_(\[]*(?:\[\^[^\]\s]{1,20}\]:\s*)?(?:human|assistant|system|developer|ai)[\s*_)\]]*|[\s>*_|+-]*human[\s*_]*)[:：](\s*[*_]*)|^(\s*(?:#{1,6}\s*(?:user|human|instruction|response):?|(?:\*\*|__)(?:user|human)(?:\*\*|__):?)\s*)$`)
	htmlTag   = text.Pattern(`</?[A-Za-z][^<>]{0,80}>`)
)

// modelTitle replaces a reserved title that the model wrote.
const modelTitle = "(under a heading of the model: "

// plainTitles replaces what reads like a heading of the program's own or a turn of a
// transcript in an answer by plain text. The first of the active task stays.
func plainTitles(answer string) string {
	active := -1
	for _, p := range splitSections(answer, []Section{{Title: ActiveTask}}) {
		if active < 0 && sameTitle(p.title, ActiveTask) {
			active = p.start
		}
	}
	var b strings.Builder
	b.Grow(len(answer))
	fence, at, below := "", 0, false
	for line := range strings.Lines(answer) {
		start := at
		at += len(line)
		next, _, _ := strings.Cut(answer[at:], "\n")
		if fence = fenceAfter(fence, line); start == active {
			b.WriteString(line)
			continue
		}
		folded, index := text.Fold(strings.TrimRight(line, "\r\n"))
		end := line[len(strings.TrimRight(line, "\r\n")):]
		switch {
		case below && underline().MatchString(folded):
		case isReserved(folded, fence != "", strings.TrimSpace(line) != "" && underline().MatchString(next)):
			b.WriteString(modelTitle + strings.Trim(htmlTag().ReplaceAllString(folded, " "), " \t#*_:[]<>(){}=~|-") + ")" + end)
			below = fence == ""
			continue
		case fence == "" && roleLabel().MatchString(folded):
			m := roleLabel().FindStringSubmatchIndex(folded)
			role := strings.Trim(folded[:max(m[3], m[7])], " \t>#*_()[]:|+-")
			b.WriteString(text.ReplaceFolded(line, index, [][2]int{{0, m[1]}}, []string{"(" + role + ") "}))
		default:
			b.WriteString(line)
		}
		below = false
	}
	return b.String()
}

// isReserved reports whether a folded line reads like a heading of the program's own.
// underlined says that the line below makes it a heading.
func isReserved(line string, code, underlined bool) bool {
	if len(line) > 400 {
		return false
	}
	marked := headingMarks().MatchString(line)
	if code && !marked {
		return false
	}
	marked = marked || underlined
	words := wordsOf(htmlTag().ReplaceAllString(line, " "))
	words = strings.TrimLeft(words, "0123456789 ")
	for _, title := range reservedTitles {
		rest, ok := strings.CutPrefix(words, title)
		if ok && (rest == "" || rest[0] == ' ' && (marked || boldLabel().MatchString(line))) {
			return true
		}
		// No other heading has titles of more than one word, in any place or spelling.
		if strings.Contains(title, " ") && (marked && (strings.Contains(" "+words, " "+title) || unspaced(words) == unspaced(title)) || ok && listedLabel().MatchString(line)) {
			return true
		}
	}
	return false
}

func unspaced(words string) string { return strings.ReplaceAll(words, " ", "") }
