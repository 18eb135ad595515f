package redact

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// listedKeys are keys of services whose format, or the text around them, tells what they are.
func listedKeys() []context {
	lower := strings.ToLower
	pem := func(kind string) string {
		return base64.StdEncoding.EncodeToString([]byte("-----BEGIN " + kind + "PRIVATE KEY-----\n" + made("", 96)))
	}
	numbers := "158"
	for i := range 63 {
		numbers += "," + strconv.Itoa(i*37%256)
	}
	return []context{
		{"Resend", "re_" + made("", 8) + "_" + made("", 24), "mail goes out with % now"},
		{"Square", "EAAA" + made("", 30) + "-" + made("", 20) + "_x", "the token is %"},
		{"Facebook", "EAAG" + made("", 120), "graph: %"},
		{"Gemini", "AQ.Ab8RN6" + made("", 44), "with % as key"},
		{"Azure DevOps", made("", 76) + "JQQJ99" + "BBACAAAAAAAAAAAAASAZDO" + "4kQ2", "az devops: %"},
		{"Voyage", "pa-" + made("", 43), "embeddings by %"},
		{"Yandex", "y0_AgAAAA" + made("", 48), "disk %"},
		{"Yandex, short", "t1.9eu" + made("", 120) + "." + made("", 86), "iam %"},
		{"Dropbox", "sl.u." + made("", 140), "files %"},
		{"Instagram", "IGQVJ" + made("", 100), "posts %"},
		{"New Relic", "eu01xx" + hexes[:30] + "NRAL", "license %"},
		{"Braintree", "access_token$production$" + lower(made("", 16)) + "$" + hexes[:32], "pay with %"},
		{"Asana", "2/1207734518823/1208812734500:" + hexes[:32], "ASANA_PAT=%"},
		{"Slack's triggers", "T0A1B2C3D/7712345678901/" + hexes[:32], "https://hooks.slack.com/triggers/%"},
		{"a key in base64", pem("OPENSSH "), "DEPLOY_KEY_B64=%"},
		{"a key in base64, bare", pem("RSA "), "it is % there"},
		{"AWS's table", made("", 40), "ACCESSKEY\tAK" + "IA" + strings.ToUpper(lower(made("", 16))) + "\t2031-02-11T09:31:22+00:00\t%\tActive"},
		{"a wallet in code", "0x" + hexes[:64], `w = new ethers.Wallet("%", p)`},
		{"Stellar", "SCRB5X7Y" + strings.Repeat("ZKF3JJ6I", 6), "seed of the anchor %"},
		{"Bitcoin", "K" + made("", 51), "sweep % now"},
		{"Windows", "QLOGM-OHJIW-952TT-" + "GMXT7-R12X5", "slmgr /ipk %"},
		{"Kaggle", hexes[:32], `{"username":"bo","key":"%"}`},
		{"a client in code", made("", 40), `co = cohere.Client("%")`},
		{"a client in code, behind an account", hexes[:32], `client = Client("AC` + hexes[32:64] + `", "%")`},
		{"a master key", hexes[:32], "$ cat config/master.key\n%"},
		{"a session of PHP", strings.ToLower(made("", 26)), "PHPSESSID=%"},
		{"a shared key of WireGuard", base64.StdEncoding.EncodeToString([]byte(made("", 32))), "wg set wg0 peer x preshared-key <(echo %)"},
		{"scrypt of Python", "scrypt:32768:8:1$" + made("", 16) + "$" + strings.Repeat(hexes[:64], 2), "hash %"},
		{"md5 of Postgres", "md5" + hexes[:32], `"app" "%"`},
		{"sha1 of MySQL", "*" + strings.ToUpper(hexes[:40]), "root % localhost"},
		{"a proxy", common, "trojan://%@n1.example.net:443?sni=n1"},
		{"a proxy's id", guid, "vless://%@203.0.113.9:443?type=tcp"},
		{"a node of a chain", made("", 32), "https://eth-mainnet.g.alchemy.com/v2/%"},
		{"a check of a job", guid, "curl https://hc-ping.com/%"},
		{"a webhook at home", made("", 44), "https://ha.example.org/api/webhook/%"},
		{"a parameter of weather", hexes[:32], "https://api.example.org/w?q=Rome&appid=%"},
		{"a key of telemetry", guid, "APPINSIGHTS=InstrumentationKey=%;IngestionEndpoint=https://x.example.net/"},
		{"Honeycomb", made("", 22), "x-honeycomb-team: %"},
		{"npm, an id", guid, "npm config set //npm.example.org/:_authToken %"},
		{"Snyk", guid, "snyk auth %"},
		{"Sonar", hexes[:40], "sonar-scanner -Dsonar.login=%"},
		{"LinkedIn", "AQED" + made("", 140), "li_at=%"},
		{"Twitter", "AAAAAAAAAAAAAAAAAAAAA" + made("", 24) + "%2B" + made("", 20) + "%3D" + made("", 40), "with §"},
		{"a key of Nix", base64.StdEncoding.EncodeToString([]byte(made("", 64))), "cache.example.org-1:%"},
		{"a key of Solana", numbers, "$ cat id.json\n[%]"},
		{"a key of a zone", base64.StdEncoding.EncodeToString([]byte(made("", 32))), "dig -y hmac-sha256:xfer:% @ns1 axfr example.org"},
		{"an app for codes, in words", "RIJGKUGI" + "JTOCRTUO", "2FA secret: %"},
		{"a secret of a shop's interface", "cs_" + hexes[:40], "https://h/wc/v3/orders?consumer_secret=%"},
	}
}

// loggedPasswords are passwords in what programs print, in sessions and in files of settings.
func loggedPasswords() []context {
	return []context{
		{"a property with an address", plain, "app.db.url=jdbc:mysql://db:3306/shop?user=bo&password=%&useSSL=false"},
		{"a variable with an address", plain, "DATABASE_URL=postgresql://db/shop?user=bo&password=%"},
		{"a socket of MySQL", signs, "root:%@unix(/run/mysqld/mysqld.sock)/shop"},
		{"an address in JSON of PHP", common, `{"uri":"mongodb+srv:\/\/bo:%@c0.example.net"}`},
		{"a user in front", plain, "Username: bo, Password: %"},
		{"a user in front, French", plain, "identifiant : bo, mot de passe : %"},
		{"a finding of a scanner", plain, "[22][ssh] host: 10.1.1.9   login: root   password: %"},
		{"one's own", plain, "My router password is %, keep it."},
		{"a setter", plain, `source.setPassword("%");`},
		{"a table of variables", "meadowharborlantern", "| Name | Value |\n|---|---|\n| JWT_SECRET | % |"},
		{"the old one", "Wint" + "er31#", "we changed the root password from % to a new one"},
		{"French, contracted", common, "le mdp c'est %"},
		{"Bulgarian", common, "паролата е %"},
		{"Chinese, behind the word", common, "用户名bo 密码%"},
		{"Russian, a PIN", "0" + "642", "пин-код: %"},
		{"an alarm", "72" + "05", "the alarm code is %"},
		{"a line of settings, short", "maple" + "31", "account home\nhost mx\npassword %\n"},
		{"a line of a proxy, short", "maple" + "31", "userlist a\n  user bo insecure-password %\n"},
		{"a community, short", "maple" + "31", "snmp-server community % RW"},
		{"a temporary one", "kT@x4" + "Lm2#pa", "[Note] A temporary password is generated for root@localhost: %"},
		{"a reset one", made("", 20), "Password for the [elastic] user successfully reset.\nNew value: %"},
		{"a printed one", "CBndz" + "WEJ", "  [i] Web Interface password: %"},
		{"of Nomad", guid, "Accessor ID  = x\nSecret ID    = %"},
		{"a vault of Azure", common, `az keyvault secret set --vault-name kv --name db --value "%"`},
		{"of Oracle", common, "CREATE USER bo IDENTIFIED BY %;"},
		{"a session of Oracle", common, "SQL> CONNECT bo/%@orcl"},
		{"a pragma", signs, "PRAGMA key = '%';"},
		{"a key's new one", "maple-" + "Harbor-31", "ssh-keygen -t ed25519 -f id -N '%'"},
		{"hashed by openssl", common, "useradd -p $(openssl passwd -6 %) bo"},
		{"a network of Windows", "otter" + "60", "    Key Content            : %"},
		{"a network in code", plain + "7", `WiFi.begin("Attic", "%");`},
		{"a function of Postgres", signs, "SELECT pgp_sym_encrypt('x', '%');"},
		{"a name with escapes", common, `{"contrase\u00f1a": "%", "x": 1}`},
		{"a name of another script with escapes", common, `{"\u5bc6\u7801":"%"}`},
		{"etcd", common, "etcdctl --endpoints=https://e1:2379 --user root:% get /x"},
		{"a session of FTP", common, "USER bo\n331 Password required.\nPASS %\n230 ok"},
		{"a session of POP3", signs, "> PASS %"},
		{"a session of IMAP", common, "a7 LOGIN bo@example.org %"},
		{"Poetry", signs, "poetry config http-basic.shop bo %"},
		{"Yarn", signs, `npmAuthIdent: "bo:%"`},
		{"cloud-init", common, "chpasswd:\n  list: |\n    root:%\n"},
		{"Postfix", lowerDigits, "[smtp.example.org]:587 bo@example.org:%"},
		{"a code of a card with a name", "439", "Security code: %, card 5555 5555 5555 4444"},
		{"a user and a slash", signs, "Use bo / % to log in to staging"},
		{"a value of Spring", common, "spring.security.user.password={noop}%"},
		{"behind an anchor", "maple" + "31", `password: &pw "%"`},
		{"signtool", common, "signtool sign /f cert.pfx /p % /tr http://ts app.exe"},
		{"schtasks", signs, `schtasks /create /tn x /ru CORP\svc /rp %`},
		{"Impacket", common, "impacket-psexec CORP/admin:%@10.0.0.9"},
		{"a report of NetExec", common, `SMB  10.0.0.9  445  DC01  [+] corp.example\admin:% (Pwn3d!)`},
		{"Bitwarden", signs, "bw unlock '%' --raw"},
		{"Bundler", hexes[:8] + ":" + hexes[8:16], "bundle config set --global gems.example.org %"},
		{"an access list of Redis", "otter" + "60", "ACL SETUSER app on >% ~* +@all"},
		{"PPP", "otter" + "60", "bo\t*\t\"%\"\t*"},
		{"PgBouncer", "otter" + "60", `"shop" "%"`},
		{"OpenVPN", signs, "<auth-user-pass>\nbo\n%\n</auth-user-pass>"},
		{"Elasticsearch, behind a slash", "/" + made("", 19), "Password for the [elastic] user successfully reset.\nNew value: %"},
		{"a code in a message", "073" + "538", "G-% is your Google verification code."},
		{"the rows of a query", "otter" + "60", "sqlite> select username, password from users;\nbo|%\nada|Cedar598@"},
		{"a form in a log, escaped", "otter" + "60", "body=username%3Dbo%26password%3D§"},
		{"JSON in an address", opaque, "state=%7B%22token%22%3A%22§%22%7D"},
		{"a call of SSH", common, `ssh.connect("10.0.0.4", 22, "root", "%")`},
		{"a call of a database", "otter" + "60", `pymysql.connect("db", "root", "%", "shop")`},
		{"a test of a page", "otter" + "60", `cy.get('[data-test=password]').type('%')`},
		{"IRC", "otter" + "60", "/msg NickServ IDENTIFY %"},
		{"as a user", signs, "Please SSH as root with %"},
		{"a store of passwords", "xwt+U9" + "pe69*KG", "$ pass show corp/db\n%"},
		{"a certificate of curl", common, "curl --cert c.p12:% https://h"},
	}
}

var lowerDigits = strings.ToLower(made("", 16))
