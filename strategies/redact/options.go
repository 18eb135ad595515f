package redact

import (
	"slices"
	"strings"
)

// flags finds the secrets in the options of commands: --password x, and those of one letter of
// some commands.
func flags(t *source, e *edits) {
	s := t.s
	for at := range places(s, "-") {
		if at > 0 && !space[s[at-1]] || e.end() > at {
			continue
		}
		start, stop, password := optionValue(s, at, wordDot.end(s[:min(len(s), at+maxName)], at))
		if !indexByte("'\"`", s[max(0, start-1)]) {
			stop = start + len(strings.TrimRight(s[start:stop], behind))
		}
		v := s[start:stop]
		if len(v) < 4 || v[0] == '-' || placeholder(v) || reference(v) {
			continue
		}
		if mixed(v) && len(v) >= 6 || password && isArgument(s, at, start, stop) {
			e.mask(s, start, stop, KindAssignment)
		}
	}
}

// optionValue returns the bounds of the secret of the option at s[at:end], and whether it is a
// password, which people choose, rather than a token. They are 0 without a secret.
func optionValue(s string, at, end int) (start, stop int, password bool) {
	name := strings.TrimLeft(s[at:end], "-")
	if name == "" || hasAnyPrefix(name, "ask-", "no-", "prompt-") {
		return 0, 0, false
	}
	value := func(i int) (int, int) { return (&values{s: s[:min(len(s), i+1024)]}).at(blank.end(s, i), false) }
	long, before := s[at+1] == '-', commandBefore(s, at)
	runs := func(commands ...string) bool {
		return slices.ContainsFunc(commands, func(c string) bool { return strings.Contains(before, c) })
	}
	if !long && name[0] == 'p' && runs(joinedCommands...) {
		if start, stop = (&values{s: s[:min(len(s), at+1024)]}).at(at+len("-p"), false); start < stop {
			return start, stop, true
		}
	}
	if !long && (name == "p" || name == "P") && end < len(s) && s[end] == ' ' { // behind a user
		if start, stop = value(end); isShort(s[start:stop]) && slices.ContainsFunc(userOptions, func(o string) bool { return strings.Contains(before, o) }) {
			return start, stop, true
		}
	}
	for _, p := range pairOptions {
		joined := !long && strings.HasPrefix(name, p.names[0])
		if !joined && !slices.Contains(p.names, name) || !runs(p.commands...) {
			continue
		}
		if start = at + len("-x"); !joined {
			start = min(end+1, len(s)) // after a blank or an equals sign
		}
		start, stop = value(start)
		if n := strings.Index(s[start:stop], p.separator); n > 0 {
			if user := s[start : start+n]; n+1 == stop-start && isOpaque(user) {
				return start, start + n, false // a key without a password
			}
			return start + n + 1, stop, !isAny(s[start+n+1:stop], examples)
		}
	}
	if end == len(s) || s[end] != ' ' {
		return 0, 0, false
	}
	start, stop = value(end)
	if name == "u" || name == "user" { // and a password, of any command
		last := start + strings.LastIndexByte(s[start:stop], '@')
		if last < start || !isHost(strings.TrimRight(s[last+1:stop], behind)) {
			last = stop
		}
		if n := strings.IndexByte(s[start:last], ':'); n > 0 && letters[s[start]] && mailSet.has(s[start:start+n]) && isShort(s[start+n+1:last]) && !strings.ContainsAny(s[start+n+1:last], "-./") {
			return start + n + 1, last, false
		}
	}
	if name == "hashes" { // of accounts of Windows: LM:NT
		if n := strings.IndexByte(s[start:stop], ':'); n >= 0 && stop-start-n == 33 && isHex(s[start+n+1:stop]) {
			return start + n + 1, stop, false
		}
	}
	if v := s[start:stop]; len(name) == 1 && strings.Count(v, `"`) < 2 && (isGenerated(v) || indexByte("apPkwxX", name[0]) && isChosen(v) && alnum.has(v) && threeKinds(v) && isRandom(v)) {
		return start, stop, false
	}
	if commands, ok := letterOptions[name]; ok && long == (len(name) > 1) {
		if !runs(commands...) {
			return 0, 0, false
		}
		return start, stop, name != "c" && name != "t"
	}
	if strings.HasPrefix(name, "pass") && strings.HasPrefix(s[start:stop], "pass:") { // of openssl
		return start + len("pass:"), stop, true
	}
	if name != "key" && !long && len(name) < 6 || !secretName(name) && name != "setcookie" && !isAny(lastWord(name), authorizationHeaders) && (name != "key" || !isOpaque(s[start:stop]) || !runs("auth", "login", "api")) || isAbout(name, s[start:stop]) || isResource(name, s[start:stop]) || strings.HasSuffix(name, "stdin") || strings.HasPrefix(s[start:stop], "/dev/") {
		return 0, 0, false
	}
	return start, stop, isPassword(name) || name == "setcookie" // of Erlang
}

var (
	// joinedCommands lists the commands whose password follows -p without a blank.
	joinedCommands = []string{"mysql", "mariadb", "sshpass", "7z", "rar "}

	// letterOptions lists the commands whose option of one letter, or another common one, is a secret.
	letterOptions = map[string][]string{
		"p": {"sshpass", "login", "mongo", "cqlsh", "rdesktop", "useradd", "usermod", "psexec", "winrm", "crackmapexec", "netexec", "hydra", "twine ", "beeline", "certutil", "unlock-keychain"},
		"a": {"redis-cli"},
		"P": {"zip ", "sqlcmd", "bcp ", "isql", "_pub ", "_sub ", "ipmitool", "security import", "ssh-keygen"},
		"w": {"ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldapdelete", "ldappasswd", "security add-"},
		"k": {"openssl enc", "gem push", "ss-local", "ss-server", "ssserver", "sslocal", "nuget"},
		"t": {"doctl", "codecov", "influx"},
		"c": {"snmp"},
		"N": {"ssh-keygen"},
		"K": {"openssl enc"},
		"s": {"ldappasswd"},
		"b": {"oathtool", "secret set"},

		"body":  {"secret set"},
		"value": {"keyvault secret set"},
		"A":     {"snmp"},
		"X":     {"snmp"},
	}

	// userOptions are options for the user of a command.
	userOptions = []string{" -u ", " -U ", " --user ", " --user=", " --username ", " --username="}

	// pairOptions lists options with a user and a password.
	pairOptions = []struct {
		names     []string // the first also without a blank
		separator string
		commands  []string
	}{
		{[]string{"u", "user"}, ":", []string{"curl", "etcdctl"}},
		{[]string{"E", "cert"}, ":", []string{"curl"}},
		{[]string{"U", "proxy-user"}, ":", []string{"curl"}},
		{[]string{"u", "user"}, ",", []string{"lftp"}},
		{[]string{"a", "auth"}, ":", []string{"http ", "https ", "xh "}},
		{[]string{"U", "user"}, "%", []string{"smbclient", "rpcclient"}},
		{[]string{"creds", "creds", "src-creds", "dest-creds"}, ":", []string{"skopeo", "podman", "buildah", "nerdctl", "oras"}},
	}
)

// maxCommand is the distance in which the command of an option is looked for.
const maxCommand = 512

// commandBefore returns the command in front of the option at i.
func commandBefore(s string, i int) string {
	s = s[max(0, i-maxCommand):i]
	for _, end := range []string{"\n", "; ", "| ", "&& ", `\n`} {
		if n := strings.LastIndex(s, end); n >= 0 && (n == 0 || s[n-1] != '\\') { // or the line goes on
			s = s[n+len(end):]
		}
	}
	return s
}

// isArgument reports whether a word or a number at s[start:stop] is the value of the option at
// i rather than the next word of a sentence or of a usage message about the option.
func isArgument(s string, i, start, stop int) bool {
	v := s[start:stop]
	before := strings.TrimRight(s[max(0, i-16):i], " ")
	switch {
	case upperOnly.has(v) && len(v) < 16, digits(v) && len(v) < 6, !digits(v) && positionSet.end(v, 0) == len(v), isAny(v, constants), isAny(v, examples):
		return false
	case stop < len(s) && indexByte("'\"", s[stop]) && s[start-1] == s[stop]:
		return true
	case isProse(v), isProse(before[strings.LastIndexAny(before, " \n")+1:]):
		return false
	}
	rest, _, _ := strings.Cut(s[stop:min(len(s), stop+64)], "\n")
	if strings.HasPrefix(rest, "  ") && letters.any(rest) {
		return false // a usage message
	}
	words := strings.Fields(rest)
	return !slices.ContainsFunc(words[:min(len(words), 4)], isProse)
}

// isProse reports whether w is a word of sentences about an option.
func isProse(w string) bool {
	w = strings.Trim(w, ".,:;!?()\"'`")
	return isAny(w, sentenceWords) || isAny(w, optionWords)
}

var optionWords = strings.Fields(`an the flag flags option options argument arguments parameter parameters value values field support
	in on from if when via by it its this that instead only was were will has have does without use used uses using add pass set
	missing unknown see prompt prompts no both either requires takes accepts then also`)
