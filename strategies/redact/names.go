package redact

import "strings"

// How far the parts of an assignment are looked for, in bytes. Together with the
// scans going forward only, that is what makes redaction linear.
const (
	maxName  = 128
	maxBlank = 256
	maxUser  = 2048
)

// upperWords make a name in capitals a secret one wherever they stand in it.
var upperWords = []string{"APIKEY", "API_KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH"}

// upperSecret reports whether a name in capitals is one of a secret.
func upperSecret(name string) bool {
	for _, w := range upperWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	switch name[strings.LastIndexByte(name, '_')+1:] {
	case "KEY", "PASS", "PW", "PWD":
		return name != "PWD" && name != "OLDPWD"
	}
	return false
}

// secretWords make a name a secret one as a whole word of it.
var secretWords = []string{
	"token", "tokens", "secret", "secrets", "password", "passwords", "passwd", "passphrase", "pw", "pwd",
	"credential", "credentials", "apikey", "authtoken", "authkey", "secretkey", "accesskey", "accesstoken", "bearer", "jwt",
}

// keyWords in front of "key" make it a secret.
var keyWords = []string{"api", "auth", "access", "refresh", "session", "secret", "private", "encryption", "signing", "master"}

// secretName reports whether a name, in whatever style it is written, is one of a
// secret: password, db.password, clientSecret, X-Api-Key.
func secretName(name string) bool {
	before := ""
	for i := 0; i < len(name); {
		end := wordEnd(name, i)
		w := name[i:end]
		if isAny(w, secretWords) ||
			strings.EqualFold(w, "key") && (isAny(before, keyWords) || strings.EqualFold(before, "material")) ||
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

// wordEnd returns the index behind the word of a name that starts at i: letters up to
// something else, or to where case begins a new word.
func wordEnd(name string, i int) int {
	upper := func(j int) bool { return j < len(name) && name[j] >= 'A' && name[j] <= 'Z' }
	lower := func(j int) bool { return j < len(name) && name[j] >= 'a' && name[j] <= 'z' }
	for j := i; ; j++ {
		if !upper(j) && !lower(j) || j > i && upper(j) && (lower(j-1) || lower(j+1) && j+2 < len(name) && lower(j+2)) {
			return j
		}
	}
}

func isAny(w string, of []string) bool {
	for _, o := range of {
		if len(o) == len(w) && strings.EqualFold(o, w) {
			return true
		}
	}
	return false
}

// headers hold nothing but a secret.
var headers = []string{
	"x-api-key", "x-goog-api-key", "api-key", "apikey", "x-api-token", "x-auth-token", "x-access-token", "private-token",
}

// formNames are parameters of a form whose value is a secret.
var formNames = []string{
	"access_token", "refresh_token", "id_token", "token", "api_key", "apikey", "client_secret", "password", "auth", "jwt",
	"session", "secret", "key", "code", "signature", "sig", "x-amz-signature", "x-goog-signature",
}

// databases are the schemes of URLs with a password in them.
var databases = []string{
	"postgres", "postgresql", "mysql", "mariadb", "mongodb", "mongodb+srv", "redis", "rediss", "amqp", "amqps",
}

// webs are the schemes of URLs that may hold a token in place of a user.
var webs = []string{"http", "https", "ws", "wss", "git", "ssh", "ftp", "ftps", "sftp"}
