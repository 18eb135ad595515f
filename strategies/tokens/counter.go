package tokens

import (
	"fmt"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Names of the counters, as they are stored beside a count.
const (
	O200K  = "o200k_base"
	CL100K = "cl100k_base"
	// Chars4Name and Octets3Name are estimates; planning adds a margin to them.
	Chars4Name  = chat.CounterChars4
	Octets3Name = chat.CounterOctets3
)

// Counter counts tokens. Implementations are immutable and safe for concurrent
// use.
type Counter interface {
	// Name identifies the way of counting; equal names give equal counts.
	Name() string
	// Text is the number of tokens of s, 0 for the empty string alone.
	Text(s string) chat.Tokens
	// Message is the number of tokens m takes in a request, its overhead included.
	Message(m *chat.Message) chat.Tokens
}

// ByName returns the counter with that Name.
func ByName(name string) (Counter, error) {
	switch name {
	case O200K, CL100K:
		return Tiktoken(name)
	case Chars4Name:
		return Chars4{}, nil
	case Octets3Name:
		return Octets3{}, nil
	}
	return nil, fmt.Errorf("token counter %q: want %s, %s, %s or %s", name, O200K, CL100K, Chars4Name, Octets3Name)
}

// Chars4 estimates a token for every four code points, and one at least for text
// that is not empty. It undercounts code: by 18 % in the median.
type Chars4 struct{}

// Name is "chars/4".
func (Chars4) Name() string { return Chars4Name }

// Text is a quarter of the code points of s, rounded down.
func (Chars4) Text(s string) chat.Tokens {
	if s == "" {
		return 0
	}
	return max(1, chat.Tokens(utf8.RuneCountInString(s)/4))
}

// Message counts m with Text and the overheads of this package.
func (c Chars4) Message(m *chat.Message) chat.Tokens { return message(c, m) }

// Octets3 estimates a token for every three bytes of UTF-8, rounded up. It is what
// the store's SQL uses for a message that is appended without a count, because
// octet_length is all that Postgres can tell cheaply; it overcounts prose.
type Octets3 struct{}

// Name is "octets/3".
func (Octets3) Name() string { return Octets3Name }

// Text is a third of the bytes of s, rounded up.
func (Octets3) Text(s string) chat.Tokens { return chat.Tokens((len(s) + 2) / 3) }

// Message counts m with Text and the overheads of this package.
func (c Octets3) Message(m *chat.Message) chat.Tokens { return message(c, m) }
