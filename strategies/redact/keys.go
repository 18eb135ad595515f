package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// vendorKeys finds words in the format of a vendor's key, except plain words.
func vendorKeys(t *source, e *edits) {
	s, long := t.s, []int(nil)
	for i := 0; i < len(s); {
		if !word[s[i]] {
			i++
			continue
		}
		end := i
		if second := seconds[s[i]]; second != nil && i+1 < len(s) && second[s[i+1]] {
			of := vendors[s[i]]
			for k := range of {
				if v := &of[k]; v.prefix[1] == s[i+1] && strings.HasPrefix(s[i:], v.prefix) {
					end = max(end, v.end(s, i))
				}
			}
		}
		if v := s[i:end]; v != "" && !plainWords(v) && !placeholder(v) {
			e.mask(s, i, end, KindProviderKey)
			if start := besideID.end(s[:min(len(s), end+4)], end); end > i && start > end && hasAnyPrefix(v, "AKIA", "ASIA") {
				if date := dateSet.end(s[:min(len(s), start+maxCell)], start); isDate(s[start:date]) { // when it was made
					start = besideID.end(s, date)
				}
				// The secret key of AWS beside its id.
				if stop := base64Set.end(s, start); stop-start == 40 && threeKinds(s[start:stop]) {
					e.mask(s, start, stop, KindProviderKey)
					end = stop
				}
			}
		}
		next := word.end(s, max(i, end))
		if next-i >= leastLong {
			long = append(long, i)
			if stop := shapedEnd(s, i, next); stop > i {
				e.mask(s, i, stop, KindProviderKey)
				next = stop
			}
		}
		i = next
	}
	t.long = long
}

var besideID = setOf(" \t,|:;\n")

// end returns the end of the key that starts at i, or i if there is none.
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

// encodedKeys finds the base64 of private keys in PEM.
func encodedKeys(t *source, e *edits) {
	const begin = "LS0tLS1CRUdJTi" // -----BEGIN
	s := t.s
	for at := range t.literal(begin) {
		if at < e.end() {
			continue
		}
		head, err := base64.StdEncoding.DecodeString(s[at:min(len(s), at+48)])
		if err == nil && strings.Contains(string(head), "PRIV") {
			e.add(at, at+len(pemBody.FindString(s[at:])), hiddenKey, KindPrivateKey)
		}
	}
}

// webTokens finds JSON web tokens: a header that is an object, and up to two more parts. Other objects in base64, such
// as the position in a list, have one part.
func webTokens(t *source, e *edits) {
	s := t.s
	done := 0
	for at := range t.literal("eyJ") {
		if at < done {
			continue
		}
		end := word.end(s, at)
		if done = end; end-at < 13 || at > 0 && base64Set[s[at-1]] && s[at-1] != '=' && !strings.HasPrefix(s[end:], ".eyJ") {
			continue // or within base64
		}
		parts := 0
		for parts < 2 {
			if end == len(s) || s[end] != '.' {
				break
			}
			next := wordEqual.end(s, end+1)
			if next-end < 5 {
				break
			}
			end, parts = next, parts+1
		}
		if parts == 0 && !isHeader(s, at, end) {
			continue
		}
		e.mask(s, at, end, KindJWT)
		done = end
	}
}

// isHeader reports whether the base64 at s[at:end] may be the header of a token rather than another object.
func isHeader(s string, at, end int) bool {
	before := strings.TrimRight(s[max(0, at-maxCell):at], "\"'\\ :=")
	if strings.HasSuffix(s[:at], ";base64,") || isPage(before[wordDot.start(before, len(before), maxCell):]) {
		return false
	}
	plain := decoded(strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s[at:end]), "="))
	return plain == "" || strings.Contains(plain, `"alg"`) || strings.Contains(plain, `"typ"`) || strings.Contains(plain, `"enc"`)
}

// webKeys finds the private numbers of JSON web keys, beside their "kty".
func webKeys(t *source, e *edits) {
	s, done := t.s, 0
	for at := range t.literal("kty") {
		if at < done {
			continue
		}
		start := max(done, at-maxBlock)
		i := start + strings.LastIndexByte(s[start:at], '{') + 1
		for limit := min(len(s), at+maxBlock); i < limit && s[i] != '}'; i++ {
			if s[i] != ':' {
				continue
			}
			end := i
			for end > start && indexByte(" \"'\\", s[end-1]) {
				end--
			}
			if from, to, quoted := valueAt(s, i+1); quoted && to-from >= 20 && word.has(s[from:to]) && isAny(s[letters.start(s, end, maxCell):end], privateNumbers) {
				e.mask(s, from, to, KindProviderKey)
			}
		}
		done = i
	}
}

// privateNumbers are the fields of a JSON web key that are not public.
var privateNumbers = strings.Fields("d p q dp dq qi k")

// keyBlock is a format of private keys: a block from begin to the next end.
type keyBlock struct {
	hints      []string // one of them is in the begin and in the end of every such block
	begin, end *regexp.Regexp
	// rest returns the length of a block without an end, given the text after its begin.
	rest func(s string) int
}

var (
	pemKeys = keyBlock{
		hints: []string{"PRIVATE KEY", "Static key V1"},
		begin: regexp.MustCompile(`-----BEGIN (?:[A-Z0-9 ]*PRIVATE KEY|OpenVPN Static key V1)-----|---- BEGIN [A-Z0-9 ]*PRIVATE KEY ----`),
		end:   regexp.MustCompile(`-----END (?:[A-Z0-9 ]*PRIVATE KEY|OpenVPN Static key V1)-----|---- END [A-Z0-9 ]*PRIVATE KEY ----`),
		rest:  func(s string) int { return len(pemBody.FindString(s)) },
	}
	pemBody = regexp.MustCompile(`^(?:(?:\s|\\[nr])*[0-9A-Za-z+/=]{16,})+`)

	// otherKeys are those of PGP and PuTTY.
	otherKeys = keyBlock{
		hints: []string{"PRIVATE KEY", "PuTTY-User-Key-File-", "Private-MAC:"},
		begin: regexp.MustCompile(`-----BEGIN PGP PRIVATE KEY BLOCK-----|PuTTY-User-Key-File-[0-9]`),
		end:   regexp.MustCompile(`-----END PGP PRIVATE KEY BLOCK-----|Private-MAC: *[0-9a-f]+`),
		rest:  toSecondBlankLine,
	}
)

// find finds the blocks of private keys, complete or not.
func (k *keyBlock) find(t *source, e *edits) {
	s := t.s
	begins := k.bounds(t, k.begin)
	if len(begins) == 0 {
		return
	}
	ends := k.bounds(t, k.end)
	for _, begin := range begins {
		if begin[0] < e.end() {
			continue
		}
		for len(ends) > 0 && ends[0][0] < begin[1] {
			ends = ends[1:]
		}
		end := begin[1]
		if len(ends) > 0 {
			end = ends[0][1]
		} else {
			end += k.rest(s[end:])
		}
		e.add(begin[0], end, hiddenKey, KindPrivateKey)
	}
}

// bounds returns the matches of an expression around the hints, in order.
func (k *keyBlock) bounds(t *source, of *regexp.Regexp) (out [][2]int) {
	for _, hint := range k.hints {
		for at := range t.literal(hint) {
			low := max(0, at-maxMark)
			for _, m := range of.FindAllStringIndex(t.s[low:min(len(t.s), at+maxMark)], -1) {
				if m[0]+low <= at && at < m[1]+low {
					out = append(out, [2]int{m[0] + low, m[1] + low})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b [2]int) int { return a[0] - b[0] })
	return out
}

const maxMark = 96 // bytes of the begin or the end of a block

// toSecondBlankLine returns the index of the second blank line of s, that after the first one
// if there is no second, and len(s) if there is none.
func toSecondBlankLine(s string) int {
	first, rest, ok := strings.Cut(s, "\n\n")
	if !ok {
		return len(s)
	}
	return len(first) + 2 + max(0, strings.Index(rest, "\n\n"))
}

// phones finds phone numbers in international format, except numbers in diffs and sums.
func phones(t *source, e *edits) {
	s := t.s
	for at := range places(s, "+") {
		end := digit.end(s, at+1)
		decimal := end+1 < len(s) && s[end] == '.' && digit[s[end+1]]
		n := end - at - 1
		if n < 7 || n > 15 || s[at+1] == '0' || decimal || end < len(s) && alnum[s[end]] || at > 0 && (s[at-1] == '{' || alnum[s[at-1]]) {
			continue
		}
		if begins := at == 0 || s[at-1] == '\n'; !begins || n >= leastFull && !inDiff(s, at) {
			e.mask(s, at, end, KindPhone)
		}
	}
}

// leastFull is the least number of digits of a phone number that begins a line.
const leastFull = 10

// inDiff reports whether the line above or below the one that begins at i is one of a diff: it begins with a sign.
func inDiff(s string, i int) bool {
	above, below := lineBefore(s, i), lineBehind(s, i)
	return above != "" && indexByte("+-@", above[0]) || below != "" && indexByte("+-@", below[0])
}

const leastShaped = 23

var (
	base32Upper = setOf("A-Z2-7")
	percentBody = setOf("0-9A-Za-z%")
	productSet  = setOf("0-9A-Z-")
)

// shapedEnd returns the end of the key without a prefix that is or begins with the word s[i:end],
// or i: of Discord, an id, a time and a signature, or of Mailchimp, which ends in a region.
func shapedEnd(s string, i, end int) int {
	if i > 0 && indexByte("+/", s[i-1]) || end < len(s) && indexByte("+/=", s[end]) { // a part of base64
		return i
	}
	switch n := end - i; {
	case n < leastShaped:
	case strings.HasPrefix(s[i:], "AAAAAAAAAAAAAAAAAAAA") && end < len(s) && s[end] == '%': // of Twitter
		if stop := percentBody.end(s, end); stop-i >= 80 && strings.Contains(s[end:stop], "%3D") {
			return stop
		}
	case (n == 56 || n == 58) && s[i] == 'S' && digit.any(s[i:end]) && base32Upper.has(s[i:end]), // of Stellar, of NATS
		(n == 51 || n == 52) && indexByte("5KL", s[i]) && alnum.has(s[i:end]) && jagged(s[i:end]) && threeKinds(s[i:end]): // of Bitcoin
		return end
	case n == 29 && strings.Count(s[i:end], "-") == 4 && s[i+5] == '-' && s[i+11] == '-' && s[i+17] == '-' && s[i+23] == '-' && productSet.has(s[i:end]) && digit.any(s[i:end]) && upperOnly.any(s[i:end]):
		return end // of Windows
	case n <= 28 && end+7 < len(s) && s[end] == '.' && s[end+7] == '.' && indexByte("MNO", s[i]):
		if stop := word.end(s[:min(len(s), end+64)], end+8); word.end(s[:end+7], end+1) == end+7 && stop-end-8 >= 27 && threeKinds(s[i:stop]) {
			return stop
		}
	case n >= 36 && n <= 37 && s[i+32:i+35] == "-us" && isHex(s[i:i+32]):
		return end
	}
	return i
}
