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
	"any": func(string) bool { return true }, "short": isShort, "opaque": isOpaque, "random": isRandomWord, "generated": isGenerated,
	"pair": isUserPair, "printed": isPrinted, "chosen": func(v string) bool { return isChosen(v) && (isPersonal(v) || threeKinds(v)) },
	"plain": func(v string) bool { return len(v) >= 6 && !in("sentence", v) },
}

// isUserPair reports whether v is a user and a password.
func isUserPair(v string) bool {
	user, password, ok := strings.Cut(v, ":")
	return ok && len(user) > 1 && len(password) >= leastPIN && password[0] != '/'
}

// introduced finds secrets without a name by the text in front of them: those that commands take as an argument or in an
// option of their own, or print, and those in files.
func introduced(t *source, e *edits) {
	t.found()
	for _, w := range t.literals {
		r := w.word.literal.after
		if r == nil || w.start < e.end() {
			continue
		}
		place, what, _ := strings.Cut(r.form, " ")
		line := t.s[w.end:min(len(t.s), w.end+maxBlank)]
		if place == "line" {
			place, what = "sign", "\n"
		} else if !strings.Contains(what, `"`) {
			line, _, _ = strings.Cut(line, "\n")
		}
		switch n, _ := strconv.Atoi(what); place {
		case "sign":
			for at := indexAfter(line, what, 0); at >= 0; at = indexAfter(line, what, at) {
				maskIntroduced(t.s, w.end+at, r, e)
			}
		case "arg":
			if at := argument(line, n); at >= 0 {
				maskIntroduced(t.s, w.end+at, r, e)
			}
		case "args":
			for n = 1; argument(line, n) >= 0; n++ {
				maskIntroduced(t.s, w.end+argument(line, n), r, e)
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
	v := s[start:end]
	if strings.HasSuffix(r.text, "literal=") || strings.HasSuffix(r.form, "=") {
		start += strings.IndexByte(v, '=') + 1
	}
	if until := r.size; until != "" { // the signs that end the value
		n := strings.IndexAny(s[start:min(len(s), end+1)], until)
		if n < 0 {
			return
		}
		end = start + n
	}
	switch v = s[start:end]; {
	case len(v) < leastPIN, indexByte("-/", v[0]), in("example", v), placeholder(v), reference(v), expands(v):
		return
	}
	if (checks[r.kind](v) || quoted && r.kind == "plain") &&
		(r.form != "line" || endsLine(s, end)) {
		e.mask(s, start, end, KindAssignment)
	}
}

// argument returns the index of the n-th argument of a line that is no option, of the last one for -1, or -1.
func argument(line string, n int) int {
	last := -1
	for i := blank.end(line, 0); i < len(line); i = blank.end(line, i) {
		if line[i] != '-' {
			if last = i; n == 1 {
				return i
			}
			n--
		}
		for i < len(line) && !blank[line[i]] {
			i++
		}
	}
	if n < 0 {
		return last
	}
	return -1
}

// calls finds the secrets among the arguments of calls that the table names.
func calls(t *source, e *edits) {
	t.found()
	for _, w := range t.literals {
		r := w.word.literal.call
		if r == nil || w.start < e.end() {
			continue
		}
		open := w.end - 1
		line, _, _ := strings.Cut(t.s[open:min(len(t.s), open+maxBlank)], "\n")
		first, last, _ := strings.Cut(r.form, "-")
		n, _ := strconv.Atoi(first)
		most, _ := strconv.Atoi(last)
		for ; n <= most; n++ {
			arg := quotedArgument(line, n)
			if arg < 0 {
				continue
			}
			start, end, _ := valueAt(t.s, open+arg)
			if v := t.s[start:end]; len(v) >= 6 && !isMail(v) &&
				!isFile(v) && checks[r.kind](v) && !placeholder(v) {
				e.mask(t.s, start, end, KindAssignment)
			}
		}
	}
}

// quotedArgument returns the index of the n-th argument of the call that line begins with, if it is in quotes and has
// letters and digits, or -1.
func quotedArgument(line string, n int) int {
	quote := byte(0)
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case n == 1 && indexByte("'\"", c):
			start, end, _ := valueAt(line, i)
			if mixed(line[start:end]) && !technical(line[start:end]) {
				return i
			}
			return -1
		case n == 1 && unwrapped(line, i) > i:
			i = unwrapped(line, i) - 1
		case n == 1 && !blank[c], indexByte("()", c):
			return -1
		case c == ',':
			n--
		case indexByte("'\"", c):
			quote = c
		}
	}
	return -1
}

// echoes finds the text that an echo, or a here-string, writes to a command that reads a password, to a store or to a file of secrets.
func echoes(t *source, e *edits) {
	s := t.s
	if !strings.Contains(s, "echo ") && !strings.Contains(s, "printf ") && !strings.Contains(s, "<<<") {
		return
	}
	for _, w := range t.found() {
		if w.start < e.end() || !isFold(w.word.text, "password", "passwd", "token", "secret", "pass", "sudo -s") {
			continue
		}
		before := lastLine(s[max(0, w.start-maxBlank):w.start])
		rest, _, _ := strings.Cut(s[w.end:min(len(s), w.end+maxBlank)], "\n")
		if w.word.text == "sudo -s" && s[w.end-1] != 'S' {
			continue
		}
		reads := w.word.text == "sudo -s" || hasAnyPrefix(rest, "-stdin", "-on-stdin", " --stdin") || hasAnySuffix(before, "ch", "--with-")
		var start, stop int
		if n := strings.Index(rest, "<<<"); n >= 0 && reads {
			start, stop, _ = valueAt(s, w.end+n+len("<<<"))
			start += strings.LastIndexByte(s[start:stop], ':') + 1
		} else if sign := strings.LastIndexAny(before, "|>"); sign >= 0 && (reads || storesSecret(before[sign:]+s[w.start:w.end])) {
			start, stop = echoed(before, sign)
			start, stop = w.start-len(before)+start, w.start-len(before)+stop
		}
		v := s[start:max(start, stop)]
		if len(v) >= 6 && (reads || isChosen(v) || jagged(v)) &&
			!in("example", v) && !placeholder(v) && !expands(v) {
			e.mask(s, start, stop, KindAssignment)
		}
	}
}

// storesSecret reports whether a sign of a shell and the text after it is a file, or a command that keeps a secret.
func storesSecret(s string) bool {
	target := strings.TrimLeft(s[1:], " ")
	if s[0] == '>' {
		return !strings.ContainsAny(target, " '\"")
	}
	return hasAnyPrefix(target, "docker secret", "gcloud secrets", "gh secret", "kubectl create secret")
}

// echoed returns the bounds of the last word that an echo on a line writes to the command after the sign at an
// index: after its colon if it has one. They are the same without one.
func echoed(line string, sign int) (start, end int) {
	echo := max(indexAfter(line[:sign], "echo ", 0), indexAfter(line[:sign], "printf ", 0))
	if echo < 0 {
		return 0, 0
	}
	value := strings.TrimRight(line[echo:sign], " '\"")
	return echo + strings.LastIndexAny(value, " '\":") + 1, echo + len(value)
}
