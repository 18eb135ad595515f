package retention

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Limits of the search for labels. A label is a word at most that many characters before
// an identifier; occurrences are examined from the last one back.
const (
	labelReach = 40 // before the cut
	labelCount = 2  // words per occurrence
	labelSeen  = 12 // occurrences
	keptReach  = 60 // in the kept messages, where all words count
	keptSeen   = 40
)

// CutIndex returns the index of the first message after a cut at a share of the tokens:
// the cut follows the message that reaches the share and the tool results after it. It
// returns len(ms) if no message is left after the cut.
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

// Need describes an identifier that has to be retained.
type Need struct {
	ID string
	// Strict reports whether the assistant is the first to use it after the cut.
	Strict bool
}

// Case holds a session cut in two. It is immutable and safe for concurrent use.
type Case struct {
	// Pre holds the messages before the cut, Post those after it. The caller owns them.
	Pre, Post []chat.Message
	// Tokens is the size of Pre without its system messages.
	Tokens float64
	Needs  []Need
	// Strict is the number of strict needs.
	Strict int

	labels [][]string // by need; empty if no label precedes it
	// known holds the identifiers of Pre, always those of its system messages, and used those that
	// the user or the assistant uses in Post.
	known, always, used map[string]bool
	wants               wants
	words               []string // see usedAgain
}

// NewCase cuts a session at a share of its tokens. It returns nil if nothing can be
// measured: no message follows the cut, only system messages precede it, or no
// identifier from before the cut is used after it and no fact stands before it. facts are
// those of the session.
func NewCase(ms []chat.Message, share float64, facts ...Fact) *Case {
	i := CutIndex(ms, share)
	return NewCaseOf(ms[:i], ms[i:], facts...)
}

// NewCaseOf returns the case of a session that the caller has cut, or nil as NewCase does.
func NewCaseOf(pre, post []chat.Message, facts ...Fact) *Case {
	c := &Case{Pre: pre, Post: post, Tokens: Total(pre), known: map[string]bool{}, always: map[string]bool{}, used: map[string]bool{}}
	if len(post) == 0 || c.Tokens == 0 {
		return nil
	}
	c.findNeeds()
	var answers []string
	for _, f := range facts {
		if f.Message < len(pre) {
			answers = append(answers, f.Answer)
		}
	}
	if len(c.Needs)+len(answers) == 0 {
		return nil
	}
	c.labels = make([][]string, len(c.Needs))
	o := newOccurrences(pre)
	c.wants, c.words = newWants(pre, post, o, c.always), usedAgain(pre, post)
	c.wants.facts = answers
	for k, n := range c.Needs {
		o.backwards(n.ID, func(nth int, text string, at int) bool {
			before := labels(text, at, labelReach)
			c.labels[k] = distinct(append(c.labels[k], before[max(0, len(before)-labelCount):]...))
			return nth+1 < labelSeen
		})
	}
	return c
}

// findNeeds sets the identifiers and the needs: identifiers of Pre that the user or the assistant uses
// in Post, in the order of their first use, without those of system messages.
func (c *Case) findNeeds() {
	for i := range c.Pre {
		for _, id := range ids(Text(&c.Pre[i])) {
			c.known[id] = true
			c.always[id] = c.always[id] || system(&c.Pre[i])
		}
	}
	seen, at := map[string]bool{}, map[string]int{}
	for i := range c.Post {
		role := c.Post[i].Role
		said := role == chat.RoleAssistant || role == chat.RoleUser
		for _, id := range ids(Text(&c.Post[i])) {
			first := !seen[id]
			seen[id], c.used[id] = true, c.used[id] || said
			if !said || !c.known[id] || c.always[id] {
				continue
			}
			if _, ok := at[id]; !ok {
				at[id] = len(c.Needs)
				c.Needs = append(c.Needs, Need{ID: id})
			}
			if role == chat.RoleAssistant && first {
				c.Needs[at[id]].Strict = true
				c.Strict++
			}
		}
	}
}

// Score holds the tokens that a policy kept of a case and the number of needs among them.
type Score struct {
	Tokens               float64
	Loose, Keyed, Strict int
}

// Score measures the messages kept of Pre, system messages included.
func (c *Case) Score(kept []chat.Message) Score {
	s, _ := c.score(kept, newOccurrences(kept))
	return s
}

// score returns the score of kept messages with these texts, and Detail.Held.
func (c *Case) score(kept []chat.Message, o occurrences) (s Score, held []byte) {
	s.Tokens = Total(kept)
	held = bits(c.Needs, func(k int, n Need) bool {
		loose, keyed := false, false
		o.backwards(n.ID, func(nth int, text string, at int) bool {
			loose, keyed = true, len(c.labels[k]) == 0
			if !keyed {
				keyed = slices.ContainsFunc(labels(text, at, keptReach), func(w string) bool { return slices.Contains(c.labels[k], w) })
			}
			return !keyed && nth+1 < keptSeen
		})
		if loose {
			s.Loose++
		}
		if keyed {
			s.Keyed++
		}
		if loose && n.Strict {
			s.Strict++
		}
		return loose
	})
	return s, held
}

// bits sets a bit for each element that is held, the first in the lowest bit of the first byte.
func bits[T any](all []T, held func(k int, v T) bool) []byte {
	out := make([]byte, (len(all)+7)/8)
	for k, v := range all {
		if held(k, v) {
			out[k/8] |= 1 << (k % 8)
		}
	}
	return out
}
