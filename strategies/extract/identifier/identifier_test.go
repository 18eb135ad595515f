package identifier_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// adversarial are texts whose identifiers overlap, nest or nearly are some.
var adversarial = []string{
	"", "a", "\"", "'''", "``` ```", "don't 'say so' isn't 'it'", `"a"b"cde"fgh"`, `"ab" "cd" "efg"`, `"nested 'quotes inside' here" 'and "there" too'`,
	"`code with 'one' and \"two\"`", "'x1'y'zed'", "é'quoted'", "'quoted'é", "'  padded '", "\"\u00a0padded\"", "\"tab\t\"", "\"line\r\nend\" \"line\nend\"", "\"cr\ralone\"",
	"\"" + strings.Repeat("é", 60) + "a\"", "\"a" + strings.Repeat("é", 59) + "\"", "'" + strings.Repeat("a", 61) + "'",
	"/usr/bin/env ~/.config/app ~user/dir ./a/b.go ../a/b.go .../x/y //a/b a//b/c /a/ a/b/ /.hidden/.x a/.b/.c-d/.e",
	"https://my-site.example.com/a-b/c.d-e?x=/y/z git@github.com:org/repo.git user+tag@sub.example.co.uk-x a@b a@b. a@b.c- a@-.- .a@b.c",
	"a@b.c@d.e x@y.z-@q.r @a.b a@@b.c node_modules/@scope/pkg@1.2.3/lib c++/a+b/x@y.z.w a@b/c@d/e",
	"main.go x.tsx x.tsxx .go a..go a.b.go -x.go é.py été.yml x.yaaml x.json5 a/b.json x.jsonl. go.mod's",
	"ABC12 #ABC12 ##ABC12 a#ABC12 é#ABC12 #W1234567 ABCDE 12345 A1234567890B A1234567890BC AB12٣ AB12_ (AB123)",
	"deadbee deadbe1 1234567 0123456789abcdef0123456789abcdef01234567 0123456789abcdef0123456789abcdef012345678 DEADBEE1 dead٣bee1",
	"mia_li_3668 a_123 a__123 _a_123 a_12 a_1234_123 ab1_123 a_b_٣٤٥ x_é_123", "1234 .1234 1.2345 12345678901234567890 ٣٤٥٦ ½¾1234 -1234 #1234 1234é 1234.5678",
	"deadbeef-1234-1234-1234-123456789abc 12345678-1234-1234-1234-123456789012 x12345678-1234-1234-1234-123456789012 12345678-1234-1234-1234-1234567890123 deadbeef-12345678-1234-1234-1234-123456789abC",
	"中文/路径/文件.go 'こんにちは a' İstanbul/K/dir \u212a1234", "C:\\dir\\file.go a\\b/c/d.e", "~/~/a/b ~~/a/bc a~/bc/de", "-/-/- +/+/+ab @/@/ab -a/b-c/d",
	strings.Repeat("a/", 50) + "b", strings.Repeat("-a", 100) + "/b", strings.Repeat(".a-", 50) + "/.b",
}

// set returns the identifiers of s and their kinds.
func set(s string) map[string]identifier.Kind {
	found := map[string]identifier.Kind{}
	identifier.All(s, func(kind identifier.Kind, start, end int) {
		if _, ok := found[s[start:end]]; !ok {
			found[s[start:end]] = kind
		}
	})
	return found
}

func TestSetIsWhatTheScriptExtracts(t *testing.T) {
	t.Parallel()
	script, data := script(t), messages(t)
	texts := slices.Concat(adversarial, data, randomTexts(1, 8000))
	all := []map[string]string{}
	script(`print(json.dumps([r.extract(s) for s in json.load(sys.stdin)]))`, texts, &all)
	identified := 0
	for i, s := range texts {
		got := map[string]string{}
		for v, kind := range set(s) {
			got[v] = kind.String()
		}
		identified += len(got)
		if !maps.Equal(all[i], got) {
			t.Errorf("text %d %.2000q: -script +ours\n%s", i, s, cmp.Diff(all[i], got))
		}
	}
	t.Logf("%d texts, %d identifiers", len(texts), identified)
}

func TestLabelsAreWhatTheScriptFinds(t *testing.T) {
	t.Parallel()
	script, data := script(t), messages(t)
	type ask struct {
		Text   int    `json:"text"` // its index: many are about one text
		Value  string `json:"value"`
		Within int    `json:"within"`
	}
	var asks []ask
	texts := slices.Clone(data)
	r := rand.New(rand.NewPCG(3, 4))
	for i, s := range data {
		for v := range set(s) {
			if r.IntN(8) == 0 {
				asks = append(asks, ask{i, v, 40}, ask{i, v, 60}, ask{i, v, r.IntN(50)})
			}
		}
	}
	for _, before := range []string{
		"The Order ID: ", "\u212aey İd MİNt Aİbcd: ", "first\nsecond\r\nthird x", "café déjà-vu naïve ", "ÅNGSTRÖM \xff ſtraße ", "abc_def1ghi ", strings.Repeat("é", 39) + "word ",
	} {
		texts = append(texts, strings.ToValidUTF8(before, "\ufffd")+"#ABC123")
		for within := range 45 {
			asks = append(asks, ask{len(texts) - 1, "#ABC123", within})
		}
	}
	var all [][]string
	script(`
texts,asks=json.load(sys.stdin)
def last(a):
    t=texts[a["text"]];i=t.rfind(a["value"])
    return [x for x in r.WORD.findall(t[max(0,i-a["within"]):i].rsplit("\n",1)[-1].lower()) if x not in r.STOP]
print(json.dumps([last(a) for a in asks]))`, []any{texts, asks}, &all)
	for i, a := range asks {
		got := identifier.AppendLabels([]string{}, texts[a.Text], strings.LastIndex(texts[a.Text], a.Value), a.Within)
		if !slices.Equal(all[i], got) {
			t.Errorf("labels of %q within %d: -script +ours\n%s", a.Value, a.Within, cmp.Diff(all[i], got))
		}
	}
	t.Logf("%d labels", len(asks))
}

// script runs Python on the measure's own module, named r.
func script(t *testing.T) func(code string, in, out any) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	dir := filepath.Join("..", "..", "..", "..", "shared", "research")
	if _, err := os.Stat(filepath.Join(dir, "retention.py")); err != nil {
		t.Skip("no retention.py: it stands beside the module")
	}
	return func(code string, in, out any) {
		t.Helper()
		stdin, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), python, "-B", "-c", "import sys,json\nsys.path.insert(0,sys.argv[1])\nimport retention as r\n"+code, dir)
		c.Stdin = bytes.NewReader(stdin)
		c.Stderr = os.Stderr
		answer, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatal(err)
		}
	}
}

// messages returns the texts of real messages, at most 2 MB of each file.
func messages(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "data", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skip("no real sessions: they stand beside the module")
	}
	var out []string
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for d := json.NewDecoder(bufio.NewReader(f)); d.More() && size < 2<<20; {
			var s struct {
				Messages []struct {
					Content   string
					ToolCalls []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
			if err := d.Decode(&s); err != nil {
				t.Fatal(err)
			}
			for _, m := range s.Messages {
				text := m.Content
				for _, c := range m.ToolCalls {
					text += "\n" + c.Function.Name + " " + c.Function.Arguments
				}
				size += len(text)
				out = append(out, text)
			}
		}
		_ = f.Close()
	}
	return out
}

func TestAllAllocatesNothing(t *testing.T) {
	s := strings.Join(adversarial, "\n")
	n := 0
	if got := testing.AllocsPerRun(10, func() {
		identifier.All(s, func(identifier.Kind, int, int) { n++ })
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// BenchmarkAllGrowth scans texts that make a scanner with look-ahead or look-behind quadratic.
func BenchmarkAllGrowth(b *testing.B) {
	for _, unit := range []string{
		"a", "-a", "a/", ".a-/", "a@", "a.", "'", "\"a", "`ab", "~/", "/", "@-.", "a_", "#", "٣", "a/.b-", "12345678-", "a@b.-", "-/.a", "a@b.c", "é'",
	} {
		b.Run(strconv.Quote(unit), func(b *testing.B) {
			growth.Report(b, 1<<15, 32, func(n int) func() {
				s := strings.Repeat(unit, n/len(unit))
				return func() { identifier.All(s, func(identifier.Kind, int, int) {}) }
			})
		})
	}
}

func TestRangesAreInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, ends := randomText(t), map[identifier.Kind]int{}
		quoted := false
		identifier.All(s, func(kind identifier.Kind, start, end int) {
			if start < ends[kind] || end <= start || end > len(s) {
				t.Errorf("%s at %d:%d of %q, behind %d", kind, start, end, s, ends[kind])
			}
			if quoted && kind != identifier.Quoted {
				t.Errorf("%s behind a quoted name of %q", kind, s)
			}
			ends[kind], quoted = end, kind == identifier.Quoted
		})
	})
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()
	var names []string
	for k := identifier.UUID; k <= identifier.Quoted; k++ {
		names = append(names, k.String())
	}
	if got, want := fmt.Sprint(names), "[uuid email path file code sha handle number quoted]"; got != want {
		t.Errorf("names %s, want %s", got, want)
	}
	if got := (identifier.Quoted + 1).String(); got != "unknown" {
		t.Errorf("name of none: %s", got)
	}
}

func BenchmarkAll(b *testing.B) {
	s := strings.Join(messages(b), "\n")
	if strings.IndexFunc(s, unicode.IsLetter) < 0 {
		b.Fatal("no text")
	}
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		identifier.All(s, func(identifier.Kind, int, int) {})
	}
}
