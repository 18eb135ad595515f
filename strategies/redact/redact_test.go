package redact

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// made returns an invented secret. It is generated so that no file of this repository contains
// one.
func made(prefix string, n int) string {
	const letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7"
	return prefix + strings.Repeat(letters, n/len(letters)+1)[:n]
}

// context is a secret and the text around it.
type context struct{ kind, before, secret, after string }

func (c context) text() string { return c.before + c.secret + c.after }

// lines returns the fields of the lines of a file of test data. Each is quoted as in Go.
func lines(tb testing.TB, file string) (out [][]string) {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); line == "" || line[0] == '#' {
			continue
		}
		var fields []string
		for f := range strings.SplitSeq(line, "\t") {
			if s, err := strconv.Unquote(f); err == nil {
				f = s
			}
			fields = append(fields, f)
		}
		out = append(out, fields)
	}
	return out
}

func contexts(tb testing.TB) (out []context) {
	tb.Helper()
	for _, f := range lines(tb, "secrets.txt") {
		out = append(out, context{f[0], f[1], strings.ReplaceAll(f[2], "¦", ""), f[3]})
	}
	return out
}

func TestRedactHidesSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range contexts(t) {
		for _, in := range []string{c.text(), "Some text.\n\n" + c.text() + "\n\nAnd on."} {
			got, found := Redact(in)
			if strings.Contains(got, c.secret) || found.Total() == 0 {
				t.Errorf("%q became %q", in, got)
			}
			if again, found := Redact(got); again != got || found.Total() != 0 {
				t.Errorf("%q became %q when redacted again", got, again)
			}
		}
		if _, found := Redact(c.text()); c.kind != "-" && !cmp.Equal(found, Found{Kind(c.kind): 1}) {
			t.Errorf("%q: found %v, want a %s", c.text(), found, c.kind)
		}
	}
}

// TestRedactKeepsJSON masks the secrets where a tool and a model put them: in strings of JSON, within others.
func TestRedactKeepsJSON(t *testing.T) {
	t.Parallel()
	for _, c := range contexts(t) {
		text, secret := c.text(), c.secret
		for range 4 {
			quoted, _ := json.Marshal(secret)
			secret = string(quoted[1 : len(quoted)-1])
			doc, _ := json.Marshal(map[string]any{"at": 1, "command": text, "next": []string{"b"}})
			text = string(doc)
			got, found := Redact(text)
			if strings.Contains(got, secret) || found.Total() == 0 || !json.Valid([]byte(got)) {
				t.Errorf("%s\nbecame\n%s", text, got)
			}
			if again, found := Redact(got); again != got || found.Total() != 0 {
				t.Errorf("%s\nbecame\n%s\nwhen redacted again", got, again)
			}
		}
	}
}

func TestRedactKeepsTraps(t *testing.T) {
	t.Parallel()
	for _, trap := range lines(t, "traps.txt") {
		quoted, _ := json.Marshal(map[string]string{"content": trap[0]})
		for _, in := range []string{trap[0], string(quoted)} {
			if got, found := Redact(in); got != in || found.Total() != 0 {
				t.Errorf("%q became %q", in, got)
			}
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

// TestRedactKeepsCounts keeps the values of names that end in tokens: counts, and names of variables.
func TestRedactKeepsCounts(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"maxPayableToken: payableAddress2", "const totalTokens = promptTokens2 + 1", `{"totalTokens": "48210", "inputTokens": 12}`, "remaining_tokens: 4k8",
		`maxPayableToken="tokenOf2Kind"`, "usage.completionTokens = 912",
	} {
		if got, _ := Redact(in); got != in {
			t.Errorf("%q became %q", in, got)
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

// TestTable checks what the table says against what the engine knows.
func TestTable(t *testing.T) {
	t.Parallel()
	if n := len(gramWords); n > 256 {
		t.Errorf("%d groups of words, more than a byte counts", n)
	}
	for i, line := range strings.Split(knowledge, "\n") {
		cells := strings.Split(line, "\t")
		if line == "" || line[0] == '#' {
			continue
		}
		if len(cells) < 3 || len(cells) > 6 || cells[2] == "" || utf8.RuneCountInString(line) > 210 {
			t.Errorf("line %d is no row: %q", i+1, line)
		}
	}
	for _, r := range table["after"] {
		if checks[r.kind] == nil {
			t.Errorf("nothing checks %q", r.kind)
		}
	}
	for _, r := range table["prefix"] {
		for prefix := range strings.FieldsSeq(r.text) {
			if n, err := strconv.Atoi(strings.Trim(r.size, "=.")); len(prefix) < 2 || err != nil || n < 8 || r.form == "" {
				t.Errorf("prefix %q: %v", prefix, r)
			}
		}
	}
	for _, use := range []string{"prefix", "mark", "word", "list", "option", "after"} {
		if len(table[use]) == 0 {
			t.Errorf("no rows of %s", use)
		}
	}
}

// hostile are patterns that a backtracking or rescanning redactor is slow on.
var hostile = []string{
	"a", "=", ":", "+1", "A=", "TOKEN=", "a_key=", "a_token=x(", "TOKEN=***", "password: ", `"token":`, `\"token\":`,
	"://", "redis://a:", "https://a", "s" + "k-a.", "s" + "k-a..", "eyJ", "eyJaaaaaaaaaaa.", "1", "12345678:", "a.", "&token=",
	"-----BEGIN " + "PRIVATE KEY-----", " ", "TOKEN= ", "\\", "'", "gh" + "p_aaaaaaaaaaaa", "x-api-key:", "Authorization: a ",
	"key=", "secret:", `secret="`, "Cookie: a=", "cookie:", "a=b; ", "Authorization: Digest ", "bearer ", "basic a", "--token ", " -u a:",
	"@tcp(", "password= host=", "?token=", "&key=", "a://b:c", "data:image/png;base64,", "data:", ";base64,", "hooks.slack.com/services/",
	"PuTTY-User-Key-" + "File-2\n", "secret=key=", "'secret' => '", "secret: `", " -", "password is ", "'token', '", "<secret>", "key\nvalue: ",
	".atlasv1.a", "hook/", "password=''", "password：", "密码", "password **", "password | ", "password to be ", "s" + "k-a-", "$", "*", "}", "{sha}",
	"user,password\n", "| user | password |\n", "a  password\n", "password: |\n ", "password:\n", "bob:a\n", "4111 1111 ", "echo a | passwd --stdin ",
	"WIFI:T:WPA;P:a", "secret: Some(", "secret = a || ", "secret: [\"a\", ", " -p a mysql", "password: a b c d", "name\": \"password\", \"value\": ",
	"setPassword(", `\"`, `\u0041`, "\"a\\n", "%41", "Client(", "kind: Secret\ndata:\n a: b\n", "LS0tLS1CRUdJTi", "http://a/reset/", "a!a", "pass show ",
}

func BenchmarkRedactGrowth(b *testing.B) {
	for _, unit := range hostile {
		b.Run(strconv.Quote(unit), func(b *testing.B) {
			growth.Report(b, 1<<15, 8, func(n int) func() {
				s := strings.Repeat(unit, n/len(unit))
				return func() { Redact(s) }
			})
		})
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range contexts(f) {
		f.Add(c.text())
	}
	for _, trap := range lines(f, "traps.txt") {
		f.Add(trap[0])
	}
	for _, p := range hostile {
		f.Add(strings.Repeat(p, 3))
	}
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

// BenchmarkRedact reports the speed on texts of some kinds, and how many times as long it takes as a look for one byte
// after another in the same text.
func BenchmarkRedact(b *testing.B) {
	texts := map[string]string{
		"prose": "The worker reads the queue: it plans, it writes, and when a token is spent (see below) it stops at 12:30.\n",
		"code":  "\tif err := s.load(ctx, token); err != nil { // key=value\n\t\treturn fmt.Errorf(\"load %d: %w\", n, err)\n\t}\n",
		"json":  `{"id":"call_1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a/b.go\"}"},"tokens":12},`,
		"logs":  "2026-01-02T10:11:12Z INFO request id=42 url=https://example.com/a?b=c&d=e status=200 took=12ms\n",
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			s, sum := strings.Repeat(text, 1<<20/len(text)), 0
			start := time.Now()
			for range 10 {
				for i := range len(s) {
					sum += int(folds[s[i]])
				}
			}
			look := time.Since(start) / 10
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Redact(s)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(look), "times/look")
			_ = sum
		})
	}
}

// BenchmarkRedactSessions reports the speed on the texts of recorded sessions, each on its own.
func BenchmarkRedactSessions(b *testing.B) {
	recorded, err := os.ReadFile("../../../../shared/data/pi_mono.jsonl")
	if err != nil {
		b.Skip("there are no recorded sessions: ", err)
	}
	var texts []string
	size := 0
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case string:
			texts, size = append(texts, v), size+len(v)
		case []any:
			for _, e := range v {
				add(e)
			}
		case map[string]any:
			for _, e := range v {
				add(e)
			}
		}
	}
	for line := range strings.Lines(string(recorded)) {
		var v any
		if json.Unmarshal([]byte(line), &v) == nil {
			add(v)
		}
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, text := range texts {
			Redact(text)
		}
	}
}
