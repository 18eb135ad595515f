package tokens_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/sessionstore/compactor/strategies/chat"
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
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
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
			`{"role":"assistant","content":"","function_call":{"name":"f"}}`, 3 + 1 + tokens.PerCall + one("f"),
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
