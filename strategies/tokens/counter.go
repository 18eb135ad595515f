package tokens

import (
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Names of the counters, as they are stored beside a count.
const (
	O200K  = "o200k_base"
	CL100K = "cl100k_base"
	// Chars4Name and Octets3Name are estimates; planning adds a margin to them. The
	// latter is a third of the bytes of a message, rounded up: what the store's SQL
	// counts for a message that is appended without a count.
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

// Chars4 estimates a token for every four code points, and one at least for text
// that is not empty. It undercounts code: by 18 % in the median.
type Chars4 struct{}

// Name is "chars/4".
func (Chars4) Name() string { return Chars4Name }

// Text returns a quarter of the code points of s, rounded down.
func (Chars4) Text(s string) chat.Tokens {
	if s == "" {
		return 0
	}
	return max(1, chat.Tokens(utf8.RuneCountInString(s)/4))
}

// Message counts m with Text and the overheads of this package.
func (c Chars4) Message(m *chat.Message) chat.Tokens { return message(c, m) }
