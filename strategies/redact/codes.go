package redact

import (
	"strings"
	"sync"
)

// codes finds the security codes of payment cards and lists of recovery codes.
func codes(t *source, e *edits) {
	s := t.s
	for at := range t.literal("is your ") { // G-123456 is your verification code
		rest, _, _ := strings.Cut(s[at:min(len(s), at+maxGap)], "\n")
		end := at - 1
		start := digit.start(s, max(0, end), maxCode)
		if n := end - start; n >= leastPIN && n <= 8 && s[end] == ' ' && strings.Contains(strings.ToLower(rest), "code") {
			e.mask(s, start, end, KindAssignment)
		}
	}
	app := sync.OnceValue(func() bool { return strings.Contains(s, "uthenticator") })
	for _, w := range t.found() {
		if w.start < e.end() {
			continue
		}
		switch w.word.text {
		case "key", "secret", "totp":
			if w.word.text == "totp" || hasSetup(s[max(0, w.start-len("manual entry ")):w.start]) || app() && strings.Contains(s[w.end:min(len(s), w.end+maxGap)], "uthenticator") {
				groupedKey(s, w.end, e)
			}
		case "cvv", "cvc", "security code", "prüfziffer":
			start := w.end
			if w.word.text == "security code" && (start == len(s) || !indexByte(":=", s[start])) {
				continue // of an error, perhaps
			}
			if strings.HasPrefix(s[start:], "2") { // CVV2
				start++
			}
			start = codeGap.end(s[:min(len(s), start+8)], start)
			if end := digit.end(s, start); end-start >= 3 && end-start <= 4 && (w.start == 0 || !alnum[s[w.start-1]]) && (end == len(s) || !alnum[s[end]]) {
				e.mask(s, start, end, KindCard)
			}
		case "recovery", "backup":
			rest := s[w.end:min(len(s), w.end+96)]
			name := strings.TrimLeft(rest, " _-")
			if hasFold(name, "key") { // of a disk: eight numbers
				start := codeSigns.end(s[:min(len(s), w.end+maxGap)], len(s[:w.end])+len(rest)-len(name)+len("key"))
				if end := positionSet.end(s[:min(len(s), start+56)], start); end-start == 55 && strings.Count(s[start:end], "-") == 7 {
					e.mask(s, start, end, KindAssignment)
				}
			} else if hasFold(name, "phrase") || hasFold(name, "words") {
				maskMnemonic(s, w.end, e)
			} else if hasFold(name, "code") {
				if n := strings.IndexAny(rest, ":\n"); n >= 0 {
					listedCodes(s, w.end+n, e)
				}
			}
		}
	}
}

// listedCodes masks the codes of the list at i, if there are two or more: words of the same
// length with a digit, with numbers and signs between.
func listedCodes(s string, i int, e *edits) {
	var list [][2]int
	for length := 0; len(list) < maxCodes; {
		i = codeSigns.end(s[:min(len(s), i+16)], i)
		end := hyphen.end(s[:min(len(s), i+maxCode)], i)
		if end-i <= 2 && digits(s[i:end]) && end > i && end < len(s) && indexByte(".):", s[end]) {
			i = end // the number of an entry
			continue
		}
		if end-i < 6 || !strings.ContainsAny(s[i:end], "-0123456789") || length > 0 && end-i != length {
			break
		}
		list = append(list, [2]int{i, end})
		i, length = end, end-i
	}
	if len(list) < 2 {
		return
	}
	for _, code := range list {
		e.mask(s, code[0], code[1], KindAssignment)
	}
}

const (
	maxCodes = 24
	maxCode  = 40
)

var (
	codeGap   = setOf("\"'\\ \t:=")
	codeSigns = setOf("\"'`\\ \t\r\n:.,;*()[]|-")
)
