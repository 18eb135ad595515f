package web

import (
	"math"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// mostBlocks is the number of blocks of a lane, and pixel the width of one in per cent.
const (
	mostBlocks = 1100
	pixel      = 100.0 / mostBlocks
)

// letters are the kinds of messages as a timeline has them, and kinds the classes of their colours and their names.
const letters = "tcuasoMR"

var kinds = [len(letters)]struct{ class, one, many string }{
	{"result", "tool result", "tool results"},
	{"call", "tool call", "tool calls"},
	{"user", "user", "by the user"},
	{"assistant", "assistant", "by the assistant"},
	{"system", "system prompt", "system prompts"},
	{"system", "other message", "other messages"},
	{"summary", "summary", "summaries"},
	{"replacement", "shortened message", "shortened messages"},
}

// Places in kinds.
const (
	kindResult      = 0
	kindCall        = 1
	kindUser        = 2
	kindAssistant   = 3
	kindSystem      = 4
	kindOther       = 5
	kindSummary     = 6
	kindReplacement = 7
)

// kindOf returns the kind of a message by its role.
func kindOf(r chat.Role) int {
	switch r {
	case chat.RoleTool:
		return kindResult
	case chat.RoleUser:
		return kindUser
	case chat.RoleAssistant:
		return kindAssistant
	case chat.RoleSystem, chat.RoleDeveloper:
		return kindSystem
	case chat.RoleFunction:
	}
	return kindOther
}

// States of messages at a moment.
const (
	inView = iota
	outOfView
	notYet
)

// tally counts messages by kind.
type tally struct {
	Messages int
	Tokens   chat.Tokens
	counts   [len(letters)]int
	sizes    [len(letters)]chat.Tokens
}

func (t *tally) add(o *tally) {
	t.Messages, t.Tokens = t.Messages+o.Messages, t.Tokens+o.Tokens
	for k := range letters {
		t.counts[k] += o.counts[k]
		t.sizes[k] += o.sizes[k]
	}
}

// kind returns the kind with the most tokens.
func (t *tally) kind() (most int) {
	for k := range letters {
		if t.sizes[k] > t.sizes[most] || t.counts[most] == 0 {
			most = k
		}
	}
	return most
}

// String returns the numbers of messages by kind, the most first.
func (t *tally) String() string {
	order := []int{0, 1, 2, 3, 4, 5, 6, 7}
	slices.SortStableFunc(order, func(a, b int) int { return t.counts[b] - t.counts[a] })
	var parts []string
	for _, k := range order {
		name := kinds[k].many
		if t.counts[k] == 1 && !strings.HasPrefix(name, "by ") {
			name = kinds[k].one
		}
		if t.counts[k] > 0 {
			parts = append(parts, term.Count(t.counts[k])+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}

// block is a part of a lane, in per cent of it: a message, or neighbours too small for a block of their own.
type block struct {
	X, W   float64
	First  chat.Seq
	states [3]chat.Tokens
	tally
}

// state returns the state with the most tokens.
func (b *block) state() (most int) {
	for s, n := range b.states {
		if n > b.states[most] {
			most = s
		}
	}
	return most
}

func (b *block) users() bool { return b.counts[kindUser] == b.Messages }

// take adds the block behind it.
func (b *block) take(o *block) {
	b.W = o.X + o.W - b.X
	b.add(&o.tally)
	for s, n := range o.states {
		b.states[s] += n
	}
}

// timeline is a timeline with a scale.
type timeline struct{ store.Timeline }

// Total returns the tokens said.
func (l *timeline) Total() chat.Tokens {
	if n := len(l.Messages.Said); n > 0 {
		return l.Messages.Said[n-1]
	}
	return 0
}

// kind returns the kind of a message by its place, and written whether a run wrote it.
func (l *timeline) kind(i int) int     { return max(0, strings.IndexByte(letters, l.Messages.Kinds[i])) }
func (l *timeline) written(i int) bool { return l.kind(i) >= kindSummary }

// place returns the place of the message with a seq, or of the last one before it; -1 for none.
func (l *timeline) place(seq chat.Seq) int {
	i, found := slices.BinarySearch(l.Messages.Seqs, seq)
	if !found {
		i--
	}
	return i
}

// said returns the tokens said up to and with a message, and end that in per cent.
func (l *timeline) said(seq chat.Seq) chat.Tokens {
	if i := l.place(seq); i >= 0 {
		return l.Messages.Said[i]
	}
	return 0
}

func (l *timeline) end(seq chat.Seq) float64 {
	return 100 * float64(l.said(seq)) / math.Max(1, float64(l.Total()))
}

// tail returns the first of the last messages said that are all in a view, 0 if these are all or none.
func (l *timeline) tail(view chat.Ranges, until chat.Seq) (tail chat.Seq) {
	for i, q := range slices.Backward(l.Messages.Seqs) {
		switch {
		case q > until || l.written(i):
		case !view.Has(q):
			return tail
		default:
			tail = q
		}
	}
	return 0
}

// size returns the tokens of the messages of these that were said.
func (l *timeline) size(of chat.Ranges) (n chat.Tokens) {
	for _, r := range of {
		n += l.said(r.Hi-1) - l.said(r.Lo-1)
	}
	return n
}

// blocks returns the blocks of all that was said. None crosses the edge of a state, unless the states alone are more than
// mostBlocks: then that of the most tokens counts.
func (l *timeline) blocks(state func(chat.Seq) int) []block {
	out := l.merge(state, false)
	if len(out) > mostBlocks {
		out = l.merge(state, true)
	}
	return out
}

func (l *timeline) merge(state func(chat.Seq) int, across bool) (out []block) {
	var open block // of neighbours that are too small
	from, current, x := 0, -1, 0.0
	flush := func() {
		switch n := len(out); {
		case open.Messages == 0:
		case open.W < pixel && n > from && (across || !open.users()):
			out[n-1].take(&open)
		default:
			out = append(out, open)
		}
		open = block{}
	}
	for i, q := range l.Messages.Seqs {
		if l.written(i) {
			continue
		}
		b := block{X: x, First: q, tally: l.tally(i)}
		x = l.end(q)
		b.W = x - b.X
		s := state(q)
		if b.states[s] = max(1, b.Tokens); s != current && !across {
			flush()
			widen(out[from:])
			current, from = s, len(out)
		}
		if b.W >= pixel {
			flush()
			out = append(out, b)
			continue
		}
		if open.Messages == 0 {
			open = b
		} else {
			open.take(&b)
		}
		if open.W >= pixel {
			flush()
		}
	}
	flush()
	widen(out[from:])
	return out
}

// tally returns the count of one message.
func (l *timeline) tally(i int) (t tally) {
	t.Messages, t.Tokens = 1, l.Messages.Tokens[i]
	t.counts[l.kind(i)], t.sizes[l.kind(i)] = 1, t.Tokens
	return t
}

// widen gives the blocks of the user's messages two pixels, which it takes from the larger neighbour.
func widen(blocks []block) {
	for i := range blocks {
		b, j := &blocks[i], i-1
		if i+1 < len(blocks) && (j < 0 || blocks[i+1].W > blocks[j].W) {
			j = i + 1
		}
		more := 2*pixel - b.W
		if !b.users() || more <= 0 || j < 0 || blocks[j].W < more+2*pixel {
			continue
		}
		blocks[j].W, b.W = blocks[j].W-more, b.W+more
		if j < i {
			b.X -= more
		} else {
			blocks[j].X += more
		}
	}
}
