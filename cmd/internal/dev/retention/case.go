package retention

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
)

// How far labels reach, in characters, and how many of them count.
const (
	labelReach = 40 // before an identifier, ahead of the cut
	labelCount = 2  // the last words of it
	labelSeen  = 12 // occurrences that are looked at, from the last one back
	keptReach  = 60 // the same in what was kept, where every word counts
	keptSeen   = 40
)

// CutIndex returns where a session is cut at a share of its tokens: behind the message
// with which the share is reached, and behind the tool results that follow it. It
// is len(ms) where nothing is left behind the cut.
func CutIndex(ms []chat.Message, share float64) int {
	var total, sum float64
	for i := range ms {
		total += Tokens(&ms[i])
	}
	for i := range ms {
		if sum += Tokens(&ms[i]); sum >= share*total {
			i++
			for i < len(ms) && ms[i].Role == chat.RoleTool {
				i++
			}
			return i
		}
	}
	return len(ms)
}

// Need is an identifier that has to be retained.
type Need struct {
	ID   string
	Kind extract.Kind
	// Strict: the assistant is the first behind the cut to say it.
	Strict bool
}

// Needed returns the identifiers of pre, but not of its system messages, that the user
// or the assistant uses in post, in the order of their first use.
func Needed(pre, post []chat.Message) []Need {
	known := map[string]extract.Kind{}
	always := map[string]bool{}
	for i := range pre {
		bySystem := system(&pre[i])
		each(Text(&pre[i]), func(id string, kind extract.Kind) {
			if bySystem {
				always[id] = true
			}
			if _, ok := known[id]; !ok {
				known[id] = kind
			}
		})
	}
	var out []Need
	seen, at := map[string]bool{}, map[string]int{}
	for i := range post {
		role := post[i].Role
		each(Text(&post[i]), func(id string, _ extract.Kind) {
			kind, ok := known[id]
			if !ok || always[id] {
				return
			}
			first := !seen[id]
			seen[id] = true
			if role != chat.RoleAssistant && role != chat.RoleUser {
				return
			}
			if _, ok := at[id]; !ok {
				at[id] = len(out)
				out = append(out, Need{ID: id, Kind: kind})
			}
			if role == chat.RoleAssistant && first {
				out[at[id]].Strict = true
			}
		})
	}
	return out
}

// each calls do with every identifier of a text, once each; a value in several
// classes has the first.
func each(text string, do func(id string, kind extract.Kind)) {
	seen := map[string]bool{}
	extract.All(text, func(kind extract.Kind, start, end int) {
		if id := text[start:end]; !seen[id] {
			seen[id] = true
			do(id, kind)
		}
	})
}

// ids returns the identifiers of a text, once each, by class and within one in the
// order of the text.
func ids(text string) []string {
	var byKind [extract.Quoted + 1][]string
	each(text, func(id string, kind extract.Kind) { byKind[kind] = append(byKind[kind], id) })
	return slices.Concat(byKind[:]...)
}

// Case is a session that is cut in two, and what has to be retained of it. It is
// immutable and safe for concurrent use.
type Case struct {
	// Pre is what is before the cut, Post what is behind it. They are the caller's.
	Pre, Post []chat.Message
	// Tokens are those of Pre, without the system's.
	Tokens float64
	// Needs are not empty.
	Needs []Need
	// Strict is how many of them are strict.
	Strict int

	matcher *matcher
	labels  [][]string // of each need, none where nothing labelled it
}

// NewCase cuts a session at a share of its tokens. It is nil where nothing can be
// measured: nothing is behind the cut, nothing but system messages before it, or
// nothing of what was said before it is used behind it.
func NewCase(ms []chat.Message, share float64) *Case {
	i := CutIndex(ms, share)
	return NewCaseOf(ms[:i], ms[i:])
}

// NewCaseOf is NewCase of a session that was cut elsewhere.
func NewCaseOf(pre, post []chat.Message) *Case {
	c := &Case{Pre: pre, Post: post, Tokens: Total(pre)}
	if len(post) == 0 || c.Tokens == 0 {
		return nil
	}
	if c.Needs = Needed(pre, post); len(c.Needs) == 0 {
		return nil
	}
	words := make([]string, len(c.Needs))
	for k, n := range c.Needs {
		words[k] = n.ID
		if n.Strict {
			c.Strict++
		}
	}
	c.matcher, c.labels = newMatcher(words), make([][]string, len(c.Needs))
	var buf []string
	c.backwards(pre, func(k int32, nth int, text string, at int) bool {
		buf = extract.AppendLabels(buf[:0], text, at, labelReach)
		for _, w := range buf[max(0, len(buf)-labelCount):] {
			if !slices.Contains(c.labels[k], w) {
				c.labels[k] = append(c.labels[k], strings.Clone(w))
			}
		}
		return nth+1 < labelSeen
	})
	return c
}

// backwards calls do for the occurrences of needs in messages, from the last one
// of each back, which do not overlap, until it returns false for that need. nth
// counts the occurrences of a need; the occurrence starts at the octet at of text.
func (c *Case) backwards(ms []chat.Message, do func(need int32, nth int, text string, at int) bool) {
	type state struct {
		nth  int32
		done bool
	}
	states := make([]state, len(c.Needs))
	low := make([]int, len(c.Needs)) // where the occurrence before started, in this text
	stamp := make([]int32, len(c.Needs))
	var found []match
	for i := range slices.Backward(ms) {
		text := Text(&ms[i])
		found = c.matcher.find(found[:0], text)
		for _, f := range slices.Backward(found) {
			s := &states[f.word]
			if s.done || stamp[f.word] == int32(i)+1 && f.end > low[f.word] {
				continue
			}
			start := f.end - int(c.matcher.sizes[f.word])
			stamp[f.word], low[f.word] = int32(i)+1, start
			s.done = !do(f.word, int(s.nth), text, start)
			s.nth++
		}
	}
}

// Score is what a policy kept of a case: tokens, and how many of the needs.
type Score struct {
	Tokens               float64
	Loose, Keyed, Strict int
}

// Score measures what was kept of Pre, system messages included.
func (c *Case) Score(kept []chat.Message) Score {
	s := Score{Tokens: Total(kept)}
	loose, keyed := make([]bool, len(c.Needs)), make([]bool, len(c.Needs))
	var buf []string
	c.backwards(kept, func(k int32, nth int, text string, at int) bool {
		loose[k] = true
		keyed[k] = len(c.labels[k]) == 0
		if !keyed[k] {
			buf = extract.AppendLabels(buf[:0], text, at, keptReach)
			keyed[k] = slices.ContainsFunc(buf, func(w string) bool { return slices.Contains(c.labels[k], w) })
		}
		return !keyed[k] && nth+1 < keptSeen
	})
	for k := range c.Needs {
		if !loose[k] {
			continue
		}
		s.Loose++
		if keyed[k] {
			s.Keyed++
		}
		if c.Needs[k].Strict {
			s.Strict++
		}
	}
	return s
}
