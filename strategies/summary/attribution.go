package summary

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// userSections matches headings of lists of user messages.
var userSections = text.Pattern(`(?i)\buser(?:'s|’s)?\s+(?:messages?|requests?|asks?|words|questions?|instructions?|prompts?)\b|\ball user\b`)

// userQuote is a text in a summary that is said to be the user's, or stands in the place of
// one.
type userQuote struct {
	text string
	// active: in the section of the active task.
	active bool
	// attributed: said to be the user's, not only quoted.
	attributed bool
	// loose: attributed to a person who need not be the user.
	loose bool
	// plain: without quotation marks; block: as a block quotation.
	plain, block bool
	// start and end are its indexes in the summary, with its marks.
	start, end int
}

var (
	// spoken matches text in front of words of the user without quotation marks.
	spoken = text.Pattern(`(?i)(?:\b(?:user|human)(?:'s|’s)?\b[^.!?:"“”\n]{0,80}?\b|\buser_)(?:` + putting + `|asked|instructed|ordered|demanded|insisted|told\s+(?:me|us|the\s+assistant)|continued|went\s+on|begged|warned|emphasi[sz]ed|stressed|repeated|posted|texted|made\s+clear|message(?:\s*#?\d{1,4})?|msg|words?|reply|answer|quote|e-?mail|follow-?up)` +
		`(?:[\s,]+(?:was|is|were|reads?|that|this|explicitly|verbatim|literally|again|then|here|now|just|the\s+following|in\s+full|in\s+their\s+(?:own\s+)?words|unedited|paraphrased|translated|as\s+sent))*["'\x60]?[*_\s]*(?:[:：]|\s=\s)(?:[*_\s]|<br\s*/?>)*|\b(?:user|human)\b[^.!?:"“”\n]{0,80}\b(?:verbatim|literally)\s*[—–-]+\s*|` +
		`\b(?:user|human)(?:['’]s)?\s+(?:\w+\s+){0,3}(?:(?:messages?|words|reply|answer)\s+follows?|(?:said|wrote)\s+(?:the\s+following|this|as\s+follows))\s*\.?\s*$|` +
		`\b(?:user|human)\s+(?:` + putting + `)\s*(?:\s[—–-]+\s|[—–…]|\.{3}|→|=>?|⇒)\s*|` +
		`\b(?:customer|client|caller|passenger|guest|patient)\s+(?:message|msg|turn|reply)\s*#?\d{1,4}\s*[:：]\s*|\b(?:messages?|words?|quotes?|quotation|said|written|typed|verbatim|request|answers?|repl(?:y|ies)|responses?)\s+(?:from|of|by)\s+(?:the\s+)?user\b[^.!?:"“”\n]{0,20}:\s*|\bmessages?\s*\(user\)\s*:\s*|\b(?:user|human)\s+(?:said|says|wrote|writes)\s*$|\buser\s+(?:wants|added|sent|picked)\s*:\s[*_\s]*|^\W*from\s+(?:the\s+)?user\s*:\s*|\b(?:quoting|to\s+quote)\s+(?:the\s+)?user[*_]*\s*[:,—–-]\s*|[.!?;]\s+(?-i:USER|HUMAN):\s*`)
	// about matches text in front of words that may be the model's about what the user wants.
	about = text.Pattern(`(?i)(?:\b(?:user|human|customer|client)(?:['’]s)\s+(?:\w+\s+)?(?:preference|position|opinion|stance|take|verdict|decision|guidance|(?:answer|reply|response)\s+(?:to|on|about)\s+[^:\n]{1,40})|^[\s*_>•+-]*(?:\d+[.)]\s*)?(?:the\s+)?(?:latest|last|newest|most\s+recent)\s+(?:request|instruction|ask|order|wish))[*_]*\s*[:—–][*_\s]*`)
	// spokenLabel matches the same at the beginning of a line of a transcript.
	spokenLabel = text.Pattern(`(?i)(?:^|<br\s*/?>)(?:[^\pL\n]|\pL[.)]\s|\[\^[^\]\s]{1,20}\]:|<\w{1,9}>|(?:turn|message|msg|step)\s*#?\d+,?|gpt4\s+correct){0,40}(?:the\s+)?(?:end[\s-]+)?` +
		`(?:(?:user|human\sturn)(?:\s?#?\d{1,4})?(?:[\s*_~)\]|\x60]|</\w{1,9}>|\([^()\n]{1,20}\))*(?:[:：\t▸►‣➤❯»]| {2,}|>+\s|=>)|(?:customer|requester|caller|passenger|guest|patient|buyer|usr|u|me|h)[*_]*(?:\s\([^()\n]{1,20}\)[*_]*)?(?:>\s|:))(?:[\s*_~|]|</\w{1,9}>)*|` +
		`^[^\pL\n]{0,20}(?:[aq](?:uestion|nswer)?|repl(?:y|ies))[*_]*\s*(?::\s*)?\((?:the\s+)?user\)[*_]*\s*:?[*_\s]*|` +
		`^user\s\|\s|<(?:summary|dt|t[dh])>\s*(?:the\s+)?(?:user|human)\s*</\w{1,9}>(?:\s*<\w{1,9}>)*|^[\s*>-]*(?:[\[(]user[\])]|<<user>>|\{user\})[ \t]+|^\W*(?:👤|🧑|🗣|💬)[\s:*_>–—-]{0,6}(?:user[\s:*_>–—-]{1,6})?`)
	// spokenForeign matches such labels in other languages.
	spokenForeign = text.Pattern(`(?i)^[^\pL\n]{0,20}(?:` + foreignUser + `|client\s|kunde|cliente|klient|клиент|客户|客戶|お客様|고객)[*_)\]]*\s*(?:[:：]|\([^()\n]{1,20}\)[*_]*\s*(?:[:：]|[—–-]+\s))[*_\s]*`)
	// record matches a field of a record that names the user, recordText the field of the words.
	record     = text.Pattern(`(?i)(?:^|[\s{\[,"'\x60(-])(?:role|from|sender|author|speaker|type|(?:\w{1,12}_)?by|who)["'\x60]?\s*[:=]\s*(?:\{\s*["']role["']\s*:\s*)?["'\x60]?(?:user|human|customer)\b`)
	recordText = text.Pattern(`(?i)\b(?:content|text|value|message|msg|body|words|quote)["'\x60]?\s*[:=]\s*(?:[|>]-?\s+)?["'\x60]?`)
	// cellOfUser matches a cell of a row that names the user as who spoke.
	cellOfUser = text.Pattern(`(?i)\|?[\s*_]*(?:the\s+)?(?:user|human|customer)(?:\s+(?:said|says|wrote))?[\s*_]*\|`)
	// columnOfWords matches a head of a table about who said what.
	columnOfWords = text.Pattern(`(?i)\b(?:said|says|messages?|text|quotes?|words|speaker|statement|who)\b`)
	// columnOfUser matches the head of a table with a column for each speaker, up to that of the user.
	columnOfUser = text.Pattern(`(?i)^[^\n]*?\|\s*(?:(?:answers?|repl(?:y|ies)|responses?|words|messages?|decisions?)\s+(?:of|from|by)\s+the\s+user|(?:the\s+)?user(?:['’]s)?\s+(?:answer|reply|response|words|message)s?)\s*\||^[^\n]*?\|\s*(?:the\s+)?(?:user|human)\s*\|(?:[^\n]*\|)?\s*(?:assistant|agent|model|bot|ai)\s*\|`)
	// codeWord matches a word in code, such as the name of an account.
	codeWord = text.Pattern("^`[^`\\s]+`")
	// isEmphasis matches a line up to the first mark of emphasis behind a colon.
	isEmphasis = text.Pattern(`:\s*[*_]$`)
	// account matches a name with signs or digits.
	account = text.Pattern(`^[\w.@-]*[\pL\d][_@\d-][\w.@-]*$`)
	// underRow matches the row below the head of a table.
	underRow = text.Pattern(`^[\s|:-]*-[\s|:-]*$`)
	// joined matches what may stand between two quotations of one speaker.
	joined = text.Pattern(`(?i)^[\s,;*_]*(?:(?:and|or|then|also|later|again|und|et|y|и|和)[\s,;:*_]*){0,3}$`)
)

// notQuoted stands in front of words without quotation marks that no message has.
const notQuoted = "(in the model's words) "

// userQuotes returns the quotations of the user in a summary: attributed to the user, in a
// list of user messages, in the section of the active task, or in a block.
func (e *SourceIndex) userQuotes(summary string, sections []Section) []userQuote {
	var out []userQuote
	for _, p := range splitSections(summary, sections) {
		active := sameTitle(p.title, ActiveTask)
		listed := userSections().MatchString(p.title)
		pending := p.title != "" && e.spokenEnd(p.title) == len(p.title) // what follows is attributed to the user
		mark := ""                                                       // that of the list that is
		block := false                                                   // it was a block quotation
		header := ""                                                     // the first row of the table
		units := unitsOf(summary[p.body:p.end])
		for k, u := range units {
			line, at := summary[p.body+u.start:p.body+u.end], p.body+u.start
			trimmed := strings.TrimSpace(line)
			plain := func(from, to int, attributed bool) {
				if rest := strings.TrimSpace(line[from:to]); rest != "" && !isName(rest) && !ownMark(rest) {
					from += strings.Index(line[from:], rest)
					out = append(out, userQuote{text: rest, active: active, attributed: attributed, plain: true, block: block, start: at + from, end: at + to})
				}
			}
			if block && blockStart(line) < 0 {
				pending, block = false, false
			}
			switch {
			case u.fence:
				if pending {
					plain(0, len(line), true)
				} else {
					out = append(out, turnsIn(line, at)...)
				}
				pending = false
				continue
			case blockStart(line) > 0:
				block = true
				plain(blockStart(line), len(line), pending || active)
				continue
			}
			row := trimmed[0] == '|'
			switch {
			case !row:
				header = ""
			case k+1 < len(units) && underRow().MatchString(summary[p.body+units[k+1].start:p.body+units[k+1].end]):
				header = line
				continue
			}
			folded, _ := text.Fold(line)
			entry := record().MatchString(folded) && !e.showsRecord(line) || row && cellOfUser().MatchString(folded) && (header == "" || columnOfWords().MatchString(header))
			if bare := strings.TrimRight(trimmed, ":* _"); p.title == "" || !listed {
				if userSections().MatchString(bare) && len(bare) < 60 && len(bare) < len(trimmed) {
					listed = true // a list with a heading of another kind
				} else if !isItem(trimmed) && !userSections().MatchString(p.title) {
					listed = false
				}
			}
			quotes := quotations(line, func(q *quotation) bool {
				return e.claims(q) != ofNobody || !q.markup && (pending && strings.Trim(q.before, listMarks) == "" && strings.Count(q.text, " ") > 1 || entry && len(quotedPhrases(q.text)) > 0)
			})
			claimed := false
			for i, q := range quotes {
				first := i == 0 && strings.Trim(q.before, listMarks) == ""
				of := e.claims(&q)
				claimed = (active || listed || pending) && first || claimed && !entry && joined().MatchString(line[quotes[i-1].end:q.start]) || of == ofTheUser || entry && len(quotedPhrases(q.text)) > 0
				if active || claimed || of != ofNobody {
					out = append(out, userQuote{text: q.text, active: active, attributed: claimed, loose: of == ofSomebody && !claimed, plain: q.markup && !active && isEmphasis().MatchString(line[:q.start+1]), start: at + q.start, end: at + q.end})
				}
			}
			if bullet := line[:len(line)-len(strings.TrimLeft(line, listMarks))]; mark == "" && isItem(trimmed) {
				mark = bullet
			} else if mark != "" && strings.TrimRight(bullet, "0123456789.) ") != strings.TrimRight(mark, "0123456789.) ") {
				pending, mark = false, ""
			}
			marks := e.spokenEnd(line)
			switch {
			case marks == len(line):
				pending, mark = true, ""
				continue
			case len(quotes) > 0:
			case marks > 0:
				plain(marks, len(line), true)
			case e.aboutEnd(line) > 0 && !e.retells(line[e.aboutEnd(line):]):
				plain(e.aboutEnd(line), len(line), false)
			case pending:
				plain(len(line)-len(strings.TrimLeft(line, listMarks)), len(line), true)
			case row && columnOfUser().MatchString(header):
				column := strings.Count(header[:strings.Index(strings.ToLower(header), "user")+1], "|")
				if cells := strings.Split(line, "|"); column < len(cells) && len(quotedPhrases(cells[column])) > 0 {
					from := len(strings.Join(cells[:column], "|")) + 1
					plain(from, from+len(cells[column]), true)
				}
			case row && entry:
				for cell := 0; cell < len(line); {
					end := cell + len(line[cell:])
					if n := strings.IndexByte(line[cell:], '|'); n >= 0 {
						end = cell + n
					}
					if len(quotedPhrases(line[cell:end])) > 0 {
						plain(cell, end, true)
					}
					cell = end + 1
				}
			case entry:
				if m := recordText().FindStringIndex(line); m != nil {
					end := m[1] + len(line[m[1]:])
					if n := strings.IndexByte(line[m[1]:], '\n'); n > 0 {
						end = m[1] + n
					}
					if said := line[m[1]:end]; len(quotedPhrases(said)) > 0 || agrees().MatchString(said) {
						plain(m[1], end, true)
					}
				}
			}
			pending = pending && isItem(trimmed)
		}
	}
	return out
}

// showsRecord reports whether a line has a record as code that has no words or is in a message of a tool.
func (e *SourceIndex) showsRecord(line string) bool {
	spans, _ := inlineCode(line, 0)
	return slices.ContainsFunc(spans, func(c [2]int) bool {
		code := line[c[0]:c[1]]
		said := recordText().FindStringIndex(code)
		return record().MatchString(code) && (said == nil || len(quotedPhrases(code[said[1]:])) == 0 || e.others.share(wordsOf(code)) == 1)
	})
}

// turnOfUser matches the label of the user in a transcript, which code has as a name, if at all, and what is
// before the words in a list of messages.
var turnOfUser = text.Pattern(`(?m)^[ \t>*-]*(?:\[\d[^\]\n]{0,30}\][ \t]*)?(?:(?:User|USER|Human|HUMAN)[ \t]*[:：]|\[(?:user|User|USER)\]|(?:user|human)>)[ \t]+|` +
	`["']role["']\s*:\s*["'](?:user|human)["']\s*,\s*["']content["']\s*:\s*["']|^[ \t]*-[ \t]+role:[ \t]*["']?user["']?[ \t]*\n[ \t]+content:[ \t]*["'|>]?\s*`)

// turnsIn returns the turns of the user in a transcript in a fence, which begins at index at.
func turnsIn(code string, at int) []userQuote {
	var out []userQuote
	for _, m := range turnOfUser().FindAllStringIndex(code, -1) {
		said, _, _ := strings.Cut(code[m[1]:], "\n")
		if code[m[1]-1] == '"' || code[m[1]-1] == '\'' {
			said, _, _ = strings.Cut(said, code[m[1]-1:m[1]])
		}
		if !ownMark(said) {
			out = append(out, userQuote{text: said, loose: true, plain: true, start: at + m[1], end: at + m[1] + len(said)})
		}
	}
	return out
}

// aboutEnd returns the index behind what says that words about what the user wants follow, or -1.
func (e *SourceIndex) aboutEnd(line string) int {
	folded, at := e.withoutNames(text.Fold(withoutMarks(line)))
	m := about().FindStringIndex(folded)
	switch {
	case m == nil:
		return -1
	case at == nil:
		return m[1]
	}
	return at[m[1]]
}

// isName reports whether words behind a label are the name of an account, or begin with one in code.
func isName(words string) bool { return codeWord().MatchString(words) || account().MatchString(words) }

// blockStart returns the index behind the mark of a block quotation, which may be in a list,
// or -1.
func blockStart(line string) int {
	bare := strings.TrimLeft(line, listMarks)
	r, size := utf8.DecodeRuneInString(bare)
	if !strings.ContainsRune(">＞﹥", r) {
		return -1
	}
	return len(line) - len(bare) + size
}

// spokenEnd returns the index behind what says that the user's words follow, or -1.
func (e *SourceIndex) spokenEnd(line string) int {
	line = withoutMarks(line)
	folded, at := text.Fold(line)
	marks := spokenLabel().FindStringIndex(folded)
	if marks == nil {
		folded, at = e.withoutNames(folded, at)
		marks = spoken().FindStringIndex(folded)
	}
	switch {
	case marks == nil:
		if marks = spokenForeign().FindStringIndex(line); marks != nil {
			return marks[1]
		}
		return -1
	case at == nil:
		return marks[1]
	}
	return at[marks[1]]
}

// isLabelled reports whether a line begins with a label of the user.
func isLabelled(line string) bool {
	folded, _ := text.Fold(line)
	return spokenLabel().MatchString(folded) || spokenForeign().MatchString(line)
}

// listMarks may stand in front of an item of a list.
const listMarks = " \t-*+•0123456789.)"

// unit is a paragraph, an item of a list, a line of a block quotation or a line of code.
type unit struct {
	start, end int // without the end of its last line
	fence      bool
}

// unitsOf splits the body of a section, so that a text that was broken into lines is read as
// one.
func unitsOf(body string) []unit {
	var out []unit
	fence, at, open := "", 0, false // open: the next line may go on
	for line := range strings.Lines(body) {
		was := fence
		fence = fenceAfter(fence, line)
		end := at + len(strings.TrimRight(line, "\r\n"))
		trimmed := strings.TrimSpace(line)
		switch {
		case was != "" || fence != "":
			if was != "" && fence != "" && trimmed != "" {
				if n := len(out); open {
					out[n-1].end = end
				} else {
					out = append(out, unit{at, end, true})
				}
				open = true
			} else {
				open = false
			}
		case trimmed == "":
			open = false
		case open && trimmed[0] != '>' && trimmed[0] != '|' && !isItem(trimmed) && !isLabelled(line):
			out[len(out)-1].end = end
		default:
			out = append(out, unit{start: at, end: end})
			open = trimmed[0] != '>' && trimmed[0] != '|'
		}
		at += len(line)
	}
	return out
}
