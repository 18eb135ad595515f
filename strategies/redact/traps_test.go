package redact

import (
	"encoding/base64"
	"strings"
)

// traps look like secrets and are none.
func traps() []string {
	sha := strings.Repeat("3f2a9c0d1b", 4)
	blob := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x89PNG\r\n\x00\xff\x80ey7", 30)))
	return []string{
		"TOKEN_LIMIT = 4096", "TOKEN_LIMIT = ***", "MAX_TOKENS = 8_192", "max_tokens: 1000", "tokens: 512", "maxTokens=200000", "token_count=12", "total_tokens: 18,204 (cached 12,001)",
		"password_field: #login-password", "passwordField = document.getElementById('pw1')", "getPassword()", "user.setPassword(newPassword1)", "secret: true", "secrets: inherit",
		"password: string", "password string `json:\"password\"`", "password: str = Field(min_length=8)", "Password *string", "token: Optional[str] = None", "let apiKey: String?",
		"type Token struct {\n\tKind TokenKind\n\tValue string\n}", "private val token: String by lazy { load2() }",
		`os.Getenv("API_KEY")`, `apiKey := os.Getenv("API_KEY_2")`, "token = process.env.GITHUB_TOKEN_2", "${DB_PASSWORD}", "password: ${DB_PASSWORD:-}", "password=$1", "PASSWORD=$(cat /run/secrets/db1)", "api_key = env('API_KEY1')",
		"token: {{ .Values.token1 }}", "password: {{ vault_db_password_2 }}", "token: !secret api_token_2", "password: !vault |", `password = var.db_password_2`, "password = data.aws_secret.x1.value", "api_key: ENV['KEY_1']",
		"<your-token>", "token: <your-token-1>", "--password <password1>", "password=[password1]", "api_key=YOUR_API_KEY_1", "API_KEY=your-api-key-here-1", "API_KEY=changeme", "password: xxxxxxxx1", "token=...", "OPENAI_API_KEY=sk-...", "sk-xxxxxxxxxxxxxxxxxxxx", "AKIAXXXXXXXXXXXXXXXX",
		"the password is required", "the password is 8 characters long", "the token is 2048-bit", "the key is sha256-based", "password: must be at least 8 characters", "Password: required, 8-64 characters", "a password with 12 characters", "token is JWT-like",
		"Passwort vergessen?", "Passwort: mindestens 8 Zeichen", "Das Passwort ist falsch", "le mot de passe est obligatoire (8 caractères)", "La contraseña es incorrecta", "senha: obrigatória", "Пароль: минимум 8 символов", "密码：至少8位", "密码长度为8到16位", "パスワードは8文字以上です", "비밀번호는 8자 이상이어야 합니다", "密码错误", "clave primaria: id", "key：value", "chiave: valore",
		"token: TestLexer", "key: value", "author: Jane Doe", "Author: dev2 <dev2@example.com>", "author=smith2020", "authority: example2.com", "authentication: oauth2", "auth: basic", "auth_type=oauth2", "authMethod: md5", "tokenizer: o200k_base", "token_type: Bearer", "pass: 12, fail: 0", "PASS: 104", "passed=12", "--- PASS: TestX (0.01s)",
		"commit " + sha, "HEAD is now at " + sha[:9] + " fix token 2", "sha256:" + sha + sha[:24], sha[:32] + "  file.bin", `"integrity": "sha512-` + blob[:86] + `=="`, "h1:" + blob[:43] + "=", "digest: sha256:" + sha + sha[:24], "etag: \"" + sha[:32] + "\"",
		"id: 3f2a9c0d-1b4e-4f6a-8c7d-9e0f1a2b3c4d", "session_id: 3f2a9c0d-1b4e-4f6a-8c7d-9e0f1a2b3c4d", `"toolCallId": "toolu_01` + made("", 22) + `"`, "call_" + made("", 24), "chatcmpl-" + made("", 29), "msg_01" + made("", 22), "req_" + made("", 24),
		"data:image/png;base64," + blob, "![x](data:image/svg+xml;base64," + blob + ")",
		"Public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + made("", 43) + " me@h", "ssh-rsa AAAAB3NzaC1yc2E" + made("", 300) + " me@h", "-----BEGIN PUBLIC KEY-----\n" + made("", 64) + "\n-----END PUBLIC KEY-----", "key fingerprint is SHA256:" + made("", 43), "public_key: " + made("", 43),
		`"password": {"type": "string", "minLength": 8, "maxLength": 64}`, "password: { minLength: 8, maxLength: 72 }", `{"secret": {"name": "db-creds2"}}`, "token: { type: String, maxlength: 64 }", `{"password": {"type": "string", "value": null, "x1": 2}}`,
		"the CVV has 3 digits", "cvc words: 100", `"password_changed_at":"2026-01-14T09:12:55Z"`, "secretUpdatedAt: 2026-01-14", "password = random_password.db_main.result", "backup code: see backup2024.sh", "Recovery code path:\nrecovery-2026-01-14.tar", "backups: 12", "sudo -S is safe2", "auth = (USER1, PASSWORD1)", `i18n.login("title", "page two")`, "gunicorn -w worker4", "scp -P 2222 a.zip me@h1:/x", `login(user1, password1)`, `auth("basic", "oauth2")`, "sqlplus is v12/x", "echo hello2 | sudo -s", `ConvertTo-SecureString $env:PW1 -AsPlainText`, `net use Z: \\fs01\share2`, "with password: app$ENV1", "TOKEN_PATH=/usr/local/share/Tokens2/Main.Store/Z",
		"order 4111111111111112", "1700000000000", "id=1234567890123456", "2026010210111200", "timestamp: 1767312671000000000", "tracking 9400 1000 0000 0000 0000 00", "ISBN 978-3-16-148410-0", "0.4111111111111111", "port 5432:5432", "4242:4242:4242:4242:4242:4242:4242:4242", "3566002020360505123456", "0.4111.1111.1111.1111", "4111 1111 1111 1111 1111 1111", "2026 4111 1111 1111 1111 1111", "192.168.100.200", "id 5012345678901234",
		"primary_key=True", "foreign_key: users.id1", "sort_key=created_at2", "key=lambda x: x[1]", "keys: [a1, b2]", "onKeyDown={handleKey1}", "KeyError: 'token1'", "cache_key = f\"user:{id}:v2\"", "partition key: tenant_id2", "s3_key = 'images/2026/logo2.png'", "key_id: 42", "KEY_LENGTH=256", "keyboard: us-intl2", "hotkey: ctrl+shift+p1", "aws_key_name: deploy-2",
		"if password == 'x1': return", "assert token != 'abc123'", "password is None", "for token in tokens2:", "tokens := strings.Fields(line2)", "token, err := parser.Next2()", "return token.value2", "const [token, setToken] = useState(null2)", "token => token.id2", "func parseToken(s string) (Token2, error)", "password = hash_password(password2)", "token = secrets.token_hex(16)", "token=token2", "self.token = token_2", "password=password2)", "pwd=/home/dev2", "cd $PWD/src2", "SECRET_NAME=db-creds-2", "secretName: tls-cert-2", "secretRef:\n  name: db-2", "name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db2",
		"https://example.com/docs/token-2/auth#password-3", "src/auth/password_reset_2.go:12:3", "auth/token2.go: undefined: x", "password_test2.go", "token_test.go:12: got 1", "token.go:88:12: undefined: x", "password_reset.py:120: error", "Password: (hidden)", "SECRET_KEY_BASE: (set in vault)", "see docs/secret-rotation-2.md", "GET /api/v2/tokens/42 200", "user:$HOME/x2", "price: $1$2 off", "cost $5$10", "echo $1:$2:$3", "a:b:c:d:e1", "10.0.0.1:80:443:90:x1",
		"npm install -g pass2", "mkdir -p src2/app", "docker run -p 8080:80 nginx2", "ssh -p 2222 me@h1", "cp -a src1 dst2", "nmap -p 1-1000 h2", "git log -p HEAD~2", "curl -u $USER:$PASS https://h", "tar -xzf token2.tgz", "grep -i password2 file", "ls -la /etc/shadow2", "AUTH LOGIN2", "set -x PATH2 /usr/bin2",
		"Bearer authentication with OAuth2 is required", "basic understanding-of-things2", "Basic auth2 is off", "Cookie: lang=en; theme=dark2", "Set-Cookie: lang=de; Path=/; Max-Age=3600",
		"sessions: 12", "session: 42", "session=new2", "nonce: 7", "seed: 12345", "random_seed=42", "signature: def foo(a1, b2)", "salt: 16 bytes", "cert: ./certs/server2.pem", "certificate: /etc/ssl/h2.crt", "private_key_path=/etc/k2.pem", "key_file: ~/.ssh/id_ed25519", "IdentityFile ~/.ssh/id_rsa2", "PasswordAuthentication no", "PermitRootLogin prohibit-password",
		"credentials: include", "credentials: 'same-origin'", "credentials file: ~/.aws/credentials2", "token budget: 8k", "tokens/s: 42.5", "tokens used: 1,234", "Token usage: total=12 input=10", "secret santa 2024: bring gifts", "the secret to speed is O(1)", "passwords: 3 found", "password reset link: /reset/2", "password policy: min12", "password hash: bcrypt12", "password-less login2", "key point 2: caching", "Key: F5", "the key: step 2", "Key Takeaways: 3",
	}
}
