package redact

import "strings"

// candidate is a text that may be the secret of a name.
type candidate struct {
	*nameAt
	key        string // the name
	start, end int    // of the text
	v          string
	gap        gap // between the name and the text
	quoted     bool
}

// secret reports whether the candidate looks like the secret of its name, where it stands.
func (c *candidate) secret() bool {
	v := c.v
	switch {
	case v == "", len(v) > 512, c.gap == follows && !c.quoted && !mixed(v) && !jagged(v):
		return false // the next word, as in most sentences
	}
	number := len(v) >= leastPIN && digits(v) && c.choosable()
	switch {
	case len(v) < 6 && !number, c.gap == follows && isFold(c.w.word.text, "mnemonic", "seed"), c.refused():
		return false
	}
	switch {
	case c.quoted && strings.Contains(v, " "):
		return c.gap != follows && (mixed(v) && len(v) >= 10 || passphraseEnd(v, 0) == len(v))
	case digits(v):
		return number && len(v) <= 12 &&
			(c.gap == assigns || c.gap == says) && !strings.EqualFold(c.key, "pass") && !isUnit(c.s[c.end:])
	case strings.EqualFold(c.key, "pass") && (c.gap == follows || c.gap == says && !hasAnySuffix(c.s[:c.start], "is ", "was ", ": ")): // or a verb
		return digit.any(v) && c.aboutUser()
	case c.gap == follows && !c.quoted && plainWords(v):
		return false
	case c.gap == follows && c.quoted && c.s[c.w.start:c.w.end] == "PASSWORD": // of SQL
		return isTyped(v) || c.s[c.start-1] == '\'' && !secretName(v) && !isProse(v)
	}
	return c.word() || c.likely() && (c.gap != follows || c.certain())
}

// aboutUser reports whether the line before the name is about a user.
func (c *candidate) aboutUser() bool {
	return lists["userword"].within(strings.ToLower(lastLine(c.s[max(0, c.w.start-maxCell):c.w.start])))
}

// refused reports whether the candidate is something else than a secret.
func (c *candidate) refused() bool {
	s, v := c.s, c.v
	switch {
	case v[0] == '@' && c.gap == encloses, isCommand(s, max(0, c.start-1)), strings.ContainsAny(v, "<>"), strings.Contains(v, "://"):
		return true
	case isTrap(v, "technical"), selfNamed(v), isPath(v), isParsed(s, c.w.start, v):
		return true
	case c.gap != assigns && strings.Contains(v, "=") && secretName(v[:strings.IndexByte(v, '=')]): // left to its own name
		return true
	case strings.HasSuffix(s[:c.start], "→ ") && len(v) <= 12 && isHex(v): // the short id of a commit about a token
		return true
	}
	return spared(c.key, v, c.quoted) || reference(s[c.start:min(len(s), c.end+1)])
}

// word reports whether the candidate may be a word: a password in quotes after a sign, beside its user, or in an element.
func (c *candidate) word() bool {
	switch {
	case !c.choosable(), !isTyped(c.v):
		return false
	case c.gap == encloses:
		return strings.HasPrefix(c.s[c.end:], "</")
	}
	return c.gap == assigns && strings.ContainsAny(c.s[c.w.end:c.start], ":=") && (c.quoted || c.aboutUser())
}

// likely reports whether the candidate has letters and digits or is random, and is no code.
func (c *candidate) likely() bool {
	s, v := c.s, c.v
	if !mixed(v) && !jagged(v) ||
		c.gap != assigns && !digit.any(v) && !isRandom(v) {
		return false
	}
	if c.end < len(s) && indexByte("([{", s[c.end]) || !c.quoted && expands(v) {
		return false
	}
	if c.gap == encloses && len(v) < 8 && strings.Contains(s[max(0, c.start-2):c.start], "|") { // the type of a field
		return false
	}
	return !isHex(v) || !strings.HasSuffix(s[:c.start], ") = ") // the hash of a file
}

// certain reports whether the candidate is a secret although only blanks are between it and its name.
func (c *candidate) certain() bool {
	s, v := c.s, c.v
	switch {
	case digit.any(v) &&
		(endsLine(s, c.end) || c.quoted) && c.aboutUser():
		return true
	case c.quoted && c.w.word.text == "secret" &&
		strings.Contains(v, "-") && resource.has(v) && shortNumbers(v):
		return false // the name of a secret
	case c.quoted && isPassword(c.key), upperScore.has(c.key) && upperSecret(c.key) && endsLine(s, c.end):
		return isShort(v)
	}
	if len(v) < 8 {
		return false
	}
	switch {
	case c.quoted, c.w.word.language, threeKinds(v), jagged(v), isHexKey(v) && !upperOnly.any(v):
		return true
	}
	return lowerOnly.any(v) && in("settings", c.key)
}
