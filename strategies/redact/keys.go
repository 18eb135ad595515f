package redact

import (
	"regexp"
	"strings"
)

// set is a set of bytes.
type set [256]bool

func setOf(ranges string) *set {
	var s set
	for i := 0; i < len(ranges); i++ {
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			for c := int(ranges[i]); c <= int(ranges[i+2]); c++ {
				s[c] = true
			}
			i += 2
			continue
		}
		s[ranges[i]] = true
	}
	return &s
}

var (
	alnum      = setOf("0-9A-Za-z")
	upperDigit = setOf("0-9A-Z")
	digit      = setOf("0-9")
	underscore = setOf("0-9A-Za-z_")
	hyphen     = setOf("0-9A-Za-z-")
	word       = setOf("0-9A-Za-z_-")
	wordEqual  = setOf("0-9A-Za-z_=-")
	wordDot    = setOf("0-9A-Za-z_.-")
	space      = setOf(" \t\n\v\f\r")
	blank      = setOf(" \t")
)

// end returns the index behind the bytes of the set that start at i.
func (t *set) end(s string, i int) int {
	for i < len(s) && t[s[i]] {
		i++
	}
	return i
}

// start returns the index of the first of at most limit bytes of the set that end at i.
func (t *set) start(s string, i, limit int) int {
	for low := max(0, i-limit); i > low && t[s[i-1]]; {
		i--
	}
	return i
}

// vendorKeys masks the words that have the form of some vendor's key and are no plain
// words.
func vendorKeys(s string, e *edits) {
	for i := 0; i < len(s); {
		if !word[s[i]] {
			i++
			continue
		}
		end := i
		for _, v := range vendors[s[i]] {
			if strings.HasPrefix(s[i:], v.prefix) {
				end = max(end, v.end(s, i))
			}
		}
		if !plainWords(s[i:end]) {
			e.mask(s, i, end, KindProviderKey)
		}
		i = word.end(s, max(i, end))
	}
}

// end returns the index behind the key that starts at i, or i.
func (v *vendor) end(s string, i int) int {
	body := i + len(v.prefix)
	end := v.body.end(s, body)
	for v.dotted && end+1 < len(s) && s[end] == '.' && v.body[s[end+1]] {
		end = v.body.end(s, end+1)
	}
	if end-body < v.min || end < len(s) && word[s[end]] || v.body == upperDigit && end-body != v.min {
		return i
	}
	return end
}

// webTokens are JSON web tokens: a header that is an object, and up to two more parts.
func webTokens(s string, e *edits) {
	for i := 0; ; {
		at := strings.Index(s[i:], "eyJ")
		if at < 0 {
			return
		}
		at += i
		end := word.end(s, at)
		i = end
		if end-at < 13 {
			continue
		}
		for range 2 {
			if end == len(s) || s[end] != '.' {
				break
			}
			next := wordEqual.end(s, end+1)
			if next-end < 5 {
				break
			}
			end = next
		}
		e.mask(s, at, end, KindJWT)
		i = end
	}
}

var (
	privateKey = regexp.MustCompile(`-----BEGIN[A-Z0-9 ]*PRIVATE KEY-----`)
	privateEnd = regexp.MustCompile(`-----END[A-Z0-9 ]*PRIVATE KEY-----`)
	// privateBody is what follows where the end is missing.
	privateBody = regexp.MustCompile(`^(?:(?:\s|\\[nr])*[0-9A-Za-z+/=]{16,})+`)
)

// privateKeys are whole blocks, or what there is of one.
func privateKeys(s string, e *edits) {
	if !strings.Contains(s, "PRIVATE KEY-----") {
		return
	}
	var ends [][]int // behind what was looked at
	ends = privateEnd.FindAllStringIndex(s, -1)
	for _, begin := range privateKey.FindAllStringIndex(s, -1) {
		if begin[0] < e.end() {
			continue
		}
		for len(ends) > 0 && ends[0][0] < begin[1] {
			ends = ends[1:]
		}
		end := begin[1]
		if len(ends) > 0 {
			end = ends[0][1]
		} else if body := privateBody.FindStringIndex(s[end:]); body != nil {
			end += body[1]
		}
		e.add(begin[0], end, hiddenKey, KindPrivateKey)
	}
}

var (
	otherPrivate = regexp.MustCompile(`-----BEGIN PGP PRIVATE KEY BLOCK-----|PuTTY-User-Key-File-[0-9]`)
	otherEnds    = regexp.MustCompile(`-----END PGP PRIVATE KEY BLOCK-----|Private-MAC: *[0-9a-f]+`)
)

// morePrivateKeys are those of PGP and of PuTTY, or what there is of one: up to the
// next empty line but one.
func morePrivateKeys(s string, e *edits) {
	if !strings.Contains(s, "PGP PRIVATE KEY") && !strings.Contains(s, "PuTTY-User-Key-File-") {
		return
	}
	ends := otherEnds.FindAllStringIndex(s, -1)
	for _, begin := range otherPrivate.FindAllStringIndex(s, -1) {
		if begin[0] < e.end() {
			continue
		}
		for len(ends) > 0 && ends[0][0] < begin[1] {
			ends = ends[1:]
		}
		end := len(s)
		if len(ends) > 0 {
			end = ends[0][1]
		} else if n := strings.Index(s[begin[1]:], "\n\n"); n >= 0 {
			rest := begin[1] + n + 2
			end = rest
			if n := strings.Index(s[rest:], "\n\n"); n >= 0 {
				end = rest + n
			}
		}
		e.add(begin[0], end, hiddenKey, KindPrivateKey)
	}
}

// phones are numbers in international form.
func phones(s string, e *edits) {
	for i := 0; ; {
		at := strings.IndexByte(s[i:], '+')
		if at < 0 {
			return
		}
		at += i
		end := digit.end(s, at+1)
		if n := end - at - 1; n >= 7 && n <= 15 && s[at+1] != '0' && (end == len(s) || !alnum[s[end]]) &&
			at > 0 && s[at-1] != '\n' && !alnum[s[at-1]] { // a line of a diff, a sum
			e.mask(s, at, end, KindPhone)
		}
		i = end
	}
}
