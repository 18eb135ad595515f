package retention

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isWord reports whether Python's \w matches r.
func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// isSpace reports whether Python's \s matches r.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// lower returns s in lower case. Unlike strings.ToLower, it keeps the dot of a capital I.
func lower(s string) string { return strings.ToLower(strings.ReplaceAll(s, "\u0130", "i\u0307")) }

// normalized returns the words of s, with their apostrophes, in lower case and separated by
// single blanks.
func normalized(s string) string {
	return strings.Join(strings.FieldsFunc(lower(s), func(r rune) bool { return !isWord(r) && r != '\'' }), " ")
}

// isLetter reports whether r is part of a written word.
func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// isToken reports whether r is part of a word, a number, a name or a path.
func isToken(r rune) bool { return isWord(r) || strings.ContainsRune("'./-", r) }

// isUnspaced reports whether r is of a script without blanks between words.
func isUnspaced(r rune) bool {
	return r >= 0xe00 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// minWord is the size in characters of the shortest words.
const minWord = 3

// words returns the runs of characters of a class in s that are not too short, in lower case and without
// repetitions. Of scripts without blanks, it returns each minWord adjacent characters.
func words(s string, class func(rune) bool) map[string]bool {
	out := map[string]bool{}
	for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return !class(r) }) {
		for text := []rune(run); len(text) >= minWord; {
			unspaced := isUnspaced(text[0])
			end := slices.IndexFunc(text, func(r rune) bool { return isUnspaced(r) != unspaced })
			if end < 0 {
				end = len(text)
			}
			for i := 0; unspaced && i+minWord <= end; i++ {
				out[string(text[i:i+minWord])] = true
			}
			if !unspaced && end >= minWord {
				out[lower(string(text[:end]))] = true
			}
			text = text[end:]
		}
	}
	return out
}

// Sizes of the sentences and lines that count, in characters, of which those of scripts without blanks
// count double.
const minSentence, maxSentence = 12, 300

func isSentence(s string) bool {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if isUnspaced(r) {
			n++
		}
	}
	return minSentence <= n && n <= maxSentence
}

// sentences calls yield for each sentence of a countable size. A sentence ends with its line,
// with one of . ! ? before white space, or with one of 。！？.
func sentences(s string, yield func(string)) {
	for sentence := range strings.SplitSeq(sentenceEnd.ReplaceAllString(s, "$1$2\n"), "\n") {
		if sentence = trim(sentence); isSentence(sentence) {
			yield(sentence)
		}
	}
}

// Words that mark a sentence of the user as a constraint: in English, German, Spanish and Russian,
// where they are whole words, and in Chinese and Japanese.
const (
	constraintWords = `never|always|must|don'?t|do not|doesn'?t need|prefer|avoid|make sure|ensure|should|shouldn'?t|only|instead|no need|stop|keep|` +
		`niemals|nie|immer|muss|müssen|darf|dürfen|soll|sollen|sollte|nur|nicht mehr|statt|stattdessen|vermeide|bevorzuge|lieber|unbedingt|auf keinen fall|` +
		`nunca|jamás|siempre|debes?|deben|no debe|evita|evite|evitar|prefiero|asegúrate|asegúrese|s[oó]lo|solamente|en lugar de|en vez de|no hace falta|` +
		`никогда|всегда|долж(?:ен|на|но|ны)|нельзя|не надо|не нужно|только|вместо|избегай|избегайте|лучше|обязательно|убедись|убедитесь`
	unspacedConstraints = `不要|不能|不得|不准|不许|不必|不用|不需要|无需|禁止|必须|务必|一定要|应该|应当|避免|总是|始终|永远|只能|只用|仅|确保|优先|而不是|` +
		`必ず|絶対|常に|決して|しないで|ないでくだ|てはいけ|てはなら|なければなら|べき|のみ|だけ|避け|代わりに|必要はな|優先`
)

// Limits of whole words, as \b is a boundary of ASCII words, and Python's \s.
const before, after, blanks = `(?:^|[^` + word + `])`, `(?:$|[^` + word + `])`, `[\s\p{Z}\v\x1c-\x1f\x{85}]`

var (
	constraint = regexp.MustCompile(before + `(?i:` + constraintWords + `)` + after + `|` + unspacedConstraints)
	failing    = regexp.MustCompile(`^(?i:error|fatal|panic|traceback|exception|fail|failed|cannot|undefined|not found|denied)` + after)
	lineNumber = regexp.MustCompile(`^` + blanks + `*\p{Nd}+[→:\t-]`)

	sentenceEnd = regexp.MustCompile(`([.!?])` + blanks + `+|([。！？])`)
)
