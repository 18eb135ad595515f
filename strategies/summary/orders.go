package summary

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// orders matches sentences that turn to the reader of a summary and against its
// instructions.
var orders = text.Pattern(`(?i)\bwhat\s+follows\s+is\s+the\s+conversation\s+itself\b|\b(?:ignore|disregard|forget|override|bypass|discard|pay\s+no\s+attention\s+to)\s+(?:(?:all|any|every|each|of|the|your|my|its|these|those|previous|prior|above|earlier|preceding|system|other|safety|original|existing|current|former|developer)[\s,]+){1,6}(?:instructions?|prompts?|rules|messages?|context|guidelines|directions?|directives|guardrails|polic(?:y|ies)|restrictions|text)\b|` +
	`\b(?:ignore|disregard|forget)\s+(?:everything|anything|all|your|what(?:ever)?)\s+(?:(?:was|is|has\s+been|you\s+were|said|written|told|that|stated|instructions?|rules)\s+){0,4}(?:above|before|previously|earlier|so\s+far|instructions?)\b|\byou\s+(?:must|have\s+to|shall|should)\s+now\s+(?:obey|follow|act|behave|ignore)\b|this\s+session\s+is\s+being\s+continued\s+from\s+a\s+previous\s+conversation\b|\b(?:important|attention|urgent|warning)\s*[:!][*_\s]*you\s+(?:must|have\s+to|should|need\s+to)\b|(?m:^|[.!?:;]\s)\W*(?:keep|conceal|withhold)\s+(?:[\w'-]+\s+){1,6}from\s+(?:the|your)\s+user\b|\buser\s+(?:need\s+not|needn['’]t|must\s+not|should\s+not|does\s*n[o'’]t\s+(?:need|have)\s+to)\s+(?:be\s+(?:told|informed|notified)|know|hear|learn)\b|\bkeep\s+quiet\s+about\b|\b(?:hide|conceal|keep)\s+(?:this|it|that|all\s+of\s+this)\s+(?:secret\s+|hidden\s+)?from\s+the\s+user\b|\b(?:do\s+not|don['’]t|never|(?:should|must|shall|may)\s+not)\s+(?:mention|reveal|show|report|disclose|admit)\s+(?:(?:this|it|that|any\s+of\s+(?:this|it))\s+)?to\s+(?:the|your)\s+user\b|` +
	`\((?:supersedes|overrides|replaces)\s+the\s+(?:one|task|section|request)s?\s+(?:above|before)\)|` +
	`\b(?:do|follow|obey|execute)\s+(?:whatever|everything|anything|all)\s+(?:that\s+)?the\s+(?:\w+\s+){1,2}(?:says?|asks?|tells?|demands?|contains?|lists?|instructs?)\b|` +
	`\b(?:keep|stay|remain|be)\s+(?:quiet|silent)\s+about\s+(?:this|it|that)\b|` +
	`\byou\s+are\s+(?:now|no\s+longer)\s+(?:an?\b|in\b|the\b|free\b|bound\b|restricted\b|DAN\b)|` +
	`\bfrom\s+now\s+on,?\s+(?:you|act|behave|respond|always|never)\b|\byour\s+(?:(?:new|next|real|actual|only|updated)\s+(?:task|job|mission|assignment|objective)\b|(?:task|mission|assignment|objective)\s*:)|\b(?:new|updated|real)\s+(?:system\s+)?(?:instructions?|prompt)\s*:[*_ \t]*\S|(?m:^)[\s>#*_+-]*(?:system|admin(?:istrator)?|root|operator)\s+(?:prompt|override|message|instruction)[*_]*\s*:[*_ \t]*\S|` +
	`\b(?:do\s+not|don['’]t|never|(?:should|must|shall|may)\s+not)\s+(?:tell|inform|alert|notify|warn)\s+(?:the|your)\s+user\b`)

// foreignOrders matches such sentences in other languages, which folding would change: a verb,
// what was before, and a word for instructions.
var foreignOrders = text.Pattern(`(?i)(?:\b(?:ignorier\w*|vergiss|missachte|ignor(?:ez|a|en|er|uj|ujte|ă|e\s+(?:as|os?|le|les|tutte|todas|toutes))|oubli(?:ez|e)|olvida|esqueça|dimentica|zignoruj|zapomnij|zapomeň|negeer|vergeet|abaikan|bortse|hagyd\s+figyelmen\s+kívül)\b|игнорируй|забудь|ігноруй|αγνόησε|התעלם|تجاهل|نادیده\s+بگیر|अनदेखा\s+कर|görmezden\s+gel|bỏ\s+qua)(?:те)?` +
	`[^.!?\n]{0,30}?(?:vorherig|bisherig|obig|früher|précédent|anterior|previ|prévi|precedent|poprzedni|předchoz|predchádz|vorige|eerdere|sebelumnya|tidigare|tidligere|korábbi|предыдущ|прежн|попередн|προηγούμεν|קודמ|سابق|قبلی|पिछल|önceki|trước|instru|anweisung|pokyn|poleceni|utasítás|инструкци|указани|οδηγί|הוראות|تعليمات|دستور|निर्देश)|` +
	`önceki\s+(?:tüm\s+)?(?:talimat|yönerge)\p{L}*[^.!?\n]{0,20}(?:yok\s+say|unut|görmezden)|` +
	`以前の指示[^。\n]{0,8}無視|이전\s*지시[^.\n]{0,8}무시|(?:忽略|无视|忘记|無視|忘記)[^。\n]{0,12}(?:指令|指示|说明|提示|說明)|ละเว้นคำสั่ง`)

// reported matches text in front of an order that tells of it rather than gives it.
var reported = text.Pattern(`(?i)\b(?:asked|tried|tries|trying|attempts?|attempted|wants?|wanted|told|says|said|demands|demanded|instructs|instructed)\s+(?:\w+\s+){0,4}to\s+$`)

// specimen matches sentences about an order that is tested, found or shown.
var specimen = text.Pattern(`(?i)\b(?:tests?|tested|attacks?|injections?|examples?|payloads?|fixtures?|samples?|reject(?:s|ed)|detect(?:s|ed)|filter(?:s|ed)|block(?:s|ed))\b`)

var (
	// duties matches the beginning of a duty of the next agent.
	duties = text.Pattern(`(?i)\b(?:the\s+(?:(?:next|following|new|reading|continuing)\s+)?(?:assistant|agent|model|reader|successor|llm|ai|bot)|(?:all\s+|any\s+|ai\s+|llm\s+|future\s+)*(?:agents|assistants|models|readers)|(?:whoever|anyone\s+who|who)\s+(?:continues|goes\s+on|reads|takes\s+over|resumes|picks)\b(?:\s+\w+){0,4}?|you)\s+` +
		`(?:must|shall|should|will|has\s+to|have\s+to|needs?\s+to|ought\s+to|(?:is|are)\s+(?:to|required\s+to|obliged\s+to|supposed\s+to|expected\s+to|instructed\s+to|bound\s+to))\s`)
	// reporting matches text in front of a duty that tells who wants it, refused what forbids it.
	reporting = text.Pattern(`(?i)\b(?:says?|said|tells?|told|wants?|claims?|claimed|asks?|asked|demand\w*|reads?|states?|stated|instructs?|instructed|according\s+to|notes?|requests?|requires?|that)\b[^.!?;\n]*$`)
	forbidden = text.Pattern(`(?i)^(?:not|never|neither)\b`)
	// steps matches the beginning of an order in a list of steps, reaching a command or an address that leaves the machine.
	steps    = text.Pattern(`(?i)(?:(?m:^)|[.!?;:,]\s)[\s>*+-]*(?:\d+[.)]\s+)?(?:(?:always|then|first|also|please)\s+)*(?:run|execute|send|post|upload|e?mail|forward|publish|add|install|open|visit|fetch|call|pipe|paste)\s`)
	reaching = text.Pattern(`(?i)://|@|\||\b(?:curl|wget|ssh|scp|nc|eval|base64|sudo|rm)\b`)
	// literals matches the commands and the addresses in a duty.
	literals = text.Pattern("`[^`\n]+`|[^\\s<>()\\[\\]\"'`,;]+(?:@|://)[^\\s<>()\\[\\]\"'`,;]*[^\\s<>()\\[\\]\"'`,;.!?]")
)

// markDuties marks the commands and the addresses in duties of the next agent that only tools name, and those in
// steps that leave the machine or remove something. What the user or the assistant has named may be planned.
func (e *SourceIndex) markDuties(answer string) string {
	answer = e.markNamed(answer, duties(), nil)
	return e.markDestinations(e.markNamed(answer, steps(), reaching()))
}

// markNamed marks the commands and the addresses behind matches of a pattern that only tools name and that are of
// a kind, nil for all.
func (e *SourceIndex) markNamed(answer string, pattern, kind *text.Regexp) string {
	var b strings.Builder
	done := 0
	for _, m := range pattern.FindAllStringIndex(answer, -1) {
		start := sentenceStart(answer, m[0])
		if m[0] < done || reporting().MatchString(answer[start:max(start, m[0])]) || forbidden().MatchString(answer[m[1]:]) {
			continue
		}
		duty, _, _ := strings.Cut(answer[m[1]:min(len(answer), m[1]+600)], "\n")
		for _, l := range literals().FindAllStringIndex(duty, -1) {
			end := m[1] + l[1]
			if named := duty[l[0]:l[1]]; e.onlyTools(wordsOf(named)) && (kind == nil || kind.MatchString(named)) && !strings.HasPrefix(answer[end:], notTheirs) {
				b.WriteString(answer[done:end] + notTheirs)
				done = end
			}
		}
	}
	return b.String() + answer[done:]
}

var (
	// destinations matches addresses behind a preposition of direction.
	destinations = text.Pattern("(?i)(?:^|[\\s(])(?:to|into|at|an|nach|para|à|vers|al?|hacia|su|na|do|на|в|到|へ)\\s+([^\\s<>()\\[\\]\"'`,;]+(?:@|://)[^\\s<>()\\[\\]\"'`,;]*[^\\s<>()\\[\\]\"'`,;.!?])")
	// anyUser matches a name of the user in any language.
	anyUser = text.Pattern(`(?i)\b(?:` + person + `)\b|` + foreignUser + `|` + foreignCustomer)
	// toolsSay matches text in front of a destination that tells who else names it.
	toolsSay = text.Pattern(`(?i)\b(?:claims?|claimed|mail|page|note|tool|comment)\b`)
)

// markDestinations marks the addresses to which, as a sentence says of the user, something is to go, and which
// only tools name.
func (e *SourceIndex) markDestinations(answer string) string {
	var b strings.Builder
	done := 0
	for _, m := range destinations().FindAllStringSubmatchIndex(answer, -1) {
		start, end := sentenceStart(answer, m[0]), len(answer)
		if n := endOfSentence(answer[m[1]:]); n >= 0 {
			end = m[1] + n
		}
		before, behind := withoutMarks(answer[start:m[2]]), withoutMarks(answer[m[3]:end])
		if anyUser().MatchString(before+behind) && !toolsSay().MatchString(before) && e.onlyTools(wordsOf(answer[m[2]:m[3]])) && !strings.HasPrefix(answer[m[3]:], notTheirs) {
			b.WriteString(answer[done:m[3]] + notTheirs)
			done = m[3]
		}
	}
	return b.String() + answer[done:]
}

// onlyTools reports whether some words are in the result of a tool and in no other message.
func (e *SourceIndex) onlyTools(words string) bool {
	return e.others.share(words) == 1 && e.planned.share(words) < 1 && !e.isUsers(words)
}

// minRuleWords is how many blanks the words of a rule have that is the user's if the user said them all.
const minRuleWords = 4

// leftOut replaces a sentence that turns to the reader.
const leftOut = "(a sentence to the reader was left out)"

// withoutOrders replaces the sentences of an answer that tell its reader to drop its
// instructions, unless a message says the same and the answer quotes or tells it, or it
// is a rule in the user's own words.
func (e *SourceIndex) withoutOrders(answer string) string {
	folded, at := text.Fold(answer)
	answer = e.leaveOut(orders(), answer, folded, at)
	return e.leaveOut(foreignOrders(), answer, answer, nil)
}

// leaveOut replaces the sentences that a pattern matches in an answer, folded as text.Fold
// does or not at all.
func (e *SourceIndex) leaveOut(pattern *text.Regexp, answer, folded string, at []int) string {
	var spans [][2]int
	var texts []string
	for _, m := range matchesIn(pattern, folded) {
		start := sentenceStart(folded, m[0])
		words := wordsOf(folded[m[0]:m[1]])
		quoted := isQuotedAt(folded, m[0])
		known := e.said(words) || e.others.share(words) == 1 && strings.Count(words, " ") > 1
		line, _, _ := strings.Cut(folded[m[0]:], "\n")
		rule := wordsOf(line)
		if known && (quoted || reported().MatchString(folded[start:m[0]])) || strings.Count(rule, " ") > minRuleWords && e.said(rule) {
			continue
		}
		end := m[1]
		if quoted && strings.ContainsRune("\"'`”’“»", firstRune(folded[end:])) && specimen().MatchString(folded[start:m[0]]+line[m[1]-m[0]:]) {
			continue
		}
		if n := endOfSentence(folded[end:]); n >= 0 {
			if end += n; folded[end] != '\n' {
				end += len(string(firstRune(folded[end:])))
			}
		} else {
			end = len(folded)
		}
		if n := len(spans); n > 0 && start < spans[n-1][1] {
			spans[n-1][1] = max(spans[n-1][1], end)
			continue
		}
		spans, texts = append(spans, [2]int{start, end}), append(texts, leftOut)
	}
	return text.ReplaceFolded(answer, at, spans, texts)
}

// sentenceEnds matches the end of a sentence; a dot within a name is none.
var sentenceEnds = text.Pattern(`[.!?;]+(?:["'”’)\]*_]*(?:\s|$))|\n|[。！？；।]`)

// endOfSentence returns the index of the first end of a sentence in s, or -1.
func endOfSentence(s string) int {
	if m := sentenceEnds().FindStringIndex(s); m != nil {
		return m[0]
	}
	return -1
}

// lastEndOf returns the index after the last end of a sentence or mark of a line in s, and
// after the blanks behind it.
func lastEndOf(s string) int {
	i := 0
	for _, m := range sentenceEnds().FindAllStringIndex(s, -1) {
		i = m[1]
	}
	return i + len(s[i:]) - len(strings.TrimLeft(s[i:], " \t#>*-+"))
}

// sentenceStart returns where the sentence with index at begins, of which it looks at a part.
func sentenceStart(s string, at int) int {
	from := max(0, at-400)
	return from + lastEndOf(s[from:at])
}

// isQuotedAt reports whether a quotation begins at an index, or before the article in front of it.
func isQuotedAt(s string, at int) bool {
	before := strings.TrimSuffix(strings.TrimSuffix(s[:at], "The "), "the ")
	return before != "" && strings.ContainsRune("\"'`“‘„«", lastRune(before))
}

func lastRune(s string) rune  { r, _ := utf8.DecodeLastRuneInString(s); return r }
func firstRune(s string) rune { r, _ := utf8.DecodeRuneInString(s); return r }
