package chat

import "strconv"

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
	// Paired: this tool result answers a call of the tool batch directly before
	// it that had no result yet. Pairing looks backwards only, so it is known
	// for good when the message is appended (see Pairer).
	Paired
	// Estimated: the token count is an estimate; planning adds the policy's margin.
	Estimated
	// Moved: this is no summary but a source message that stands elsewhere than
	// where it was said, because the application put it there. Not stored.
	Moved
)

// Names of the counters that estimate (see package tokens).
const (
	CounterChars4  = "chars/4"
	CounterOctets3 = "octets/3"
)

// Estimates reports whether a counter of that name only estimates. A name that is
// not known does not: it is an application's own, whose counts are taken as given,
// as the SQL function append takes them.
func Estimates(counter string) bool { return counter == CounterChars4 || counter == CounterOctets3 }

// Meta is what planning knows of a message without reading its content: fixed
// width, one index entry in the store.
type Meta struct {
	Seq Seq
	// Position orders the view: a source's is its Seq, a stand-in's its
	// original's, a summary's what its strategy chose.
	Position Seq
	Kind     Kind
	Role     Role
	Flags    Flags
	// Calls is the number of tool calls the message makes.
	Calls  int
	Tokens Tokens
}

// Has reports whether all given flags are set.
func (m Meta) Has(f Flags) bool { return m.Flags&f == f }

// ReasoningOnly reports whether m is an assistant message that holds reasoning
// and nothing else. A summary, or what was moved, belongs to no call.
func (m Meta) ReasoningOnly() bool { return m.reasoningOnly() }

// reasoningOnly spares loops over many messages the copies.
func (m *Meta) reasoningOnly() bool {
	return m.Role == RoleAssistant && m.Calls == 0 && m.Has(HasReasoning) && !m.Has(HasText) && !m.Has(HasMedia) &&
		m.Kind != KindSummary
}

// Less is the order of a view: by position, summaries first, then by seq. What the
// application has moved counts as a summary and stands before the others, as it
// stands directly behind the message in front of that position.
func Less(a, b Meta) bool {
	if a.Position != b.Position {
		return a.Position < b.Position
	}
	if am, bm := a.Has(Moved), b.Has(Moved); am != bm {
		return am
	}
	if as, bs := a.Kind == KindSummary, b.Kind == KindSummary; as != bs {
		return as
	}
	return a.Seq < b.Seq
}

// Compare returns the order of Less, for sorting.
func Compare(a, b Meta) int {
	switch {
	case Less(a, b):
		return -1
	case Less(b, a):
		return 1
	}
	return 0
}
