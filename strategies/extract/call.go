package extract

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// call is a call of a tool with its result, in bounded memory.
type call struct {
	id, tool string
	// arguments and result are short values; rows is the number of elements of the list that the result is.
	arguments, result []*field
	rows              int
	// text is the command, or the beginning of arguments without short values.
	text      string
	commands  []command
	isCommand bool
	// inScratch reports that it runs in a folder that does not last, background that it goes on after its result.
	inScratch, background bool
	// hint is the kind that the settings give the tool.
	hint     kind
	paths    []string
	changes  []*change
	turn     int
	message  int
	at       time.Time
	brief    string
	failure  []string
	answered bool
	failed   bool
	check    bool
	report   []string // the first and the last lines of the result of a long order, as of a sub-agent
	uses     int      // values of earlier results in the arguments
	argBytes int
	// madeAgain reports that a later call repeated it with success, gaveOther that a value of the result is not the one asked for.
	madeAgain, gaveOther bool
	// ofTasks reports that it is about the list of tasks, which is shown by itself.
	ofTasks bool
	// refused reports that the user or the host did not let it run.
	refused bool
	lines   int // of the result
	// closed reports that the end of the process or agent that the call started was reported.
	closed bool
}

// kind is the purpose of a call.
type kind int

const (
	unknown kind = iota
	looks        // changes nothing
	acts         // changes something
)

const (
	shortLine = 220 // characters of the result in the short form of a line
	// maxOutside is the number of values that may stand beside a list of results: its length, a page.
	maxOutside = 3
	maxCalls   = 500     // of a ledger
	maxValues  = 1 << 14 // of their results
	maxPrompts = 4000
	maxFields  = 48  // of arguments and of a result
	maxText    = 400 // characters of a command
)

// ledger holds the calls of a conversation. Its memory is bounded: of too many, the oldest that only looked go first.
type ledger struct {
	calls  []*call
	open   map[string]*call
	recall recall
	// prompts are the hashes of long arguments: a message of the user that equals one is the prompt of a sub-agent.
	prompts map[uint64]bool
	// hasCommands reports that command lines were seen.
	hasCommands bool
	total       int
	// values counts the values of the results of the calls.
	values int
}

// pathKey reports whether an argument names a file or a folder by its key.
func pathKey(key string) bool {
	key = strings.ToLower(key)
	return strings.Contains(key, "path") || strings.Contains(key, "file") || folderKeys[key]
}

// isPath reports whether a value may be the path of a file.
func isPath(v string) bool {
	return len(v) <= 400 && strings.ContainsAny(v, "/.\\") && !strings.ContainsAny(v, "\n{}") && prose.IsPrintable(v)
}

// commandKeys are the keys of arguments that are command lines.
var commandKeys = []string{"command", "cmd", "script"}

// add adds a call with its parsed arguments, nil if they are no JSON.
func (l *ledger) add(c *call, raw string, fs []field) {
	l.total++
	c.argBytes = len(raw)
	if cmd := lookup(fs, commandKeys...); cmd != "" || len(fs) > 0 && strings.EqualFold(fs[0].key, "command") {
		if cmd == "" || strings.HasPrefix(cmd, "bash") && !strings.Contains(cmd, " ") { // a list of words
			cmd = ""
			for i := range fs {
				if strings.EqualFold(fs[i].key, "command") && !slices.Contains([]string{"bash", "-lc", "-c", "sh"}, fs[i].value) {
					cmd = strings.TrimSpace(cmd + " " + fs[i].value)
				}
			}
		}
		c.setCommand(cmd)
		c.background = lookup(fs, "run_in_background", "background", "is_background") == "true"
	}
	for i := range fs {
		f := &fs[i]
		if pathKey(f.key) && isPath(f.value) {
			c.paths = append(c.paths, strings.Clone(f.value))
		}
		if len(f.value) > 60 {
			l.prompt(f.value)
		}
		if f.isShort() && len(c.arguments) < maxFields && !c.isCommand {
			c.arguments = append(c.arguments, f.clone())
		}
	}
	if fs == nil && strings.Trim(raw, "{} \n") != "" && !c.isCommand {
		c.text = strings.Clone(line(raw, maxText))
	}
	c.changes = changesOf(fs, c)
	l.hasCommands = l.hasCommands || c.isCommand
	if c.isCommand {
		l.recall.name(c.text)
	} else {
		c.uses = l.recall.name(fieldText(fs))
	}
	for _, f := range c.arguments {
		l.recall.watch(f)
	}
	if l.open == nil {
		l.open = map[string]*call{}
	}
	if len(l.open) > maxCalls {
		clear(l.open)
	}
	l.open[c.id] = c
	if l.calls = append(l.calls, c); len(l.calls) > maxCalls {
		l.makeRoom()
	}
}

// makeRoom removes a quarter of the calls: of the older half those that only looked, then the oldest.
func (l *ledger) makeRoom() {
	excess := len(l.calls) / 4
	older := slices.DeleteFunc(slices.Clone(l.calls[:len(l.calls)/2]), func(c *call) bool {
		if excess == 0 || c.kind() != looks {
			return false
		}
		excess--
		return true
	})
	l.calls, l.values = slices.Concat(older[excess:], l.calls[len(l.calls)/2:]), 0
	for _, c := range l.calls {
		l.values += len(c.result)
	}
}

// setCommand makes the call one of a command line.
func (c *call) setCommand(cmd string) {
	c.isCommand, c.text = true, strings.Clone(line(withoutFolder(cmd), maxText))
	c.inScratch = strings.Contains(cmd, "cd "+scratch) || strings.Contains(cmd, "-C "+scratch)
	c.commands = parseCommands(text.Head(cmd, 4000))
	c.check = slices.ContainsFunc(c.commands, func(x command) bool { return x.checks() })
}

// withoutFolder returns a command line without the change of the folder at its beginning.
func withoutFolder(s string) string {
	if rest, ok := strings.CutPrefix(strings.TrimSpace(s), "cd "); ok {
		if _, after, ok := strings.Cut(rest, "&&"); ok && !strings.Contains(rest[:len(rest)-len(after)], "\n") {
			return strings.TrimSpace(after)
		}
	}
	return s
}

// prompt remembers a long argument.
func (l *ledger) prompt(s string) {
	if l.prompts == nil || len(l.prompts) > maxPrompts {
		l.prompts = map[uint64]bool{}
	}
	l.prompts[textHash(s)] = true
}

// isPrompt reports whether a message of the user was an argument of a call before.
func (l *ledger) isPrompt(s string) bool { return len(l.prompts) > 0 && l.prompts[textHash(s)] }

// textHash returns the hash of the words with which a text begins.
func textHash(s string) uint64 {
	hash := uint64(hashOffset)
	eachWord(text.Head(s, 600), func(h uint64, _, _ int) { hash = (hash ^ h) * hashPrime })
	return hash
}

// answer adds the result of a call and returns the call, nil if it is not known.
func (l *ledger) answer(id, result string, isError bool) *call {
	c := l.open[id]
	if c == nil {
		return nil
	}
	delete(l.open, id)
	o := readOutcome(result, c.isCommand, len(c.paths) > 0 && len(c.changes) == 0)
	c.answered, c.failed = true, o.failed || isError
	if c.refused = isRefusal(o.text); c.refused {
		c.failed = true
	}
	if c.check && !c.failed && o.code == "" { // a pipe may have hidden the exit code
		lines := prose.SplitLines(text.Tail(o.text, 600))
		c.failed = slices.ContainsFunc(lines[max(0, len(lines)-3):], reportsFailure)
	}
	c.lines = strings.Count(strings.TrimSpace(o.text), "\n") + 1
	if len(result) <= maxJSON && !c.isCommand && len(c.paths) == 0 { // not the content of a file
		if fs, ok := parseFields(o.text); ok {
			c.setResult(fs)
			for _, f := range c.result {
				l.recall.watch(f)
			}
			if l.values += len(c.result); l.values > maxValues {
				l.makeRoom()
			}
		}
	}
	if c.failed {
		c.failure = failureLines(o.text, 3)
	}
	if c.result == nil {
		c.brief = cmp.Or(c.brief, strings.Clone(brief(o.text, c.isCommand)))
		if !c.isCommand && len(c.paths) == 0 && c.argBytes >= longOrder && len(result) > 300 { // a report
			body := text.Head(o.text, 100_000)
			c.report = slices.Clone(endLines(proseLines(without(body, elements(body), nil)), 1500, 2))
		}
	}
	return c
}

// setResult takes the short values of a result, and a failure that it reports under its keys. A list within an object that
// has more values outside of it is no list of results.
func (c *call) setResult(fs []field) {
	outside := 0
	for i := range fs {
		if fs[i].row == 0 {
			outside++
		}
	}
	for i := range fs {
		f := &fs[i]
		if outside > maxOutside {
			f.row = 0
		}
		c.rows = max(c.rows, f.row)
		switch strings.ToLower(f.key) {
		case "error", "errors":
			c.failed = c.failed || f.value != "" && f.value != "false" && f.value != "0"
		case "success", "ok":
			c.failed = c.failed || f.value == "false"
		}
		if !f.isShort() || len(c.result) >= 8*maxFields {
			continue
		}
		own := f.clone()
		i := slices.IndexFunc(c.arguments, func(a *field) bool { return a.key == f.key && a.value != f.value })
		if i >= 0 && fs[len(fs)-1].row <= 1 {
			own.asked, c.gaveOther = c.arguments[i].value, true
		}
		c.result = append(c.result, own)
	}
	if c.result == nil {
		c.brief = "nothing"
	}
	if c.rows == 0 && len(c.result) > 0 { // the values of the outer object first
		outer := c.result[0].object
		rank := func(f *field) int {
			if f.object == outer {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(c.result, func(a, b *field) int { return rank(a) - rank(b) })
	}
}

// kind returns the purpose of a call: by the settings, by its command, or by its shape. A call looks if it shows a list, lines of
// a text that are no answer to a long order, or the content of a path, and if it gives its tool no values.
func (c *call) kind() kind {
	switch {
	case c.hint != unknown:
		return c.hint
	case len(c.changes) > 0:
		return acts
	case c.isCommand:
		if slices.ContainsFunc(c.commands, func(x command) bool { return !x.looks() && !x.formats() }) {
			return acts
		}
		return looks
	case c.rows > 1, len(c.arguments) == 0 && c.argBytes < longOrder:
		return looks
	case len(c.result) > 0:
		return acts
	case slices.ContainsFunc(c.arguments, func(f *field) bool { return searchKeys[strings.ToLower(f.key)] }):
		return looks
	case len(c.paths) > 0 && (c.lines > 1 || c.failed):
		return looks
	case c.argBytes < longOrder && (c.lines > 1 || isPath(c.brief) && !strings.Contains(c.brief, " ")):
		return looks
	}
	return acts
}

// isSlight reports whether a command made nothing but commits, which are shown by themselves, and folders.
func (c *call) isSlight() bool {
	return c.isCommand && !c.failed && c.hint == unknown && !slices.ContainsFunc(c.commands, func(x command) bool {
		if words := x.git(); len(words) > 0 && (words[0] == "add" || words[0] == "commit") {
			return false
		}
		return !x.looks() && !x.formats() && !slight[x.program()[0]]
	})
}

// longOrder is the size of arguments that are an order to a sub-agent, or a text to send.
const longOrder = 300

// isRefusal reports whether a result says that a call was not made.
func isRefusal(result string) bool {
	return text.HasAnyPrefix(result, refusals...)
}

// orders returns the share of the arguments in all values of a call: an order gives more than it gets, a question less.
func (c *call) orders() float64 {
	return float64(len(c.arguments)) / float64(1+len(c.arguments)+len(c.shown(true)))
}

// corrects reports whether a call was made with the arguments of an earlier one, but for values that this gave in place of those it was
// asked for.
func (c *call) corrects(earlier *call) bool {
	changed := 0
	for _, a := range c.arguments {
		i := slices.IndexFunc(earlier.arguments, func(o *field) bool { return o.key == a.key })
		if i < 0 || earlier.arguments[i].value == a.value {
			continue
		}
		if changed++; !slices.ContainsFunc(earlier.result, func(r *field) bool { return r.key == a.key && r.value == a.value }) {
			return false
		}
	}
	return changed > 0
}

// same reports whether two calls were made with equal arguments.
func (c *call) same(other *call) bool {
	return c.tool == other.tool && c.text == other.text && slices.EqualFunc(c.arguments, other.arguments, (*field).equals)
}

// handle returns the id of the process or agent that a call started in the background, "" for other calls.
func (c *call) handle() string {
	background := false
	for _, f := range c.arguments {
		background = background || strings.Contains(strings.ToLower(f.key), "background") && f.value == "true"
	}
	if !c.background && !background {
		return ""
	}
	for w := range strings.FieldsSeq(c.brief) {
		if w = strings.Trim(w, ".,:;()[]\"'`"); len(w) > 3 && strings.ContainsAny(w, "0123456789") {
			return w
		}
	}
	return ""
}
