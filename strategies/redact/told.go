package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// known reports whether the name denotes a secret in the notations of sentences, and moves its end to its last letter.
func (n *nameAt) known() bool {
	s, w := n.s, n.w
	if w.word.language {
		last, _ := utf8.DecodeLastRuneInString(s[:w.end])
		if r, _ := utf8.DecodeRuneInString(s[w.end:]); last < firstScript && r < 0x250 && unicode.IsLetter(r) {
			return false // part of a longer word
		}
		if before, _ := utf8.DecodeLastRuneInString(s[:w.start]); s[w.start] < utf8.RuneSelf && unicode.IsLetter(before) && before <= 0x250 {
			return false
		}
		for _, other := range lists["otherkey"].all { // clave primaria
			if hasAnyPrefix(s[w.end:], " "+other) {
				return false
			}
		}
		return true
	}
	for n.end > w.end && !alnum[s[n.end-1]] {
		n.end--
	}
	key := n.text()
	switch {
	case key == w.word.text && w.word.secret && key != "auth":
		return true
	case len(key) > len(w.word.text) && in("about", lastWord(key)):
		return false
	case strings.EqualFold(key, "key"):
		return isKeyAfter(s[max(0, n.start-12):n.start])
	}
	if secretName(key) && !strings.EqualFold(key, "auth") {
		return true
	}
	return in("told", dashed.Replace(key))
}

// isKeyAfter reports whether the text before "key" ends in a word that makes it a secret.
func isKeyAfter(before string) bool {
	before = before[:keyGap.start(before, len(before), len(before))]
	return in("beforekey", lastWord(before))
}

var keyGap = setOf(" _0-9-")

// told masks the value of the name in any language and any notation: after a colon or an equals sign anywhere in a line,
// also a full-width one, after a verb, in the next cell of a table, in an element, and in quotes.
func (n *nameAt) told(e *edits) bool {
	if !n.known() {
		return false
	}
	s, w := n.s, n.w
	value, gap := valueAfter(s, n.end, w.word.language)
	n.below(value, gap, e)
	if gap == noValue || gap == follows {
		if at := pairOf(s[n.end:min(len(s), n.end+2*maxGap)]); at >= 0 {
			return n.value(n.end+at, encloses, e)
		}
	}
	if gap == noValue {
		return false
	}
	if in("pairword", w.word.text) { // credentials: user / password
		if slash := strings.IndexByte(s[value:min(len(s), value+maxGap)], '/'); slash > 0 && !strings.ContainsAny(s[value:value+slash], ".\n:") {
			value += slash + 1
		} else if w.word.text == "login" {
			return false // a user alone
		}
	}
	if gap == assigns || gap == says && w.word.text == "passphrase" {
		start := blank.end(s, value)
		inSentence := s[value-1] == '=' && !lineStart(s, n.start) // I have password=x here
		words := w.word.password || w.word.typed || isFold(w.word.text, "mnemonic", "seed")
		if stop := passphraseEnd(s, start); words && stop > start && !inSentence {
			return e.mask(s, start, stop, KindAssignment)
		}
	}
	return n.value(value, gap, e)
}

// value masks the value that begins at i if it looks like a secret of the name.
func (n *nameAt) value(i int, gap gap, e *edits) bool {
	s := n.s
	if gap == assigns {
		i = literalAfter(s, blank.end(s, i))
	}
	start, stop, quoted := valueAt(s, i)
	c := candidate{nameAt: n, key: n.text(), start: start, end: stop, v: s[start:stop], gap: gap, quoted: quoted}
	if !c.secret() {
		return false
	}
	return e.mask(s, start, stop, KindAssignment)
}

// weak masks the random value of a name that ends in key, salt or the like.
func (n *nameAt) weak(e *edits) bool {
	i, between := n.sign()
	switch {
	case i < 0, len(between) > 8, n.w.word.language, secretName(n.text()), !weakName(n.text()):
		return false
	}
	s, before := n.s, n.s[max(0, n.start-len("public ")):n.start]
	if hasAnySuffix(strings.ToLower(before), "script ", "style ", "site ", "public ") {
		return false
	}
	for i+1 < len(s) && indexByte("=>", s[i+1]) {
		i++
	}
	start, stop, quoted := valueAt(s, literalAfter(s, blank.end(s, i+1)))
	v := s[start:stop]
	if !weakSet.has(v) || !quoted && stop < len(s) && indexByte("([{", s[stop]) { // a call
		return false
	}
	random := isRandom(v) && alnum.has(v) && strings.EqualFold(lastWord(n.text()), "salt")
	return (random || secretValue(v, false, quoted)) && !spared(n.text(), v, quoted) && e.mask(s, start, stop, KindAssignment)
}

var weakSet = setOf("0-9A-Za-z_+/=.~-")

// below masks the secret that is alone on a line below the one with the name: on the next, or after an empty one or a fence.
func (n *nameAt) below(value int, gap gap, e *edits) {
	s, i := n.s, n.end
	limit := min(len(s), i+2*maxGap)
	if gap == assigns || gap == says {
		i = value
	}
	i = aboveBreak.end(s[:limit], i)
	sign := i > 0 && s[i-1] == ':' || lineStart(s, n.start)
	for range 3 {
		size := lineBreak(s, i)
		if size == 0 {
			break
		}
		i, value = quoteMarks.end(s[:limit], i+size), limit
	}
	if value != limit {
		return
	}
	start, end, quoted := valueAt(s, i)
	if last := afterBelow.end(s[:min(len(s), end+4)], end); last < len(s) && lineBreak(s, last) == 0 {
		return
	}
	v := s[start:end]
	switch {
	case spared(n.text(), v, quoted), isTrap(v, "technical"), selfNamed(v), positions.has(v), n.w.word.text == "pass":
		return
	case jagged(v) && threeKinds(v), sign && isOpaque(v), n.choosable() && isChosen(v) && (sign || isPersonal(v)):
		e.mask(s, start, end, KindAssignment)
	}
}

// choosable reports whether people choose the secrets of the name.
func (n *nameAt) choosable() bool { return n.w.word.typed || isPassword(n.text()) }

var (
	aboveBreak = setOf(" \t*`?:.")
	quoteMarks = setOf(" \t>*`")
	afterBelow = setOf("`*\"'.,!?")
)
