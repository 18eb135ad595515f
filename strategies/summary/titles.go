package summary

import (
	"strings"
	"unicode/utf8"

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
	// titleLabel matches a reserved title in front of a text on its line, and titleTag one in a
	// tag within a line. A small letter begins the name of a field.
	titleLabel = text.Pattern(`^((?:[ \t]|[-+•*>|][ \t]+|\d{1,3}[.)][ \t]+|\[[ xX]\][ \t]+)*)(?:[^\pL\n]|</?[A-Za-z]\w{0,11}\b[^<>\n]*>)*(?i:(?:the|current|new|your|my|our|updated|latest|real)\s+){0,2}(` + titleNames + `)(?i:s?(?:\s+(?:messages?|notes?|rules?|is|was|updated?|by\s+(?:the\s+)?user))?(?:\s*\([^()\n]{1,30}\))?)(?:` +
		`\s*[^\pL\pN\s|]{0,6}\s*[:：=>\]}]+|\s*<br\s*/?>|\s*[^\pL\pN\s|]{0,6}\s*(\|)|\s[—–-]+\s|(?:</\w{1,12}>)+)[^\pL\pN\n(]{0,8}?[ \t]*[^\n\s]`)
	titleTag = text.Pattern(`(?i)(?:<|&lt;)(?:(?:h\d|dt|th|summary)\b[^<>\n]{0,80}?(?:>|&gt;)\s*(` + titleNames + `)\s*(?:<|&lt;)/(?:h\d|dt|th|summary)|/?(?:active_task|pinned|references|action_log|last_user_message))(?:>|&gt;)`)
	// brokenTag matches a heading in a tag that is broken into two lines.
	brokenTag = text.Pattern(`(?i)(<(?:h\d|dt|th|summary)\b[^<>\n]{0,80}>[^<>\n]{0,40})\n([^<>\n]{0,40}</(?:h\d|dt|th|summary)>)`)
	// underline matches the line below a heading of two lines.
	underline = text.Pattern(`^[\s>]*(?:=+|-{2,})\s*$`)
	// roleLabel matches a line that begins with a role, as in transcripts.
	roleLabel = text.Pattern(`(?i)^((?:<\w{1,9}>)?[\s>#*_(\[]*(?:\[\^[^\]\s]{1,20}\]:\s*)?(?:human|assistant|system|developer|ai|action\s+input)(?:\s+(?:message|prompt|note|override))?(?:</\w{1,9}>)?[\s*_)\]]*|[\s>*_|+-]*human[\s*_]*)[:：>](\s*[*_]*)|^(\s*(?:#{1,6}\s*(?:user|human|system|assistant|developer|instruction|response|` + foreignUser + `):?|(?:\*\*|__)(?:user|human)(?:\*\*|__):?)\s*)$|^([\s>#*_-]*\[(?:assistant|developer|ai)\])\s|^([\s>*_-]*\{\s*["']role["']\s*:\s*["'](?:assistant|system|developer)["'])\s*,\s*["']content["']\s*:`)
	// roleField matches such a line that names a program or a person.
	roleField = text.Pattern(`^[\s>*_+-]*(?i:assistant|system|developer|ai)[*_]*:[*_]*(?:\s+(?:\p{Lu}[\p{Ll}\d]\S*|\p{Ll}+\p{Lu}\S*|\p{Lu}{2,3}|\S*\d\S*|and)[,;.]?)+(?:\s+(?:is|was|has|runs|uses)\s[^"“”]*)?\s*$`)
	// oneWord matches what makes a title of one word that of the program, behind it.
	oneWord = text.Pattern(`^ (?:messages?|notes?|rules?|facts?|items?|instructions?|requests?|context|updated?|new|by|user|from|and|section|[^a-z])`)
	// bracketed matches such a title of one word with a remark.
	bracketed = text.Pattern(`(?i)^[\s>#*_]*(?:pinned|references)\s*[(\[]`)
	htmlTag   = text.Pattern(`</?[A-Za-z][^<>]{0,80}>`)
)

// titleNames matches the reserved titles.
const titleNames = `(?i:active[\s_-]*task|action[\s_-]*log|last[\s_-]*user[\s_-]*message)|P(?:inned|INNED)|R(?:eferences|EFERENCES)`

// modelTitle replaces a reserved title that the model wrote.
const modelTitle = "(under a heading of the model: "

// plainTitles replaces what reads like a heading of the program's own or a turn of a
// transcript in an answer by plain text. The first of the active task stays.
func plainTitles(answer string) string {
	answer = brokenTag().ReplaceAllString(answer, "$1 $2")
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
		case fence == "" && titleTag().MatchString(folded):
			var spans [][2]int
			var texts []string
			for _, m := range titleTag().FindAllStringSubmatchIndex(folded, -1) {
				title := strings.Trim(folded[m[0]:m[1]], "</>")
				if m[2] >= 0 {
					title = folded[m[2]:m[3]]
				}
				spans, texts = append(spans, [2]int{m[0], m[1]}), append(texts, modelTitle+title+")")
			}
			b.WriteString(text.ReplaceFolded(line, index, spans, texts))
		case fence == "" && titleLabel().MatchString(folded):
			m := titleLabel().FindStringSubmatchIndex(folded)
			by := modelTitle + folded[m[4]:m[5]] + ") "
			if m[6] >= 0 {
				by += "| "
			}
			_, size := utf8.DecodeLastRuneInString(folded[:m[1]])
			b.WriteString(text.ReplaceFolded(line, index, [][2]int{{m[3], m[1] - size}}, []string{by}))
		case fence == "" && roleLabel().MatchString(folded) && (agrees().MatchString(folded) || !roleField().MatchString(folded)):
			m := roleLabel().FindStringSubmatchIndex(folded)
			role := strings.Trim(folded[:max(m[3], m[7], m[9], m[11])], " \t>#*_()[]:|+-\"'")
			role = role[strings.LastIndexAny(role, "\"'")+1:]
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
	if marked && bracketed().MatchString(line) {
		return true
	}
	if code && !marked {
		return false
	}
	marked = marked || underlined
	words := wordsOf(htmlTag().ReplaceAllString(line, " "))
	similar := wordsOf(similarLetters.Replace(strings.ToLower(strings.TrimLeft(line, " \t#>*_"))))
	words = strings.TrimLeft(words, "0123456789 ")
	for _, title := range reservedTitles {
		rest, ok := strings.CutPrefix(words, title)
		if ok && (rest == "" || rest[0] == ' ' && (marked || boldLabel().MatchString(line)) && (strings.Contains(title, " ") || !headingMarks().MatchString(line) || oneWord().MatchString(rest))) {
			return true
		}
		if marked && strings.Contains(title, " ") && similar == similarLetters.Replace(title) {
			return true
		}
		// No other heading has titles of more than one word, in any place or spelling.
		if strings.Contains(title, " ") && (marked && (strings.Contains(" "+words, " "+title) || unspaced(words) == unspaced(title)) || ok && listedLabel().MatchString(line)) {
			return true
		}
	}
	return false
}

// similarLetters replaces signs and letters by the ones that they are written for.
var similarLetters = strings.NewReplacer("l", "i", "1", "i", "!", "i", "0", "o", "@", "a", "4", "a", "3", "e", "5", "s", "$", "s", "7", "t")

func unspaced(words string) string { return strings.ReplaceAll(words, " ", "") }
