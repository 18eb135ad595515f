package redact

import "strings"

// nameWords are the parts of names that any rule looks for.
const nameWords = `pass password passwd passphrase passcode pwd token secret key credential creds auth authorization bearer basic cookie
	jwt salt cert signature hmac seed nonce session sid pat material mnemonic psk otp totp pin pin_code identified secure encrypt dockerconfigjson dockercfg unseal ssws vault_login net_user net_use securestring sudo_-s cvv cvc recovery backup
	key_content wallet_words security_code alarm_code door_code gate_code safe_code entry_code setup_code pairing_code access_code unlock_code verification_code login getconnection pdo mysqli sqlplus snmp-server_community mqctl nmcli rdp_/ vault_encrypt radius-server tacacs-server accounts kinit cryptsetup fernet rootpw honeycomb-team`

// literals are texts that passes look for apart from names, with letters at the beginning.
var literals = []string{
	"kind: Secret\n", "CONNECT ", "connect ", "conn ", "jdbc:oracle:", "md5", "LS0tLS1CRUdJTi", "eyJ", "kty", "PRIVATE KEY", "Static key V1", "PuTTY-User-Key-File-", "Private-MAC:",
	"UGFzc3dvcmQ6", "WIFI:", `Wallet("0x`, "hooks", "tcp(", "unix(", "Client(", "WiFi.begin(", "superuser(", "pw_set(", "pgp_sym_",
	"connect(", "database(", "Buffer.from(", "fromhex(", "unhexlify(", "DecodeString(", "is your ", "with ",
	"atlasv1.", "anaconda.org/t/", "APA91b", "JQQJ99", "NRAL", "IncomingWebhook/", "bot/v2/hook/", "hooks.zapier.com/hooks/catch/",
}

// spokenWords are words for a password in languages other than English, with _ for a space.
const spokenWords = `passwort kennwort mot_de_passe mots_de_passe mot-de-passe motdepasse mdp
	contraseña contrasena contrasenya clave senha palavra-passe palavra_passe parola_d'ordine parola_chiave
	wachtwoord hasło haslo heslo lösenord lösenordet losenord adgangskode adgangskoden passord passordet salasana salasanasi şifre şifresi şifreniz parola
	jelszó jelszo parolă lozinka zaporka geslo slaptažodis parool lykilorð fjalëkalimi пароль паролата пин-код пинкод 验证码 prüfziffer пароля пароли паролем парола лозинка κωδικός κωδικος
	密码 密碼 口令 パスワード パスフレーズ 暗証番号 비밀번호 패스워드 암호 비번
	كلمة_المرور كلمة_السر الكلمة_السرية رمز_عبور گذرواژه סיסמה סיסמא पासवर्ड পাসওয়ার্ড கடவுச்சொல் mật_khẩu kata_sandi kata_sandinya kata_laluan รหัสผ่าน პაროლი գաղտնաբառ`

// spokenKeys are words for a secret, a token or a key.
const spokenKeys = `geheimnis schlüssel zugangsschlüssel api-schlüssel jeton clé_api clé_d'api clé_secrète clef_secrète
	clave_secreta clave_de_api chave_secreta chave_de_api chiave_segreta chiave_api geheime_sleutel
	токен секрет ключ_api 密钥 密鑰 秘钥 令牌 秘密鍵 トークン 토큰 비밀키 zugangsdaten anmeldedaten identifiants credenciales credenziali`

// pairWords are words for a user and a password.
var pairWords = strings.Fields("login credential creds zugangsdaten anmeldedaten identifiants credenciales credenziali")

// verbs stand between a word for a secret and the secret, and adverbs between those and it.
var (
	verbs   = append([]string{"should be", "will be", "would be", "changed to", "has changed to", "was changed to", "is generated for root@localhost:"}, strings.Fields("is was are to c'est е lautet ist heißt war sind sont son sono est es è é jest je är er это là on este adalah هي هو है היא הוא คือ είναι 是 为 為 改成 改为 设为 设置为 は が を 는 은 를 을 就是 теперь")...)
	adverbs = strings.Fields("now currently still jetzt nun maintenant désormais ahora agora adesso ora теперь сейчас nu nå teraz 现在 übrigens")
)

// verbsByFirst has verbs by their first byte.
var verbsByFirst = func() (by [256][]string) {
	for _, v := range verbs {
		by[v[0]] = append(by[v[0]], v)
	}
	return by
}()

// prepositions begin what may stand between a word for a secret and a colon or a verb.
var prepositions = []string{
	"for", "of", "on", "at", "in", "to", "as", "im", "auf", "beim", "al", "au", "aux", "voor", "naar", "pro", "do", "ke", "k", "için", "pentru", "på", "від", "у", "в", "für", "fuer", "fürs", "fuers", "aufs", "ans", "der", "des", "vom", "von", "zum", "zur", "de", "du", "del", "della", "dello", "di", "da", "do", "dos",
	"pour", "para", "per", "van", "voor", "dla", "od", "до", "для", "от", "к", "на", "za", "till", "til", "för",
}
