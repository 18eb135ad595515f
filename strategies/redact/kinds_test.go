package redact

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// kindTests holds secrets and their context, with % at the place of the secret.
func kindTests() map[string]struct {
	kind       Kind
	secret, in string
} {
	short, opaque, long := made("", 9), made("", 32), made("", 64)
	hexes := strings.ToLower(strings.Repeat("0a1B2c3D4e5F", 6))
	pem := func(kind string) string {
		return "-----BEGIN " + kind + "-----\n" + made("", 64) + "\n" + made("", 30) + "\n-----END " + kind + "-----"
	}
	jwt := made("ey"+"J", 20) + "." + made("", 24) + "." + made("", 12)
	pair := base64.StdEncoding.EncodeToString([]byte("deploy:" + short))
	return map[string]struct {
		kind       Kind
		secret, in string
	}{
		"OpenAI":                 {KindProviderKey, "s" + "k-" + opaque, "key % ok"},
		"OpenAI project":         {KindProviderKey, "s" + "k-proj-" + long, "key=%"},
		"Anthropic":              {KindProviderKey, "s" + "k-ant-api03-" + long, "`%`"},
		"OpenRouter":             {KindProviderKey, "s" + "k-or-v1-" + hexes[:64], "%"},
		"GitHub":                 {KindProviderKey, "gh" + "p_" + made("", 36), "%"},
		"GitHub fine":            {KindProviderKey, "github" + "_pat_" + made("", 22) + "_" + made("", 59), "%"},
		"GitLab":                 {KindProviderKey, "glp" + "at-" + made("", 20), "%"},
		"AWS":                    {KindProviderKey, "AK" + "IA" + strings.ToUpper(made("", 16)), "%"},
		"AWS bearer":             {KindProviderKey, "AB" + "IA" + strings.ToUpper(made("", 16)), "%"},
		"Google":                 {KindProviderKey, "AI" + "za" + made("", 35), "%"},
		"Google OAuth":           {KindProviderKey, "GOC" + "SPX-" + made("", 28), "%"},
		"Slack":                  {KindProviderKey, "xo" + "xb-" + opaque, "%"},
		"Slack browser":          {KindProviderKey, "xo" + "xc-" + opaque, "%"},
		"Slack rotated":          {KindProviderKey, "xo" + "xe.xo" + "xp-1-" + opaque, "%"},
		"Slack hook":             {KindURLToken, "T00AAAA/B00BBBB/" + made("", 24), "https://hooks.slack.com/services/% x"},
		"Discord hook":           {KindURLToken, "1234567890/" + made("", 60), "https://discord.com/api/webhooks/%"},
		"Stripe":                 {KindProviderKey, "sk" + "_live_" + made("", 24), "%"},
		"Stripe hook":            {KindProviderKey, "wh" + "sec_" + made("", 32), "%"},
		"Vault":                  {KindProviderKey, "hv" + "s." + made("", 24), "%"},
		"npm":                    {KindProviderKey, "np" + "m_" + made("", 36), "%"},
		"PyPI":                   {KindProviderKey, "py" + "pi-" + made("", 60), "%"},
		"Hugging Face":           {KindProviderKey, "h" + "f_" + made("", 34), "%"},
		"Databricks":             {KindProviderKey, "da" + "pi" + hexes[:32], "%"},
		"Grafana":                {KindProviderKey, "gl" + "sa_" + made("", 32) + "_" + hexes[:8], "%"},
		"NVIDIA":                 {KindProviderKey, "nv" + "api-" + made("", 64), "%"},
		"Linear":                 {KindProviderKey, "lin" + "_oauth_" + made("", 40), "%"},
		"Supabase":               {KindProviderKey, "sb" + "p_" + hexes[:40], "%"},
		"Pinecone":               {KindProviderKey, "pc" + "sk_" + made("", 60), "%"},
		"New Relic":              {KindProviderKey, "NR" + "AK-" + strings.ToUpper(made("", 27)), "%"},
		"Tailscale":              {KindProviderKey, "ts" + "key-auth-" + made("", 30), "%"},
		"a bot":                  {KindProviderKey, made("", 35), "bot12345678:%/send"},
		"RSA":                    {KindPrivateKey, pem("RSA " + "PRIVATE KEY"), "a\n%\nb"},
		"OpenSSH":                {KindPrivateKey, pem("OPENSSH " + "PRIVATE KEY"), "%"},
		"PKCS 8":                 {KindPrivateKey, pem("ENCRYPTED " + "PRIVATE KEY"), "%"},
		"PGP":                    {KindPrivateKey, pem("PGP " + "PRIVATE KEY BLOCK"), "see\n%\nend"},
		"PuTTY":                  {KindPrivateKey, "PuTTY-User-Key-" + "File-2: ssh-rsa\nPrivate-Lines: 1\n" + long + "\nPrivate-MAC: " + hexes[:40], "%\nend"},
		"age":                    {KindProviderKey, "AGE-SECRET" + "-KEY-1" + strings.ToUpper(made("", 58)), "%"},
		"Postgres":               {KindConnection, short, "postgres://app:%@db:5432/x"},
		"a driver in the scheme": {KindConnection, short, "postgresql+asyncpg://app:%@db/x"},
		"SQL Server":             {KindConnection, short, "sqlserver://sa:%@host:1433"},
		"ClickHouse":             {KindConnection, short, "clickhouse://default:%@ch:9000"},
		"NATS":                   {KindConnection, short, "nats://u:%@n1:4222"},
		"SMTP":                   {KindConnection, short, "smtp://u:%@mail:587"},
		"the driver of MySQL":    {KindConnection, short, `open("root:%@tcp(127.0.0.1:3306)/db")`},
		"libpq":                  {KindConnection, short, "host=db user=me password=% dbname=x"},
		"JDBC":                   {KindConnection, short, "jdbc:x://h;user=sa;password=%;encrypt=true"},
		"ADO":                    {KindConnection, short, "Server=h;User Id=u;Pwd=%;"},
		"a storage account":      {KindAssignment, made("", 86) + "==", "AccountName=x;AccountKey=%;EndpointSuffix=y"},
		"a JWT":                  {KindJWT, jwt, "token % expired"},
		"a JWT in a header":      {KindAuthorization, jwt, "Authorization: Bearer %\n"},
		"bearer":                 {KindAuthorization, opaque, "Authorization: Bearer %\n"},
		"basic":                  {KindAuthorization, pair, `curl -H "Authorization: Basic %"`},
		"digest":                 {KindAuthorization, `username="u", response="` + opaque + `"`, "Authorization: Digest %\nx"},
		"a signed request":       {KindAuthorization, "Credential=AK/x, Signature=" + hexes, "authorization: AWS4-HMAC-SHA256 %\n"},
		"a header in code":       {KindAuthorization, "token " + opaque, `h.Set("Authorization", "%")`},
		"a header's field":       {KindAuthorization, opaque, `{"authorization": "%"}`},
		"bearer alone":           {KindAuthorization, opaque, "send Bearer % with it"},
		"basic alone":            {KindAuthorization, pair, "uses Basic % there"},
		"an API key's header":    {KindAuthorization, opaque, "X-Api-Key: %"},
		"cookie":                 {KindCookie, opaque, "Cookie: theme=dark; sid=%\n"},
		"set-cookie":             {KindCookie, opaque, "Set-Cookie: session=%; Path=/; HttpOnly\n"},
		"a cookie in a command":  {KindCookie, opaque, "curl -H 'Cookie: auth=%' x"},
		"a cookie's field":       {KindCookie, opaque, `{"cookie": "sid=%; theme=dark"}`},
		"an assignment":          {KindAssignment, opaque, "export DB_PASSWORD=%"},
		"a literal in code":      {KindAssignment, opaque, `const apiKey = "%";`},
		"a password in code":     {KindAssignment, short + "!x", `  var dbPassword = "%"`},
		"a field in code":        {KindAssignment, opaque, `cfg := Config{ClientSecret: "%"}`},
		"a random key":           {KindAssignment, made("", 43), `let signing_key = '%'`},
		"in YAML":                {KindAssignment, short, "db:\n  password: %\n"},
		"in JSON":                {KindAssignment, short, `{"client_secret": "%"}`},
		"a flag":                 {KindAssignment, opaque, "deploy --token % --dry-run"},
		"a user of curl":         {KindAssignment, short, "curl -s -u admin:% https://h"},
		"with a dollar":          {KindAssignment, "$" + short + "!x", "DB_PASSWORD=%\n"},
		"small letters":          {KindAssignment, "correcthorse", "API_TOKEN=%\n"},
		"told":                   {KindAssignment, short, "the password is %."},
		"told of a key":          {KindAssignment, opaque, "and my api key is %, thanks"},
		"netrc":                  {KindAssignment, short, "machine h login me password %\n"},
		"an argument":            {KindAssignment, short, "config.set('password', '%')"},
		"an element":             {KindAssignment, short, "<password>%</password>"},
		"an attribute":           {KindAssignment, opaque, `<add key="ApiKey" value="%"/>`},
		"a container's":          {KindAssignment, short, "- name: DB_PASSWORD\n  value: %\n"},
		"mysql":                  {KindAssignment, short, "mysql -u root -p% db"},
		"redis-cli":              {KindAssignment, short, "redis-cli -a % ping"},
		"docker login":           {KindAssignment, short, "docker login -u me -p %"},
		"a flag at the start":    {KindAssignment, opaque, "--api-key %"},
		"a cluster's key":        {KindAssignment, made("", 80), "    client-key-data: %\n"},
		"npmrc":                  {KindAssignment, opaque, "//registry.npmjs.org/:_authToken=%\n"},
		"a user of a URL":        {KindURLToken, short, "git clone https://me:%@example.com/r.git"},
		"a query":                {KindURLToken, opaque, "https://h/p?user=1&access_token=%&x=1"},
		"a signature":            {KindURLToken, hexes, "https://h/p?X-Amz-Signature=%"},
	}
}

func TestRedactCountsByKind(t *testing.T) {
	t.Parallel()
	for name, tt := range kindTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after, _ := strings.Cut(tt.in, "%")
			in := before + tt.secret + after
			got, found := Redact(in)
			if diff := cmp.Diff(Found{tt.kind: 1}, found); diff != "" {
				t.Errorf("%q became %q: found (-want +got):\n%s", in, got, diff)
			}
			if strings.Contains(got, tt.secret) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
				t.Errorf("%q became %q", in, got)
			}
			if again, found := Redact(got); again != got || found.Total() != 0 {
				t.Errorf("%q became %q when redacted again", got, again)
			}
			// Also in the middle of a document.
			doc := "Some text: it goes on.\n\n" + in + "\n\nAnd on = 1."
			if got, _ := Redact(doc); strings.Contains(got, tt.secret) {
				t.Errorf("%q became %q", doc, got)
			}
		})
	}
}

// harmlessTexts look like secrets and are none.
func harmlessTexts() map[string]string {
	sha := strings.Repeat("3f2a9c0d1b", 4)
	uuid := "3f2a9c0d-1b4e-4f6a-8c7d-9e0f1a2b3c4d"
	image := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x89PNG\r\n+123456789\x00\xff\x80ey", 400)))
	return map[string]string{
		"a commit":          "commit " + sha + "\nAuthor: A B <a@example.com>\n",
		"hashes of files":   "sha256:" + sha + sha[:24] + "  dist/app.tar.gz\nindex " + sha[:7] + ".." + sha[10:17] + " 100644",
		"a hash by name":    `{"hash": "` + sha + `", "etag": "` + sha[:32] + `", "cache_key": "` + sha + `"}`,
		"a time and a hash": "1700000000:" + sha,
		"UUIDs":             `{"id": "` + uuid + `", "key": "` + uuid + `", "session": "` + uuid + `"} ` + uuid,
		"an image":          `{"url": "data:image/png;base64,` + image + `"} and ![x](data:image/gif;base64,` + image + `)`,
		"a diff": "diff --git a/x.go b/x.go\nindex " + sha[:7] + ".." + sha[3:10] + " 100644\n--- a/x.go\n+++ b/x.go\n@@ -1,7 +1,9 @@ func x() {\n" +
			"-12345678\n+12345679\n+123456789012\n-\ttoken := next(s)\n+\ttoken := peek(s)\n",
		"paths":              "/usr/local/lib/node_modules/@scope/pkg-name_2/dist/index.min.js:120:33 C:\\Users\\dev\\AppData\\Token\\x.dll src/auth/token_store.go",
		"long numbers":       "1234567890123456 3.14159265358979 0xDEADBEEFCAFEBABE 1_000_000_000 2026-01-02T03:04:05.123456789+02:00 +0000",
		"colours":            ".a{color:#ff00aa;--token-color: #123456;background:#fff}\n  --password-bg: #aabbcc;\n  --key: #abc123;",
		"minified code":      `!function(e,t){var n=e.key||t.session;for(var r=0;r<n.length;r++)e[r]=t(n[r]),a.token=o(e,"x"),s={key:"Enter",auth:!0,sid:e.id};return n}(this,i);`,
		"addresses":          "https://example.com/a/b?id=42&q=hello+world&page=3&token=abc&utm_source=x&sort_key=name#L10 https://h/?key=name&code=1",
		"code":               `token := lexer.Next(); password, err := readPassword(fd); apiKey := os.Getenv("API_KEY"); key = fmt.Sprintf("%s:%d", a, b)`,
		"JavaScript":         `const token = await getToken({ audience: "x" }); const { password } = req.body; apiKey: process.env.API_KEY,`,
		"limits":             "MAX_TOKENS=4096\nmax_tokens: 4096\nTOKENS=128000\nAUTHOR=Smith\nTOKENIZER=cl100k_base\nGIT_AUTHOR_NAME=Somebody",
		"variables":          "API_KEY=$OTHER_KEY\nPASSWORD=${DB_PASSWORD}\ntoken: ${{ secrets.GITHUB_TOKEN }}\nSECRET=<your secret>\n--token $TOKEN",
		"about secrets":      `{"token_type": "bearer", "secretName": "db-credentials-prod-2", "token": "comment", "next_token": "abc"} --password-stdin x`,
		"words with dashes":  "sk-estimator-html-doc-link sk_buff_alloc_head fc-widget-header-toolbar",
		"the word Bearer":    "Bearer tokens are sent in the Authorization header. Authorization: Bearer <token>. Basic understanding-of-things",
		"the word cookie":    "Cookie: a small file. Set-Cookie is a header; cookie = jar.get(name); Cookie: theme=dark; lang=en\n",
		"an address of none": "https://user:password@example.com/ http://localhost:8080/a@b redis://host:6379/0 mongodb://localhost ssh://git@github.com/x.git",
		"prose":              "The password was wrong, and the key: it never fit. Secrets: none. Token budget = large",
		"told of no secret":  "the token is expired, the password is wrong, the secret is out, the api key is missing; <token>value</token>, ('password', 'string') - name: TOKEN\n  value: x\nmkdir -p a/b2 -a x1y2z3",
		"a chart of keys":    "key: value\nkey: ArrowDown\nkeys: [a, b]\nkey = \"user/12/ProfileView\"\nprimary key: id\n",
		"tests":              "PASS=12 FAIL=0\n--- PASS: TestToken (0.00s)\nok  example.com/auth/token 0.412s",
		"other languages":    "Das Passwort: unbekannt. Пароль: нет. 密码：无。 مفتاح",
		"odd bytes":          "\xff\xfe\x00 a=\xff\xff :\xf0\x9f",
	}
}

func TestRedactKeepsHarmlessValues(t *testing.T) {
	t.Parallel()
	for name, in := range harmlessTexts() {
		if got, found := Redact(in); got != in || found.Total() != 0 {
			t.Errorf("%s: %v\n%s", name, found, cmp.Diff(in, got))
		}
	}
}

func TestRedactMasksTheValueAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ secret, in string }{ // % is where the secret is
		{made("", 8), "line\nDEPLOY_TOKEN=%\nnext"},
		{made("", 8), `{"out": "{\"client_secret\": \"%\"}"}`},
		{"p@" + made("", 8), "redis://me:%@cache/0"},
		{made("", 30) + `"`, "see API_KEY=%"},
		{made("", 8), "a=1&token=%&b=2"},
		{made("", 13), "see https://%@example.com/x.git now"},
		{"+4915112345678", "call % now"},
		{made("", 8), "12|password=%"},
	} {
		in, want := strings.Replace(tt.in, "%", tt.secret, 1), strings.Replace(tt.in, "%", mask(tt.secret), 1)
		if got, found := Redact(in); found.Total() != 1 || got != want {
			t.Errorf("%q became %q (%v), want %q", in, got, found, want)
		}
	}
}

func TestFound(t *testing.T) {
	t.Parallel()
	in := "API_KEY=" + made("", 20) + "\npassword: " + made("", 9) + "\nCookie: a=" + made("", 20) + "\n" + made("gh"+"p_", 20)
	_, found := Redact(in)
	if got, want := found.String(), "assignment 2, cookie 1, provider_key 1"; got != want || found.Total() != 4 {
		t.Errorf("%s, want %s", got, want)
	}
	found.Add(Found{KindCookie: 2})
	if found[KindCookie] != 3 || Found(nil).String() != "" || Found(nil).Total() != 0 {
		t.Errorf("%v", found)
	}
}

// kindHostile are patterns that a rescanning redactor is slow on, beside hostile.
var kindHostile = []string{
	"key=", "secret:", `secret="`, "Cookie: a=", "cookie:", "a=b; ", "Authorization: Digest ", "bearer ", "basic a", "--token ", " -u a:", "user:pw@tcp(",
	"@tcp(", "password= host=", " password=", "?token=", "&key=", "a://b:c", "data:image/png;base64,", "data:", ";base64,", "hooks.slack.com/services/",
	"PuTTY-User-Key-" + "File-2\n", "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n", "secret=key=", "'secret' => '", "secret: `", " -", "password is ", "'token', '", "<secret>", "key\nvalue: ", "api key is a1", "mysql -p", " -p a", "$6$a$", "a$", "{SHA}", "4111 1", "1", "пароль ", "password for the ", "mnemonic abc ", "AUTH a ", "echo a|chpasswd ", "a:5432:b:c:d1", "jdbc:oracle:thin:a/",
	".atlasv1.a", "hook/", "password=''", "identified by ", "password：", "密码", "password **", "password | ", "password to be ", "s" + "k-a-",
	"user,password\n", "| user | password |\n", "a  password\n", "password: |\n ", "password:\n", "insert into t(password) values ('a'),", "(password) values", "a1b2c3d4 is the password ", "bob:a\n", "4111.", "４", "pin ", "密码是长", "--password a ",
	"seed: abc ", "mnemonic: [\"abc\", ", "WIFI:T:WPA;P:a", "UGFzc3dvcmQ6\n", "accounts: [\"0x", "private key 0x0", "setup key:\nabcd ", "$ cat token\n", "a@b.c / x1", "secret: Some(", "secret = a || ", "PW='a''", `PW="""a`, "random_password ", "following password:\n ", "recovery key: 1-", `secret = "a1" -> "`, "'*0A", "jwt.sign(a, '", "${PW:-",
	" -p a mysql", "password: a b c d", "name\": \"password\", \"value\": ", "password: a =", "setPassword(", "jdbc: ;password={a;",
	`\"`, `\u0041`, "\"a\\n", "\"\\u00e9\":\"", "Client(", "chpasswd:\n", ":::", "LS0tLS1CRUdJTi", "connect a/b@\n", "password = v\n", "user password a1b2c3 ", "password from A1b2c3d4! to ", "a1 LOGIN b c ", "a%3D", "%", "[1,", "d/u:p@", "echo ", "assword:\" ", "keyName\": \"", "SETUSER >", "-u a -p b ", "`secret=[\"a1b2c3d4\",`", "\"a\" \"b\"\n", "hmac-sha256:a:", "with a1! ", "is your code ", "token:{", "secrets:\n a: b\n", "a1!b", "f('a.b', 'u', 'x1y2z3', ", "key='a1B!c2D3", "login a:b1c2d3 ", "https://h/hooks/0a1b2c3d4e5f6a7b8c9d0/", "kQz7xW2mTb9R/", "X-A: kQz7xW2mTb9RjL4vNc8H ",
}

func FuzzKinds(f *testing.F) {
	for _, tt := range kindTests() {
		f.Add(strings.Replace(tt.in, "%", tt.secret, 1))
	}
	for _, s := range harmlessTexts() {
		f.Add(s)
	}
	for _, p := range append(kindHostile, hostile...) {
		f.Add(strings.Repeat(p, 3))
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, found := Redact(s)
		if found.Total() == 0 && got != s {
			t.Fatalf("%q became %q, and nothing was counted", s, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%q became %q", s, got)
		}
		if again, found := Redact(got); found.Total() != 0 || again != got {
			t.Fatalf("%q became %q and then %q", s, got, again)
		}
	})
}
