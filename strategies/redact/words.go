package redact

import "strings"

// nameWords are the parts of names that any rule looks for.
const nameWords = `pass password passwd passphrase passcode pwd token secret key credential creds auth authorization bearer basic cookie
	jwt salt cert signature hmac seed nonce session sid pat material mnemonic psk otp totp identified ssws vault_login net_user net_use securestring sudo_-s cvv cvc recovery backup
	login getconnection pdo mysqli sqlplus snmp-server_community mqctl nmcli rdp_/ vault_encrypt`

// spokenWords are words for a password, a secret or a key in languages other than English, with
// _ for a space.
const spokenWords = `passwort kennwort geheimnis schlüssel zugangsschlüssel api-schlüssel mot_de_passe mots_de_passe mdp jeton clé_api clé_d'api clé_secrète clef_secrète
	contraseña contrasena clave clave_secreta clave_de_api senha palavra-passe palavra_passe chave_secreta chave_de_api parola_d'ordine parola_chiave
	chiave_segreta chiave_api wachtwoord geheime_sleutel hasło haslo heslo lösenord losenord adgangskode passord salasana şifre parola
	jelszó jelszo parolă lozinka geslo пароль пароля пароли паролем токен секрет ключ_api парола лозинка κωδικός κωδικος
	密码 密碼 口令 密钥 密鑰 秘钥 令牌 パスワード パスフレーズ 暗証番号 秘密鍵 トークン 비밀번호 패스워드 암호 토큰 비밀키
	كلمة_المرور كلمة_السر סיסמה סיסמא पासवर्ड mật_khẩu kata_sandi รหัสผ่าน`

// verbs stand between a word for a secret and the secret.
var verbs = strings.Fields("is was to lautet ist heißt war est es è é jest je är er это là 是 为 為 は が 는 은")

// prepositions begin what may stand between a word for a secret and a colon or a verb.
var prepositions = []string{
	"for", "of", "on", "at", "in", "für", "fuer", "der", "des", "vom", "von", "zum", "zur", "de", "du", "del", "della", "dello", "di", "da", "do", "dos",
	"pour", "para", "per", "van", "voor", "dla", "od", "до", "для", "от", "к", "на", "za", "till", "til", "för",
}
