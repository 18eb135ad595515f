package redact

import (
	"slices"
	"strconv"
	"strings"
)

// option is a way in which commands take a secret: a row of the table.
type option struct {
	kind, separator string
	names, commands []string
}

var optionRows = func() (out []option) {
	for _, r := range table["option"] {
		kind, separator, _ := strings.Cut(r.kind, " ")
		out = append(out, option{kind, separator, strings.Fields(r.text), strings.Split(r.form, "|")})
	}
	return out
}()

// options finds the secrets in the options of commands: --password x, and those of one letter of
// some commands.
func options(t *source, e *edits) {
	s := t.s
	for at := range places(s, "-") {
		if at > 0 && !space[s[at-1]] || e.end() > at {
			continue
		}
		start, stop, password := optionValue(s, at, wordDot.end(s[:min(len(s), at+maxName)], at))
		if !indexByte("'\"`", s[max(0, start-1)]) {
			stop = start + len(strings.TrimRight(s[start:stop], trailing))
		}
		v := s[start:stop]
		if len(v) < leastPIN || v[0] == '-' || placeholder(v) || reference(v) {
			continue
		}
		before := strings.TrimRight(s[max(0, at-16):at], " ")
		if mixed(v) && len(v) >= 6 ||
			password && isArgument(s, start, stop) && !isProse(before[strings.LastIndexAny(before, " \n")+1:]) {
			e.mask(s, start, stop, KindAssignment)
		}
	}
}

// optionValue returns the bounds of the secret of the option at s[at:end], and whether it is a
// password, which people choose, rather than a token. They are the same without a secret.
func optionValue(s string, at, end int) (start, stop int, password bool) {
	key := strings.TrimLeft(s[at:end], "-")
	if key == "" || hasAnyPrefix(key, "ask-", "no-", "prompt-") {
		return 0, 0, false
	}
	command := commandBefore(s, at)
	value := func(i int) (int, int) {
		head := source{s: s[:min(len(s), end+1024)]}
		return head.settingAt(blank.end(head.s, min(len(head.s), i)), false)
	}
	long, spaced := strings.HasPrefix(s[at:end], "--"), end < len(s) && s[end] == ' '
	for i := range optionRows {
		o := &optionRows[i]
		joined := !long && strings.HasPrefix(key, o.names[0])
		named := slices.Contains(o.names, key) && long == (len(key) > 1)
		if !joined && !named || !slices.ContainsFunc(o.commands, func(c string) bool { return strings.Contains(command, c) }) {
			continue
		}
		from := at + len("-x")
		if named && o.kind != "joined" {
			from = end + 1 // after a blank or an equals sign
		}
		switch start, stop = value(from); {
		case o.kind == "joined":
			if start < stop && !space[s[from]] {
				return start, stop, true
			}
		case o.kind == "pair":
			if n := strings.Index(s[start:stop], o.separator); n > 0 {
				return pairValue(s, start, start+n, stop)
			}
		case named && spaced && (o.kind != "user" || isShort(s[start:stop])):
			return start, stop, o.kind != "token"
		}
	}
	switch start, stop = value(end); {
	case !spaced, !long && len(key) < 6, !secretName(key) && !strings.HasPrefix(s[start:stop], "pass:"), strings.HasSuffix(key, "stdin"):
		return 0, 0, false
	}
	if v := s[start:stop]; isAbout(key, v) || isResource(key, v) {
		return 0, 0, false
	}
	return start + len(s[start:stop]) - len(strings.TrimPrefix(s[start:stop], "pass:")), stop, isPassword(key) // of openssl
}

// pairValue returns the bounds of the secret of s[start:stop], a user and a password with a sign at an index between.
func pairValue(s string, start, sign, stop int) (from, to int, password bool) {
	if sign+1 == stop && isOpaque(s[start:sign]) {
		return start, sign, false // a key without a password
	}
	return sign + 1, stop, !in("example", s[sign+1:stop])
}

// commandBefore returns the command in front of the option at i.
func commandBefore(s string, i int) string {
	s = s[max(0, i-512):i]
	for _, end := range []string{"\n", "; ", "| ", "&& ", `\n`} {
		if n := strings.LastIndex(s, end); n >= 0 && (n == 0 || s[n-1] != '\\') { // or the line goes on
			s = s[n+len(end):]
		}
	}
	return s
}

// isArgument reports whether a word or a number at s[start:stop] is the value of an option rather than the next word of
// a sentence or of a usage message about the option.
func isArgument(s string, start, stop int) bool {
	v := s[start:stop]
	rest, _, _ := strings.Cut(s[stop:min(len(s), stop+64)], "\n")
	switch {
	case upperOnly.has(v) && len(v) < 16, digits(v) && len(v) < 6, !digits(v) && positions.has(v), in("constant", v), in("example", v), isProse(v):
		return false
	case s[start-1] == '"', s[start-1] == '\'':
		return true
	case strings.HasPrefix(rest, "  ") && letters.any(rest): // a usage message
		return false
	}
	said := strings.Fields(rest)
	return !slices.ContainsFunc(said[:min(len(said), 4)], isProse)
}

// checks are the kinds of rows of the table about the look of a secret.
var checks = map[string]func(string) bool{
	"any": func(string) bool { return true }, "short": isShort, "opaque": isOpaque, "generated": isGenerated,
	"pair": isUserPair, "printed": func(v string) bool { return isChosen(v) || isOpaque(v) }, "chosen": func(v string) bool { return isChosen(v) && (isPersonal(v) || threeKinds(v)) },
	"plain": func(v string) bool { return len(v) >= 6 && !in("sentence", v) },
}

// isUserPair reports whether v is a user and a password.
func isUserPair(v string) bool {
	user, password, ok := strings.Cut(v, ":")
	return ok && len(user) > 1 && len(password) >= leastPIN && password[0] != '/'
}

// introduced finds secrets without a name by the text in front of them: the arguments of commands and calls, and lines of
// files.
func introduced(t *source, e *edits) {
	t.found()
	for _, w := range t.literals {
		for _, r := range w.word.literal.after {
			if w.start < e.end() {
				break
			}
			place, what, _ := strings.Cut(r.form, " ")
			line := t.s[w.end:min(len(t.s), w.end+maxBlank)]
			if !strings.ContainsAny(what, "\n\"") {
				line, _, _ = strings.Cut(line, "\n")
			}
			if place == "sign" {
				for at := indexAfter(line, what, 0); at >= 0; at = indexAfter(line, what, at) {
					maskIntroduced(t.s, w.end+at, r, e)
				}
				continue
			}
			args := arguments(line, place == "call")
			first, last, _ := strings.Cut(what, "-")
			n, _ := strconv.Atoi(first)
			most, _ := strconv.Atoi(last)
			if what == "last" {
				n = len(args)
			}
			for most = max(n, most); n <= min(most, len(args)) && n > 0; n++ {
				if place != "piped" || lists["reader"].within(line) {
					maskIntroduced(t.s, w.end+args[n-1], r, e)
				}
			}
		}
	}
}

// indexAfter returns the index after the next occurrence of a text in s from i on, or -1.
func indexAfter(s, text string, i int) int {
	if n := strings.Index(s[i:], text); n >= 0 {
		return i + n + len(text)
	}
	return -1
}

// maskIntroduced masks the value at i that a row of the table is about.
func maskIntroduced(s string, i int, r *row, e *edits) {
	start, end, quoted := valueAt(s, i)
	if strings.HasSuffix(r.text, "=") || strings.HasSuffix(r.form, "=") {
		start += strings.IndexByte(s[start:end], '=') + 1
	}
	if until := r.size; until != "" { // the signs that end the value
		n := strings.IndexAny(s[start:min(len(s), end+1)], until)
		if n < 0 {
			return
		}
		end = start + n
	}
	if rest, _, _ := strings.Cut(s[end:min(len(s), end+maxBlank)], "\n"); r.form == "piped 1" && strings.Contains(rest, "chpasswd") {
		start += strings.IndexByte(s[start:end], ':') + 1 // after the account
	}
	v, isCall := s[start:end], strings.HasPrefix(r.form, "call")
	switch {
	case len(v) < leastPIN, indexByte("-/", v[0]), in("example", v), placeholder(v), reference(v), expands(v):
		return
	case isCall && (!quoted || len(v) < 6 || !mixed(v)), isCall && isTrap(v, "technical"):
		return
	case r.form == "sign \n" && !endsLine(s, end):
		return
	}
	if checks[r.kind](v) || quoted && r.kind == "plain" {
		e.mask(s, start, end, KindAssignment)
	}
}

// arguments returns where the arguments on a line begin: of a command, those that are no options, or of a call.
func arguments(line string, isCall bool) (at []int) {
	quote, next := byte(0), true
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case blank[c]:
			next = next || !isCall
		case next:
			next = false
			if isCall {
				i = unwrapped(line, i)
				quote = quoteAt(line, i)
			}
			if isCall || c != '-' {
				at = append(at, i)
			}
		case isCall && indexByte("()", c):
			return at
		case isCall:
			next, quote = c == ',', quoteAt(line, i)
		}
	}
	return at
}

// quoteAt returns the quote at i, or 0.
func quoteAt(s string, i int) byte {
	if i < len(s) && indexByte("'\"", s[i]) {
		return s[i]
	}
	return 0
}
