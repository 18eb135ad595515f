package summary

import (
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

// shortOutput is how many tokens an output has that is rather kept whole: outputs of so many may
// take a quarter of the room.
const shortOutput = 100

// capToolContent bounds the tokens of all outputs together, newest first: each has at most half of
// the room that is left, so that older ones have less and their lines that report failures stay.
func (t *trimmer) capToolContent(p policy.PreTrim) {
	left, all := p.Tokens, chat.Tokens(0)
	if left == 0 {
		left = defaultToolCap
	}
	for i := range t.outputs {
		all += tokensOf(t.messages[i].Content.String())
	}
	if all <= left {
		return
	}
	short := left / 4
	left -= short
	for i := range t.outputs {
		text := t.messages[i].Content.String()
		n := tokensOf(text)
		if n <= min(shortOutput, short) {
			short -= n
			continue
		}
		if n > left/2 {
			text = endWithin(text, left/2)
			t.replace(i, text)
		}
		left -= tokensOf(text)
	}
}

// minTail is the minimum number of bytes of an output worth keeping.
const minTail = 64

// endWithin returns the lines of an output that report failures and its end in at most budget
// tokens, or as much of this as fits.
func endWithin(text string, budget chat.Tokens) string {
	kept := failing(text)
	for n := min(len(text), bytesPerToken*int(max(0, budget))); n > 0; n = n * 7 / 8 {
		from := len(text) - n
		if n <= minTail {
			n, from = 0, len(text)
		}
		for from < len(text) && text[from]&0xc0 == 0x80 {
			from++
		}
		if n := strings.IndexByte(text[from:], '\n') + 1; n > 0 && n < (len(text)-from)/2 { // whole lines
			from += n
		}
		if short := cut(text, 0, from, kept); tokensOf(short) <= budget {
			return short
		}
	}
	if short := cut(text, 0, len(text), nil); tokensOf(short) <= budget {
		return short
	}
	return ""
}

// clearOlder replaces all but the newest outputs by a note with the time and by their lines
// that report failures.
func (t *trimmer) clearOlder(p policy.PreTrim) {
	keep := p.Keep
	if keep == 0 {
		keep = defaultKeep
	}
	note := Cleared + " at " + t.at.UTC().Format(time.RFC3339)
	for i := range t.oldest(keep) {
		if text := t.messages[i].Content.String(); !strings.HasPrefix(text, Cleared) && len(text) > len(note) {
			t.replace(i, strings.TrimSpace(note+"\n"+cut(text, 0, len(text), failing(text))))
		}
	}
}

// dropAgentItems leaves out the agent's messages and calls, newest first, until the rest
// fits. User messages stay.
func (t *trimmer) dropAgentItems(p policy.PreTrim) {
	groups := groupsOf(t.messages)
	slices.Reverse(groups)
	t.drop(p, groups, func(g chat.Group) bool { return g.Kind == chat.GroupAssistantText || g.Kind == chat.GroupToolCall })
}

// dropOldest leaves out the oldest groups until the rest fits, but never the last user
// message, nor the newest group.
func (t *trimmer) dropOldest(p policy.PreTrim) {
	groups := groupsOf(t.messages)
	last := -1
	for _, g := range groups {
		if g.Kind == chat.GroupUser {
			last = g.Start
		}
	}
	t.drop(p, groups, func(g chat.Group) bool {
		return g.Start != last && g.End < len(t.messages) && g.Kind != chat.GroupSystem
	})
}

func (t *trimmer) size(g chat.Group) (n chat.Tokens) {
	for _, s := range t.sizes[g.Start:g.End] {
		n += s
	}
	return n
}

// drop leaves out groups that may go, in their order, until the rest fits into the limit.
func (t *trimmer) drop(p policy.PreTrim, groups []chat.Group, may func(chat.Group) bool) {
	limit := p.Tokens
	if limit == 0 || t.limit > 0 && t.limit < limit {
		limit = t.limit
	}
	over := t.size(chat.Group{End: len(t.messages)}) - limit
	gone := make([]bool, len(t.messages))
	for _, g := range groups {
		if limit == 0 || over <= 0 {
			break
		}
		if !may(g) {
			continue
		}
		size := t.size(g)
		over -= size
		t.cut.add(Trim{Messages: g.End - g.Start, Tokens: size})
		for i := g.Start; i < g.End; i++ {
			gone[i] = true
		}
	}
	var messages []*chat.Message
	var sizes []chat.Tokens
	for i, m := range t.messages {
		if !gone[i] {
			messages, sizes = append(messages, m), append(sizes, t.sizes[i])
		}
	}
	t.messages, t.sizes = messages, sizes
}
