package tokens_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// noNetwork fails every request through the default transport, which the downloading loader
// of tiktoken-go uses.
type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a test went to the network")
}

func TestMain(m *testing.M) {
	http.DefaultTransport = noNetwork{}
	cache, err := os.MkdirTemp("", "no-ranks")
	if err != nil {
		panic(err)
	}
	os.Setenv("TIKTOKEN_CACHE_DIR", cache) // nothing that was downloaded before, either
	code := m.Run()
	if left, _ := os.ReadDir(cache); len(left) > 0 {
		code = 1 // something was downloaded
	}
	os.RemoveAll(cache)
	os.Exit(code)
}

func encoding(t testing.TB, name string) *tokens.BPE {
	t.Helper()
	c, err := tokens.Tiktoken(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// plain returns the encoder without this package around it.
func plain(t testing.TB, name string) *tiktoken.Tiktoken {
	t.Helper()
	encoding(t, name) // sets the loader
	enc, err := tiktoken.GetEncoding(name)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func TestKnownCounts(t *testing.T) {
	t.Parallel()
	// The figures are those of OpenAI's tiktoken.
	tests := map[string]struct {
		text string
		o, c chat.Tokens
		four chat.Tokens
	}{
		"nothing":          {"", 0, 0, 0},
		"a letter":         {"a", 1, 1, 1},
		"two words":        {"hello world", 2, 2, 2},
		"a special token":  {"<|endoftext|>", 7, 7, 3},
		"of Japanese":      {"お誕生日おめでとう", 8, 9, 2},
		"long word":        {"antidisestablishmentarianism", 6, 6, 7},
		"arithmetic":       {"2 + 2 = 4", 7, 7, 2},
		"not UTF-8 at all": {"\xff", 1, 1, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				tokens.Counter
				want chat.Tokens
			}{
				{encoding(t, tokens.O200K), tt.o},
				{encoding(t, tokens.CL100K), tt.c},
				{tokens.Chars4{}, tt.four},
			} {
				if got := c.Text(tt.text); got != c.want {
					t.Errorf("%s: got %d, want %d", c.Name(), got, c.want)
				}
			}
		})
	}
}

func TestOrdinaryTextIsExact(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("segment.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{
		"code":    strings.Repeat(string(code), 5),
		"prose":   strings.Repeat("It's what the others'd say: \"Don't!\" — naïve, isn't it?\n\n  So they've gone… 1,234.5 km.\r\n", 400),
		"Chinese": strings.Repeat("大语言模型的上下文窗口是有限的，所以需要压缩。\n它不会丢失任何一句话！", 500),
		"Hindi":   strings.Repeat("यह एक लंबा वाक्य है जिसमें मात्राएँ हैं। ", 800),
		"emoji":   strings.Repeat("👩‍👩‍👧 ok 🎉🎉 done 🇩🇪 ", 900),
		"tables":  strings.Repeat("|----|=====|\n|  a | '1' |\n/\n//\n\n", 900),
		"escapes": strings.Repeat("\x1b[31mFAIL\x1b[0m\tpkg/x 0.01s\n", 900),
	}
	for _, name := range []string{tokens.O200K, tokens.CL100K} {
		want, got := plain(t, name), encoding(t, name)
		for kind, text := range texts {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				if w, g := len(want.EncodeOrdinary(text)), got.Text(text); chat.Tokens(w) != g {
					t.Errorf("got %d tokens, want %d", g, w)
				}
			})
		}
	}
}

// runs are inputs on which merging a piece, or matching its pattern, is not linear.
var runs = map[string]string{
	"letters": "a", "capitals": "A", "both cases": "aA", "spaces": " ", "line breaks": "\n", "spaces and breaks": " \n",
	"dashes": "-", "punctuation": "!?#", "slashes": "/", "Chinese": "中文", "emoji": "🎉", "joined emoji": "👩‍",
	"marks": "\u0301", "letters and marks": "a\u0301", "symbols and marks": "!\u0301", "digits": "1",
	"no-break spaces": "\u00a0", "base64": "QmFzZTY0IHRleHQ", "replacement": "\uFFFD", "invalid": "\xff", "apostrophes": "'s",
}

// BenchmarkTextGrowth counts runs whose merge is not linear. Segments bound the work, which
// FuzzSegments checks.
func BenchmarkTextGrowth(b *testing.B) {
	for _, name := range []string{tokens.O200K, tokens.CL100K} {
		c := encoding(b, name)
		for _, kind := range slices.Sorted(maps.Keys(runs)) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				growth.Report(b, 5_000, 10, func(n int) func() {
					s := strings.Repeat(runs[kind], n/len(runs[kind]))
					return func() { c.Text(s) }
				})
			})
		}
	}
}

func TestCutsCostLittle(t *testing.T) {
	t.Parallel()
	for _, name := range []string{tokens.O200K, tokens.CL100K} {
		want, got := plain(t, name), encoding(t, name)
		for kind, unit := range runs {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s := strings.Repeat(unit, 4096/len(unit))
				w, g := len(want.EncodeOrdinary(strings.ToValidUTF8(s, "\uFFFD"))), int(got.Text(s))
				if kind != "invalid" && (g < w-8 || g > w+16) {
					t.Errorf("got %d tokens for 4 kB, want about %d", g, w)
				}
			})
		}
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	c := encoding(t, tokens.O200K)
	one := func(s string) chat.Tokens { return c.Text(s) }
	tests := map[string]struct {
		in   string
		want chat.Tokens
	}{
		"a text":          {`{"role":"user","content":"hello world"}`, 3 + 1 + 2},
		"nothing":         {`{"role":"user","content":null}`, 3 + 1},
		"with a name":     {`{"role":"user","name":"bob","content":"hello world"}`, 3 + 1 + 2 + 1 + one("bob")},
		"with reasoning":  {`{"role":"assistant","content":"","reasoning":"hello world"}`, 3 + 1 + 2},
		"a tool's answer": {`{"role":"tool","tool_call_id":"call_1","content":"hello world"}`, 3 + 1 + 2 + one("call_1")},
		"a call": {
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":1}"}}]}`,
			3 + 1 + tokens.PerCall + one("call_1") + one("read") + one(`{"path":1}`),
		},
		"images by number, not by size": {
			`{"role":"user","content":[{"type":"text","text":"hello world"},{"type":"image_url","image_url":{"url":"data:` +
				strings.Repeat("QUJD", 50_000) + `"}},{"type":"input_audio"},{"type":"file"}]}`,
			3 + 1 + 2 + 3*tokens.PerMedia,
		},
		"a thought in a part": {
			`{"role":"assistant","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":""}]}`,
			3 + 1 + one(`{"type":"thinking","thinking":"x"}`),
		},
		"a tool result in a part, with an image": {
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"hello world"},{"type":"image","source":{}}]}]}`,
			3 + 1 + tokens.PerCall + 1 + 2 + tokens.PerMedia,
		},
		"a call of the old kind": {
			`{"role":"assistant","content":"","function_call":{"name":"f"}}`, 3 + 1 + one(`{"name":"f"}`),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m chat.Message
			if err := json.Unmarshal([]byte(tt.in), &m); err != nil {
				t.Fatal(err)
			}
			if got := c.Message(&m); got != tt.want {
				t.Errorf("got %d tokens, want %d", got, tt.want)
			}
		})
	}
}

func TestTiktokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{tokens.O200K, tokens.CL100K} {
		c := encoding(t, name)
		if c.Name() != name {
			t.Errorf("%s is called %s", name, c.Name())
		}
		if encoding(t, name) != c {
			t.Errorf("%s was made twice", name)
		}
	}
	for _, name := range []string{"p50k_base", chat.CounterChars4} {
		if _, err := tokens.Tiktoken(name); err == nil {
			t.Errorf("%s is no encoding of ours", name)
		}
	}
}

func BenchmarkText(b *testing.B) {
	code, err := os.ReadFile("tokens_test.go")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"code": string(code), "letters": strings.Repeat("a", 10_000), "Chinese": strings.Repeat("大语言模型。", 600),
	} {
		for _, encodingName := range []string{tokens.O200K, tokens.CL100K} {
			c := encoding(b, encodingName)
			b.Run(encodingName+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					c.Text(text)
				}
			})
		}
	}
}
