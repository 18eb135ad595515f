package redact

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// made returns an invented secret. It is generated so that no file of this repository contains
// one.
func made(prefix string, n int) string {
	const letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7"
	return prefix + strings.Repeat(letters, n/len(letters)+1)[:n]
}

func TestRedactHidesSecrets(t *testing.T) {
	t.Parallel()
	opaque, short := made("", 30), made("", 8)
	jwt := made("ey"+"J", 20) + "." + made("", 24) + "." + made("", 12)
	key := func(end string) string {
		return "-----BEGIN RSA " + "PRIVATE KEY-----\n" + made("", 60) + "\n" + made("", 40) + end
	}
	tests := map[string]struct{ secret, in string }{ // % is where the secret is
		"alone":                               {made("s"+"k-", 20), "%"},
		"in a sentence":                       {made("s"+"k-ant-", 20), "the key is %."},
		"with dots":                           {made("s"+"k-", 9) + "." + made("", 9), "(%)"},
		"between quotes":                      {made("gh"+"p_", 20), `"%",`},
		"a cloud key":                         {"AK" + "IA" + strings.ToUpper(made("", 16)), "id %\n"},
		"a chat token":                        {made("xo"+"xb-", 20), "x=%"},
		"a map key":                           {made("AI"+"za", 35), "?key=%"},
		"an environment variable":             {short, "line\nMAX_TOKENS=%\nnext"},
		"any name in capitals":                {short, "export MYAPP_SECRET_X = % # why"},
		"with quotes":                         {short + " " + short, `API_KEY="%"`},
		"with a quote that nothing opens":     {short + `"`, "DB_PASSWORD=%"},
		"in a string of JSON":                 {short, `{"cmd":"env API_KEY=%\nls"}`},
		"in a dotted name":                    {short, "spring.datasource.password=%\n"},
		"after a word of another script":      {"Лампа" + "77", "Пароль: %\n"},
		"in the address of a database":        {strings.ToLower(made("", 3)) + "lamp", "jdbc:mysql://h/x?user=root&password=%"},
		"with quotes in a connection string":  {"Kr8 " + "zq!9x", "host=db password = '%' dbname=x"},
		"at the start of a line":              {short, "a\n  password=%\nb"},
		"behind a line number":                {short, "12|password=%"},
		"behind export":                       {short, "export api_key=%"},
		"a flag":                              {short, "run --password=% now"},
		"in small letters with spaces":        {opaque, "api_key = '%'"},
		"a key by its name alone":             {opaque, "openai_key=%"},
		"in a connection string":              {short, "Server=db;Password=%;Timeout=3"},
		"a field of JSON":                     {short, `{"a": 1, "apiKey": "%"}`},
		"a field of JSON in JSON":             {short, `{"out": "{\"client_secret\": \"%\"}"}`},
		"a field of a dictionary":             {short, `{'refresh_token': '%'}`},
		"a field that was cut":                {short, `{"password": "%`},
		"a line of YAML":                      {short, "db:\n  password: %\n"},
		"a line of YAML in a list":            {short, "- client-secret: %\n"},
		"a header":                            {opaque, "Authorization: Bearer %\n"},
		"a header without scheme":             {opaque, "authorization: %"},
		"a header in a command":               {opaque, `curl -H "Authorization: Basic %" -d x`},
		"a header of a key":                   {short, "see x-api-key: % and"},
		"a header as a field":                 {opaque, `{"X-Api-Key": "%"}`},
		"a bot":                               {made("", 35), "https://api.example/bot12345678:%/send"},
		"a private key":                       {key("\n-----END RSA " + "PRIVATE KEY-----"), "a\n%\nb"},
		"a private key that was cut":          {key(""), "a\n%"},
		"the password of a database":          {short, "postgres://me:%@db:5432/x"},
		"the password of a database, no user": {short, "redis://:%@cache"},
		"a password with an at sign":          {"p@" + short, "redis://me:%@cache/0"},
		"a long value before a quote":         {opaque, `see API_KEY=%"`},
		"a token for a user":                  {made("", 13), "see https://%@example.com/x.git now"},
		"a web token":                         {jwt, "Cookie %; x"},
		"a web token, one part":               {made("ey"+"J", 20), "(%)"},
		"a form":                              {short, "a=1&token=%&b=2"},
		"a phone":                             {"+4915112345678", "call % now"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after, _ := strings.Cut(tt.in, "%")
			in := before + tt.secret + after
			got, found := Redact(in)
			if found.Total() != 1 {
				t.Errorf("%d secrets in %q, got %q", found.Total(), in, got)
			}
			// A quote that nothing opened goes with the value.
			want := before + mask(tt.secret) + after
			if got != want && got != strings.TrimSuffix(want, `"`) && !strings.Contains(tt.secret, "PRIVATE") {
				t.Errorf("%q became\n%q, want\n%q", in, got, want)
			}
			if strings.Contains(got, tt.secret) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, strings.TrimSuffix(after, `"`)) {
				t.Errorf("%q became %q", in, got)
			}
			if again, found := Redact(got); found.Total() != 0 || again != got {
				t.Errorf("%q became %q when redacted again", got, again)
			}
		})
	}
}

func TestRedactLeavesTheRest(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "plain text", "a = b == c != d", "the token is a word, the password too", "I have password=foo here",
		"https://example.com/a?token=abc&b=2", "https://me:pass@example.com/", "https://me@example.com", "user@example.com",
		"tokenizer: cl100k_base", "max_tokens: 4096", "author=Smith", `{"token_count": 12}`, `"tokens": 5`,
		"if token == x {", "token := next()", "auth_token = getToken(x)", "self.api_key = None", "sort_key=name",
		"PASS=12 FAIL=0", "PWD=/home/me", "sk-short", "task-abcdefghijklmnop", "risk_abcdefghijkl", "hf_transformers_cache",
		"12345678:short", "10:30:45", "std::string key", "password://", "1 + 2", "+0123456789", "a+12345", "+12345678abc",
		"eyJshort", "-----BEGIN " + "CERTIFICATE-----", "diff --git a/x b/x\n+1,2 @@", "postgres://host/db", "C:\\token",
		"map[string]string{}", "\xff\xfe", "Ω≈ç√∫ = ß", "KEYBOARD=de", "key=value", "a&b", "a=1&b=2",
	} {
		if got, found := Redact(in); got != in || found.Total() != 0 {
			t.Errorf("%q became %q (%v)", in, got, found)
		}
	}
}

func TestRedactCountsEverySecret(t *testing.T) {
	t.Parallel()
	in := "API_KEY=" + made("", 5) + "\npassword: " + made("", 5) + "\n" + made("gh"+"p_", 12) + " " + made("gh"+"p_", 13)
	if got, found := Redact(in); found.Total() != 4 {
		t.Errorf("%d secrets in %q", found.Total(), got)
	}
}

// hostile are patterns that a backtracking or rescanning redactor is slow on.
var hostile = []string{
	"a", "=", ":", "+1", "A=", "TOKEN=", "a_key=", "a_token=x(", "TOKEN=***", "password: ", `"token":`, `\"token\":`,
	"://", "redis://a:", "https://a", "s" + "k-a.", "s" + "k-a..", "eyJ", "eyJaaaaaaaaaaa.", "1", "12345678:", "a.", "&token=",
	"-----BEGIN " + "PRIVATE KEY-----", " ", "TOKEN= ", "\\", "'", "gh" + "p_aaaaaaaaaaaa", "x-api-key:", "Authorization: a ",
}

func BenchmarkRedactGrowth(b *testing.B) {
	for _, unit := range append(kindHostile, hostile...) {
		b.Run(strconv.Quote(unit), func(b *testing.B) {
			growth.Report(b, 1<<15, 8, func(n int) func() {
				s := strings.Repeat(unit, n/len(unit))
				return func() { Redact(s) }
			})
		})
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("plain")
	for _, p := range hostile {
		f.Add(strings.Repeat(p, 3))
	}
	f.Add("API_KEY=" + made("s"+"k-", 20) + " password: '" + made("", 9) + `' {"token": "` + made("", 20) + `"}`)
	f.Add("a=1&token=" + made("", 20) + "&b=https://" + made("", 20) + "@h postgres://u:" + made("", 9) + "@h")
	f.Add(`{"command":"echo \"root:` + plain + `\" | chpasswd","password":482017,"x\u0022":["` + plain + `\\\\"]}`)
	f.Fuzz(func(t *testing.T, s string) {
		document, _ := json.Marshal(map[string]any{s: []string{s}, "password": s, "pin": len(s)})
		for _, s := range []string{s, string(document)} {
			got, found := Redact(s)
			n := found.Total()
			if n == 0 && got != s {
				t.Fatalf("%q became %q, and nothing was counted", s, got)
			}
			if utf8.ValidString(s) && !utf8.ValidString(got) {
				t.Fatalf("%q became %q", s, got)
			}
			if isJSON(s) && !isJSON(got) {
				t.Fatalf("%s is JSON and became %s", s, got)
			}
			if len(got) > len(s)+n*len(`"`+hidden+`"`) {
				t.Fatalf("%q grew to %q", s, got)
			}
			if again, found := Redact(got); found.Total() != 0 || again != got {
				t.Fatalf("%q became %q and then %q", s, got, again)
			}
		}
	})
}

var benchTexts = map[string]string{
	"prose": "The worker reads the queue: it plans, it writes, and when a token is spent (see below) it stops at 12:30.\n",
	"code":  "\tif err := s.load(ctx, token); err != nil { // key=value\n\t\treturn fmt.Errorf(\"load %d: %w\", n, err)\n\t}\n",
	"json":  `{"id":"call_1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a/b.go\"}"},"tokens":12},`,
	"logs":  "2026-01-02T10:11:12Z INFO request id=42 url=https://example.com/a?b=c&d=e status=200 took=12ms\n",
}

func BenchmarkRedact(b *testing.B) {
	for name, text := range benchTexts {
		b.Run(name, func(b *testing.B) {
			s := strings.Repeat(text, 1<<20/len(text))
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Redact(s)
			}
		})
	}
}
