package redact

import (
	"slices"
	"strings"
)

// The maximum distances, in bytes, at which the parts of an assignment are searched for. They
// make redaction linear, together with the passes going forward only.
const (
	maxName  = 128
	maxBlank = 256
	maxUser  = 2048
)

// upperWords make a name in capitals secret wherever they occur in it.
var upperWords = []string{"APIKEY", "API_KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH"}

// upperSecret reports whether a name in capitals denotes a secret.
func upperSecret(name string) bool {
	if slices.ContainsFunc(upperWords, func(w string) bool { return strings.Contains(name, w) }) {
		return true
	}
	switch name[strings.LastIndexByte(name, '_')+1:] {
	case "KEY", "PASS", "PW", "PWD":
		return name != "PWD" && name != "OLDPWD" && !identifies(name)
	}
	return strings.HasSuffix(name, "PASS") && !strings.HasSuffix(name, "BYPASS") && !strings.HasSuffix(name, "COMPASS") // SSHPASS
}

// secretWords make a name secret as a whole word of it.
var secretWords = []string{
	"token", "tokens", "secret", "secrets", "password", "passwords", "passwd", "passphrase", "pw", "pwd",
	"credential", "credentials", "bearer", "jwt",
	"storepass", "keypass", "requirepass", "masterauth", "authtok", "psk",
}

// keyWords in front of "key" make it a secret.
var keyWords = []string{"api", "auth", "access", "refresh", "session", "secret", "private", "encryption", "signing", "master", "subscription", "shared", "preshared", "aes", "encrypt", "crypt", "cipher", "decrypt", "push", "deploy", "upload", "write", "admin", "ingest", "merchant", "webhook", "hmac", "license", "licence", "activation", "unseal", "setup", "recovery", "product", "validation", "decryption", "jwt", "wpa", "wifi", "instrumentation"}

// secretName reports whether a name in any style denotes a secret: password, db.password,
// clientSecret, X-Api-Key.
func secretName(name string) bool {
	if name == "key" {
		return false // of anything, as most are
	}
	before := ""
	for i := 0; i < len(name); {
		end := wordEnd(name, i)
		w := name[i:end]
		if isAny(w, secretWords) && (!hasFold(w, "token") || !strings.Contains(name[end:], ".")) || joined(w) || // a token of a design, of a language
			strings.EqualFold(w, "key") && (isAny(before, keyWords) || hasFold(before[max(0, len(before)-len("api")):], "api") || strings.EqualFold(before, "material")) ||
			strings.EqualFold(w, "keys") && isAny(before, []string{"api", "access"}) ||
			strings.EqualFold(w, "phrase") && strings.EqualFold(before, "pass") || strings.EqualFold(w, "ident") && strings.EqualFold(before, "auth") ||
			strings.EqualFold(w, "material") && strings.EqualFold(before, "key") ||
			strings.EqualFold(w, "pass") && (before != "" || end == len(name)) ||
			strings.EqualFold(w, "auth") && end == len(name) {
			return true
		}
		if len(w) > 0 {
			before = w
		}
		i = max(end, i+1)
	}
	return false
}

// joined reports whether a word ends in one for a password, without anything between: rpcpassword.
func joined(w string) bool {
	n := len(w)
	for _, last := range joinedEnds {
		if i := n - len(last); i > 0 && strings.EqualFold(w[i:], last) && (isAny(w[:i], keyWords) || last != "key" && isAny(w[:i], joinedStarts)) {
			return true
		}
	}
	return (n > 8 && hasFold(w[n-8:], "password") || n > 6 && hasFold(w[n-6:], "passwd")) && !hasFold(w, "nopass")
}

// typedWords end the names of secrets that people choose and type: a word or a number, perhaps.
var typedWords = []string{"password", "passwd", "passphrase", "passcode", "pass_phrase", "pass", "pwd", "pw"}

// isPassword reports whether a name ends in one of typedWords.
func isPassword(name string) bool {
	return slices.ContainsFunc(typedWords, func(w string) bool { return hasFold(name[max(0, len(name)-len(w)):], w) })
}

// wordEnd returns the end of the word of a name that starts at i: letters up to another
// character or to a change of case that starts a new word.
func wordEnd(name string, i int) int {
	upper := func(j int) bool { return j < len(name) && name[j] >= 'A' && name[j] <= 'Z' }
	lower := func(j int) bool { return j < len(name) && name[j] >= 'a' && name[j] <= 'z' }
	for j := i; ; j++ {
		if !upper(j) && !lower(j) || j > i && upper(j) && (lower(j-1) || lower(j+1) && j+2 < len(name) && lower(j+2)) {
			return j
		}
	}
}

// isAny reports whether w is one of the given words, ignoring case.
func isAny(w string, of []string) bool {
	for _, o := range of {
		if len(o) == len(w) && (w == "" || w[0] >= 0x80 || w[0]|0x20 == o[0]|0x20) && strings.EqualFold(o, w) {
			return true
		}
	}
	return false
}

// headers lists the headers whose whole value is a secret.
var headers = []string{
	"x-api-key", "x-goog-api-key", "api-key", "apikey", "x-api-token", "x-auth-token", "x-access-token", "private-token", "x-honeycomb-team",
}

// authorizationHeaders lists the headers with a scheme before the credential.
var authorizationHeaders = []string{"authorization", "proxy-authorization"}

// formNames lists the parameters of a form that are secret.
var formNames = []string{
	"access_token", "refresh_token", "id_token", "token", "api_key", "apikey", "client_secret", "password", "auth", "jwt",
	"session", "secret", "key", "code", "code_verifier", "device_code", "assertion", "client_assertion", "signature", "sig", "x-amz-signature", "x-goog-signature",
}

// webs lists the schemes of URLs that may have a token in place of the user.
var webs = []string{"http", "https", "ws", "wss", "git", "ssh", "ftp", "ftps", "sftp"}

// proxies lists the schemes of addresses whose user is a password.
var proxies = []string{"trojan", "ss", "vless", "hysteria2", "tuic"}

// examples lists passwords that documentation uses.
var examples = []string{"pass", "password", "passwd", "pw", "pwd", "secret", "token", "port"}

// queryNames lists the parameters of web addresses that are credentials.
var queryNames = []string{
	"access_token", "refresh_token", "id_token", "auth_token", "token", "api_key", "apikey", "api-key", "client_secret", "password",
	"secret", "key", "code", "auth", "jwt", "sid", "access_key", "secret_key", "subscription-key", "sig", "signature", "x-amz-signature", "x-amz-security-token", "x-goog-signature", "awsaccesskeyid", "appid", "consumer_key", "consumer_secret",
}

// hookPaths lists the beginnings of webhook addresses, up to the secret.
var hookPaths = []string{"hooks.slack.com/services/", "hooks.slack.com/triggers/", "hooks.slack.com/workflows/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}

// dsnNames lists the fields next to a password in a connection string.
var dsnNames = []string{"host=", "user=", "dbname=", "server=", "database=", "data source=", "user id=", "uid=", "initial catalog=", "driver=", "jdbc:"}

var (
	joinedEnds   = strings.Fields("key token secret pass pwd pw")
	joinedStarts = strings.Fields("db user client admin root bot psk app my smtp mail ftp ssh sudo mysql pg redis bind rootbind proxy ldap remote local imap pop")
)
