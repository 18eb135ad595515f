package summary

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

var (
	// attributed matches text before a quotation that attributes it to the user.
	attributed = text.Pattern(`(?i)\b(?:according\s+to|as\s+per|quoting)\s+(?:the\s+)?user[\s*_,:]*$|` +
		`\b(?:user|human)(?:'s|’s|s)?\b[^.!?"“”]{0,90}?\b(?:said|says|say|asked|asks|ask|wrote|writes|write|typed|stated|states|replied|answered|responded|told|instructed|ordered|demanded|insisted|insists|confirmed|commented|noted|reported|` +
		`put\s+it|mentioned|remarked|exclaimed|clarified|declared|requested|directed|directive|demand|` +
		`message|messages|request|requests|question|questions|feedback|correction|corrections|instruction|instructions|words|reply|answer|response|comment|prompt|follow-?up|ask)s?` +
		`(?:[*_\s:,()|—–-]|\b(?:was|is|were|are|me|us|that|to|explicitly|then|again|also|here|simply|just|exactly|verbatim|literally|the|following|in|this|session|first|last|latest)\b){0,12}$`)
	// attributedColon matches the same with any text up to a colon.
	attributedColon = text.Pattern(`(?i)\b(?:user|human)(?:'s|’s)?\b[^.!?"“”:]{0,80}\b(?:said|says|asked|asks|wrote|writes|typed|stated|replied|told|instructed|ordered|demanded|insisted|requested|added|message|request|question|instruction|words)\b[^.!?"“”:]{0,60}:[*_\s>|]*$`)
	// attributedLabel matches a label of the user, as in transcripts and in messages in JSON.
	attributedLabel = text.Pattern(`(?i)(?:^|[\s*_(\[>-])(?:user|human)[*_\]]*\s*(?:\([^()\n]{1,20}\)\s*)?:[*_\s]*$|(?:^|\n)[\s*_+>-]*(?:the\s+)?user[*_]*\s*(?:→|[=–—-]+>?)\s*$|"role"\s*:\s*"(?:user|human)"[^{}]{0,60}"(?:content|text)"\s*:\s*$`)
	// attributedAfter matches an attribution behind the quotation.
	attributedAfter = text.Pattern(`(?i)^[*_,.\s—–-]*(?:(?:said|says|asked|asks|wrote|writes|insisted|insists)\s+the\s+user\b|the\s+user\s+(?:said|says|asked|asks|wrote|writes|insisted|insists|replied|demanded)\b|(?:according\s+to|as\s+per|per)\s+the\s+user\b)|` +
		`^[*_,.\s]*(?:[—–-]+\s*|\()(?:the\s+)?user[*_]*(?:[).,;\n]|\s*$)`)
	// attributedForeign matches the word for user in other languages.
	attributedForeign = text.Pattern(`(?i)(?:\b(?:be)?nutzer(?:in)?|\bl['’]utilisat(?:eur|rice)|\busuari[oa]|\busuári[oa]|\butilizador|\butente|\bgebruiker|użytkowni\p{L}*|\bkullanıcı\p{L}*|\banvändaren|người dùng|пользовател\p{L}*|користувач\p{L}*|用户|用戶|使用者|ユーザー?|사용자|المستخدم|उपयोगकर्ता)[^.!?。！？"“”„«»「」]{0,40}$`)
	// userSections matches headings of lists of user messages.
	userSections = text.Pattern(`(?i)\buser(?:'s|’s)?\s+(?:messages?|requests?|asks?|words|questions?|instructions?|prompts?)\b|\ball user\b`)
)

// ofUser reports whether a quotation on a line is attributed to the user.
func (q *quotation) ofUser() bool {
	before, after := q.before[max(0, len(q.before)-240):], q.after[:min(len(q.after), 80)]
	if mayNameUser(before) && attributedForeign().MatchString(before) {
		return true
	}
	before, _ = text.Fold(before) // blanks too
	after, _ = text.Fold(after)
	if low := strings.ToLower(before); strings.Contains(low, "user") || strings.Contains(low, "human") {
		if attributed().MatchString(before) || attributedColon().MatchString(before) || attributedLabel().MatchString(before) {
			return true
		}
	}
	return strings.Contains(strings.ToLower(after), "user") && attributedAfter().MatchString(after)
}

// mayNameUser is a cheap test whether elsewhere can match.
func mayNameUser(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return true
		}
	}
	low := strings.ToLower(s)
	for _, w := range []string{"nutzer", "utilisat", "usuari", "utilizador", "utente", "gebruiker"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// userQuote is a text in a summary that is said to be the user's, or stands in the place of
// one.
type userQuote struct {
	text string
	// active: in the section of the active task.
	active bool
	// attributed: said to be the user's, not only quoted.
	attributed bool
	// plain: without quotation marks.
	plain bool
	// start and end are its indexes in the summary, with its marks.
	start, end int
}

var (
	// spoken matches text in front of words of the user without quotation marks.
	spoken = text.Pattern(`(?i)\b(?:user|human)(?:'s|’s)?\b[^.!?:"“”\n]{0,80}?\b(?:said|says|wrote|writes|typed|stated|replied|answered|responded|asked|instructed|ordered|demanded|insisted|told\s+(?:me|us|the\s+assistant)|message|words|reply|answer)` +
		`(?:\s+(?:was|is|were|reads?|that|this|explicitly|verbatim|literally|again|then|here|now|just|the\s+following))*[*_\s]*[:：][*_\s]*|` +
		`\b(?:user|human)['’]s\s+(?:\w+\s+){0,3}(?:messages?|words|reply|answer)\s+follows?\s*\.\s*$`)
	// spokenLabel matches the same at the beginning of a line of a transcript.
	spokenLabel = text.Pattern(`(?i)(?:^|<br\s*/?>)(?:[\s*+•>|~_(\[@\p{So}-]|\d+[.)]|\[\^[^\]\s]{1,20}\]:|<\w{1,9}>|turn\s+\d+|gpt4\s+correct)*(?:the\s+)?user(?:[\s*_~)\]|]|</\w{1,9}>|\([^()\n]{1,20}\))*[:：](?:[\s*_~|]|</\w{1,9}>)*|` +
		`^\s*\[user\][ \t]+|^\s*role\s*:\s*["']?user["']?\s+content\s*:\s*`)
	// spokenForeign matches such labels in other languages.
	spokenForeign = text.Pattern(`(?i)^[\s*+•>_(\[-]*(?:\d+[.)]\s*)?[*_(\[]*(?:(?:be)?nutzer(?:in)?|utilisat(?:eur|rice)|usuari[oa]|usuári[oa]|utente|gebruiker|пользователь|用户|用戶|使用者|ユーザー?|사용자|المستخدم)[*_)\]]*\s*[:：][*_\s]*`)
	// joined matches what may stand between two quotations of one speaker.
	joined = text.Pattern(`(?i)^[\s,;*_]*(?:(?:and|or|then|also|later|again|und|et|y|и|和)[\s,;:*_]*){0,3}$`)
)

// notQuoted stands in front of words without quotation marks that no message has.
const notQuoted = "(in the model's words) "

// userQuotes returns the quotations of the user in a summary: attributed to the user, in a
// list of user messages, in the section of the active task, or in a block.
func userQuotes(summary string, sections []Section) []userQuote {
	var out []userQuote
	for _, p := range splitSections(summary, sections) {
		active := sameTitle(p.title, ActiveTask)
		listed := userSections().MatchString(p.title)
		pending := false // what follows is attributed to the user
		mark := ""       // that of the list that is
		block := false   // it was a block quotation
		for _, u := range unitsOf(summary[p.body:p.end]) {
			line, at := summary[p.body+u.start:p.body+u.end], p.body+u.start
			trimmed := strings.TrimSpace(line)
			plain := func(from int, attributed bool) {
				if rest := strings.TrimSpace(line[from:]); rest != "" && !strings.HasPrefix(rest, strings.TrimSpace(notQuoted)) {
					from += strings.Index(line[from:], rest)
					out = append(out, userQuote{text: rest, active: active, attributed: attributed, plain: true, start: at + from, end: at + len(line)})
				}
			}
			if block && blockStart(line) < 0 {
				pending, block = false, false
			}
			switch {
			case u.fence:
				if pending {
					plain(0, true)
				}
				pending = false
				continue
			case blockStart(line) > 0:
				plain(blockStart(line), pending || active)
				block = true
				continue
			}
			if bare := strings.TrimRight(trimmed, ":* _"); p.title == "" || !listed {
				if userSections().MatchString(bare) && len(bare) < 60 && len(bare) < len(trimmed) {
					listed = true // a list with a heading of another kind
				} else if !isItem(trimmed) && !userSections().MatchString(p.title) {
					listed = false
				}
			}
			quotes := quotations(line, func(q *quotation) bool {
				return q.ofUser() || pending && strings.Trim(q.before, listMarks) == "" && strings.Count(q.text, " ") > 1
			})
			claimed := false
			for i, q := range quotes {
				first := i == 0 && strings.Trim(q.before, listMarks) == ""
				claimed = (active || listed || pending) && first || claimed && joined().MatchString(line[quotes[i-1].end:q.start]) || q.ofUser()
				if active || claimed {
					out = append(out, userQuote{text: q.text, active: active, attributed: claimed, start: at + q.start, end: at + q.end})
				}
			}
			if bullet := line[:len(line)-len(strings.TrimLeft(line, listMarks))]; mark == "" && isItem(trimmed) {
				mark = bullet
			} else if mark != "" && strings.TrimRight(bullet, "0123456789.) ") != strings.TrimRight(mark, "0123456789.) ") {
				pending, mark = false, ""
			}
			marks := spokenEnd(line)
			switch {
			case marks == len(line):
				pending, mark = true, ""
				continue
			case len(quotes) > 0:
			case marks > 0:
				plain(marks, true)
			case pending:
				plain(len(line)-len(strings.TrimLeft(line, listMarks)), true)
			}
			pending = pending && isItem(trimmed)
		}
	}
	return out
}

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
func spokenEnd(line string) int {
	folded, at := text.Fold(line)
	marks := spokenLabel().FindStringIndex(folded)
	if marks == nil {
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
	return strings.Contains(strings.ToLower(folded), "user") && spokenLabel().MatchString(folded) || mayNameUser(line) && spokenForeign().MatchString(line)
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
		case open && trimmed[0] != '>' && !isItem(trimmed) && !isLabelled(line):
			out[len(out)-1].end = end
		default:
			out = append(out, unit{start: at, end: end})
			open = trimmed[0] != '>'
		}
		at += len(line)
	}
	return out
}
