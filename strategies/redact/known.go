package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Secrets masks the secrets of several texts that belong together. What it finds in one of them
// it masks in all, also where nothing says that it is a secret, in base64 and hexadecimal, and escaped as
// in JSON and web addresses. A text that only is a password, after one that asks for it, is a secret too.
// Values that occur in other meanings, such as plain words, are masked only where they were found and where
// they are encoded, and short ones only where they were found.
//
// The zero value knows no secret. It is not safe for concurrent use.
type Secrets struct {
	known   map[string]Kind
	needles needles
	stale   bool // needles lacks a known secret
	asked   bool // the last text ends with a question for a password
}

const (
	maxKnown   = 1000
	maxKnownIs = 4096 // bytes of one secret
	leastKnown = 7
)

// Redact masks the secrets in s as the function Redact does, and those found in earlier texts.
func (k *Secrets) Redact(s string) (string, Found) {
	if k.asked && len(s) < maxAnswer {
		(&masking{secrets: k, s: "the password?\n" + s, found: Found{}}).find()
	}
	k.asked = asksPassword(s)
	m := masking{secrets: k, s: s, found: Found{}}
	for range maxRounds {
		n := m.found.Total()
		m.find() // a masked text rarely matches another rule, and shrinks if it does
		m.findKnown()
		if m.found.Total() == n {
			break
		}
	}
	return m.s, m.found
}

const maxAnswer = 512

// asksPassword reports whether the last line of a text asks for a password.
func asksPassword(s string) bool {
	s = strings.TrimRight(s[max(0, len(s)-maxBlank):], " \n")
	t := source{s: s[strings.LastIndexByte(s, '\n')+1:]}
	return strings.HasSuffix(s, "?") && slices.ContainsFunc(t.found(), func(w wordAt) bool {
		return w.word.typed || w.word.password && w.word.text != "pass"
	})
}

// MaskKnown masks the secrets that were found so far in a text that was redacted before.
func (k *Secrets) MaskKnown(s string) (string, Found) {
	m := masking{secrets: k, s: s, found: Found{}}
	m.findKnown()
	return m.s, m.found
}

// findKnown masks the secrets that were found so far in the views of the text.
func (m *masking) findKnown() {
	k := m.secrets
	if len(k.known) == 0 || len(m.s) < leastKnown {
		return
	}
	if k.stale {
		k.needles, k.stale = needlesOf(k.known), false
	}
	depth := 0
	for v := m.view(0); v != nil; v = v.unescaped(nil) {
		var e edits
		if k.needles.find(v.s, &e); len(e.list) > 0 {
			m.apply(v, &e)
			if v = m.view(depth); v == nil {
				return
			}
		}
		depth++
	}
}

// Len returns the number of secrets that MaskKnown masks.
func (k *Secrets) Len() int { return len(k.known) }

// remember adds a secret, unless it may occur in another meaning.
func (k *Secrets) remember(secret string, kind Kind) {
	secret = strings.TrimRight(secret, trailing)
	switch {
	case kind == KindPrivateKey, kind == KindPhone, kind == KindCard, len(k.known) >= maxKnown, !distinct(secret) && !isWord(secret):
		return
	}
	if k.known == nil {
		k.known = map[string]Kind{}
	}
	if _, ok := k.known[secret]; !ok {
		k.known[strings.Clone(secret)] = kind
		k.stale = true
	}
}

// rememberDecoded adds the password that a secret is the base64 of, perhaps after a user.
func (k *Secrets) rememberDecoded(secret string, kind Kind) {
	if len(secret) > maxKnownIs || kind != KindAuthorization && kind != KindAssignment {
		return
	}
	plain := strings.TrimSpace(decoded(strings.TrimRight(secret, trailing)))
	if _, password, ok := strings.Cut(plain, ":"); ok {
		plain = password
	}
	k.remember(plain, kind)
}

// distinct reports whether a value is so unlike words, names and numbers that each occurrence of
// it is the same secret.
func distinct(v string) bool {
	switch {
	case len(v) < leastKnown, len(v) > maxKnownIs, masked(v), strings.Contains(v, hidden), strings.Contains(v, "://"), entropy(v) < 2.2:
		return false
	}
	words := strings.Count(v, " ") + 1
	switch {
	case strings.ContainsAny(v, "\n\t") || words > 1 && len(v) < 12:
		return false
	case !letters.any(v):
		return len(v) >= 12 && words == 1
	case digit.any(v) || strings.ContainsAny(v, "!@#^&*?"):
		return words <= 12 && !isPath(v)
	}
	// Letters and signs without digits: a passphrase, or capitals within.
	parts := words + strings.Count(v, "-") + strings.Count(v, "_")
	return len(v) >= 20 && parts >= 4 && !isPath(v) ||
		parts == 1 &&
			len(v) >= 16 && letters.has(v) || jagged(v) && !isPath(v)
}

// isWord reports whether a value may occur in other meanings, but not what it is in base64 and hexadecimal.
func isWord(v string) bool {
	switch {
	case len(v) < 8, len(v) > maxName, masked(v), in("example", v), in("constant", v):
		return false
	}
	return letters.any(v) && word.has(v) && entropy(v) >= 2.2
}

// needle is one form of a secret.
type needle struct {
	text string
	kind Kind
	// encoded is set for a part of the secret in base64.
	encoded bool
}

// needles finds many strings in one pass, by their first leastKnown bytes.
type needles struct {
	begins []bool              // by the hash of those bytes
	first  map[string][]needle // by those bytes
}

const maxAlike = 64 // forms with the same beginning

func needlesOf(known map[string]Kind) needles {
	n := needles{begins: make([]bool, 1<<16), first: map[string][]needle{}}
	for _, secret := range slices.Sorted(maps.Keys(known)) {
		kind := known[secret]
		for _, format := range []string{"%x", "%X", "% x", "% X"} {
			n.add(needle{fmt.Sprintf(format, secret), kind, false})
		}
		for _, form := range plainForms(secret) {
			if distinct(secret) {
				n.add(needle{form, kind, false})
			}
			for _, part := range base64Forms(form) {
				n.add(needle{part, kind, true})
				for _, twice := range base64Forms(part) {
					n.add(needle{twice, kind, true})
				}
			}
		}
	}
	return n
}

func (n *needles) add(d needle) {
	if len(d.text) < leastKnown || len(n.first[d.text[:leastKnown]]) == maxAlike {
		return
	}
	head := d.text[:leastKnown]
	n.first[head] = append(n.first[head], d)
	n.begins[hash(head, 0)] = true
}

func hash(s string, i int) int {
	return (int(s[i])*0x9e5 ^ int(s[i+2])*0x13b ^ int(s[i+4])*0x47 ^ int(s[i+6])) & (1<<16 - 1)
}

// find adds the occurrences of needles in s, the longest of those at one place.
func (n *needles) find(s string, e *edits) {
	for i := 0; i+leastKnown <= len(s); i++ {
		if !n.begins[hash(s, i)] {
			continue
		}
		from, end := i, 0
		var kind Kind
		for _, d := range n.first[s[i:i+leastKnown]] {
			if !strings.HasPrefix(s[i:], d.text) {
				continue
			}
			if a, b, ok := d.bounds(s, i, e.end()); ok && b > end {
				from, end, kind = a, b, d.kind
			}
		}
		if end > 0 {
			e.mask(s, from, end, kind)
			i = end - 1
		}
	}
}

// bounds returns the span to mask around the needle at s[at:], not before low: the word of base64
// that it is a part of, or a plain secret if it is not part of a longer word.
func (d *needle) bounds(s string, at, low int) (start, end int, ok bool) {
	start, end = at, at+len(d.text)
	if d.encoded {
		start = base64Body.start(s, start, min(maxAround, start-low))
		last := base64Body.end(s[:min(len(s), end+maxAround)], end)
		return start, base64Pad.end(s[:min(len(s), last+2)], last), true
	}
	if len(d.text) >= 16 {
		return start, end, true
	}
	before := start == 0 || !alnum[s[start-1]] ||
		start > 1 && (s[start-2] == '\\' || s[start-2:start] == "-p")
	return start, end, before && (end == len(s) || !alnum[s[end]])
}

const maxAround = 1024

var (
	base64Body = setOf("0-9A-Za-z+/_-")
	base64Pad  = setOf("=")
)

// plainForms returns a secret as it was found and, where they differ, with its escapes resolved
// and escaped for JSON and for web addresses.
func plainForms(secret string) []string {
	forms := []string{secret}
	add := func(form string) {
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	if strings.Contains(secret, "''") {
		add(strings.ReplaceAll(secret, "''", "'"))
	}
	var plain string
	if strings.Contains(secret, `\`) && json.Unmarshal([]byte(`"`+secret+`"`), &plain) == nil {
		add(plain)
	}
	if strings.Contains(secret, "%") {
		if plain, err := url.QueryUnescape(secret); err == nil {
			add(plain)
		}
	}
	for _, f := range forms {
		if quoted, err := json.Marshal(f); err == nil {
			add(string(quoted[1 : len(quoted)-1]))
		}
		add(url.QueryEscape(f))
	}
	return forms
}

// base64Forms returns the base64 of a secret within longer data, in both alphabets: without the
// letters that also depend on what is around it.
func base64Forms(secret string) []string {
	var forms []string
	for shift, skip := range []int{0, 2, 3} {
		data := append(make([]byte, shift), secret...)
		last := len(data) * 8 / 6
		std := base64.RawStdEncoding.EncodeToString(data)[skip:last]
		forms = append(forms, std)
		if u := strings.NewReplacer("+", "-", "/", "_").Replace(std); u != std {
			forms = append(forms, u)
		}
	}
	return forms
}
