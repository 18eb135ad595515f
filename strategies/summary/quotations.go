package summary

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendWords appends the words of s in lower case, separated by one blank, so that texts
// compare regardless of white space, punctuation, emphasis and case.
func appendWords(b []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && isAlnum(byte(r)):
			if r >= 'A' && r <= 'Z' {
				r += 'a' - 'A'
			}
			b = append(b, byte(r))
		case r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)) && r != utf8.RuneError:
			b = utf8.AppendRune(b, unicode.ToLower(r))
		default:
			if n := len(b); n > 0 && b[n-1] != ' ' {
				b = append(b, ' ')
			}
		}
	}
	return b
}

func wordsOf(s string) string { return strings.TrimSpace(string(appendWords(nil, s))) }

// quoteMarks maps opening to closing marks; a straight one is both.
var quoteMarks = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '「': '」', '『': '』', '＂': '＂'}

// quotation is a text between quotation marks on one line.
type quotation struct {
	before, text, after string
}

// quotations returns the quotations on a line, outside of code.
func quotations(line string) []quotation {
	var out []quotation
	var never [2]rune // marks that close nothing in the rest of the line
	code := false
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		closing, opens := quoteMarks[r]
		switch {
		case r == '`':
			code = !code
		case opens && !code && r != never[0] && r != never[1] && (r != '"' || opensQuote(line, i)):
			if end := closeQuote(line, i+size, r, closing); end >= 0 {
				_, n := utf8.DecodeRuneInString(line[end:])
				out = append(out, quotation{line[:i], line[i+size : end], line[end+n:]})
				i = end + n
				continue
			}
			if r != '"' {
				never[0], never[1] = r, never[0]
				break
			}
			// Never closed: the rest of the line is the quotation.
			return append(out, quotation{line[:i], line[i+size:], ""})
		}
		i += size
	}
	return out
}

// opensQuote reports whether a straight mark at i can begin a quotation.
func opensQuote(s string, i int) bool {
	if i > 0 && strings.IndexByte(" \t([{*_:>-~/", s[i-1]) < 0 && s[i-1] < utf8.RuneSelf {
		return false
	}
	return i+1 < len(s) && !isSpace(s[i+1])
}

// closeQuote returns where the quotation that began at i ends, or -1.
func closeQuote(s string, i int, opening, closing rune) int {
	for j := i; j < len(s); {
		r, size := utf8.DecodeRuneInString(s[j:])
		end := r == closing || opening == '„' && r == '”'
		if end && (r != '"' || j > i && !isSpace(s[j-1]) && (j+1 == len(s) || !isAlnum(s[j+1]))) {
			return j
		}
		j += size
	}
	return -1
}

var (
	// attributed matches text before a quotation that attributes it to the user.
	attributed = regexp.MustCompile(`(?i)\buser(?:'s|’s|s)?\b[^.!?"“”]{0,90}?\b(?:said|says|say|asked|asks|ask|wrote|writes|write|typed|stated|states|replied|answered|responded|told|instructed|ordered|demanded|insisted|confirmed|commented|noted|reported|` +
		`message|messages|request|requests|question|questions|feedback|correction|corrections|instruction|instructions|words|reply|answer|response|comment|prompt|follow-?up|ask)s?` +
		`(?:[*_\s:,()—–-]|\b(?:was|is|were|are|me|us|that|to|explicitly|then|again|also|here|simply|just|exactly|verbatim|literally|the|following|in|this|session|first|last|latest)\b){0,12}$`)
	// attributedColon matches the same with any text up to a colon.
	attributedColon = regexp.MustCompile(`(?i)\buser(?:'s|’s)?\b[^.!?"“”:]{0,80}\b(?:said|says|asked|asks|wrote|writes|typed|stated|replied|told|instructed|ordered|demanded|insisted|requested|message|request|question|instruction|words)\b[^.!?"“”:]{0,60}:[*_\s>]*$`)
	// attributedLabel matches a label of the user, as in transcripts.
	attributedLabel = regexp.MustCompile(`(?i)(?:^|[\s*_(\[>-])(?:user|human)[*_\]]*\s*:[*_\s]*$`)
	// attributedAfter matches an attribution behind the quotation.
	attributedAfter = regexp.MustCompile(`(?i)^[*_,.\s—–-]*(?:(?:said|asked|wrote)\s+the\s+user\b|the\s+user\s+(?:said|says|asked|asks|wrote|writes|insisted|replied|demanded)\b)`)
	// attributedForeign matches the word for user in other languages.
	attributedForeign = regexp.MustCompile(`(?i)(?:\b(?:be)?nutzer(?:in)?|\bl['’]utilisateur|\busuario|\busuário|\butente|\bgebruiker|пользовател\p{L}*|користувач\p{L}*|用户|用戶|使用者|ユーザー?|사용자|المستخدم|उपयोगकर्ता)[^.!?。！？"“”„«»「」]{0,40}$`)
	// userSections matches headings of lists of user messages.
	userSections = regexp.MustCompile(`(?i)\buser(?:'s|’s)?\s+(?:messages?|requests?|asks?|words|questions?|instructions?|prompts?)\b|\ball user\b`)
)

// ofUser reports whether a quotation on a line is attributed to the user.
func (q *quotation) ofUser() bool {
	before, after := q.before[max(0, len(q.before)-240):], q.after[:min(len(q.after), 80)]
	if low := strings.ToLower(before); strings.Contains(low, "user") || strings.Contains(low, "human") {
		if attributed.MatchString(before) || attributedColon.MatchString(before) || attributedLabel.MatchString(before) {
			return true
		}
	}
	return mayNameUser(before) && attributedForeign.MatchString(before) || strings.Contains(after, "user") && attributedAfter.MatchString(after)
}

// mayNameUser is a cheap test whether elsewhere can match.
func mayNameUser(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return true
		}
	}
	low := strings.ToLower(s)
	for _, w := range []string{"nutzer", "utilisateur", "usuario", "utente", "gebruiker"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// userQuote is a quotation of the user.
type userQuote struct {
	text string
	// active: in the section of the active task.
	active bool
	// attributed: said to be the user's, not only quoted in that section.
	attributed bool
}

// userQuotes returns the quotations of the user in a summary: attributed to the user, in a
// list of user messages, or in the section of the active task.
func userQuotes(text string, sections []Section) []userQuote {
	var out []userQuote
	for _, p := range splitSections(text, sections) {
		active := sameTitle(p.title, ActiveTask)
		listed := userSections.MatchString(p.title)
		for line := range outsideFences(text[p.body:p.end]) {
			line = strings.TrimRight(line, "\r\n")
			trimmed := strings.TrimSpace(line)
			if bare, ok := strings.CutPrefix(trimmed, ">"); ok && active {
				out = append(out, userQuote{strings.Trim(bare, " \"“”"), true, true})
				continue
			}
			if bare := strings.TrimRight(trimmed, ":* _"); p.title == "" || !listed {
				if userSections.MatchString(bare) && len(bare) < 60 && len(bare) < len(trimmed) {
					listed = true // a list with a heading of another kind
				} else if trimmed != "" && !isItem(trimmed) && !userSections.MatchString(p.title) {
					listed = false
				}
			}
			for i, q := range quotations(line) {
				first := i == 0 && strings.Trim(q.before, " \t-*+•0123456789.)") == ""
				claimed := (active || listed) && first || q.ofUser()
				if active || claimed {
					out = append(out, userQuote{q.text, active, claimed})
				}
			}
		}
	}
	return out
}

func isItem(line string) bool {
	return strings.IndexByte("-*+>0123456789", line[0]) >= 0 || strings.HasPrefix(line, "•")
}

// omission matches omissions within a quotation: dots, remarks in brackets, masks.
var omission = regexp.MustCompile(`\.{2,}|…|\[[^\[\]]{0,200}\]|\*{3,}|<[^<>]{0,80}>`)

// quotedPhrases returns the words of the parts of a quotation that must occur in a message. Parts
// too short to decide are left out.
func quotedPhrases(quote string) []string {
	var out []string
	for _, s := range omission.Split(quote, -1) {
		w := wordsOf(s)
		if n := strings.Count(w, " ") + 1; n >= 3 && len(w) >= 12 || unspacedLetters(w) >= 6 {
			out = append(out, w)
		}
	}
	return out
}

// unspacedLetters counts letters of scripts without blanks between words.
func unspacedLetters(s string) int {
	n := 0
	for _, r := range s {
		if r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
			n++
		}
	}
	return n
}
