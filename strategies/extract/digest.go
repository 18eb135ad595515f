package extract

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/redact"
)

// Version identifies the algorithm. It changes whenever the same messages give another text.
const Version = "extractive/28"

// Options are the settings of a Digest.
type Options struct {
	// Focus is a topic that gets the larger share of the summary, empty for none. Text that contains one of its words, and
	// identifiers on the same line, come before all others except the active task.
	Focus string
	// Redacted reports that all texts were redacted before.
	Redacted bool
	// Acts and Looks name tools that change something and tools that only look, by names or by patterns as of path.Match.
	// They come before the shape of the calls. Of those that match a tool, the longest decides.
	Acts, Looks []string
	// Failed and Succeeded are texts in the results of calls that failed, or did not although they read so, in any case.
	Failed, Succeeded []string
}

// Digest collects the parts of a conversation that its summary needs. Its memory is bounded, and it does not share memory
// with messages. It is not safe for concurrent use.
type Digest struct {
	options Options
	secrets redact.Secrets
	ids     *reference.Table
	words   vocabulary
	talk    talk
	calls   ledger
	tree    tree
	tasks   tasks
	earlier earlier
	// command is the slash command that the newest message holds, whose text may follow.
	command  string
	messages int
	// dates are the first and the newest time of messages.
	first, newest time.Time
	// ended reports that the newest message is a text of the assistant without calls.
	ended bool
}

// earlier is a summary from before the first message, or one that a host put into the conversation.
type earlier struct {
	lines   []string
	message int
	// turns is the number of turns before it, own reports that this program wrote it.
	turns int
	own   bool
}

const (
	// maxIdentifiers is the number of identifiers that a Digest keeps, the most important.
	maxIdentifiers = 10_000
	// maxChunk is the number of bytes that are processed at once.
	maxChunk = 1 << 20
	// maxArguments is the size, in bytes, up to which arguments are parsed.
	maxArguments = 8 << 20
)

// New returns an empty Digest.
func New(o Options) *Digest {
	o.Acts, o.Looks = slices.Clone(o.Acts), slices.Clone(o.Looks)
	return &Digest{
		options: o, ids: reference.NewTable(maxIdentifiers, o.Focus),
		words: vocabulary{words: map[uint64]occurrence{}}, calls: ledger{recall: recall{by: map[uint64][]watched{}}},
	}
}

// Add adds the next message, which it does not change. System messages stay in the view and are not summarized; their
// identifiers are left out of the references.
func (d *Digest) Add(m *chat.Message) {
	content := m.Content.String()
	if m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper {
		d.ids.Hide(content)
		return
	}
	d.messages++
	if m.Role != chat.RoleUser {
		d.command = ""
	}
	if at := m.CreatedAt.UTC(); !m.CreatedAt.IsZero() {
		if d.first.IsZero() {
			d.first = at
		}
		d.newest = at
	}
	d.ended = m.Role == chat.RoleAssistant && len(m.ToolCalls) == 0
	switch m.Role {
	case chat.RoleUser:
		d.addUser(content, m.CreatedAt)
	case chat.RoleTool:
		d.addResult(m.ToolCallID, content, string(m.Extra["is_error"]) == "true", m.CreatedAt)
	default:
		content = d.scan(content, reference.Said)
		d.words.add(content)
		d.calls.recall.name(content)
		if text.Trim(content) != noAnswer {
			d.talk.answer(content, d.messages, d.calls.total)
		}
	}
	for i := range m.ToolCalls {
		d.addCall(&m.ToolCalls[i], m.CreatedAt)
	}
}

// addUser adds a message of the user: a summary that a host put there, the text of a slash command, the output of a command in a
// text of the assistant, a message of a program, or a request.
func (d *Digest) addUser(content string, at time.Time) {
	if body, rest, ok := frame.Unwrap(content); ok {
		d.addEarlier(d.redact(text.Head(body, maxChunk)), false)
		content = rest
	}
	if text.Trim(content) == "" {
		return
	}
	asked, command := request(content)
	cur, pending := d.talk.current(), d.command
	d.command = strings.Clone(text.Head(command, maxRequest))
	switch begin := text.Trim(content); {
	case pending != "" && command == "" && strings.Contains(begin, "\n") && !strings.HasPrefix(begin, localOutput):
		d.closeHandles(d.scan(content, reference.Returned))
		d.ask(d.scan(pending, reference.Said), at)
	case asked == "" || d.calls.isPrompt(asked):
		if cur != nil && strings.HasPrefix(begin, interruption) {
			cur.interrupted = true
		}
		d.closeHandles(d.scan(content, reference.Returned))
	case IsOutput(content) && cur != nil && cur.lastText() != "":
		ran := ranInText(cur.lastText())
		c := d.newCall("", "ran", at)
		c.setCommand(ran)
		c.hint = acts // there is no other place for it
		d.calls.add(c, ran, nil)
		d.addResult("", content, false, at)
		c.brief = strings.Clone(said(content, 120))
	default:
		d.ask(d.scan(asked, reference.Said), at)
	}
}

// ask adds a request of the user, which is redacted.
func (d *Digest) ask(request string, at time.Time) {
	d.ids.MarkUser(request)
	d.words.add(request)
	d.calls.recall.name(request)
	d.talk.ask(text.Trim(request), at.UTC(), d.messages)
}

// newCall returns a call of the current turn.
func (d *Digest) newCall(id, tool string, at time.Time) *call {
	if d.talk.current() == nil {
		d.talk.turns = append(d.talk.turns, &turn{message: d.messages})
	}
	d.talk.current().last = d.messages
	c := &call{id: id, tool: strings.Clone(tool), turn: len(d.talk.turns) - 1, message: d.messages, at: at.UTC()}
	c.hint = d.hint(tool)
	return c
}

// hint returns the kind that the settings give a tool: of the patterns that match its name, the longest decides.
func (d *Digest) hint(tool string) (k kind) {
	longest := -1
	for i, patterns := range [][]string{d.options.Acts, d.options.Looks} {
		for _, p := range patterns {
			if ok, err := path.Match(p, tool); (ok && err == nil || p == tool) && len(p) > longest {
				longest, k = len(p), []kind{acts, looks}[i]
			}
		}
	}
	return k
}

func (d *Digest) addCall(tc *chat.ToolCall, at time.Time) {
	c := d.newCall(tc.ID, d.redact(tc.Name), at)
	if len(tc.Arguments) > maxArguments {
		d.calls.add(c, d.scan(tc.Arguments, reference.InCall), nil)
		return
	}
	arguments := d.redact(tc.Arguments)
	fs, ok := parseFields(arguments)
	plain := arguments
	if ok {
		for i := range fs { // escapes may have hidden secrets
			fs[i].value, _ = d.secrets.Redact(fs[i].value)
		}
		plain = fieldText(fs)
	}
	d.ids.Scan(c.tool+" "+plain, reference.InCall)
	d.words.add(plain)
	d.calls.add(c, arguments, fs)
	if d.tasks.add(fs, d.messages) {
		c.ofTasks = true
	}
}

// addResult adds the result of a call.
func (d *Digest) addResult(id, content string, isError bool, at time.Time) {
	content = d.scan(content, reference.Returned)
	c := d.calls.answer(id, content, isError || hasAny(content, d.options.Failed))
	if c == nil {
		return
	}
	if hasAny(content, d.options.Succeeded) {
		c.failed, c.failure = false, nil
	}
	if _, words, ok := strings.Cut(content, wordsAfter); ok && c.refused {
		d.ask(words, at)
	}
	d.tasks.made(c, content)
	committed := d.tree.committed
	d.tree.answered(c, content)
	if c.failed || c.turn >= len(d.talk.turns) {
		return
	}
	x := d.talk.turns[c.turn]
	for _, change := range c.changes {
		if !slices.Contains(x.edited, change.path) {
			x.edited = bounded(x.edited, change.path, maxChecks)
		}
	}
	if d.tree.committed != committed {
		x.commits = bounded(x.commits, d.tree.commits[len(d.tree.commits)-1], maxChecks)
	}
}

// hasAny reports whether a text has one of a list of texts, in any case.
func hasAny(s string, all []string) bool {
	if len(all) == 0 {
		return false
	}
	s = strings.ToLower(s)
	return slices.ContainsFunc(all, func(x string) bool { return x != "" && strings.Contains(s, strings.ToLower(x)) })
}

// closeHandles reads a message of a program, which may report the end of a process or agent that a call started.
func (d *Digest) closeHandles(message string) {
	for _, c := range d.calls.calls[max(0, len(d.calls.calls)-maxRemembers):] {
		if h := c.handle(); h != "" && strings.Contains(message, h) {
			c.closed = true
		}
	}
}

// AddPrevious adds the summary to be updated, before any message. Of a summary by a Digest the requests of the user are taken
// up again, of any other text all is one block.
func (d *Digest) AddPrevious(summary string) {
	summary = text.Head(d.redact(summary), maxChunk)
	body, references := Split(summary)
	byTools := false
	for l := range strings.Lines(references) {
		byTools = byTools || l == reference.ToolsLine
		d.ids.AddPreviousLine(strings.TrimRight(l, "\n"), byTools)
	}
	own := IsExtract(summary)
	if own {
		d.messages += madeFrom(summary)
		body = d.restore(body)
	}
	d.addEarlier(body, own)
}

// restore adds the requests of an earlier summary by a Digest, with the lines below them, and returns the rest of it.
func (d *Digest) restore(body string) (rest string) {
	var active, answer []string
	var request string
	end := func() {
		if request != "" {
			d.talk.ask(request, time.Time{}, 0)
			d.talk.answer(strings.Join(answer, "\n"), 0, 0)
		}
		request, answer = "", nil
	}
	heading, left := "", []string{}
	for _, l := range prose.IndentedLines(body) {
		quote, isQuote := strings.CutPrefix(l, quoteMark)
		asked, isRequest := strings.CutPrefix(l, "- "+quoteMark)
		switch {
		case strings.HasPrefix(l, "## "):
			heading = l
			continue
		case heading == taskHeading && isQuote:
			active = append(active, quote)
			continue
		case heading == requestsHeading && isRequest:
			end()
			request = asked
			continue
		case request != "" && strings.HasPrefix(l, "  ") && heading == requestsHeading:
			answer = append(answer, strings.TrimPrefix(l, "  "))
			continue
		}
		left = append(left, l)
	}
	end()
	request = strings.Join(active, "\n")
	end()
	for _, x := range d.talk.turns {
		d.ids.MarkUser(x.request)
	}
	return strings.Join(left, "\n")
}

// addEarlier keeps the newest earlier summary as one block.
func (d *Digest) addEarlier(summary string, own bool) {
	d.ids.Scan(summary, reference.Said)
	d.ids.MarkPrevious(summary)
	d.words.add(summary)
	if _, after, ok := strings.Cut(summary, "\nSummary:\n"); ok && !own { // before it, the thoughts of the model
		summary = after
	}
	var lines []string
	for _, l := range prose.IndentedLines(text.Head(summary, maxEarlier)) {
		trimmed := strings.TrimSpace(l)
		if strings.HasPrefix(trimmed, madeMark) || !strings.ContainsFunc(trimmed, prose.IsLetterOrDigit) {
			continue
		}
		l = strings.TrimLeft(strings.ReplaceAll(l, "**", ""), "#")
		if !own || !strings.HasPrefix(strings.TrimLeft(l, "- "), quoteMark) { // only a Digest quotes the user
			l = strings.ReplaceAll(l, "> ", "")
		}
		lines = append(lines, strings.Clone(prose.Truncate(strings.ReplaceAll(l, "\t", " "), maxEarlierLine)))
	}
	d.earlier = earlier{lines: lines, message: d.messages, turns: len(d.talk.turns), own: own}
}

const (
	maxEarlier     = 60_000 // characters of an earlier summary
	maxEarlierLine = 600
)

// redact masks the secrets in s.
func (d *Digest) redact(s string) string {
	if !d.options.Redacted {
		s, _ = d.secrets.Redact(s)
	}
	return s
}

// scan adds the identifiers of a text and returns it redacted; of a text longer than maxChunk, its first and its last chunk.
func (d *Digest) scan(s string, source reference.Source) string {
	var head, tail string
	for first := true; first || s != ""; first = false {
		n := chunkLen(s)
		tail = d.redact(s[:n])
		s = s[n:]
		if first {
			head = tail
		}
		d.ids.Scan(prose.BlankLineNumbers(tail), source)
		if first && s == "" {
			return head
		}
	}
	return head + "\n" + tail
}

// keyHeader is part of the first line of a private key. A text is not cut after it, because the rest of a key alone is not
// recognised as a secret.
const keyHeader = "PRIVATE KEY-----"

// chunkLen returns the length of the next chunk of s, which ends with a line, a word or at least a character.
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

// maxBudget is the largest budget of a summary, in tokens.
const maxBudget = 1 << 16

// Text returns the summary in at most budget tokens, and never more than 65,536. It returns "" if not even the first line
// fits. A token is four characters.
func (d *Digest) Text(budget int) string { return d.fit(budget, d.write) }

// References returns the block of references alone in at most budget tokens, or "" if none fits. A token is four characters.
func (d *Digest) References(budget int) string {
	return d.fit(budget, func(limit int) string { return d.ids.Block(limit, "") })
}

// Appendix returns the text that is appended to a summary by a model, in at most budget tokens, or "" if nothing fits: a log of the
// calls that changed something or that failed, and the block of references. A token is four characters.
func (d *Digest) Appendix(budget int) string {
	return d.fit(budget, func(limit int) string {
		p := page{room: limit * 3 / 4}
		p.fill([]part{{heading: actionsHeading, share: 1, items: append(d.actionItems(), d.commitItems()...)}})
		log := p.String()
		block := d.ids.Block(limit-utf8.RuneCountInString(log), log)
		return strings.TrimSpace(log + block)
	})
}

// fit returns the redacted result of write, which gets a limit in characters, with at most budget tokens. Composing a text can
// produce new secrets, and masking them can lengthen it. A secret may have been added before another text showed that it is one.
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

const (
	madeMark  = "Made from "
	madeAfter = " messages without a model. Lines with > quote the user."
	quoteMark = reference.UserMark
)

// IsExtract reports whether a Digest wrote a summary, so that lines with > quote the user.
func IsExtract(summary string) bool { return madeFrom(summary) > 0 }

// madeFrom returns the number of messages that a summary by a Digest gives, 0 for other texts.
func madeFrom(summary string) int {
	rest, ok := strings.CutPrefix(summary, madeMark)
	if at := strings.Index(summary, "\n"+madeMark); !ok && at >= 0 {
		rest, ok = summary[at+1+len(madeMark):], true
	}
	count, after, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(count)
	if !ok || err != nil || n < 0 || !strings.HasPrefix(" "+after, madeAfter) {
		return 0
	}
	return max(1, min(n, 1<<40))
}

// Split returns the prose of a summary and its block of references, "" if it has none.
func Split(summary string) (prose, references string) {
	if strings.HasPrefix(summary, reference.Heading) {
		return "", strings.TrimSpace(summary)
	}
	i := strings.LastIndex(summary, "\n"+reference.Heading)
	if i < 0 {
		return strings.TrimSpace(summary), ""
	}
	return strings.TrimSpace(summary[:i]), strings.TrimSpace(summary[i:])
}

// Prose returns the prose of a summary, without its log of actions and its references.
func Prose(summary string) string {
	prose, _ := Split(summary)
	if i := strings.LastIndex("\n"+prose, "\n"+actionsHeading+"\n"); i >= 0 {
		return strings.TrimSpace(prose[:max(0, i-1)])
	}
	return prose
}

// Escape returns prose without lines that Split and Prose take for headings of an appendix, or IsExtract for the
// origin of an extract.
func Escape(prose string) string {
	escaped := strings.NewReplacer(
		"without a model. Lines with > quote the user.", "with no model.",
		"\n"+reference.Heading, "\n## Referenced\n", "\n"+actionsHeading+"\n", "\n## Actions logged\n",
	).Replace("\n" + prose + "\n")
	return escaped[1 : len(escaped)-1]
}
