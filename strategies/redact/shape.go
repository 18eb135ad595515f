package redact

import (
	"math"
	"strings"
	"unicode"
)

// The functions in this file describe the look of a value, whatever its name.

// mixed reports whether v has letters and also digits or signs, or is random letters; of letters outside of ASCII, which
// a sentence without blanks has too, with two digits at the end, or one if they have two cases.
func mixed(v string) bool {
	if letters.any(v) {
		return strings.ContainsAny(v, "0123456789!@#^&*?") || isRandom(v)
	}
	n := len(v)
	if n < 3 || !digit[v[n-1]] {
		return false
	}
	return digit[v[n-2]] && strings.ContainsFunc(v, unicode.IsLetter) || strings.ContainsFunc(v, unicode.IsLower)
}

// jagged reports whether a long v changes between capitals, small letters and digits as often as generated values do.
// Names and paths do so less.
func jagged(v string) bool {
	return len(v) >= 16 && kindChanges(v)*3 >= len(v)-1 && !isCamel(v)
}

// kindChanges returns how often v changes between capitals, small letters and digits.
func kindChanges(v string) int {
	changes, last := 0, (*set)(nil)
	for i := range len(v) {
		for _, kind := range []*set{lowerOnly, upperOnly, digit} {
			if kind[v[i]] && last != kind {
				changes, last = changes+1, kind
			}
		}
	}
	return changes
}

// threeKinds reports whether v has capitals, lower-case letters and digits.
func threeKinds(v string) bool { return upperOnly.any(v) && lowerOnly.any(v) && digit.any(v) }

// entropy returns the entropy of v in bits per byte.
func entropy(v string) float64 {
	var counts [256]int
	for i := range len(v) {
		counts[v[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(v))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// isCamel reports whether v is capitalised words in one, or with dots between, perhaps with a number at the end.
func isCamel(v string) bool {
	v = strings.TrimRight(v, "0123456789")
	capitals := 0
	for i := range len(v) {
		if !letters[v[i]] && v[i] != '.' ||
			i > 0 && upperOnly[v[i]] && upperOnly[v[i-1]] {
			return false
		}
		if upperOnly[v[i]] {
			capitals++
		}
	}
	return capitals*3 <= len(v)
}

// isRandom reports whether v, of letters and digits, is random rather than words and numbers: its pairs of letters are
// rare ones, and it changes between capitals, small letters and digits.
func isRandom(v string) bool {
	if len(v) < 8 || len(v) > maxName || isHex(v) || !letters.any(v) {
		return false
	}
	rare := rarePairs(v)
	if !digit.any(v) {
		rare--
	}
	if 3*rare >= len(v) {
		return true
	}
	return 10*rare+6*kindChanges(v) >= leastRandom && !isCamel(v) && (rare > 1+len(v)/leastCertain || numbersIn(v) > 2)
}

const (
	leastRandom  = 42
	leastCertain = 20
)

// rarePairs returns how many pairs of letters in v are rare in words.
func rarePairs(v string) int {
	rare := 0
	for i := 1; i < len(v); i++ {
		if letters[v[i-1]] && letters[v[i]] && strings.IndexByte(pairsOfWords[v[i-1]|0x20-'a'], v[i]|0x20) < 0 {
			rare++
		}
	}
	return rare
}

// numbersIn returns how many runs of digits v has.
func numbersIn(v string) int {
	n := 0
	for i := range len(v) {
		if digit[v[i]] && (i == 0 || !digit[v[i-1]]) {
			n++
		}
	}
	return n
}

// pairsOfWords has the letters that often follow each letter in words.
var pairsOfWords = strings.Fields(`abcdefgiklmnprstuvwxy abceijlorsuy abcdefghiklmoprstuv abcdefilmnoprstu abcdefghiklmnopqrstuvwxy
	acdefilorstu aceghilnoprstu aeiorstu abcdefglmnoprstvxz e aeis acdefilopstuvy abcdeilmopstuy abcdefgiklmnoprstuv abcdefgiklmnoprstuvw
	acehiloprstuy u abcdefgiklmnoprstuvy acdefghiklmnoprstuwy abcdefhilmnoprstuwxy abcdefgilmnprst aeio aehinors aceipt lmnpst e`)

// isHex reports whether v is hexadecimal, possibly with dashes.
func isHex(v string) bool { return hexSet.has(v) }

// isHexKey reports whether v is the hexadecimal of a key.
func isHexKey(v string) bool { return len(v) >= 32 && isHex(v) && digit.any(v) }

// isChosen reports whether v looks like a password that someone chose, without a name for it.
func isChosen(v string) bool { return len(v) >= 8 && isShort(v) }

// isShort is isChosen for a place where passwords are, so that a shorter one is one too.
func isShort(v string) bool {
	return len(v) >= 6 && (digit.any(v) || isRandom(v)) &&
		mixed(v) && !isHex(v) && !isNamed(v)
}

// isNamed reports whether v is a measure, a path, a name, a placeholder or a reference.
func isNamed(v string) bool {
	return isTrap(v, "technical") || isPath(v) ||
		selfNamed(v) || placeholder(v) || reference(v)
}

// isPersonal reports whether v has signs as passwords have, is a word with capitals, digits and any sign, or is random.
func isPersonal(v string) bool {
	return chosenSigns(v) || threeKinds(v) && !alnum.has(v) || isRandom(v)
}

// chosenSigns reports whether v has signs as passwords have, rather than those of names.
func chosenSigns(v string) bool {
	v = strings.TrimLeft(v[:len(v)-1], "*&") // of a pointer
	if at := strings.IndexByte(v, '@'); at >= 0 && strings.Contains(v[at:], ".") {
		return false // a mail address
	}
	return passwordSigns.any(v)
}

// passwordSigns are the signs of passwords rather than names.
var passwordSigns = setOf("!#$%&*+^~@?")

// isOpaque reports whether s begins with a word that is long and random.
func isOpaque(s string) bool {
	v := s[:word.end(s, 0)]
	return len(v) >= 20 && (jagged(v) || isHexKey(v))
}

// isGenerated reports whether v is a password of any characters, rather than a text or base64.
func isGenerated(v string) bool {
	if len(v) < 10 || strings.ContainsAny(v, ` \<>{}()`) || base64Set.has(v) {
		return false
	}
	return kindChanges(v) >= 5 && threeKinds(v) && isChosen(v) && chosenSigns(v)
}

// isCertain reports whether v is random whatever it is the value of, and no hash, no public key and no id of a service.
func isCertain(v string) bool {
	switch {
	case len(v) < leastCertain, len(v) > 512, !jagged(v), isHex(v), entropy(v) < 3.5:
		return false
	}
	if hasAnyPrefix(v, "AAAA", "MII", "sha", "SHA") || isPath(v) || strings.Count(v, "/")*8 > len(v) {
		return false
	}
	head := v[:min(len(v), maxName)]
	prefix := lowerOnly.end(v, 0)
	named := prefix >= 2 && prefix <= 8 && prefix < len(v) && indexByte("_-", v[prefix])
	return 7*rarePairs(head) >= len(head) && !named
}

// secretValue reports whether a value looks generated. strong is set for a secret name.
func secretValue(v string, strong, quoted bool) bool {
	switch {
	case len(v) < 8 || len(v) > 512 || strings.ContainsAny(v, " {}()<>\t") || expands(v):
		return false
	case !quoted && strings.ContainsAny(v, "$%"):
		return false
	case strong && quoted:
		return mixed(v) || jagged(v)
	case strong:
		return len(v) >= 16 && (mixed(v) || jagged(v)) && entropy(v) >= 3
	}
	generated := threeKinds(v) ||
		len(v) >= 24 && alnum.has(v) && digit.any(v) && isRandom(v)
	path := strings.Count(v, "/") >= 3 && !jagged(v) || strings.Count(v, ".") > 1
	return generated && !path &&
		len(v) >= 20 && !strings.Contains(strings.TrimRight(v, "="), "=") && !isHex(v) && entropy(v) >= 3.8
}

// plainWords reports whether v is words with dashes or underscores between them, perhaps with a number after one: a name
// that only starts like a key.
func plainWords(v string) bool {
	count, least := 0, 2
	for i := 0; ; i++ {
		end := lowerOnly.end(v, i)
		if i < len(v) && upperOnly[v[i]] {
			end = max(upperOnly.end(v, i), lowerOnly.end(v, i+1))
		}
		stop := digit.end(v, end)
		switch {
		case end == i, end-i > 12, stop-end > 3, stop < len(v) && v[stop] != '-' && v[stop] != '_':
			return false
		}
		if stop > end || end > i && upperOnly[v[i]] {
			least = 3 // a prefix and one more word may be a key
		}
		if count, i = count+1, stop; i == len(v) {
			return count >= least
		}
	}
}

// isTyped reports whether v is a word that may be a password, rather than one about passwords.
func isTyped(v string) bool {
	return len(v) >= 6 && lowerOnly.has(v) &&
		!in("example", v) && !in("constant", v) && !isProse(v) && !secretName(v)
}

// isProse reports whether w is a word of sentences.
func isProse(w string) bool {
	w = strings.Trim(w, ".,:;!?()\"'`")
	return in("sentence", w) || in("usage", w)
}

// isPath reports whether v is the path of a file.
func isPath(v string) bool {
	if len(v) > maxPath {
		return false
	}
	dot := strings.LastIndexByte(v, '.')
	if strings.Contains(v, "/") && dot > 0 && len(v)-dot <= 6 && alnum.end(v, dot+1) == len(v) {
		return true
	}
	generated := (len(v) >= 32 || strings.Count(v, "/") == 1) &&
		base64Set.has(v) && threeKinds(v) && jagged(v)
	return hasAnyPrefix(v, "/", "./", "../", "~/") && !generated
}

// maxPath bounds the text that isPath reads: a value may be as long as the text, and another one begin with each of its characters.
const maxPath = 4096

func digits(v string) bool { return digit.has(v) }
