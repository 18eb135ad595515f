package extract

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// The keywords only rank lines; they never change the text or the section of a line.

// constraintWords are words of demands, foreignConstraints those in languages other than
// English.
var (
	foreignConstraints = newKeywords(`
	immer nie niemals muss müssen keinesfalls
	toujours jamais doit dois
	siempre nunca debe debes
	sempre mai deve devi
	всегда никогда нельзя должен
	必须 不要 不能 务必 总是 不吃 不想再 请勿 过敏 必ず 常に しないで ないでください 禁止 アレルギー 항상 절대 알레르기`)
	constraintWords = newKeywords(`always never must don't ensure avoid prefer should shouldn't only keep stop cannot without`)
)

// choicePhrases are what even an intention contains only if it gives a reason, reasonPhrases
// what other sentences of decisions and reasons contain.
var (
	choicePhrases = []string{"because", "instead of", "rather than", "would rather", "decided", "so that"}
	reasonPhrases = append(slices.Clip(choicePhrases),
		" chose ", "root cause", "the fix ", "the bug is", "the bug was",
		"the issue is", "the issue was", "the problem is", "the problem was", "the reason",
		"weil ", "stattdessen", "entschieden", "deshalb", "parce qu", "plutôt", "décidé", "porque ", "en lugar de", "decidid", "perché ", "invece",
		"потому что", "вместо", "решил", "因为", "决定", "改用", "なので", "決定", "대신", "결정",
	)
)

// isDecision reports whether a sentence says what was decided, or why something is so.
func isDecision(s string) bool {
	if len(s) <= minSentence || prose.IsQuestion(s) || strings.HasSuffix(s, ":") || prose.IsRow(s) || strings.HasSuffix(s, prose.Ellipsis) || claiming().MatchString(s) {
		return false
	}
	phrases := reasonPhrases
	if isIntention(s) {
		phrases = choicePhrases
	}
	s = strings.ToLower(s)
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(s, p) })
}

// choosing says which of several ways was taken, comparing to do a thing and not another, which
// is a decision if the user agrees, and proposing which might be, or what is wrong.
var (
	choosing  = text.Pattern(`(?i)\b(?:decided|chose|chosen|opted|settled on|agreed (?:on|to|that)|would rather|(?:going|go|went|gone|stick|sticking) with|we(?:'ll| will|'re going to) (?:use|keep|drop|skip|leave))\b`)
	comparing = text.Pattern(`(?i)^(?:[^:.]{0,60}: +)?(?:(?:i|we|let's|let us|to|just|simply|better|please)(?:'d| would|'ll)? +)*(?:use|keep|prefer|store|make|put|write|move|replace|resolve|go|take|return|call|pass|read|run|build|send|show|test|try|do|drop|split|wrap|add|set|load|parse|log|fail|start|stop|pick|choose|have|let|treat|handle|check|create|define|render|fetch|inline|reuse)\b.*\b(?:instead of|rather than)\b`)
	proposing = text.Pattern(`(?i)\b(?:would|could|might|may|should|maybe|perhaps|likely|probably|suspicion|suggests?|indicat(?:es|ing)|still|currently|wrong|issue|problem|bug|error|fails?|failed|somehow|incorrect(?:ly)?|if|needs? to|was|were|repeatedly|already|previously|used to|has an?|changed|uses? this|but)\b|^(?:[a-z]+-)?(?:pushed|moved|replaced|renamed|removed|created|merged|committed)\b|^(?:now )?(?:it|this|that|now|fixed|updated|added|test)\b|[—–-] (?:fixed|updated|added|removed|changed|renamed)\b`)
)

// isChoice reports whether a decision says by a pattern which of several ways was taken.
func isChoice(pattern *text.Regexp, s string) bool {
	return pattern.MatchString(s) && !proposing().MatchString(strings.ReplaceAll(s, "would rather", ""))
}

// listedBelow returns the entries of lists, and the rows of tables, below headings of a pattern.
func listedBelow(heading *text.Regexp, s string) []string {
	var out []string
	below, fenced := false, false
	lines := prose.SplitLines(s)
	for i, l := range lines {
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		fenced = fenced != strings.HasPrefix(l, "```")
		switch {
		case fenced:
			below = false
		case heading.MatchString(l) && (!prose.IsListed(l) || !prose.IsListed(next)): // no entry of a list of contents
			below = true
		case tableRule().MatchString(next): // the line names the columns
			below = below && heading.MatchString(lines[i-1])
		case below && (prose.IsListed(l) || strings.HasPrefix(l, "|")):
			for _, x := range prose.Lines(l) {
				if x := opening().ReplaceAllString(x.Text, ""); len(x) > minSentence && !prose.IsQuestion(x) {
					out = append(out, x)
				}
			}
		default:
			below = false
		}
	}
	return out
}

// tableRule is the line of a table below the names of its columns.
var tableRule = text.Pattern(`^\|?[ :-]+\|[ :|-]*$`)

var decisionHeading = text.Pattern(`(?i)^[#* \d.]*(?:(?:key|main|important|design|technical|architectural|implementation) +)*(?:decisions|design choices|choices made)(?: +made)?[:* ]*$`)

// isIntention reports whether a line says what comes next, which is past when it is read
// later, or is the heading of what followed.
func isIntention(s string) bool {
	if strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：") {
		return true
	}
	return intending().MatchString(text.Head(s, 80))
}

// announces reports whether a line says what comes next, and not why.
func announces(s string) bool { return isIntention(s) && !isDecision(s) }

// intending begins what comes next.
var intending = text.Pattern(`(?i)^(?:[^.!?:]{0,30}[.!,:—-] *)?(?:(?:now|good|great|perfect|ok|okay|next|first|so|then|and)[,!.]? +)*(?:let me|let's|let’s|i'll|i’ll|i will|we'll|we will|i'm going to|(?:i|we) (?:also )?need to (?:check|look|see|find|read|understand|add|append|change|create|ensure|fix|handle|implement|import|make|modify|move|remove|replace|run|set|update|use|write)|now (?:add|change|check|create|fix|remove|replace|run|test|update|verify|wire|write)|next (?:is|comes|up is)|i should (?:check|look)|i can (?:look up|retrieve|check|pull up|find)|(?:please )?(?:hold on|wait)|(?:just )?(?:one|a) (?:moment|second)|bear with me)\b`)

// isPassing reports whether a line says what was so, or was to be done, when it was said: what
// an old answer says of it may be over.
func isPassing(s string) bool { return isIntention(s) || outdating().MatchString(s) }

var outdating = text.Pattern(`(?i)\b(?:needs? to|have to|has to|must be|should (?:be|add|use|have|handle|now|also|make|fix|resolve|allow|work|pass)|fails?|failing|failed|failures?|broken|is missing|not (?:yet|working|passing)|` +
	`pass(?:es|ed|ing)?|(?:is|are|working tree|tree|lint|build) (?:now )?(?:clean|green|done|complete|finished|ready)|ready to (?:commit|deploy|merge|push|release|ship)|committed|pushed|remain(?:s|ing)|currently|still|right now|at the moment|` +
	`next steps?|to-?do|would (?:be|just|need)|could be|uncommitted|unstaged|in progress)\b`)

// keywords is a set of words of several languages. Words of scripts with blanks between
// words match whole words, parts match anywhere.
type keywords struct {
	whole map[string]bool
	parts []string
}

func newKeywords(s string) keywords {
	k := keywords{whole: map[string]bool{}}
	for w := range strings.FieldsSeq(s) {
		if strings.ContainsFunc(w, isUnspaced) {
			k.parts = append(k.parts, w)
		} else {
			k.whole[w] = true
		}
	}
	return k
}

// isUnspaced reports whether r is of a script without blanks between words.
func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// matches reports whether a sentence contains one of the words.
func (k keywords) matches(s string) bool {
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) {
		if len(w) <= 32 && k.whole[strings.ReplaceAll(strings.ToLower(w), "’", "'")] {
			return true
		}
	}
	return slices.ContainsFunc(k.parts, func(w string) bool { return strings.Contains(s, w) })
}
