package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// TokensOptions sets the measurements of Tokens, with the tags of their flags.
type TokensOptions struct {
	Bytes  int    `default:"1000000" help:"Length of each input."`
	Rounds int    `default:"10" help:"Repetitions of each, of which the fastest is reported."`
	Seed   uint64 `default:"1" help:"Seed of the inputs."`
}

// TokensResult holds rates in megabytes (10⁶ bytes) of text a second on one core.
type TokensResult struct {
	// O200K, CL100K and TiktokenGo are measured on the same English, code and JSON; Ratio is
	// that of the first to the last.
	O200K      float64 `json:"o200k_mb_per_second"`
	CL100K     float64 `json:"cl100k_mb_per_second"`
	TiktokenGo float64 `json:"tiktoken_go_o200k_mb_per_second"`
	Ratio      float64 `json:"ratio_to_tiktoken_go"`
	// CJK is the lower rate of both encodings on Chinese, Japanese, Korean and emoji, Worst
	// that on any input.
	CJK        float64 `json:"cjk_mb_per_second"`
	Worst      float64 `json:"worst_mb_per_second"`
	WorstInput string  `json:"worst_input"`
	// LoadMillis is the time to load the ranks of both encodings.
	LoadMillis float64     `json:"load_ms"`
	Inputs     []TokenRate `json:"inputs"`
}

// TokenRate holds the rates on one input.
type TokenRate struct {
	Input  string  `json:"input"`
	O200K  float64 `json:"o200k_mb_per_second"`
	CL100K float64 `json:"cl100k_mb_per_second"`
}

const (
	mixedInput = "English, code and JSON"
	cjkInput   = "CJK and emoji"
)

// Tokens measures the token counters in this process, without servers, beside tiktoken-go. It
// calls progress after each input.
func Tokens(ctx context.Context, o TokensOptions, progress func(stage string, done, total int)) (TokensResult, error) {
	r := TokensResult{Worst: math.Inf(1)}
	start := time.Now()
	o200k, err := tokens.Tiktoken(tokens.O200K)
	if err != nil {
		return r, err
	}
	cl100k, err := tokens.Tiktoken(tokens.CL100K)
	if err != nil {
		return r, err
	}
	r.LoadMillis = float64(time.Since(start).Microseconds()) / 1e3
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	reference, err := tiktoken.GetEncoding(tokens.O200K)
	if err != nil {
		return r, err
	}
	inputs := tokenInputs(o.Seed, o.Bytes)
	for i, in := range inputs {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		rate := TokenRate{Input: in.name}
		rate.O200K, _ = o.rate(in.text, o200k.Text)
		rate.CL100K, _ = o.rate(in.text, cl100k.Text)
		r.Inputs = append(r.Inputs, rate)
		least := min(rate.O200K, rate.CL100K)
		if least < r.Worst {
			r.Worst, r.WorstInput = least, in.name
		}
		switch in.name {
		case mixedInput:
			r.O200K, r.CL100K = rate.O200K, rate.CL100K
			// A tenth of the text: it is slow.
			part := strings.ToValidUTF8(in.text[:len(in.text)/10], "")
			var n chat.Tokens
			r.TiktokenGo, n = o.rate(part, func(s string) chat.Tokens { return chat.Tokens(len(reference.EncodeOrdinary(s))) })
			r.Ratio = r.O200K / r.TiktokenGo
			if got := o200k.Text(part); got != n {
				return r, fmt.Errorf("bench tokens: counted %d tokens, tiktoken-go %d", got, n)
			}
		case cjkInput:
			r.CJK = least
		}
		progress("tokens", i+1, len(inputs))
	}
	return r, nil
}

// rate returns the highest rate of some rounds in megabytes per second, and the count.
func (o TokensOptions) rate(s string, count func(string) chat.Tokens) (rate float64, n chat.Tokens) {
	for range max(1, o.Rounds) {
		start := time.Now()
		n = count(s)
		rate = max(rate, float64(len(s))/1e6/time.Since(start).Seconds())
	}
	return rate, n
}

type tokenInput struct{ name, text string }

// tokenInputs returns texts of n bytes: an ordinary one, one of other scripts, and those that
// are hard to split or to merge.
func tokenInputs(seed uint64, n int) []tokenInput {
	g := generator{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the same inputs each time
	fill := func(next func() string) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(next())
		}
		return b.String()
	}
	from := func(alphabet string) string {
		letters := []rune(alphabet)
		return fill(func() string { return string(letters[g.IntN(len(letters))]) })
	}
	of := func(unit string) string { return fill(func() string { return unit }) }
	const lower = "abcdefghijklmnopqrstuvwxyz"
	return []tokenInput{
		{mixedInput, fill(g.mixed)},
		{cjkInput, fill(g.cjk)},
		{"equal letters", of("a")},
		{"random letters", from(lower)},
		{"spaces", of(" ")},
		{"line breaks", of("\n")},
		{"random white space", from(" \t\n\u00a0")},
		{"base64", from(strings.ToUpper(lower) + lower + "0123456789+/")},
		{"hex", from("0123456789abcdef")},
		{"digits", from("0123456789")},
		{"rules", of("=")},
		{"random punctuation", from("!#$%&*+,-.:;<=>?@^_|~")},
		{"combining marks", from("\u0300\u0301\u0302\u0303\u0323")},
		{"letters with marks", of("a\u0301")},
		{"random Chinese characters", from("的一是不了人我在有他这为之大来以个中上们")},
		{"random emoji", from("🎉😀🚀✅❌🔥💡👩")},
		{"invalid UTF-8", of("\xff")},
		{"random bytes", fill(func() string { return string([]byte{byte(g.IntN(256))}) })},
	}
}

// generator writes texts with the help of random numbers.
type generator struct{ *rand.Rand }

var (
	words = strings.Fields(`the of and to a in is that it was for on are as with they be at one have this from or by not but what
		all were when we there can an your which their said if do will each about how up out them then she many some so these would
		other into has more two like him see time could no make than first been its who now people my made over did down only way find
		use may water long little very after words called just where most know request response session message summary token context
		window history compaction budget policy worker queue database connection transaction timeout retry failure customer account
		refund reservation passenger itinerary cancellation airline repository function interface benchmark allocation throughput
		configuration deployment kubernetes observability idempotent serialization
		unfortunately approximately nevertheless acknowledgement misunderstanding Jürgen naïve café Schröder Nguyễn`)
	syllables = strings.Fields("ba ko ri tan mel dor vis que lo sch ur an ez gri pha nu wo kel ti ram oss ent zy")
	phrases   = strings.Fields(`大语言模型的上下文窗口是有限的， 所以需要压缩。 它不会丢失任何一句话！ 请检查数据库中的历史记录 用户要求取消预订并退款， 我们已经更新了配置文件。
		お誕生日おめでとうございます。 コンピュータの履歴を圧縮する方法について説明します。 東京都に住んでいる 데이터베이스에 저장된 대화 기록은 압축됩니다. 고객이 환불을 요청했습니다.
		👩‍👩‍👧 🎉🎉 🚀 ✅ 🇩🇪 🔥`)
)

func (g generator) word() string {
	if g.IntN(15) == 0 { // a name that is no token
		return syllables[g.IntN(len(syllables))] + syllables[g.IntN(len(syllables))] + syllables[g.IntN(len(syllables))]
	}
	return words[int(float64(len(words))*g.Float64()*g.Float64())] // the first ones more often
}

func (g generator) sentence() string {
	out := make([]string, 5+g.IntN(15))
	for i := range out {
		out[i] = g.word()
	}
	s := strings.Join(out, " ")
	_, first := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:first]) + s[first:] + []string{". ", ", isn't it? ", ".\n\n", ": "}[g.IntN(4)]
}

func (g generator) mixed() string {
	a, b, c := g.word(), g.word(), g.word()
	switch g.IntN(3) {
	case 0:
		return g.sentence() + g.sentence()
	case 1:
		return fmt.Sprintf("func (s *Store) %s%s(ctx context.Context, %s string) error {\n\tif %s_%s > %d {\n\t\treturn fmt.Errorf(\"%s %%d: %%w\", %s, err) // %s\n\t}\n}\n\n",
			a, strings.ToUpper(b), c, a, b, g.IntN(10_000), g.word(), c, g.sentence())
	default:
		return fmt.Sprintf("{\"id\": \"call_%08x\", \"%s_%s\": {\"%s\": %d, \"created_at\": \"2026-%02d-%02dT10:15:%02dZ\", \"ok\": true},\n  \"text\": %q}\n",
			g.Uint32(), a, b, c, g.IntN(1_000_000), 1+g.IntN(12), 1+g.IntN(28), g.IntN(60), g.sentence())
	}
}

func (g generator) cjk() string {
	return phrases[g.IntN(len(phrases))] + []string{"", "", " ", "\n"}[g.IntN(4)]
}
