package summary

import (
	"hash/maphash"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// sourceIndex indexes the messages that a summary covers, for a validator. Its memory is bounded
// but for one entry for each message. The zero value is empty.
type sourceIndex struct {
	tokens      chat.Tokens
	userScripts scriptCounts // of the user's messages
	// users indexes the words of the user, all those of everyone; neither does where no answer is checked.
	users, all phraseSet
	unchecked  bool
	// authors are the roles of the messages by number: RoleUser means that the user said something.
	authors map[chat.Seq]chat.Role
	// last is the newest message of the user, in part, and lastSeq its number.
	last    string
	lastSeq chat.Seq
}

// maxAsk is how many characters of one message of the user are kept verbatim.
const maxAsk = 4000

// add indexes the next covered message, whose number is n. Messages must be untrimmed, and
// redacted as those in the prompt are. A stored summary among them is not the user's.
func (e *sourceIndex) add(n chat.Seq, m *chat.Message) {
	e.tokens += tokens.Chars4{}.Message(m)
	said := m.Content.String()
	e.index(&e.all, said)
	for _, c := range m.ToolCalls {
		e.index(&e.all, c.Name)
		e.index(&e.all, c.Arguments)
	}
	e.setAuthor(n, chat.RoleTool)
	if m.Role == chat.RoleAssistant {
		e.setAuthor(n, chat.RoleAssistant)
	}
	if said = wordsOfUser(m); said != "" {
		e.last, e.lastSeq = strings.Clone(cutCenter(said, maxAsk)), n
		e.userScripts.addMessage(said)
		e.addSaid(n, said)
	}
}

// addSaid indexes words of the user.
func (e *sourceIndex) addSaid(n chat.Seq, said string) {
	e.index(&e.users, said)
	e.index(&e.all, said)
	e.setAuthor(n, chat.RoleUser)
}

// index adds a text to a set.
func (e *sourceIndex) index(set *phraseSet, s string) {
	if !e.unchecked {
		set.add(s)
	}
}

func (e *sourceIndex) setAuthor(n chat.Seq, role chat.Role) {
	if n <= 0 {
		return
	}
	if e.authors == nil {
		e.authors = map[chat.Seq]chat.Role{}
	}
	e.authors[n] = role
}

// addBeside indexes a message that stays in the view.
func (e *sourceIndex) addBeside(n chat.Seq, m *chat.Message) {
	was := *e
	e.add(n, m)
	e.tokens, e.last, e.lastSeq, e.userScripts = was.tokens, was.last, was.lastSeq, was.userScripts
}

// addPrevious indexes the summary that is updated. Its links were checked when it was written, so
// that their authors hold, and so do its quotations in the sections of the user.
func (e *sourceIndex) addPrevious(summary string) {
	if body, _, ok := frame.Unwrap(summary); ok {
		summary = body
	}
	summary = text.Trim(summary)
	e.tokens += tokens.Chars4{}.Text(summary)
	e.index(&e.all, summary)
	sections := DefaultSections()
	hs := headingsOf(summary, sections)
	assignSections(hs, sections)
	for _, h := range hs {
		if h.section >= 0 && sections[h.section].Users && !sameTitle(h.title, modelWishes) {
			e.index(&e.users, summary[h.body:h.end])
		}
	}
	for _, t := range tagsIn(summary, false) {
		for _, p := range t.parts {
			if p.role != "" {
				e.setAuthor(p.from, p.role)
			}
		}
	}
}

// script returns the name of the script of most user messages, "" if unknown.
func (e *sourceIndex) script() string {
	for w := latin; w < scripts; w++ {
		if n := e.userScripts[w]; n > 0 && 2*n > e.userScripts.total() {
			return w.String()
		}
	}
	return ""
}

// phraseSet is a Bloom filter of all words and runs of two and three words in some texts: no false
// negatives, more false positives the fuller it is. The zero value is empty.
type phraseSet struct {
	seed maphash.Seed
	bits []uint64
}

const phraseBits = 1 << 25 // 4 MB

func (p *phraseSet) add(text string) {
	if text == "" {
		return
	}
	if p.bits == nil {
		p.seed, p.bits = maphash.MakeSeed(), make([]uint64, phraseBits/64)
	}
	for n, h := range p.hashes(appendWords(nil, text)) {
		h += uint64(n)
		p.bits[h/64%(phraseBits/64)] |= 1 << (h % 64)
	}
}

// has reports whether words occur in the texts, in this order.
func (p *phraseSet) has(words string) bool {
	if p.bits == nil {
		return words == ""
	}
	longest := min(3, countWords(words))
	for n, h := range p.hashes([]byte(words)) {
		h += uint64(n)
		if n == longest && p.bits[h/64%(phraseBits/64)]&(1<<(h%64)) == 0 {
			return false
		}
	}
	return true
}

// hashes yields the hashes of all runs of one, two and three words, with their length.
func (p *phraseSet) hashes(words []byte) func(func(int, uint64) bool) {
	return func(yield func(int, uint64) bool) {
		var run [3]uint64
		n := 0
		for w := range eachWord(words) {
			run[0], run[1], run[2] = run[1], run[2], maphash.Bytes(p.seed, w)
			n++
			two := run[1]*0x9e3779b97f4a7c15 ^ run[2]*0xc2b2ae3d27d4eb4f
			for k, h := range [...]uint64{run[2], two, two ^ run[0]*0x165667b19e3779f9} {
				if k < n && !yield(k+1, h) {
					return
				}
			}
		}
	}
}
