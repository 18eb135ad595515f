package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/redact"
)

// Options are the settings of a Digest.
type Options struct {
	// Focus is a topic that gets the larger share of the summary, empty for none. Text
	// that contains one of its words, and identifiers on the same line, come before all
	// others except the active task and the goal.
	Focus string
	// Redacted reports that all texts were redacted before.
	Redacted bool
	// Acts and Looks name tools that change something and tools that only look, by names or
	// by patterns as of path.Match. They come before what the verbs in a name say. Of those
	// that match a tool, the longest decides.
	Acts, Looks []string
	// Failed and Succeeded are texts in the results of calls that failed, or did not although
	// they read so, in any case.
	Failed, Succeeded []string
}

const (
	// referenceShare is the share of the references in the budget of a summary, and in its text, however
	// little prose there is.
	referenceShare = 0.4
	// coveredReferenceShare is that in what the text covers, if it is more than minReferences
	// characters: of a list of more, few are used.
	coveredReferenceShare = 0.02
	minReferences         = 1000
	// minReferenceBudget is the number of characters of a summary that has room for nothing but what is asked for
	// and how it stands: references get what is left.
	minReferenceBudget = 800
	// toolReferenceShare is that where tools are called, but not on files.
	toolReferenceShare = 0.35
	// recordsReferenceShare is that where most of what was done are calls with short values.
	recordsReferenceShare = 0.25
	// maxIdentifiers is the number of identifiers that a Digest keeps, the most important.
	maxIdentifiers = 20_000
)

// Digest collects the parts of a conversation that its summary needs. Its memory is
// bounded, and it does not share memory with messages. It is not safe for concurrent use.
type Digest struct {
	redacted bool
	secrets  redact.Secrets
	ids      *reference.Table
	history  history
}

// New returns an empty Digest.
func New(o Options) *Digest {
	return &Digest{redacted: o.Redacted, ids: reference.NewTable(maxIdentifiers, o.Focus), history: history{
		files: map[string]*file{}, previous: map[section][]entry{}, previousAt: map[string]int{}, names: map[string]bool{}, removed: map[string]touch{}, touched: map[string]touch{}, gone: map[string]int{}, acts: slices.Clone(o.Acts), looks: slices.Clone(o.Looks),
		failed: literals(o.Failed), succeeded: literals(o.Succeeded),
	}}
}

// Add adds the next message, which it does not change. System messages stay in the view and
// are not summarized; their identifiers are left out of the references.
func (d *Digest) Add(m *chat.Message) {
	content := m.Content.String()
	if m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper {
		d.ids.Hide(content)
		return
	}
	d.history.messages++
	if strings.Contains(text.Head(content, maxRequest), "```") || prompting().MatchString(text.Tail(content, maxLine)) {
		d.history.withCode++
	}
	if !m.CreatedAt.IsZero() {
		d.history.tick(m.CreatedAt.UTC())
	}
	switch m.Role {
	case chat.RoleUser:
		if earlier, rest, ok := frame.Unwrap(content); ok { // not the user's words
			// Of a frame of this program, which writes none into messages of the application, the user has
			// pasted it: then it is a quotation.
			pasted := frame.Own(content)
			if content = strings.TrimSpace(rest); content != "" || !pasted {
				d.addNotes(strings.Split(d.redact(text.Head(earlier, maxChunk)), "\n"), pasted)
			} else {
				content = earlier
			}
			if content == "" {
				return
			}
		}
		content = spokenIn(content)
		if d.addReturned(content) {
			return
		}
		d.addUser(content)
	case chat.RoleTool:
		d.addResult(m.ToolCallID, content)
	default:
		if reply, ok := d.history.promptReply(content); ok && len(m.ToolCalls) == 0 {
			if reply != "" {
				d.addUser(reply)
			}
			return
		}
		head, tail := d.scan(content, true)
		if len(m.ToolCalls) == 0 {
			d.history.addText(head, tail)
		} else {
			d.history.addAssistant(head, tail)
		}
	}
	for i := range m.ToolCalls {
		d.addCall(&m.ToolCalls[i])
	}
}

// addUser adds what the user said.
func (d *Digest) addUser(content string) {
	if strings.HasPrefix(content, demonstration) { // of another task, in another repository
		return
	}
	said := !IsOutput(content) && !IsGenerated(content) // not by a program: of its words those count that are used later
	head, tail := d.scan(content, said)
	if said {
		d.ids.MarkUser(head)
	}
	d.history.addUser(head, tail)
}

// addReturned adds a message of the user as the result of what the assistant ran in its text, and reports whether it
// is one.
func (d *Digest) addReturned(content string) bool {
	if !d.history.isReturned(content) {
		return false
	}
	d.addResult(textID, d.history.takeOutput(content))
	return true
}

// maxArguments is the size, in bytes, up to which arguments are parsed. Longer ones are read
// as plain text, since parsing makes several copies.
const maxArguments = 8 << 20

func (d *Digest) addCall(c *chat.ToolCall) {
	d.history.text.called = true
	name := d.redact(c.Name)
	if len(c.Arguments) > maxArguments {
		head, _ := d.scan(c.Arguments, true)
		d.history.addCall(c.ID, name, head, nil)
		return
	}
	arguments := d.redact(c.Arguments)
	fs, ok := argument.Parse(arguments)
	text := arguments
	if ok {
		text = argument.Text(fs)
	}
	if patch := patchArguments(text); patch != nil {
		fs = patch
	}
	fs = d.history.ofOpenFile(name, fs)
	d.scan(name+" "+text, true)
	for i := range fs { // escapes may have hidden secrets
		fs[i].Value, _ = d.secrets.Redact(fs[i].Value)
	}
	d.history.addCall(c.ID, name, arguments, fs)
	added := d.history.addDeclarations(argumentPaths(fs), text, false)
	if call := d.history.newestCall(); call.change != nil {
		call.change.declared = added
	}
	d.history.dropDeclarations(argumentPaths(fs), fs)
}

// addResult adds the result of a call. Of a listing, what is talked about later counts, not
// what it lists.
func (d *Digest) addResult(id, content string) {
	c := d.history.takeOpen(id)
	content = toolresult.Unwrap(content)
	if len(content) <= argument.MaxJSON {
		content = d.redact(content)
		d.history.readClientReport(id, content, content)
		if !d.history.addResult(c, content, content) {
			content = prose.BlankLineNumbers(content)
			d.ids.Scan(content, false)
			d.history.addContent(c, content)
		}
		return
	}
	head, tail := d.scan(content, false)
	d.history.readClientReport(id, head, tail)
	d.history.addResult(c, head, tail)
	d.history.addContent(c, prose.BlankLineNumbers(head))
}

// redact masks the secrets in s.
func (d *Digest) redact(s string) string {
	if !d.redacted {
		s, _ = d.secrets.Redact(s)
	}
	return s
}

// maxChunk is the number of bytes that are processed at once.
const maxChunk = 1 << 20

// scan adds the identifiers of a text and returns its first and its last chunk, redacted:
// the same text unless it is longer than maxChunk.
func (d *Digest) scan(s string, used bool) (head, tail string) {
	for first := true; first || s != ""; first = false {
		n := chunkLen(s)
		tail = d.redact(s[:n])
		s = s[n:]
		if first {
			head = tail
		}
		d.ids.Scan(prose.BlankLineNumbers(tail), used)
	}
	return head, tail
}

// keyHeader is part of the first line of a private key. A text is not cut after it, because
// the rest of a key alone is not recognised as a secret.
const keyHeader = "PRIVATE KEY-----"

// chunkLen returns the length of the next chunk of s, which ends with a line, a word or at
// least a character.
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

// References returns the block of references alone in at most budget tokens, or "" if none
// fits. A token is four characters.
func (d *Digest) References(budget int) string { return d.references(budget, "") }

// references returns the block without what the text above it contains.
func (d *Digest) references(budget int, above string) string {
	return d.fit(budget, func(limit int) string { return d.ids.Block(limit, above, strings.Contains(above, omittedMark)) })
}

// Text returns the summary in at most budget tokens, and never more than 65,536. It returns
// "" if not even the first line fits. A token is four characters.
func (d *Digest) Text(budget int) string {
	turns := d.history.turns
	d.history.turns = turns[:len(turns)-d.history.interruptedLast()] // it stands as it was then
	d.history.derive()
	defer func() { d.history.turns, d.history.derived = turns, derived{} }()
	return d.fit(budget, func(limit int) string {
		return d.writeText(limit, int(referenceShare*float64(min(budget, maxBudget))))
	})
}

// maxBudget is the largest budget of a summary, in tokens.
const maxBudget = 1 << 16

// fit returns the redacted result of write, which gets a limit in characters, with at most
// budget tokens. Composing a text can produce new secrets, and masking them can lengthen
// it. A secret may have been added before another text showed that it is one.
func (d *Digest) fit(budget int, write func(limit int) string) string {
	budget = min(budget, maxBudget)
	for limit := 4 * budget; limit > 0; {
		s, _ := d.secrets.Redact(write(limit))
		n := (utf8.RuneCountInString(s) + 3) / 4
		if n <= budget {
			return s
		}
		limit = min(limit*budget/n, limit-1-limit/64)
	}
	return ""
}
