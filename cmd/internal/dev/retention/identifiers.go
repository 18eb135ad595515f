package retention

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of identifiers in the order in which they are searched for. A value has the first kind
// that matches it.
const (
	uuid   = iota
	email  // address@example.com
	path   // with a slash, at least six characters, and two adjacent ASCII letters
	file   // with one of a list of extensions
	code   // 5 to 12 capitals and digits, at least one of each: orders, reservations, flights
	sha    // 7 to 40 hexadecimal digits with a letter
	handle // credit_card_4421
	number // 4 digits or more
	quoted // 3 to 60 characters between quotes, with an ASCII letter and without outer blanks
	kinds
)

// word is the inside of a class of word characters, as Python's \w.
const word = `\p{L}\p{N}_`

// patterns find the identifiers that consist of more than one word, on a line between two line
// ends. A character before the group, and one after it, stand for conditions on the context: the
// next search begins with the last character of the identifier. need is a character of each match.
var patterns = []struct {
	kind int
	need string
	*regexp.Regexp
}{
	{email, "@", regexp.MustCompile(`(?:[^` + word + `]([` + word + `]` + address + `)|[` + word + `]([.+-]` + address + `))[^` + word + `]`)},
	{path, "/", regexp.MustCompile(`[^` + word + `/.]((?:~|\.{1,2})?/?(?:[` + word + `.@+-]+/)+[` + word + `@+-]+(?:\.[` + word + `-]+)*)`)},
	{file, ".", regexp.MustCompile(`[^` + word + `/.-]([` + word + `-]+\.(?:go|py|ts|tsx|js|jsx|rs|c|h|cpp|java|rb|sh|sql|md|json|jsonl|ya?ml|toml|lock|mod|sum|css|html|txt|csv))[^` + word + `]`)},
}

// address is the rest of an e-mail address after its first character.
const address = `[` + word + `.+-]*@[` + word + `-]+(?:\.[` + word + `-]+)*\.[` + word + `-]*[` + word + `]`

// Patterns of one word that contains a digit, of the start of a text, and of quoted names.
var (
	isNumber = regexp.MustCompile(`^\p{Nd}{4,}$`)
	isCode   = regexp.MustCompile(`^[A-Z0-9]{5,12}$`)
	isSHA    = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
	isHandle = regexp.MustCompile(`^[a-z]+(?:_[a-z]+)*_\p{Nd}{3,}$`)
	isUUID   = regexp.MustCompile(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:[^` + word + `]|$)`)
	inQuotes = regexp.MustCompile(`"([^"\n\\]{3,60})"|` + "`([^`\n]{3,60})`" + `|'([^'\n]{3,60})'`)
	letter   = regexp.MustCompile(`[A-Za-z]`)
	letters  = regexp.MustCompile(`[A-Za-z]{2}`)
)

// ids returns the distinct identifiers in text, ordered by kind, then by position.
func ids(text string) []string {
	var found [kinds][]string
	text = "\n" + text + "\n"
	for start := 0; start+1 < len(text); {
		end := start + 2 + strings.IndexByte(text[start+1:], '\n')
		identifiersOfLine(text[start:end], &found)
		start = end - 1
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Concat(found[:]...), func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// identifiersOfLine adds the identifiers of a line between two line ends.
func identifiersOfLine(line string, found *[kinds][]string) {
	add := func(kind int, id string) { found[kind] = append(found[kind], id) }
	start, digit := -1, false
	for i, r := range line {
		if isWord(r) {
			if start < 0 {
				start, digit = i, false
			}
			digit = digit || unicode.IsDigit(r)
			continue
		}
		if start >= 0 && digit {
			identifiersOfWord(line, start, i, add)
		}
		start = -1
	}
	for _, p := range patterns {
		if !strings.Contains(line, p.need) {
			continue
		}
		for at := 0; ; {
			m := p.FindStringSubmatchIndex(line[at:])
			if m == nil {
				break
			}
			group := m[2:4]
			if group[0] < 0 {
				group = m[4:6]
			}
			id := line[at+group[0] : at+group[1]]
			if p.kind != path || utf8.RuneCountInString(id) >= 6 && letters.MatchString(id) {
				add(p.kind, id)
			}
			_, last := utf8.DecodeLastRuneInString(id)
			at += group[1] - last
		}
	}
	if strings.ContainsAny(line, "\"`'") {
		identifiersInQuotes(line, add)
	}
}

// identifiersOfWord adds the identifiers that are the word line[start:end], which contains a digit, or
// begin with it.
func identifiersOfWord(line string, start, end int, add func(kind int, id string)) {
	w := line[start:end]
	if end-start == 8 && isUUID.MatchString(line[start:]) {
		add(uuid, line[start:start+36])
	}
	switch {
	case isNumber.MatchString(w):
		if line[start-1] != '.' {
			add(number, w)
		}
	case isCode.MatchString(w):
		if r, _ := utf8.DecodeLastRuneInString(line[:start-1]); line[start-1] == '#' && !isWord(r) {
			w = line[start-1 : end]
		}
		add(code, w)
	case isSHA.MatchString(w):
		add(sha, w)
	case isHandle.MatchString(w):
		add(handle, w)
	}
}

// identifiersInQuotes adds the quoted names of a line. Single quotes within words are apostrophes.
func identifiersInQuotes(line string, add func(kind int, id string)) {
	for at := 0; ; {
		m := inQuotes.FindStringSubmatchIndex(line[at:])
		if m == nil {
			return
		}
		before, _ := utf8.DecodeLastRuneInString(line[:at+m[0]])
		after, _ := utf8.DecodeRuneInString(line[at+m[1]:])
		if m[6] >= 0 && (isWord(before) || isWord(after)) {
			at += m[0] + 1
			continue
		}
		if id := line[at+m[0]+1 : at+m[1]-1]; id == trim(id) && letter.MatchString(id) {
			add(quoted, id)
		}
		at += m[1]
	}
}

// labels returns the words that label the text at byte at: words of three or more ASCII letters
// before it on its line, at most reach characters away, in lower case. Of a word that the reach
// cuts, the remaining letters count.
func labels(text string, at, reach int) []string {
	line := text[max(0, at-utf8.UTFMax*reach):at]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	for n := utf8.RuneCountInString(line); n > reach; n-- {
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
	}
	all := strings.FieldsFunc(lower(line), func(r rune) bool { return r < 'a' || r > 'z' })
	return slices.DeleteFunc(all, func(w string) bool { return len(w) < 3 || strings.Contains(noLabels, " "+w+" ") })
}

// noLabels are words that are too frequent to label anything.
const noLabels = ` the and for with that this from are was not but you has have its into can will all any our out use get new `
