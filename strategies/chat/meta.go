package chat

import (
	"cmp"
	"strconv"
	"strings"
)

// Seq is a position in a session's log. The first message has 1; positions are
// dense and never reused.
type Seq int64

// Tokens is a number of tokens as counted when a message was stored.
type Tokens int64

// Thousands returns n with commas between thousands: "12,345".
func Thousands[N ~int | ~int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Flags are facts about a message that planning needs without its content.
type Flags uint16

const (
	// HasText: the content holds something other than white space.
	HasText Flags = 1 << iota
	// HasReasoning: the message carries reasoning.
	HasReasoning
	// HasMedia: the content holds images, audio or files.
	HasMedia
	// Paired: the tool result answers a call of the tool batch directly before it that had
	// no result yet. Pairing looks backwards only, so the flag is final when the message is
	// appended (see Pairer).
	Paired
	// Estimated: the token count is an estimate; planning adds the policy's margin.
	Estimated
	// Moved: a source message that the application placed elsewhere than in log order; not
	// a summary, although it is ordered like one. Not stored.
	Moved
	// PlainReasoning: none of the message's reasoning is signed or encrypted. Reasoning without
	// this flag counts as signed (see Meta.Signed).
	PlainReasoning
	// Undated: the message has no time; the stored one is that of the import.
	Undated
	// Parallel: the calls of the message belong to the batch of the call message before it, to
	// which no result had come yet. Final like Paired (see Pairer).
	Parallel
)

// Names of the counters that estimate (see package tokens).
const (
	CounterChars4 = "chars/4"
	CounterBytes3 = "bytes/3"
)

// ScaledBy stands between the name of a counter and the factor that its counts are
// multiplied by: "o200k_base*1.5" estimates the tokens of another vendor's model.
const ScaledBy = "*"

// Estimates reports whether the named counter only estimates. Unknown counters belong to
// applications and count as exact, as in the SQL function of that name. So do counts of
// another vendor's model stored before there were factors, as "o200k_base".
func Estimates(counter string) bool {
	return counter == CounterChars4 || counter == CounterBytes3 || strings.Contains(counter, ScaledBy)
}

// Meta is the metadata of a message on which planning runs, without its content. It has a
// fixed size and is one index entry in the store.
type Meta struct {
	Seq Seq
	// Position orders the view: the Seq of a source, that of the original for a
	// replacement, and the one chosen by the strategy for a summary.
	Position Seq
	Kind     Kind
	Role     Role
	Flags    Flags
	// Calls is the number of tool calls the message makes, without those of tools that the
	// provider runs, which are parts of its content.
	Calls  int
	Tokens Tokens
	// ReasoningTokens is the part of Tokens that the reasoning takes, 0 unless it is signed.
	ReasoningTokens Tokens
}

// Has reports whether all given flags are set.
func (m Meta) Has(f Flags) bool { return m.Flags&f == f }

// ReasoningOnly reports whether m is an assistant message that holds nothing but reasoning.
// Summaries and moved messages never belong to a call.
func (m Meta) ReasoningOnly() bool { return m.reasoningOnly() }

// reasoningOnly is ReasoningOnly without copying m, for loops over many messages.
func (m *Meta) reasoningOnly() bool {
	return m.HoldsOnlyReasoning() && m.Kind != KindSummary
}

// Less reports whether a precedes b in a view (see Compare).
func Less(a, b Meta) bool { return Compare(a, b) < 0 }

// Compare orders the messages of a view by position, then summaries first, then by seq. A
// moved message counts as a summary and precedes the others, since it directly follows the
// message before that position.
func Compare(a, b Meta) int {
	if a.Position != b.Position {
		return cmp.Compare(a.Position, b.Position)
	}
	if am, bm := a.Has(Moved), b.Has(Moved); am != bm {
		return first(am)
	}
	if as, bs := a.Kind == KindSummary, b.Kind == KindSummary; as != bs {
		return first(as)
	}
	return cmp.Compare(a.Seq, b.Seq)
}

func first(a bool) int {
	if a {
		return -1
	}
	return 1
}
