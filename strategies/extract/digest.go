package extract

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/redact"
)

// Options are the settings of a Digest; the zero value has good ones.
type Options struct {
	// Count counts the tokens of a text; nil counts a token for each four characters
	// begun. It is called from the goroutine that asks for a text.
	Count func(string) int
	// ReferenceShare is how much of a whole summary the references take at most, from
	// 0 to 1; 0 means 0.6, a negative one leaves them out.
	ReferenceShare float64
	// MaxIdentifiers bounds how many identifiers are remembered; 0 means 20,000. Those
	// least likely to be needed are forgotten first.
	MaxIdentifiers int
	// Focus is a topic that gets the larger share of the room, empty for none: what
	// names a word of it, and what stands on the same line, comes before all else but
	// the task and the goal.
	Focus string
	// Redacted says that what is added has its secrets masked already.
	Redacted bool
}

func (o Options) withDefaults() Options {
	if o.Count == nil {
		o.Count = func(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }
	}
	if o.ReferenceShare == 0 {
		o.ReferenceShare = 0.6
	}
	o.ReferenceShare = min(max(o.ReferenceShare, 0), 1)
	if o.MaxIdentifiers <= 0 {
		o.MaxIdentifiers = 20_000
	}
	return o
}

// Digest is what is kept of the messages of a conversation to summarize it. Its memory
// is bounded, whatever it is given, and it holds no part of a message it was given.
// It is not safe for concurrent use.
type Digest struct {
	options Options
	ids     *table
	history history
}

// New returns a digest of nothing.
func New(o Options) *Digest {
	o = o.withDefaults()
	ids := newTable(o.MaxIdentifiers)
	ids.topic = newTopic(o.Focus)
	return &Digest{options: o, ids: ids, history: history{files: map[string]*file{}, previous: map[section][]string{}}}
}

// Add takes in the next message that the summary covers. System messages are not
// summarized, as they stay; given here, they keep what they name out of the references.
// The message is neither kept nor changed.
func (d *Digest) Add(m *chat.Message) {
	content := m.Content.String()
	if m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper {
		d.ids.hide(content)
		return
	}
	d.history.messages++
	switch m.Role {
	case chat.RoleUser:
		if earlier, rest, ok := frame.Unwrap(content); ok { // nobody asked for it
			earlier = d.redact(text.Head(earlier, maxChunk))
			d.addNotes(strings.Split(earlier, "\n"))
			if content = strings.TrimSpace(rest); content == "" {
				return
			}
		}
		d.history.addUser(d.scan(content, true))
	case chat.RoleTool:
		head, tail := d.scan(content, false)
		d.history.addResult(m.ToolCallID, head, tail)
	default:
		d.history.addAssistant(d.scan(content, true))
	}
	for i := range m.ToolCalls {
		d.addCall(&m.ToolCalls[i])
	}
}

// maxArguments is how many bytes of arguments are taken apart at most; longer ones are
// read like any text, as several copies of them would be made.
const maxArguments = 8 << 20

func (d *Digest) addCall(c *chat.ToolCall) {
	name := d.redact(c.Name)
	if len(c.Arguments) > maxArguments {
		head, _ := d.scan(c.Arguments, true)
		d.history.addCall(c.ID, name, head, nil)
		return
	}
	arguments := d.redact(c.Arguments)
	fs, ok := parseArguments(arguments)
	text := arguments
	if ok {
		text = argumentText(fs)
	}
	d.scan(name+" "+text, true)
	for i := range fs { // what was a secret only once unfolded
		fs[i].value, _ = redact.Redact(fs[i].value)
	}
	if run := argumentCommand(fs); run != "" && strings.Contains(text, run) { // it is whole
		d.ids.addCommand(run)
	}
	d.history.addCall(c.ID, name, arguments, fs)
}

// redact returns s without secrets.
func (d *Digest) redact(s string) string {
	if !d.options.Redacted {
		s, _ = redact.Redact(s)
	}
	return s
}

// maxChunk is how much is looked at in one go, in bytes.
const maxChunk = 1 << 20

// scan takes in the identifiers of a text and returns its beginning and its end, each
// of a chunk at most and without secrets: the same text unless it is very long.
func (d *Digest) scan(s string, used bool) (head, tail string) {
	for first := true; first || s != ""; first = false {
		n := chunkLen(s)
		tail = d.redact(s[:n])
		s = s[n:]
		if used {
			d.ids.scan(tail, used)
		} else {
			d.ids.scan(blankLineNumbers(tail), used)
		}
		if first {
			head = tail
		}
	}
	return head, tail
}

// keyHeader is a part of what a private key begins with. A text is not cut behind it, as
// what is left of a key alone is not known for one.
const keyHeader = "PRIVATE KEY-----"

// chunkLen returns how much of s is looked at next: whole lines, or else whole words, or else whole
// characters.
func chunkLen(s string) int {
	if len(s) <= maxChunk {
		return len(s)
	}
	n := strings.LastIndexByte(s[:maxChunk], '\n') + 1
	for _, ends := range []string{" \t", ",;\"'`(){}<>"} {
		if n < maxChunk/2 {
			n = strings.LastIndexAny(s[:maxChunk], ends) + 1
		}
	}
	if n < maxChunk/2 {
		for n = maxChunk; n > maxChunk-utf8.UTFMax && !utf8.RuneStart(s[n]); {
			n--
		}
	}
	if key := strings.LastIndex(s[:n], keyHeader); key > maxChunk/2 && n-key < maxChunk/4 {
		if line := strings.LastIndexByte(s[:key], '\n') + 1; line > maxChunk/2 {
			n = line
		}
	}
	return n
}

// References returns the block of references alone, to stand beside what somebody else
// wrote: at most budget tokens, empty where nothing fits.
func (d *Digest) References(budget int) string {
	return d.fitTokens(budget, func(limit int) string { return d.ids.references(limit, "") })
}

// Text returns the whole summary: at most budget tokens (and never more than 65,536), empty
// where not even the words fit that say what it is.
func (d *Digest) Text(budget int) string {
	return d.fitTokens(budget, func(limit int) string {
		return d.writeText(limit, int(d.options.ReferenceShare*float64(min(budget, maxBudget))))
	})
}

// maxBudget is the largest budget that makes a difference: more would be no summary.
const maxBudget = 1 << 16

// fitTokens has a text written that is as long as the budget allows. Secrets that only came
// to be by putting things together are masked.
func (d *Digest) fitTokens(budget int, write func(limit int) string) string {
	if budget <= 0 {
		return ""
	}
	budget = min(budget, maxBudget)
	best := ""
	for limit, tries := 4*budget, 0; limit > 0; tries++ {
		s, _ := redact.Redact(write(limit))
		n, chars := d.options.Count(s), utf8.RuneCountInString(s)
		if n <= budget && len(s) > len(best) {
			best = s
		}
		switch { // what was counted shows how many characters are a token
		case n > budget:
			limit = min(limit*budget/n, limit-1-limit/64)
			if tries > 8 { // whatever is counted does not depend much on the length
				limit /= 2
			}
		case tries == 0 && n > 0 && chars > n*17/4:
			limit = budget * chars / n
		default:
			return best
		}
	}
	return best
}
