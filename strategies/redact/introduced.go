package redact

import "strings"

// introduced lists secrets without a name by the text in front of them: those that commands take as an argument or in an
// option of their own, or print, and those in files.
var introduced = []struct {
	literals string            // one of them is on the same line; they are separated by bars
	sign     string            // right in front of the secret, or of each; a line break if the secret is alone on the next line
	argument int               // or which argument it is, -1 for the last one
	valid    func(string) bool // what else a secret is, if not any text
}{
	{"signtool ", " /p ", 0, nil},
	{"schtasks ", " /rp ", 0, nil},
	{"SETUSER ", " >", 0, nil}, // of Redis
	{"bw unlock ", "", 1, nil},
	{"bw login ", "", 2, nil},
	{"snyk auth ", "", 1, isOpaque},
	{"bundle config ", "", -1, isUserPair},
	{"BUNDLE_", ": ", 0, isUserPair},
	{"radtest ", "", 2, nil},
	{"config set ", "=", 0, isOpaque},
	{"user add |users add |admins add |user create ", "", -1, isNewPassword},
	{"db2 connect ", " using ", 0, isShort},
	{"isql ", "", 3, isShort},
	{"password -v ", "", 1, nil},        // of iSCSI
	{"Password    REG_SZ ", "", 1, nil}, // of the registry of Windows, printed
	{"default on", " >", 0, isShort},    // of a file of Redis
	{"rclone obscure ", "", 1, nil},
	{"data.password|data.pass|data.token|data.secret", "\n", 0, isPrinted}, // of kubectl get secret
	{"isakmp key |ascii-text |digest-key ", "", 1, isShort},                // of routers
	{"digest-key 1 md5 |v3 auth sha |v3 auth md5 |priv aes 128 |priv aes 256 ", "", 1, isShort},
	{"pro attach |ua attach ", "", 1, isOpaque}, // of Ubuntu
	{"TRUE\t/|FALSE\t/", "", -1, isOpaque},      // of a file of cookies
	{"literal=", "", 1, isShort},                // of kubectl create secret
	{"NickServ IDENTIFY |nickserv identify ", "", -1, nil},
	{"EAP |XAUTH ", "", 1, isShort},
	{"issecret=true]", "", 1, nil},                                    // of a pipeline of Azure
	{"authorize-account |alias set ", "", allArguments, isRandomWord}, // of object stores
	{"Password /t ", " /d ", 0, nil},                                  // of the registry of Windows
	{"add-mask::", "", 1, nil},                                        // of a job of GitHub
	{`keyName": "`, `"value": "`, 0, isRandomWord},                    // of Azure
	{`assword:" |assword: " |assword:"\n|assword:*"\n`, `send "`, 0, nil},
	{"echo |printf ", "", 1, isGenerated}, // to a command that reads it
	{"auth-user-pass>\n", "\n", 0, nil},   // of OpenVPN, behind the user
	{"pass show |gopass |op read |bw get password |secret-tool lookup |keyring get |versions access |find-generic-password |chamber read ", "\n", 0, isPrinted},
}

// allArguments stands for each argument.
const allArguments = -2

// introducedAt has the indexes of introduced by their literals.
var introducedAt = func() map[string]int {
	at := map[string]int{}
	for i, of := range introduced {
		for literal := range strings.SplitSeq(of.literals, "|") {
			at[literal] = i
		}
	}
	return at
}()

// introductions finds the secrets of introduced.
func introductions(t *source, e *edits) {
	s := t.s
	t.found()
	for _, w := range t.literals {
		n, ok := introducedAt[w.word.text]
		if !ok || w.start < e.end() {
			continue
		}
		of := introduced[n]
		line := s[w.end:min(len(s), w.end+maxBlank)]
		if of.sign != "\n" && !strings.Contains(of.sign, `"`) {
			line, _, _ = strings.Cut(line, "\n")
		}
		for at, n := 0, 1; ; n++ {
			switch of.argument {
			case 0:
				if next := behindWord(line[at:], of.sign); next >= 0 {
					at += next
				} else {
					at = -1
				}
			case allArguments:
				at = argument(line, n)
			default:
				at = argument(line, of.argument)
			}
			if at < 0 {
				break
			}
			if of.literals == "literal=" {
				at += strings.IndexByte(line[at:], '=') + 1
			}
			start, end, _ := valueAt(s, w.end+at)
			if v := s[start:end]; len(v) >= leastPIN && !indexByte("-/", v[0]) && !isAny(v, examples) && !placeholder(v) && !reference(v) && !expands(v) &&
				(of.valid == nil || of.valid(v)) && (of.sign != "\n" || end == len(s) || lineBreak(s, end) > 0) {
				e.mask(s, start, end, KindAssignment)
			}
			if of.argument != 0 && of.argument != allArguments || of.sign == "\n" {
				break
			}
		}
	}
}

// isUserPair reports whether v is a user and a password.
func isUserPair(v string) bool {
	user, password, ok := strings.Cut(v, ":")
	return ok && len(user) > 1 && len(password) >= leastPIN && mailSet.has(user) && password[0] != '/'
}

// isNewPassword reports whether v, the last argument of a command that adds a user, is a password rather than a name.
func isNewPassword(v string) bool {
	return isChosen(v) && (isPersonal(v) || threeKinds(v)) && !strings.ContainsAny(v, ":/")
}

// isRandomWord reports whether v is a word of random letters and digits.
func isRandomWord(v string) bool {
	return len(v) >= 16 && base64Set.has(v) && (mixed(v) && kindChanges(v) >= 4 || jagged(v))
}

// isGenerated reports whether v is a password of any characters, rather than a text or base64.
func isGenerated(v string) bool {
	return len(v) >= 10 && !strings.Contains(v, " ") && !base64Set.has(v) && kindChanges(v) >= 5 && threeKinds(v) && isChosen(v) && chosenSigns(v) && !strings.ContainsAny(v, `\<>{}()`)
}

// isPrinted reports whether v, alone on a line, is a secret rather than a message.
func isPrinted(v string) bool {
	return isChosen(v) || isOpaque(v) || len(v) >= 16 && kindChanges(v) >= 4 && !isPath(v)
}
