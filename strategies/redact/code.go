package redact

import "strings"

// isOperand reports whether the value at s[start:end] of the name at s[name:], behind an equals sign with blanks around it
// or a colon, is a variable of a program rather than a word that someone chose: a file of settings may hold any word.
func isOperand(s string, name, start, end int) bool {
	v := strings.TrimLeft(strings.TrimRight(s[start:end], ",;"), "&*")
	if !identifierSet.has(v) || v == "" {
		return false
	}
	line := s[start+strings.IndexByte(s[start:end], v[0]) : min(len(s), end+maxCell)]
	line, _, _ = strings.Cut(line, "\n")
	rest := strings.TrimLeft(line[min(len(line), len(v)):], " \t")
	before := s[max(0, name-maxName):name]
	before = strings.TrimRight(before[strings.LastIndexByte(before, '\n')+1:], " \t")
	property := s[name:max(name, strings.LastIndexByte(s[name:start], '.')+name)]
	switch {
	case len(v) < leastPIN, isAny(v, variables), s[start] == '&', v[0] == '_', strings.HasPrefix(v, "$"):
		return true
	case hasAnyPrefix(rest, ";", "//", "and ", "or ", "if ", "? ", "+ ", "|| ", "?? ", "-> "), rest == ",":
		return true // of a statement, of a literal with fields
	case strings.HasSuffix(before, ",") || hasAnyPrefix(before, "let", "const", "var "), before == "if", strings.HasPrefix(rest, ", "):
		return true // one of several
	case property == "self", property == "this", s[name] == '.', property != "" && upperOnly.any(s[name+len(property):name+len(property)+2]):
		return true // of an object
	}
	return isStatement(lineBefore(s, name)) || isStatement(lineBehind(s, end))
}

// variables lists names that programs give to what they assign.
var variables = strings.Fields(`value values val iota key name hash text input output data result res ret arg args argv param params opt opts option options
	user username auth auths creds cred self this other str string buf buffer body line item entry obj conf config cfg settings field default fallback
	plain plaintext encoded decoded encrypted decrypted raw new old next prev current existing generated random response request resp req event`)

// lineBefore returns the line above the one with i.
func lineBefore(s string, i int) string {
	s = strings.ReplaceAll(s[max(0, i-maxBlank):i], `\n`, "\n")
	end := strings.LastIndexByte(s, '\n')
	return s[strings.LastIndexByte(s[:max(0, end)], '\n')+1 : max(0, end)]
}

// lineBehind returns the line below the one with i.
func lineBehind(s string, i int) string {
	_, s, _ = strings.Cut(strings.ReplaceAll(s[i:min(len(s), i+maxBlank)], `\n`, "\n"), "\n")
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// isStatement reports whether a line is one of a program, rather than of settings or a sentence.
func isStatement(line string) bool {
	line = strings.TrimSpace(line)
	first := line[:letters.end(line, 0)]
	if line == "" || line[0] == '#' {
		return false
	}
	if isAny(first, keywords) && (strings.HasSuffix(line, "{") || strings.HasSuffix(line, ":")) || first == "return" || hasAnyPrefix(line, "//", "/*", "} ", "self.", "this.", "@") {
		return true
	}
	call := strings.IndexByte(line, '(')
	return line[len(line)-1] == ';' || call > 0 && alnum[line[call-1]] && indexByte("(){", line[len(line)-1])
}

// keywords begin statements with a block.
var keywords = strings.Fields("if else elif for while switch case func def class try except finally with type struct")

// calls finds the secrets of calls without a name for them: random arguments of a client of a service, the password of
// a wireless network, that of a function of Postgres.
func calls(t *source, e *edits) {
	s := t.s
	for _, call := range []struct {
		literal     string
		first, last int // arguments
		valid       func(string) bool
		named       bool // the result is assigned to a name for a key
	}{
		{"Client(", 1, 2, isKey, false},
		{"WiFi.begin(", 2, 2, nil, false},
		{"superuser(", 2, 3, isShort, false},
		{"pw_set(", 2, 2, isShort, false},
		{"pgp_sym_", 2, 2, nil, false},
		{"connect(", 3, 4, isShort, false},
		{"database(", 3, 3, isShort, false},
		{"Buffer.from(", 1, 1, isHexKey, true},
		{"fromhex(", 1, 1, isHexKey, true},
		{"unhexlify(", 1, 1, isHexKey, true},
		{"DecodeString(", 1, 1, isHexKey, true},
	} {
		for at := range t.literal(call.literal) {
			open := at + strings.IndexByte(s[at:min(len(s), at+maxCell)], '(')
			if open < at {
				continue
			}
			line, _, _ := strings.Cut(s[open:min(len(s), open+maxBlank)], "\n")
			for n := call.first; n <= call.last; n++ {
				arg := quotedArgument(line, n)
				if arg < 0 {
					continue
				}
				start, end, _ := valueAt(s, open+arg)
				if v := s[start:end]; start >= e.end() && len(v) >= 6 && (!call.named || isKeyName(s[:at])) && !placeholder(v) && (call.valid == nil || call.valid(v)) {
					e.mask(s, start, end, KindAssignment)
				}
			}
		}
	}
}

// isKey reports whether v is random, and not the account of a client.
func isKey(v string) bool { return isOpaque(v) && !strings.HasPrefix(v, "AC") }

// isHexKey reports whether v is the hexadecimal of a key.
func isHexKey(v string) bool { return len(v) >= 32 && isHex(v) && digit.any(v) }
