package redact

import "strings"

// commands finds the secrets of commands and statements without an option or a name for them:
// IDENTIFIED BY 'x', AUTH x, net user me x, vault login x, chpasswd, echo x | login --password-stdin;
// and the passwords of pgpass files and of Oracle's addresses.
func commands(t *source, e *edits) {
	s := t.s
	listed := 0 // the end of a list of accounts
	echoes := t.hasLiteral("echo ") || t.hasLiteral("printf ")
	for _, w := range t.found() {
		if w.start < e.end() || w.word.language {
			continue
		}
		line := s[w.end:min(len(s), w.end+256)]
		line, _, _ = strings.Cut(line, "\n")
		at, plain := -1, false // plain if the value may be a word
		switch w.word.text {
		case "identified":
			if strings.HasPrefix(line, " BY ") {
				at = len(" BY ")
			} else if aboutUser(s[max(0, w.start-maxGap):w.start]) {
				at = quotedAfter(line, "by ")
			}
		case "vault login":
			at = argument(line, 1)
		case "mqctl": // of RabbitMQ
			if strings.HasPrefix(line, " add_user ") || strings.HasPrefix(line, " change_password ") {
				at, plain = argument(line, 3), true
			}
		case "nmcli":
			at, plain = behindWord(line, " password "), true
		case "radius-server", "tacacs-server":
			at = behindWord(line, " key ")
			if at >= 0 && at+1 < len(line) && digit[line[at]] && line[at+1] == ' ' { // its kind
				at += len("7 ")
			}
		case "jwt", "hmac": // jwt.sign(x, 'y'), hmac.new(b'y'), and hmac-sha256:name:y of DNS
			if key := wordColon.end(line[:min(len(line), maxCell)], 0); w.word.text == "hmac" && strings.Count(line[:key], ":") == 2 {
				at = strings.LastIndexByte(line[:key], ':') + 1
			} else if at = methodArgument(line, 1); at < 0 {
				at = methodArgument(line, 2)
			}
		case "kinit", "cryptsetup":
			maskEchoed(s, w.start, e)
		case "rdp /":
			at, plain = behindWord(line, " /p:"), true
		case "vault encrypt":
			at = quotedAfter(line, "_string ")
		case "passphrase":
			if strings.HasSuffix(s[:w.start], "wpa_") && strings.HasPrefix(line, " ") {
				at, plain = argument(line, 2), true
			}
		case "net user":
			at = argument(line, 2)
		case "net use":
			if share := strings.Index(line, `\\`); share >= 0 {
				n := argument(line[share:], 2)
				if n >= 0 && line[share+n] == '/' {
					n = argument(line[share:], 3)
				}
				if n >= 0 {
					at = share + n
				}
			}
		case "securestring":
			if at = argument(line, 1); strings.HasSuffix(s[:w.start], "' | ConvertTo-") {
				end := w.start - len("' | ConvertTo-")
				maskInput(s, end-len(s[max(0, end-maxGap):end])+strings.LastIndexByte(s[max(0, end-maxGap):end], '\'')+1, end, e)
				continue
			}
		case "snmp-server community":
			at = argument(line, 1)
			plain = at >= 0 && digit.any(line[at:notSpace.end(line, at)])
		case "basic": // of Poetry
			if strings.HasSuffix(s[:w.start], "http-") && strings.HasPrefix(line, ".") {
				at, plain = argument(line, 3), true
			}
		case "key": // of SQLite
			if strings.HasSuffix(strings.ToLower(s[max(0, w.start-len("pragma ")):w.start]), "pragma ") {
				at = quotedAfter(line, "= ")
			}
		case "credential":
			for n := 4; n >= 2 && at < 0; n-- {
				at = methodArgument(line, n)
			}
		case "login":
			if s[w.start:w.end] == "LOGIN" && len(strings.Fields(line)) == 2 && isTag(lastLine(s[max(0, w.start-maxCell):w.start])) { // of IMAP
				at, plain = argument(line, 2), true
				break
			}
			if strings.HasSuffix(s[:w.start], " +") { // of Steam
				at = argument(line, 2)
				break
			}
			if at = quotedArgument(line, 2); at < 0 && strings.HasPrefix(line, " ") {
				if n := argument(line, 1); n >= 0 && isOpaque(line[n:]) { // cargo login x
					at = n
				}
			}
		case "getconnection", "pdo", "mysqli":
			at = quotedArgument(line, 3)
		case "sqlplus":
			if n := argument(line, 1); n >= 0 {
				if slash := strings.IndexAny(line[n:], "/@ "); slash > 0 && line[n+slash] == '/' {
					at = n + slash + 1
				}
			}
		case "auth":
			if s[w.start:w.end] == "AUTH" && strings.HasPrefix(line, " ") && (lineStart(s, w.start) || strings.HasSuffix(s[:w.start], "> ")) {
				at = argument(line, strings.Count(strings.TrimSpace(line), " ")+1)
				break
			}
			if at = quotedArgument(line, 3); at < 0 { // of SMTP, behind an identity and a user
				at = quotedArgument(line, 2)
				if at >= 0 && isMail(line[at:]) {
					continue
				}
			}
			if at < 0 && strings.HasSuffix(s[:w.start], "bearer_") {
				at = quotedArgument(line, 1)
			}
			if n := quotedArgument(line, 1); at < 0 && n >= 0 && hasAnySuffix(s[:w.start], ":", ".") { // client.auth("x")
				if start, end, _ := valueAt(s, w.end+n); (isChosen(s[start:end]) || s[w.start-1] == ':' && isShort(s[start:end])) && strings.HasPrefix(s[end+1:], ")") {
					at = n
				}
			}
		case "passwd":
			if strings.HasSuffix(s[:w.start], "ht") && strings.Contains(line, " -") || strings.HasPrefix(line, " -b") {
				plain = !strings.HasSuffix(s[:w.start], "ht")
				at = argument(line, strings.Count(strings.TrimSpace(line), " ")+1-strings.Count(line, " -"))
			} else if strings.HasSuffix(s[:w.start], "openssl ") && strings.HasPrefix(line, " -") {
				at, plain = argument(line, 1), true
			} else if strings.HasPrefix(line, ":") && lineBreak(s, w.end+1) > 0 {
				if w.start >= listed {
					listed = maskAccounts(s, w.end+1, e)
				}
			} else if strings.HasSuffix(s[:w.start], "ch") || strings.HasPrefix(line, " --stdin") || strings.HasPrefix(line, "-on-stdin") || strings.HasSuffix(s[:w.start], "-") && strings.Contains(line, " <<< ") {
				maskEchoed(s, w.start, e)
			}
		case "sudo -s":
			if s[w.end-1] == 'S' {
				maskEchoed(s, w.start, e)
			}
		case "password", "token", "secret", "pass":
			if echoes {
				maskWritten(s, w.start, e)
			}
			if w.word.text == "secret" && strings.HasPrefix(line, "KeySpec(") {
				at = len("KeySpec(")
			} else if strings.HasSuffix(s[:w.start], "random_") { // of Terraform's state
				maskResult(s, w.end, e)
			} else if strings.HasPrefix(line, "-stdin") || strings.HasSuffix(s[:w.start], "--with-") {
				maskEchoed(s, w.start, e)
			} else if w.word.text == "password" && strings.HasPrefix(line, " ") && hasAnySuffix(s[:w.start], "user:", "set-", "change-", "reset-") {
				at = argument(line, -1)
			} else if verb := s[letters.start(s, w.start, maxName):w.start]; isAny(verb, setters) || verb == "" && w.word.text == "password" {
				for n := 1; n <= 3 && at < 0; n++ {
					at = quotedArgument(line, n)
				}
				if start, end, quoted := valueAt(s, min(len(s), w.end+1)); at < 0 && strings.HasPrefix(line, "(") && quoted && isTyped(s[start:end]) && w.word.text == "password" {
					at = len("(")
				}
			}
			if w.word.text == "pass" && s[w.start:w.end] == "PASS" && inLogin(s, w.start) && argument(line, 2) < 0 {
				at, plain = argument(line, 1), true
			}
		case "fernet":
			at = quotedArgument(line, 1)
		case "rootpw":
			at, plain = argument(line, 1), true
		}
		if at < 0 {
			continue
		}
		start, end, quoted := valueAt(s, w.end+at)
		if n := strings.LastIndexByte(s[start:end], '@'); n > 0 && w.word.text == "sqlplus" {
			end = start + n
		}
		if v := s[start:end]; len(v) >= 6 && (quoted || plain && !isAny(v, examples) || mixed(v) && len(v) >= 8) && !placeholder(v) && !reference(v) {
			e.mask(s, start, end, KindAssignment)
		}
	}
}

// maskResult masks the next field "result", soon behind i.
func maskResult(s string, i int, e *edits) {
	const name = `"result":`
	if n := strings.Index(s[i:min(len(s), i+1024)], name); n >= 0 {
		if start, end, quoted := valueAt(s, i+n+len(name)); quoted {
			e.mask(s, start, end, KindAssignment)
		}
	}
}

// isOpaque reports whether s begins with a word that is long and random.
func isOpaque(s string) bool {
	v := s[:word.end(s, 0)]
	return len(v) >= 20 && (jagged(v) || isHex(v) && len(v) >= 32 && digit.any(v))
}

// behindWord returns the index behind a word of line, or -1.
func behindWord(line, word string) int {
	if n := strings.Index(line, word); n >= 0 {
		return n + len(word)
	}
	return -1
}

// quotedAfter returns the index of the quote behind a word in lower case, or -1.
func quotedAfter(line, word string) int {
	n := strings.Index(strings.ToLower(line), word)
	if n < 0 || n+len(word) >= len(line) || !indexByte(`'"`, line[n+len(word)]) {
		return -1
	}
	return n + len(word)
}

// quotedArgument returns the index of the n-th argument of the call or tuple that line begins
// with, perhaps after an equals sign, if it is in quotes and has letters and digits, or -1.
func quotedArgument(line string, n int) int {
	open := callOpen.end(line[:min(len(line), len("entication"))], 0)
	if open == len(line) || line[open] != '(' {
		return -1
	}
	quote := byte(0)
	for i := open + 1; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case n == 1 && indexByte("'\"", c):
			if start, end, quoted := valueAt(line, i); quoted && mixed(line[start:end]) && !technical(line[start:end]) {
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

// methodArgument is quotedArgument for a call of which line may begin with the end of the object and
// the method: Credentials.basic("me", "x").
func methodArgument(line string, n int) int {
	method := 0
	if dot := letters.end(line, 0); dot < len(line) && line[dot] == '.' {
		method = letters.end(line, dot+1)
	}
	at := quotedArgument(line[method:], n)
	if at < 0 {
		return -1
	}
	return at + method
}

// setters begin the names of functions that take a secret.
var setters = []string{"set", "with"}

var callOpen = setOf("_= a-z")

// argument returns the index of the n-th argument of a line that is no option, of the last one for -1, or -1.
func argument(line string, n int) int {
	last := -1
	for i := 0; i < len(line); {
		i = blank.end(line, i)
		end := i
		for end < len(line) && !blank[line[end]] {
			end++
		}
		if end > i && line[i] != '-' {
			if last = i; n == 1 {
				return i
			}
			n--
		}
		i = end
	}
	if n < 0 {
		return last
	}
	return -1
}

// maskWritten masks what an echo on the line writes to a file or to a store of secrets with the name at
// s[end:], if someone chose it.
func maskWritten(s string, end int, e *edits) {
	line := s[max(0, end-256):end]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	sign := strings.LastIndexAny(line, "|>")
	if sign < 0 || line[sign] == '|' && !hasAnyPrefix(strings.TrimLeft(line[sign+1:]+s[end:min(len(s), end+16)], " "), "docker secret", "gcloud secrets", "gh secret", "kubectl create secret") || line[sign] == '>' && strings.ContainsAny(strings.TrimLeft(line[sign+1:], " "), " '\"") {
		return
	}
	if start, stop := echoed(line, sign); start < stop && (isChosen(line[start:stop]) || jagged(line[start:stop])) {
		e.mask(s, end-len(line)+start, end-len(line)+stop, KindAssignment)
	}
}

// maskEchoed masks what an echo on the line, or a here-string, writes to the command at s[:end]: its last word,
// after a colon if it has one.
func maskEchoed(s string, end int, e *edits) {
	rest, _, _ := strings.Cut(s[end:min(len(s), end+256)], "\n")
	if n := strings.Index(rest, "<<<"); n >= 0 {
		start, stop, _ := valueAt(s, end+n+len("<<<"))
		maskInput(s, start+strings.LastIndexByte(s[start:stop], ':')+1, stop, e)
		return
	}
	line := s[max(0, end-256):end]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	start, stop := echoed(line, strings.LastIndexByte(line, '|'))
	maskInput(s, end-len(line)+start, end-len(line)+stop, e)
}

// maskInput masks the input of a command that reads a password.
func maskInput(s string, start, stop int, e *edits) {
	if v := s[start:stop]; len(v) >= 6 && !isAny(v, examples) && !placeholder(v) && !expands(v) {
		e.mask(s, start, stop, KindAssignment)
	}
}

// echoed returns the bounds of the last word that an echo on a line writes to what follows the sign at an
// index: behind its colon if it has one. They are the same without one.
func echoed(line string, sign int) (start, end int) {
	echo := -1
	for _, word := range []string{"echo ", "printf "} {
		if n := strings.LastIndex(line[:max(0, sign)], word); n >= 0 {
			echo = max(echo, n+len(word))
		}
	}
	if echo < 0 {
		return 0, 0
	}
	value := strings.TrimRight(line[echo:sign], " '\"")
	return echo + strings.LastIndexAny(value, " '\":") + 1, echo + len(value)
}

// passFiles finds the passwords of pgpass files, host:port:database:user:password, and those in
// Oracle's addresses, thin:user/password@host.
func passFiles(t *source, e *edits) {
	s := t.s
	for at := range places(s, ":") {
		if at < e.end() || at+1 == len(s) || !digit[s[at+1]] && s[at+1] != '*' {
			continue
		}
		port := at + 2
		if s[at+1] != '*' {
			port = digit.end(s[:min(len(s), at+7)], at+1)
		}
		if s[at-min(1, at)] == ']' { // of Postfix: [host]:port user:password
			user := blank.end(s[:min(len(s), port+8)], port)
			colon := user + strings.IndexAny(s[user:min(len(s), user+maxName)]+" ", ": \n\"")
			if end := notSpace.end(s[:min(len(s), colon+maxName)], min(len(s), colon+1)); user > port && colon < len(s) && s[colon] == ':' && mailSet.has(s[user:colon]) && end > colon+leastPIN {
				e.mask(s, colon+1, end, KindConnection)
			}
			continue
		}
		host := pgHost.start(s, at, maxName)
		quoted := host > 0 && indexByte("'\"", s[host-1])
		if n := port - at - 1; port >= len(s) || s[port] != ':' || n < 4 && s[at+1] != '*' || !quoted && !lineStart(s, host) {
			continue
		}
		line, _, _ := strings.Cut(s[port+1:min(len(s), port+256)], "\n")
		if quoted {
			line, _, _ = strings.Cut(line, s[host-1:host])
		}
		database, rest, _ := strings.Cut(line, ":")
		user, password, ok := strings.Cut(rest, ":")
		password = strings.TrimRight(password, "\r")
		if ok && pgHost.end(database, 0) == len(database) && pgHost.end(user, 0) == len(user) && !digits(database) && !digits(user) &&
			len(password) >= 6 && !space.any(password) && !placeholder(password) {
			start := port + 1 + len(database) + len(user) + 2
			e.mask(s, start, start+len(password), KindConnection)
		}
	}
}

// oracles finds the passwords of Oracle's addresses, thin:user/password@host.
func oracles(t *source, e *edits) {
	const driver = "jdbc:oracle:"
	s := t.s
	for _, command := range []string{"CONNECT ", "connect ", "conn "} { // user/password@host
		for at := range t.literal(command) {
			start := at + len(command)
			if !lineStart(s, at) && !strings.HasSuffix(s[:at], "> ") {
				continue
			}
			slash := start + word.end(s[start:min(len(s), start+maxCell)], 0)
			if end := slash + strings.IndexAny(s[slash:min(len(s), slash+maxCell)]+" ", "@ \n"); slash < len(s) && s[slash] == '/' && end < len(s) && s[end] == '@' {
				e.mask(s, slash+1, end, KindConnection)
			}
		}
	}
	for at := range t.literal(driver) {
		slash := at + len(driver) + strings.IndexAny(s[at+len(driver):min(len(s), at+maxName)]+"@", "/@ \n")
		if slash >= len(s) || s[slash] != '/' {
			continue
		}
		if n := strings.IndexAny(s[slash:min(len(s), slash+maxName)], "@ \n"); n > 0 && s[slash+n] == '@' {
			e.mask(s, slash+1, slash+n, KindConnection)
		}
	}
}

var mailSet = setOf("0-9A-Za-z_.@+-")

var pgHost = setOf("0-9A-Za-z_.*-")

// marked lists the formats of keys with a mark within, and the least lengths around it.
var marked = []struct {
	mark          string
	before, after int
}{
	{".atlasv1.", 10, 40}, // Terraform
	{"Q~", 4, 30},         // Azure
	{":APA91b", 8, 100},   // Firebase
	{"JQQJ99", 40, 20},    // Azure DevOps
	{"NRAL", 32, 0},       // New Relic
	{"/IncomingWebhook/", 0, 30},
	{"/bot/v2/hook/", 0, 30},
	{"hooks.zapier.com/hooks/catch/", 0, 12},
	{"anaconda.org/t/", 0, 16},
}

// markedKeys finds keys that are known by a mark within them.
func markedKeys(t *source, e *edits) {
	s := t.s
	t.found()
	for _, m := range marked {
		short := len(m.mark) < 3 // and no literal
		if !short && len(t.literals) == 0 {
			continue
		}
		mark := strings.TrimLeft(m.mark, ".:/")
		at, done := t.literal(mark), 0
		if short {
			at = places(s, mark)
		}
		for at := range at {
			at -= len(m.mark) - len(mark)
			start := at + len(m.mark)
			if start < done || at < 0 || s[at] != m.mark[0] {
				continue
			}
			end := markedSet.end(s, start)
			done = end
			if n := alnum.start(s, at, maxName); m.before > 0 {
				if at-n < m.before {
					continue
				}
				start = n
			}
			if end-at-len(m.mark) >= m.after {
				e.mask(s, start, end, KindProviderKey)
			}
		}
	}
}

var markedSet = setOf("0-9A-Za-z_/.~-")
