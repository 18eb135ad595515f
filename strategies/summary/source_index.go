package summary

import (
	"bytes"
	"crypto/sha256"
	"hash/maphash"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// SourceIndex indexes the messages that a summary covers, for a Validator. Its memory is
// bounded to about eight megabytes. The zero value is empty. It is safe for concurrent use once all messages are
// added.
type SourceIndex struct {
	tokens      chat.Tokens
	userScripts scriptCounts // messages of the user by script
	// words holds the user's messages as appendWords normalizes them, up to maxWords bytes;
	// full reports that there was more. users indexes all of them.
	words         []byte
	full          bool
	users, others phraseSet
	// planned indexes what of the others the assistant wrote.
	planned phraseSet
	// negated are the ranges of words that a negation denies, in order.
	negated [][2]int
	// indexed are the hashes of the user's messages, which a log and its view both hold.
	indexed map[[sha256.Size]byte]bool
	last    string // the newest message of the user, in part
	// statements are what the user said without refusing, refused the stems of the rest, asked
	// what the newest message of the assistant asks, whose end unread holds until the user answers.
	statements     []statement
	statementBytes int
	refused        stemSet
	bans           []ban
	asked          question
	unread         string
	// names matches the names that the user has given, nil for none; people are those of others.
	names  *regexp.Regexp
	people map[string]bool
}

const (
	maxWords = 1 << 20
	// maxAsk is how many characters of one message of the user are kept verbatim.
	maxAsk = 4000
)

// Add indexes the next covered message. Messages must be untrimmed, and redacted as those in
// the prompt are. A stored summary among them does not count as the user's words.
func (e *SourceIndex) Add(m *chat.Message) {
	e.tokens += tokens.Chars4{}.Message(m)
	text := text.WithoutHidden(m.Content.String())
	e.addHostsOf(m)
	if m.Role != chat.RoleUser {
		if m.Role == chat.RoleAssistant && text != "" {
			e.unread = strings.Clone(askingEnd(text))
			e.planned.add(text)
		}
		e.others.add(text)
		for _, c := range m.ToolCalls {
			e.others.add(c.Arguments)
			e.planned.add(c.Arguments)
		}
		return
	}
	if body, merged, ok := frame.Unwrap(text); ok {
		e.others.add(body)
		if text = merged; strings.TrimSpace(text) == "" {
			return
		}
	}
	e.last = strings.Clone(cutCenter(text, maxAsk))
	e.userScripts[messageScript(text)]++
	e.userScripts[noScript] = 0
	e.addNames(text)
	e.addStatements(text)
	e.addSaid(text)
}

// addBeside indexes a message that stays in the view. It answers nothing that the covered messages
// ask, as it stood anywhere among them. What a program wrote in the user's name is not the user's.
func (e *SourceIndex) addBeside(m *chat.Message) {
	if m.Role == chat.RoleUser && wordsOfUser(m) == "" {
		e.others.add(m.Content.String())
		e.addHostsOf(m)
		return
	}
	last, unread, asked := e.last, e.unread, e.asked
	e.unread, e.asked = "", question{}
	e.Add(m)
	e.last, e.unread, e.asked = last, unread, asked
}

// addSaid indexes words of the user for quotations.
func (e *SourceIndex) addSaid(text string) {
	key := sha256.Sum256([]byte(strings.TrimSpace(text)))
	if e.indexed[key] {
		return
	}
	if e.indexed == nil {
		e.indexed = map[[sha256.Size]byte]bool{}
	}
	e.indexed[key] = true
	e.users.add(text)
	if len(e.words)+len(text) > maxWords {
		e.full = true
		return
	}
	e.addWords(text)
}

// AddPrevious indexes the summary that is updated. Quotations that its prose attributes to the
// user count as the user's words, and approvals that it tells of as given: they were
// validated when it was written. Of an extract, a log of actions and references, which are
// made of messages of all roles, only what is marked as a quotation of the user does.
func (e *SourceIndex) AddPrevious(summary string) {
	if body, _, ok := frame.Unwrap(summary); ok {
		summary = body
	}
	summary = text.Trim(summary)
	e.tokens += tokens.Chars4{}.Text(summary)
	prose := extract.Prose(summary)
	_, references := extract.Split(summary)
	made := len(summary) - len(references) // references begin here
	isExtract := extract.IsExtract(summary)
	if !isExtract {
		e.addApprovals(prose)
	}
	for _, q := range e.userQuotes(summary, DefaultSections()) {
		theirs := q.block && (isExtract || q.start >= made)
		if theirs {
			e.addStatements(q.text)
		}
		if !isExtract && q.end <= len(prose) {
			theirs = q.active || q.attributed && !strings.HasPrefix(summary[q.end:], notTheirs)
		}
		if theirs && len(e.words)+len(q.text) <= maxWords {
			e.addWords(q.text)
		}
	}
	e.others.add(summary)
	e.planned.add(summary)
	e.addHosts(summary)
}

// Tokens returns the tokens of all messages and of the previous summary.
func (e *SourceIndex) Tokens() chat.Tokens { return e.tokens }

// LastUser returns the newest user message, with the middle of a long one cut out, or "".
func (e *SourceIndex) LastUser() string { return e.last }

// Script returns the name of the script of most user messages, "" if unknown.
func (e *SourceIndex) Script() string {
	for w := latin; w < scripts; w++ {
		if n := e.userScripts[w]; n > 0 && 2*n > e.userScripts.total() {
			return w.String()
		}
	}
	return ""
}

// allows reports whether the words of a quotation, as returned by quotedPhrases, may be in
// an answer: words of the user, or of any message unless the active task attributes them
// to the user. There, near matches are allowed too, because InsertRequest replaces the
// section by the exact words.
func (e *SourceIndex) allows(q userQuote, words string) bool {
	return e.isUsers(words) || (!q.active || !q.attributed) && e.others.share(words) == 1 ||
		q.active && e.users.nearly(words) || q.loose && (e.users.nearly(words) || e.others.nearly(words))
}

// isUsers reports whether words are in a message of the user.
func (e *SourceIndex) isUsers(words string) bool {
	return bytes.Contains(e.words, []byte(words)) || e.full && e.users.share(words) == 1
}

// has reports whether a quotation may be in an answer.
func (e *SourceIndex) has(q userQuote) bool {
	phrases := quotedPhrases(q.text)
	for _, p := range phrases {
		if !e.allows(q, p) {
			return false
		}
	}
	if q.loose && slices.ContainsFunc(phrases, func(p string) bool { return !e.isUsers(p) && e.others.denies(p) }) {
		return false
	}
	if theirs := q.attributed || q.loose && e.others.share(wordsOf(q.text)) < 1; theirs && !q.active && e.splices(q.text) {
		return false
	}
	return len(phrases) > 0 || !q.attributed || q.loose || q.active || e.full || e.said(wordsOf(q.text))
}

// misattributes reports whether an allowed quotation says of words of another that they are
// the user's. Hosts put words of the user into results of tools, so they may be right.
func (e *SourceIndex) misattributes(q userQuote) bool {
	return q.attributed && !q.active && slices.ContainsFunc(quotedPhrases(q.text), func(p string) bool { return !e.isUsers(p) })
}

// said reports whether the user said some words, which may be few.
func (e *SourceIndex) said(words string) bool {
	return words == "" || e.find(words, 0, len(e.words)) >= 0
}

// phraseSet is a Bloom filter of all runs of three words in some texts: no false negatives,
// more false positives the fuller it is. The zero value is empty.
type phraseSet struct {
	seed maphash.Seed
	bits []uint64
}

const phraseBits = 1 << 24 // 2 MB

func (p *phraseSet) add(text string) {
	if p.bits == nil {
		p.seed, p.bits = maphash.MakeSeed(), make([]uint64, phraseBits/64)
	}
	for h := range p.hashes(appendWords(nil, text)) {
		p.bits[h/64%(phraseBits/64)] |= 1 << (h % 64)
	}
}

// share returns the fraction of the runs of words that is in the set.
func (p *phraseSet) share(words string) float64 {
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

// nearlySaid is the share of words in a message that makes a near match.
const nearlySaid = 0.6

// nearly reports whether most runs of words are in the set, and the others neither hold a number
// or a negation nor would be in the set behind a negation.
func (p *phraseSet) nearly(words string) bool {
	share := p.share(words)
	if share < nearlySaid || share == 1 {
		return share == 1
	}
	var run []string
	for w := range eachWord([]byte(words)) {
		if run = append(run, string(w)); len(run) > 3 {
			run = run[1:]
		}
		if len(run) < 3 || p.share(strings.Join(run, " ")) == 1 {
			continue
		}
		for _, w := range run {
			if strings.ContainsFunc(w, unicode.IsDigit) || slices.Contains(negatives, w) {
				return false
			}
		}
		if p.denies(run[1] + " " + run[2] + " ") {
			return false
		}
	}
	return true
}

// denies reports whether a negation stands in front of some words in the set.
func (p *phraseSet) denies(words string) bool {
	parts := strings.SplitN(words, " ", 3)
	return len(parts) == 3 && slices.ContainsFunc(negatives, func(w string) bool {
		return w != parts[0] && p.share(w+" "+parts[0]+" "+parts[1]) == 1
	})
}

// hashes yields the hashes of all runs of three words.
func (p *phraseSet) hashes(words []byte) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		var run [3]uint64
		n := 0
		for w := range eachWord(words) {
			run[0], run[1], run[2] = run[1], run[2], maphash.Bytes(p.seed, w)
			if n++; n >= 3 && !yield(run[0]*0x9e3779b97f4a7c15^run[1]*0xc2b2ae3d27d4eb4f^run[2]) {
				return
			}
		}
	}
}

// eachWord yields the words of a text that appendWords has made. In scripts without blanks each
// letter is a word.
func eachWord(words []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := 0; i < len(words); {
			if words[i] == ' ' {
				i++
				continue
			}
			end := i
			for end < len(words) && words[end] != ' ' {
				r, size := utf8.DecodeRune(words[end:])
				if r >= 0x0e00 && unspacedLetters(string(r)) > 0 {
					if end == i {
						end += size
					}
					break
				}
				end += size
			}
			if !yield(words[i:end]) {
				return
			}
			i = end
		}
	}
}
