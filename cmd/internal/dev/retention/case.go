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

// Needed returns the identifiers of pre that the user or the assistant uses in post, in
// the order of their first use, without those in system messages of pre.
func Needed(pre, post []chat.Message) []Need {
	return newIdentifiers(pre, post).needs
}

// identifiers holds the identifiers of a session that is cut in two.
type identifiers struct {
	needs []Need
	// known holds those of pre, always those of its system messages, and used those that the
	// user or the assistant uses in post.
	known, always, used map[string]bool
}

func newIdentifiers(pre, post []chat.Message) identifiers {
	known, always, used := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range pre {
		bySystem := system(&pre[i])
		for _, id := range ids(Text(&pre[i])) {
			known[id] = true
			always[id] = always[id] || bySystem
		}
	}
	var out []Need
	seen, at := map[string]bool{}, map[string]int{}
	for i := range post {
		role := post[i].Role
		said := role == chat.RoleAssistant || role == chat.RoleUser
		for _, id := range ids(Text(&post[i])) {
			used[id] = used[id] || said
			if !known[id] || always[id] {
				continue
			}
			first := !seen[id]
			seen[id] = true
			if !said {
				continue
			}
			if _, ok := at[id]; !ok {
				at[id] = len(out)
				out = append(out, Need{ID: id})
			}
			if role == chat.RoleAssistant && first {
				out[at[id]].Strict = true
			}
		}
	}
	return identifiers{out, known, always, used}
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
	// known and used are those of identifiers.
	known, used map[string]bool
	wants       wants
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
	c := &Case{Pre: pre, Post: post, Tokens: Total(pre)}
	if len(post) == 0 || c.Tokens == 0 {
		return nil
	}
	facts = slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool { return f.Message >= len(pre) })
	all := newIdentifiers(pre, post)
	if c.Needs = all.needs; len(c.Needs)+len(facts) == 0 {
		return nil
	}
	c.known, c.used = all.known, all.used
	c.labels = make([][]string, len(c.Needs))
	o := newOccurrences(pre)
	c.wants = newWants(pre, post, o, all.always)
	for _, f := range facts {
		c.wants.facts = append(c.wants.facts, f.Answer)
	}
	for k, n := range c.Needs {
		if n.Strict {
			c.Strict++
		}
		o.backwards(n.ID, func(nth int, text string, at int) bool {
			before := labels(text, at, labelReach)
			for _, w := range before[max(0, len(before)-labelCount):] {
				c.labels[k] = appendNew(c.labels[k], w)
			}
			return nth+1 < labelSeen
		})
	}
	return c
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

// score returns the score of kept messages, which o indexes, and Detail.Held.
func (c *Case) score(kept []chat.Message, o *occurrences) (s Score, held []byte) {
	s.Tokens, held = Total(kept), make([]byte, (len(c.Needs)+7)/8)
	for k, n := range c.Needs {
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
			held[k/8] |= 1 << (k % 8)
		}
		if keyed {
			s.Keyed++
		}
		if loose && n.Strict {
			s.Strict++
		}
	}
	return s, held
}
