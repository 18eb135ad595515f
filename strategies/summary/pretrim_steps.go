package summary

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Cleared replaces a cleared output, followed by the time.
const Cleared = "[Old tool result content cleared]"

// replace replaces an output by a text, on a copy of its message, if that is smaller.
func (t *trimmer) replace(i int, text string) {
	m := *t.messages[i]
	m.Content = shownContent(text)
	size := chat.Tokens(messageTokens(&m))
	if size >= t.sizes[i] {
		return
	}
	t.cut.Outputs++
	t.cut.Tokens += t.sizes[i] - size
	t.messages[i], t.sizes[i] = &m, size
}

// outputs yields the indexes of tool outputs, newest first.
func (t *trimmer) outputs(yield func(int) bool) {
	for i, m := range slices.Backward(t.messages) {
		if m.Role == chat.RoleTool && !yield(i) {
			return
		}
	}
}

// oldest yields the indexes of tool outputs but for the newest few, oldest first, until one prompt
// has room for all messages.
func (t *trimmer) oldest(butFor int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		all := slices.Collect(t.outputs)
		slices.Reverse(all)
		left := t.size(chat.Group{End: len(t.messages)})
		for _, i := range all[:max(0, len(all)-butFor)] {
			was := t.sizes[i]
			if t.window > 0 && left <= t.window || !yield(i) {
				return
			}
			left -= was - t.sizes[i]
		}
	}
}

// tailLines keeps the last lines of each output, and of the others those that report
// failures.
func (t *trimmer) tailLines(p policy.PreTrim) {
	n := p.Lines
	if n == 0 {
		n = defaultLines
	}
	for i := range t.oldest(0) {
		text := t.messages[i].Content.String()
		if from := len(text) - len(lastLines(text, n)); from > 0 {
			t.replace(i, cut(text, 0, from, failing(text[:from])))
		}
	}
}

// lastLines returns the end of s with n lines; a line break at the end begins none.
func lastLines(s string, n int) string {
	at := len(strings.TrimSuffix(s, "\n"))
	for range n {
		if at = strings.LastIndexByte(s[:at], '\n'); at < 0 {
			return s
		}
	}
	return s[at+1:]
}

// failingShare is the share of the tokens of all outputs that lines of older ones may take
// which report failures, shortShare that which outputs of at most shortOutput tokens may take.
const failingShare, shortShare, shortOutput = 4, 4, 100

// capToolContent bounds the tokens of all outputs together: the newest stay, one is cut to its
// end, older ones to the lines that report failures and a note, to the note alone if there are
// too many of these lines, or to nothing if not even the notes fit. Short ones stay, as a note
// would save little.
func (t *trimmer) capToolContent(p policy.PreTrim) {
	left := p.Tokens
	if left == 0 {
		left = defaultToolCap
	}
	var outputs []*output
	notes, lines, short := chat.Tokens(0), left/failingShare, left/shortShare
	for i := range t.outputs {
		o := newOutput(i, t.messages[i].Content.String())
		if all := tokensOf(o.text); all <= min(shortOutput, short) {
			short -= all
			o.note, o.kept, o.failing = all, nil, 0
		} else if lines -= o.failing; lines < 0 {
			o.kept, o.failing = nil, 0
		}
		outputs = append(outputs, o)
		notes += o.note + o.failing
	}
	if notes > left {
		notes = 0
		for _, o := range outputs {
			o.note, o.kept, o.failing = min(o.note, tokensOf(maxNote)), nil, 0
			notes += o.note
		}
	}
	fits := notes <= left
	for _, o := range outputs {
		budget := left
		if fits {
			notes -= o.note + o.failing
			budget -= notes // of the older ones
		}
		if tokensOf(o.text) > budget {
			kept := ""
			if fits {
				kept = o.within(budget)
			}
			t.replace(o.index, kept)
			o.text = kept
		}
		left -= tokensOf(o.text)
	}
}

// output is an output of a tool that may be cut.
type output struct {
	index int
	text  string
	kept  [][2]int
	// note and failing are the tokens that it needs if all is cut: for the note, and for the
	// lines that report failures with a note behind each.
	note, failing chat.Tokens
}

func newOutput(index int, text string) *output {
	o := &output{index: index, text: text, kept: failing(text)}
	all := tokensOf(text)
	o.note = min(all, tokensOf(maxNote))
	for _, k := range o.kept {
		o.failing += tokensOf(text[k[0]:k[1]] + maxNote)
	}
	o.failing = min(all-o.note, o.failing)
	return o
}

// within returns the lines that are kept and the end of the text in at most budget tokens, or
// the lines alone.
func (o *output) within(budget chat.Tokens) string {
	fits := func(n int) (string, bool) {
		from := len(o.text) - n
		for from < len(o.text) && o.text[from]&0xc0 == 0x80 {
			from++
		}
		if n := strings.IndexByte(o.text[from:], '\n') + 1; n > 0 && n < (len(o.text)-from)/2 { // whole lines
			from += n
		}
		short := cut(o.text, 0, from, o.kept)
		return short, tokensOf(short) <= budget
	}
	// Each try is at most three quarters as long as the one before; a few more come close to
	// the budget.
	best, _ := fits(0)
	low, high := 0, min(len(o.text), 8*int(max(0, budget)))
	for n := high; n > minTail && low == 0; n = n * 3 / 4 {
		if short, ok := fits(n); ok {
			best, low = short, n
		} else {
			high = n
		}
	}
	for range 5 {
		n := (low + high) / 2
		if low == 0 || n == low {
			break
		}
		if short, ok := fits(n); ok {
			best, low = short, n
		} else {
			high = n
		}
	}
	return best
}

// minTail is the minimum number of bytes of an output worth keeping.
const minTail = 64

// clearOlder replaces all but the newest outputs by a note with the time and by their lines
// that report failures.
func (t *trimmer) clearOlder(p policy.PreTrim) {
	keep := p.Keep
	if keep == 0 {
		keep = defaultKeep
	}
	note := Cleared + " at " + t.at.UTC().Format(time.RFC3339)
	least := tokensOf(note)
	for i := range t.oldest(keep) {
		if text := t.messages[i].Content.String(); !strings.HasPrefix(text, Cleared) && tokensOf(text) > least {
			lines, kept := []string{note}, 0
			for _, k := range failing(text) {
				lines = append(lines, strings.TrimRight(text[k[0]:k[1]], "\r\n"))
				kept += strings.Count(text[k[0]:k[1]], "\n")
			}
			lines[0] += fmt.Sprintf(", lines left out: %d", strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1-kept)
			t.replace(i, strings.Join(lines, "\n"))
		}
	}
}

// dropAgentItems leaves out the agent's messages and calls, newest first, until the rest
// fits. User messages stay.
func (t *trimmer) dropAgentItems(p policy.PreTrim) {
	groups := groupsOf(t.messages)
	gone := make([]bool, len(groups))
	over := t.over(p)
	for i := len(groups) - 1; i >= 0 && over > 0; i-- {
		if k := groups[i].Kind; k == chat.GroupAssistantText || k == chat.GroupToolCall {
			gone[i] = true
			over -= t.size(groups[i])
		}
	}
	t.drop(groups, gone)
}

// dropOldest leaves out the oldest groups until the rest fits, but never the last user
// message.
func (t *trimmer) dropOldest(p policy.PreTrim) {
	groups := groupsOf(t.messages)
	gone := make([]bool, len(groups))
	last := -1
	for i, g := range groups {
		if g.Kind == chat.GroupUser {
			last = i
		}
	}
	over := t.over(p)
	for i := 0; i < len(groups)-1 && over > 0; i++ {
		if i != last && groups[i].Kind != chat.GroupSystem {
			gone[i] = true
			over -= t.size(groups[i])
		}
	}
	t.drop(groups, gone)
}

// over returns the number of tokens above the limit.
func (t *trimmer) over(p policy.PreTrim) chat.Tokens {
	limit := p.Tokens
	if limit == 0 || t.limit > 0 && t.limit < limit {
		limit = t.limit
	}
	if limit == 0 {
		return 0
	}
	return t.size(chat.Group{End: len(t.messages)}) - limit
}

func (t *trimmer) size(g chat.Group) (n chat.Tokens) {
	for _, s := range t.sizes[g.Start:g.End] {
		n += s
	}
	return n
}

// drop leaves out whole groups.
func (t *trimmer) drop(groups []chat.Group, gone []bool) {
	messages, sizes := make([]*chat.Message, 0, len(t.messages)), make([]chat.Tokens, 0, len(t.messages))
	for i, g := range groups {
		if gone[i] {
			t.cut.Messages += g.End - g.Start
			t.cut.Tokens += t.size(g)
			continue
		}
		messages = append(messages, t.messages[g.Start:g.End]...)
		sizes = append(sizes, t.sizes[g.Start:g.End]...)
	}
	t.messages, t.sizes = messages, sizes
}
