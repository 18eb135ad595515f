package summary

import (
	"bytes"
	"hash/maphash"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/str"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Evidence is what a Gate has to know of the messages that a summary covers. It takes
// them one by one and keeps a bounded part of each: at most about six megabytes
// whatever the session has. It is for one goroutine while messages are added, and safe
// for concurrent use after that.
type SourceIndex struct {
	counter tokens.Counter
	tokens  chat.Tokens
	votes   counts // messages of the user by script
	// words are what the user said, as appendWords writes it, up to maxWords bytes; full
	// reports that there was more. users are all of it.
	words         []byte
	full          bool
	users, others phrases
	last          string // the newest message of the user, in part
}

const (
	maxWords = 1 << 20
	// maxAsk is how many characters of one message of the user are kept verbatim.
	maxAsk = 4000
)

// NewEvidence is evidence of no messages yet, with tokens counted by c.
func NewSourceIndex(c tokens.Counter) *SourceIndex { return &SourceIndex{counter: c} }

// Add takes the next covered message, before anything is trimmed. Its secrets have to be
// masked, as they are in what the model is shown and quotes. A summary among the messages
// speaks for those it was made from, not for the user.
func (e *SourceIndex) Add(m *chat.Message) {
	e.tokens += e.counter.Message(m)
	text := m.Content.String()
	if m.Role != chat.RoleUser {
		e.others.add(text)
		for _, c := range m.ToolCalls {
			e.others.add(c.Arguments)
		}
		return
	}
	if body, merged, ok := frame.Unwrap(text); ok {
		e.others.add(body)
		if text = merged; strings.TrimSpace(text) == "" {
			return
		}
	}
	e.last = strings.Clone(bounded(text, maxAsk))
	e.votes[voteOf(text)]++
	e.votes[noWriting] = 0
	e.users.add(text)
	if len(e.words)+len(text) > maxWords {
		e.full = true
		return
	}
	e.words = appendWords(append(e.words, " | "...), text)
}

// AddPrevious takes the summary that the new one brings up to date: what it quotes was
// checked when it was written, and the new one takes its place too.
func (e *SourceIndex) AddPrevious(summary string) {
	if body, _, ok := frame.Unwrap(summary); ok {
		summary = body
	}
	e.tokens += e.counter.Text(summary)
	for _, q := range userQuotes(summary, DefaultSections()) {
		if len(e.words)+len(q.text) <= maxWords {
			e.words = appendWords(append(e.words, " | "...), q.text)
		}
	}
	e.others.add(summary)
}

// Tokens returns those of all messages, and of the previous summary.
func (e *SourceIndex) Tokens() chat.Tokens { return e.tokens }

// LastUser returns the newest message of the user, its middle left out where it is long;
// empty for none.
func (e *SourceIndex) LastUser() string { return e.last }

// Script returns the name of the script that most of the user's messages are written in,
// empty where that is not known.
func (e *SourceIndex) Script() string {
	for w := latin; w < writings; w++ {
		if n := e.votes[w]; n > 0 && 2*n > e.votes.total() {
			return w.String()
		}
	}
	return ""
}

// source is where something that is quoted stands.
type source uint8

const (
	nowhere source = iota
	withOthers
	withUser
)

// nearly reports that most of the words stand together in what the user said.
func (e *SourceIndex) nearly(words string) bool { return e.users.share(words) >= 0.6 }

// find says where words stand that pieces made.
func (e *SourceIndex) find(words string) source {
	switch {
	case bytes.Contains(e.words, []byte(words)), e.full && e.users.share(words) == 1:
		return withUser
	case e.others.share(words) == 1:
		return withOthers
	}
	return nowhere
}

// phrases are all runs of three words in some texts, as a set of hashes: it never
// denies one that is there, and the fuller it is the more often it confirms one that is
// not. The zero value is empty.
type phrases struct {
	seed maphash.Seed
	bits []uint64
}

const phraseBits = 1 << 24 // 2 MB

func (p *phrases) add(text string) {
	if p.bits == nil {
		p.seed, p.bits = maphash.MakeSeed(), make([]uint64, phraseBits/64)
	}
	for h := range p.hashes(appendWords(nil, text)) {
		p.bits[h/64%(phraseBits/64)] |= 1 << (h % 64)
	}
}

// share returns the part of the runs of the words that is in the set.
func (p *phrases) share(words string) float64 {
	if p.bits == nil {
		return 0
	}
	in, all := 0, 0
	for h := range p.hashes([]byte(words)) {
		all++
		if p.bits[h/64%(phraseBits/64)]&(1<<(h%64)) != 0 {
			in++
		}
	}
	return float64(in) / float64(max(1, all))
}

// hashes are those of all runs of three words; a letter of a script without blanks is
// a word.
func (p *phrases) hashes(words []byte) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		var run [3]uint64
		n := 0
		for i := 0; i < len(words); {
			if words[i] == ' ' {
				i++
				continue
			}
			end := i
			for end < len(words) && words[end] != ' ' {
				r, size := utf8.DecodeRune(words[end:])
				if r >= 0x0e00 && wideLetters(string(r)) > 0 {
					if end == i {
						end += size
					}
					break
				}
				end += size
			}
			run[0], run[1], run[2] = run[1], run[2], maphash.Bytes(p.seed, words[i:end])
			i = end
			if n++; n >= 3 && !yield(run[0]*0x9e3779b97f4a7c15^run[1]*0xc2b2ae3d27d4eb4f^run[2]) {
				return
			}
		}
	}
}

// bounded returns a text, or where it is longer than n characters its head and its tail
// around a note that says how much is missing.
func bounded(s string, n int) string {
	if !str.Longer(s, n) {
		return s
	}
	missing := utf8.RuneCountInString(s) - n
	head := n * 2 / 3
	return str.Head(s, head) + "\n[… " + chat.Thousands(missing) + " characters left out …]\n" + str.Tail(s, n-head)
}
