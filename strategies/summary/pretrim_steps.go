package summary

import (
	"slices"
	"strconv"
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
	m.Content = chat.TextContent(text)
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

// tailLines keeps the last lines of each output.
func (t *trimmer) tailLines(p policy.PreTrim) {
	n := p.Lines
	if n == 0 {
		n = defaultLines
	}
	for i := range t.outputs {
		text := t.messages[i].Content.String()
		tail := lastLines(text, n)
		if len(tail) == len(text) {
			continue
		}
		cut := strings.Count(text[:len(text)-len(tail)], "\n")
		note := "[" + strconv.Itoa(cut) + " earlier lines cut]\n"
		if len(note) < len(text)-len(tail) {
			t.replace(i, note+tail) // joined, so that the rest of the text is not kept
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

// capToolContent bounds the tokens of all outputs together: the newest stay, one is
// cut to its end, older ones to a note, or to nothing if not even their notes fit.
func (t *trimmer) capToolContent(p policy.PreTrim) {
	left := p.Tokens
	if left == 0 {
		left = defaultToolCap
	}
	const note = "[output cut]"
	least := tokensOf(note)
	count := chat.Tokens(0)
	for range t.outputs {
		count++
	}
	notes := count*least <= left
	for i := range t.outputs {
		count--
		budget := left
		if notes {
			budget -= count * least // older ones need their notes
		}
		text := t.messages[i].Content.String()
		if tokensOf(text) > budget {
			kept := ""
			if notes {
				kept = tailWithin(text, note, budget)
			}
			t.replace(i, kept)
			text = kept
		}
		left -= tokensOf(text)
	}
}

// tailWithin returns the note with the end of a text, in at most budget tokens, or the note
// alone.
func tailWithin(text, note string, budget chat.Tokens) string {
	fits := func(n int) (string, bool) {
		from := len(text) - n
		for from < len(text) && text[from]&0xc0 == 0x80 {
			from++
		}
		cut := note + "\n" + text[from:]
		return cut, tokensOf(cut) <= budget
	}
	// Each try is at most three quarters as long as the one before, so all of them
	// together are linear; a few more come close to the budget.
	best, low, high := note, 0, min(len(text), 8*int(max(0, budget)))
	for n := high; n > minTail && low == 0; n = n * 3 / 4 {
		if cut, ok := fits(n); ok {
			best, low = cut, n
		} else {
			high = n
		}
	}
	for range 5 {
		n := (low + high) / 2
		if low == 0 || n == low {
			break
		}
		if cut, ok := fits(n); ok {
			best, low = cut, n
		} else {
			high = n
		}
	}
	return best
}

// minTail is the minimum number of bytes of an output worth keeping.
const minTail = 64

// clearOlder replaces all but the newest outputs by a note with the time.
func (t *trimmer) clearOlder(p policy.PreTrim) {
	keep := p.Keep
	if keep == 0 {
		keep = defaultKeep
	}
	note := Cleared + " at " + t.at.UTC().Format(time.RFC3339)
	least := tokensOf(note)
	for i := range t.outputs {
		if keep > 0 {
			keep--
			continue
		}
		if text := t.messages[i].Content.String(); !strings.HasPrefix(text, Cleared) && tokensOf(text) > least {
			t.replace(i, note)
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
