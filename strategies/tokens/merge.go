package tokens

import (
	"math"
	"slices"
)

// merges says which two tokens make a third. Each token that merging can produce is made of the
// same two wherever it occurs: no merge has crossed its ends before, so those within are the ones
// of its bytes alone. So a pair of tokens is enough to look up their product, without their bytes.
type merges struct {
	bytes [256]uint32 // the tokens of single bytes
	// pairs is a hash table with open addressing, less than half full: a left token, a right one
	// and their product, of tokenBits each. An empty entry is 0, as token 0 is a single byte.
	pairs []uint64
	shift uint8
	// filter has a bit for the hash of each pair in the table. Most pairs make no token, and it
	// says so from a quarter of a megabyte.
	filter [1 << (filterBits - 6)]uint64
	size   []uint8 // the lengths of all tokens in bytes
}

const (
	filterBits = 21
	tokenBits  = 18
	maxToken   = 1<<tokenBits - 1
	// none is the rank of a pair that makes no token.
	none = math.MaxUint32
)

// pair returns the token that two tokens make, which is its rank, or none.
func (m *merges) pair(left, right uint32) uint32 {
	key := uint64(left)<<tokenBits | uint64(right)
	h := key * multiplier
	if word, bit := inFilter(h); m.filter[word]>>bit&1 == 0 {
		return none
	}
	for at := h >> m.shift; ; at++ {
		at &= uint64(len(m.pairs) - 1)
		e := m.pairs[at]
		if e == 0 {
			return none
		}
		if e>>tokenBits == key {
			return uint32(e & maxToken)
		}
	}
}

func (m *merges) add(left, right, made uint32) {
	key := uint64(left)<<tokenBits | uint64(right)
	h := key * multiplier
	word, bit := inFilter(h)
	m.filter[word] |= 1 << bit
	at := h >> m.shift
	for m.pairs[at] != 0 {
		at = (at + 1) & uint64(len(m.pairs)-1)
	}
	m.pairs[at] = key<<tokenBits | uint64(made)
}

func inFilter(h uint64) (word, bit uint64) {
	return h >> (64 - filterBits + 6), h >> (64 - filterBits) & 63
}

// scratch holds the tokens of a piece while they are merged, and the rank of each with the
// next one.
type scratch struct{ ids, ranks []uint32 }

// encode returns the tokens of a piece, which the next call overwrites. It takes time
// proportional to the length of the piece times the number of different tokens made.
func (m *merges) encode(piece string, buf *scratch) []uint32 {
	n := len(piece)
	if n > len(buf.ids) {
		buf.ids, buf.ranks = make([]uint32, n), make([]uint32, n)
	}
	ids, ranks := buf.ids[:n], buf.ranks[:n]
	for i := range n {
		ids[i] = m.bytes[piece[i]]
	}
	for i := 1; i < n; i++ {
		ranks[i-1] = m.pair(ids[i-1], ids[i])
	}
	ranks[n-1] = none
	for {
		rank := lowest(ranks)
		if rank == none {
			return ids
		}
		n = m.merge(ids, ranks, rank)
		ids, ranks = ids[:n], ranks[:n]
	}
}

// lowest returns the minimum of ranks. Four of them do not wait for each other, which is twice
// as fast as one.
func lowest(ranks []uint32) uint32 {
	a, b, c, d := uint32(none), uint32(none), uint32(none), uint32(none)
	for len(ranks) >= 4 {
		a, b, c, d = min(a, ranks[0]), min(b, ranks[1]), min(c, ranks[2]), min(d, ranks[3])
		ranks = ranks[4:]
	}
	for _, r := range ranks {
		a = min(a, r)
	}
	return min(a, b, c, d)
}

// merge merges all pairs of the lowest rank, from left to right, and returns how many tokens
// remain. Their product is part of pairs of higher ranks only, as tokens are made of earlier
// ones, so the order of ranks is kept.
func (m *merges) merge(ids, ranks []uint32, rank uint32) int {
	to := slices.Index(ranks, rank)
	for from := to; from < len(ids); from++ {
		id := ids[from]
		if ranks[from] == rank {
			id = rank
			from++
		}
		ids[to], ranks[to] = id, ranks[from]
		if to > 0 && (id == rank || ids[to-1] == rank) {
			ranks[to-1] = m.pair(ids[to-1], id)
		}
		to++
	}
	return to
}

// window is the length in bytes of the parts in which a longer piece is merged: short, because
// merging is quadratic, and several times longer than most tokens.
const window = 32

// count returns the number of tokens of a piece. It merges a long one in parts of some size, in
// time linear in the length of the piece, and keeps the first tokens of each part; the next part
// begins after them. This gives the tokens of the whole if each two tokens that meet stay apart
// when they are merged by themselves, which fails only if a token reaches from the text after a
// part into the tokens that were kept of it. Then the part is merged again with more text.
//
// For the proof, see https://github.com/github/rust-gems/tree/main/crates/bpe.
func (m *merges) count(piece string, buf *scratch) int {
	if len(piece) <= window {
		return len(m.encode(piece, buf))
	}
	type part struct{ start, size, before, tokens int } // before: the length of the token before it
	least := window
	was, now := part{size: least}, part{size: least}
	for {
		end := min(now.start+now.size, len(piece))
		ids := m.encode(piece[now.start:end], buf)
		all, first := len(ids), int(m.size[ids[0]])
		next := now
		if end < len(piece) {
			for _, id := range ids {
				n := int(m.size[id])
				if next.start+n > end-now.size/4 {
					break
				}
				next.start, next.before, next.tokens = next.start+n, n, next.tokens+1
			}
		}
		switch {
		case now.before > 0 && !m.apart(piece[now.start-now.before:now.start+first], now.before, buf):
			if was == now { // not even the last part but one was right
				least *= 2
				was = part{size: least / 2}
			}
			was.size *= 2
			now = was
		case end == len(piece):
			return now.tokens + all
		case next.start == now.start:
			now.size *= 2
		default:
			next.size = max(least, now.size/2)
			was, now = now, next
		}
	}
}

// apart reports whether two tokens, of which the first one has n bytes, stay apart.
func (m *merges) apart(both string, n int, buf *scratch) bool {
	ids := m.encode(both, buf)
	return len(ids) == 2 && int(m.size[ids[0]]) == n
}
