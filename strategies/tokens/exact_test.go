package tokens_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// long takes all inputs of the tests that compare with tiktoken-go, which is slow, instead of samples.
var long = os.Getenv("LONG_TESTS") != ""

var encodingNames = []string{tokens.O200K, tokens.CL100K}

// references are the encoders of tiktoken-go.
var references = sync.OnceValue(func() map[string]*tiktoken.Tiktoken {
	all := map[string]*tiktoken.Tiktoken{}
	for _, name := range encodingNames {
		enc, err := tiktoken.GetEncoding(name)
		if err != nil {
			panic(err)
		}
		all[name] = enc
	}
	return all
})

// same compares the counts of a text by both encodings with those of tiktoken-go.
func same(t interface {
	Helper()
	Errorf(format string, args ...any)
}, texts ...string,
) {
	t.Helper()
	for _, name := range encodingNames {
		c, err := tokens.Tiktoken(name)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		for _, s := range texts {
			want, got := references()[name].EncodeOrdinary(s), c.Text(s)
			if chat.Tokens(len(want)) != got {
				t.Errorf("%s: got %d tokens, want %d, of %.200q", name, got, len(want), s)
			}
		}
	}
}

func TestOrdinaryTextIsExact(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("split.go")
	if err != nil {
		t.Fatal(err)
	}
	for kind, text := range map[string]string{
		"code":    strings.Repeat(string(code), 3),
		"prose":   strings.Repeat("It's what the others'd say: \"Don't!\" — naïve, isn't it?\n\n  So they've gone… 1,234.5 km.\r\n", 400),
		"Chinese": strings.Repeat("大语言模型的上下文窗口是有限的，所以需要压缩。\n它不会丢失任何一句话！", 500),
		"Hindi":   strings.Repeat("यह एक लंबा वाक्य है जिसमें मात्राएँ हैं। ", 800),
		"emoji":   strings.Repeat("👩‍👩‍👧 ok 🎉🎉 done 🇩🇪 ", 900),
		"tables":  strings.Repeat("|----|=====|\n|  a | '1' |\n/\n//\n\n", 900),
		"escapes": strings.Repeat("\x1b[31mFAIL\x1b[0m\tpkg/x 0.01s\n", 900),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			same(t, text)
		})
	}
}

// units are characters and strings that the patterns of the encodings distinguish.
var units = []string{
	"a", "B", "ab", "Word", "ß", "ſ", "K", "ǅ", "中", "ʰ", "\u0301", "\u0903", "1", "23", "Ⅷ", "²", "'", "'s", "'LL", "'Ve", "'ſ", "'r", "’",
	" ", "  ", "\t", "\v", "\n", "\r\n", "\u00a0", "\u0085", "\u2028", "\u3000", "/", "//", "!", "?!", "\"", "🎉", "\u200d", "\uFFFD", "\x00", "\x1b[", "\xff", "\xe4\xb8",
	"<|endoftext|>",
}

func TestUnitsInAnyOrderAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		same(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(units), 0, 40).Draw(t, "units"), ""))
	})
}

// TestEveryPairOfUnitsIsExact covers each two units, in one of four contexts; with LONG_TESTS=1 in all.
func TestEveryPairOfUnitsIsExact(t *testing.T) {
	t.Parallel()
	for i, a := range units {
		for j, b := range units {
			texts := []string{a + b, "x" + a + b + "x", " " + a + b + " ", a + a + b + b}
			if !long {
				texts = texts[(i+j)%4:][:1]
			}
			same(t, texts...)
		}
	}
}

// TestEveryCodePointIsExact counts each 41st code point alone, between letters, and between capitals
// and white space; with LONG_TESTS=1 all but those that no character has or that are for private
// use, which are alike to every pattern.
func TestEveryCodePointIsExact(t *testing.T) {
	t.Parallel()
	const plane, step = 0x10000, 41
	assigned := []*unicode.RangeTable{unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf}
	for first := 0; first <= unicode.MaxRune; first += plane {
		t.Run(fmt.Sprintf("from U+%04X", first), func(t *testing.T) {
			t.Parallel()
			for r := rune(first); r < rune(first+plane); r++ {
				if !utf8.ValidRune(r) || r%step != 0 && (!long || !unicode.In(r, assigned...)) {
					continue
				}
				same(t, string(r), fmt.Sprintf("a%cb\nA%[1]c \n", r))
			}
		})
	}
}

// runs are units of inputs on which matching a pattern or merging a piece is not linear in
// other libraries.
var runs = map[string]string{
	"letters": "a", "capitals": "A", "both cases": "aA", "two letters": "ab", "spaces": " ", "line breaks": "\n", "spaces and breaks": " \n", "tabs": "\t",
	"dashes": "-", "equals": "=", "punctuation": "!?#", "slashes": "/", "Chinese": "中文", "emoji": "🎉", "joined emoji": "👩‍",
	"marks": "\u0301", "letters and marks": "a\u0301", "symbols and marks": "!\u0301", "digits": "1",
	"no-break spaces": "\u00a0", "base64": "QmFzZTY0IHRleHQ", "replacement": "\uFFFD", "invalid": "\xff", "apostrophes": "'s",
}

// alphabets are of inputs without any repetition.
var alphabets = map[string]string{
	"letters": "abcdefghijklmnopqrstuvwxyz", "few letters": "aest", "both cases": "abcdeABCDE", "base64": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "hex": "0123456789abcdef", "punctuation": "!#$%&*+,-.:;<=>?@^_|~()[]{}",
	"rules": "-=_*#~", "white space": " \t\u00a0", "lines": " \n\t", "Chinese": "的一是不了人我在有他这为之大来以个中上们", "marks": "\u0300\u0301\u0302\u0303\u0323", "emoji": "🎉😀🚀✅❌🔥💡",
	"accents": "éèàüößñç", "quotes": "'sStTrReEvV", "capitals and others": "AB中文",
}

func random(rng *rand.Rand, alphabet string, n int) string {
	letters := []rune(alphabet)
	var s strings.Builder
	for s.Len() < n {
		s.WriteRune(letters[rng.IntN(len(letters))])
	}
	return s.String()
}

func TestLongRunsAreExact(t *testing.T) {
	t.Parallel()
	lengths := []int{8, 31, 32, 33, 64, 127, 200, 1023}
	if long {
		lengths = append(lengths, 3000)
	}
	for kind, unit := range runs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, n := range lengths {
				s := strings.Repeat(unit, n/len(unit)+1)
				same(t, s, s+"x", "x"+s, " "+s+"\n")
			}
		})
	}
	for kind, alphabet := range alphabets {
		t.Run("random "+kind, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, 2))
			for _, n := range append([]int{20, 33, 70, 150, 400}, lengths[7:]...) {
				for range 4 {
					same(t, random(rng, alphabet, n))
				}
			}
		})
	}
}

// TestRecordedConversationsAreExact counts the lines of the recorded conversations, in pieces: each
// hundredth one, all of them with LONG_TESTS=1.
func TestRecordedConversationsAreExact(t *testing.T) {
	t.Parallel()
	step := 100
	if long {
		step = 1
	}
	const dir = "../../../shared/data"
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skip("no recorded conversations in ../shared/data")
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pieces := 0
			piece := func(s string) {
				if pieces++; pieces%step == 0 {
					same(t, s)
				}
			}
			for line := range strings.Lines(string(data)) {
				// The reference is quadratic in the length of a run, and slow on long lines.
				for len(line) > 10_000 {
					piece(line[:10_000])
					line = line[10_000:]
				}
				piece(line)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCountingAllocatesLittle counts texts that are far longer than what counting may allocate.
func TestCountingAllocatesLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range encodingNames {
		c := encoding(t, name)
		for kind, s := range map[string]string{
			"prose": strings.Repeat("the unmistakeable gesticulations ", 3000), "one run": strings.Repeat("a", 100_000),
			"spaces": strings.Repeat(" ", 100_000), "random": random(rng, "abcdefghijklmnop", 100_000),
		} {
			// A collection empties the pool of buffers, which then grow again.
			if n := testing.AllocsPerRun(2, func() { c.Text(s) }); n > 20 {
				t.Errorf("%s, %s: %.0f allocations for 100 kB", name, kind, n)
			}
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range append(slices.Clone(units), "It's 1,234.5 km.\r\n\r\n  if (x) {\n\t\treturn \"中文\" }", "AbcDEF中文ABC\u0301Ab'S", "!!\u0301\u0301/\n/ \n x") {
		f.Add(s)
	}
	for _, kind := range slices.Sorted(maps.Keys(runs)) {
		f.Add(strings.Repeat(runs[kind], 100))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, kind := range slices.Sorted(maps.Keys(alphabets)) {
		f.Add(random(rng, alphabets[kind], 300))
	}
	f.Fuzz(func(t *testing.T, s string) {
		same(t, s[:min(len(s), 1000)]) // the reference is quadratic
	})
}

// BenchmarkTextGrowth counts runs that other libraries take quadratic time for.
func BenchmarkTextGrowth(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range encodingNames {
		c := encoding(b, name)
		for _, kind := range slices.Sorted(maps.Keys(runs)) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				growth.Report(b, 50_000, 10, func(n int) func() {
					s := strings.Repeat(runs[kind], n/len(runs[kind]))
					return func() { c.Text(s) }
				})
			})
		}
		for _, kind := range slices.Sorted(maps.Keys(alphabets)) {
			b.Run(name+"/random "+kind, func(b *testing.B) {
				growth.Report(b, 50_000, 10, func(n int) func() {
					s := random(rng, alphabets[kind], n)
					return func() { c.Text(s) }
				})
			})
		}
	}
}

// BenchmarkText reports the rate, and its ratio to that of tiktoken-go on a part of the text.
func BenchmarkText(b *testing.B) {
	code, err := os.ReadFile("exact_test.go")
	if err != nil {
		b.Fatal(err)
	}
	for kind, text := range map[string]string{
		"code": strings.Repeat(string(code), 20), "letters": strings.Repeat("a", 100_000), "Chinese": strings.Repeat("大语言模型的上下文窗口是有限的，所以需要压缩。\n", 2000),
	} {
		for _, name := range encodingNames {
			c := encoding(b, name)
			b.Run(name+"/"+kind, func(b *testing.B) {
				part := text[:2000]
				reference := time.Hour
				for range 10 {
					start := time.Now()
					references()[name].EncodeOrdinary(part)
					reference = min(reference, time.Since(start))
				}
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					c.Text(text)
				}
				ours := b.Elapsed().Seconds() / float64(b.N) / float64(len(text))
				b.ReportMetric(reference.Seconds()/float64(len(part))/ours, "ratio-tiktoken-go")
			})
		}
	}
}
