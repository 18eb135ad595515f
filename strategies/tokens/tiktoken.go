package tokens

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go-loader/assets"

	"github.com/sessionstore/compactor/strategies/chat"
)

// BPE counts tokens with one of OpenAI's tokenizers, exactly as tiktoken-go does: it splits a
// text into pieces by their pattern and counts the tokens that byte-pair encoding makes of each
// piece. It is safe for concurrent use. Its zero value is not usable; see Tiktoken.
//
// Counting takes time linear in the length of a text and little memory, whatever the length:
// only a text that is not valid UTF-8 is copied.
type BPE struct {
	name    string
	split   func(s string, i int) int
	vocab   vocabulary
	merges  merges
	buffers sync.Pool // of *scratch
}

// Tiktoken returns the counter of an encoding, O200K or CL100K. The first call for an
// encoding loads its ranks, which takes up to 100 ms and 12 MB.
func Tiktoken(encoding string) (*BPE, error) {
	load, ok := encodings[encoding]
	if !ok {
		return nil, fmt.Errorf("encoding %q: want %s or %s", encoding, O200K, CL100K)
	}
	return load()
}

var encodings = map[string]func() (*BPE, error){
	O200K:  sync.OnceValues(func() (*BPE, error) { return loadBPE(O200K, splitO200K) }),
	CL100K: sync.OnceValues(func() (*BPE, error) { return loadBPE(CL100K, splitCL100K) }),
}

// Name returns the name of the encoding.
func (b *BPE) Name() string { return b.name }

// Text counts s as ordinary text, including the names of special tokens. Each byte that is not
// valid UTF-8 counts as U+FFFD.
func (b *BPE) Text(s string) chat.Tokens {
	if !utf8.ValidString(s) { // which the splitters cannot read
		s = strings.Map(func(r rune) rune { return r }, s)
	}
	var buf *scratch
	n := 0
	for i := 0; i < len(s); {
		end := b.split(s, i)
		if b.vocab.has(s, i, end) {
			n++
		} else {
			if buf == nil {
				buf, _ = b.buffers.Get().(*scratch)
			}
			n += b.merges.count(s[i:end], buf)
		}
		i = end
	}
	if buf != nil {
		b.buffers.Put(buf)
	}
	return chat.Tokens(n)
}

// Message returns the tokens of m by Text, plus the overheads of this package.
func (b *BPE) Message(m *chat.Message) chat.Tokens { return message(b, m) }

// loadBPE reads the ranks of an encoding: lines of a token in base64 and its rank, in order of
// rank.
func loadBPE(encoding string, split func(string, int) int) (*BPE, error) {
	fillClasses()
	file, err := assets.Assets.ReadFile(encoding + ".tiktoken")
	if err != nil {
		return nil, fmt.Errorf("load encoding %s: %w", encoding, err)
	}
	b := &BPE{name: encoding, split: split}
	b.buffers.New = func() any { return &scratch{make([]uint32, 2*window), make([]uint32, 2*window)} }
	if err := b.read(file); err != nil {
		return nil, fmt.Errorf("load encoding %s: %w", encoding, err)
	}
	return b, nil
}

func (b *BPE) read(file []byte) error {
	n := bytes.Count(file, []byte("\n")) + 1
	if n > maxToken {
		return fmt.Errorf("%d tokens: want at most %d", n, maxToken)
	}
	text := make([]byte, 0, len(file))
	ends := make([]uint32, 1, n+1)
	b.merges.size = make([]uint8, 0, n)
	b.merges.pairs, b.merges.shift = newSlots(n)
	var buf scratch
	for line := range bytes.Lines(file) {
		token, rank, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		start, id := len(text), uint32(len(b.merges.size))
		var err error
		if text, err = base64.StdEncoding.AppendDecode(text, token); err != nil {
			return fmt.Errorf("token %d: %w", id, err)
		}
		length := len(text) - start
		if got, err := strconv.Atoi(string(rank)); err != nil || got != int(id) || length == 0 || length > maxTokenLen || len(text) > maxTextLen {
			return fmt.Errorf("token %d: want its rank, and 1 to %d bytes", id, maxTokenLen)
		}
		b.merges.size = append(b.merges.size, uint8(length))
		ends = append(ends, uint32(len(text)))
		if length == 1 {
			b.merges.bytes[text[start]] = id
		} else if parts := b.merges.encode(string(text[start:]), &buf); len(parts) == 2 {
			b.merges.add(parts[0], parts[1], id)
		}
	}
	b.vocab = newVocabulary(string(text), ends)
	return nil
}
