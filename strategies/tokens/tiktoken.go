package tokens

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/sessionstore/compactor/strategies/chat"
)

// BPE counts tokens with one of OpenAI's tokenizers. Its zero value is not usable; see
// Tiktoken.
//
// Counts are exact except for runs of more than maxRun bytes of one kind (letters, white
// space, or neither), which do not occur in ordinary text: they are split, which adds at
// most a few tokens per split, because the underlying merge takes time quadratic in their
// length (https://github.com/openai/tiktoken/issues/195).
type BPE struct {
	name string
	enc  *tiktoken.Tiktoken
}

// Tiktoken returns the counter of an encoding, O200K or CL100K. The first call for an
// encoding loads its ranks, which takes about 200 ms and 22 MB.
func Tiktoken(encoding string) (*BPE, error) {
	load, ok := encodings[encoding]
	if !ok {
		return nil, fmt.Errorf("encoding %q: want %s or %s", encoding, O200K, CL100K)
	}
	return load()
}

var (
	encodings = map[string]func() (*BPE, error){
		O200K:  sync.OnceValues(func() (*BPE, error) { return load(O200K) }),
		CL100K: sync.OnceValues(func() (*BPE, error) { return load(CL100K) }),
	}
	// offline must run before any use of tiktoken-go, whose loader is an unguarded
	// global that downloads the ranks by default.
	offline = sync.OnceFunc(func() { tiktoken.SetBpeLoader(loader.NewOfflineLoader()) })
	loading sync.Mutex
)

func load(encoding string) (*BPE, error) {
	loading.Lock()
	defer loading.Unlock()
	offline()
	enc, err := tiktoken.GetEncoding(encoding)
	if err != nil {
		return nil, fmt.Errorf("load encoding %s: %w", encoding, err)
	}
	return &BPE{name: encoding, enc: enc}, nil
}

// Name returns the name of the encoding.
func (b *BPE) Name() string { return b.name }

// Text counts s as ordinary text, including the names of special tokens. Invalid UTF-8
// counts as U+FFFD.
func (b *BPE) Text(s string) chat.Tokens {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	var n chat.Tokens
	for segment := range segments(s, maxRun, maxSegment) {
		n += chat.Tokens(len(b.enc.EncodeOrdinary(segment)))
	}
	return n
}

// Message returns the tokens of m by Text, plus the overheads of this package.
func (b *BPE) Message(m *chat.Message) chat.Tokens { return message(b, m) }
