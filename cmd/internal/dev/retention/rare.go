package retention

import (
	"hash/fnv"
	"sync"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Corpus counts the sessions that each identifier occurs in. It holds a number for each
// distinct identifier and is safe for concurrent use.
type Corpus struct {
	mu       sync.Mutex
	sessions int
	counts   map[ID]int32
}

// ID is a hash of an identifier.
type ID uint64

func idOf(id string) ID {
	h := fnv.New64a()
	h.Write([]byte(id))
	return ID(h.Sum64())
}

// NewCorpus returns a corpus without sessions.
func NewCorpus() *Corpus { return &Corpus{counts: map[ID]int32{}} }

// Add counts the identifiers of a session.
func (c *Corpus) Add(ms []chat.Message) {
	found := map[ID]bool{}
	for i := range ms {
		for _, id := range ids(Text(&ms[i])) {
			found[idOf(id)] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions++
	for id := range found {
		c.counts[id]++
	}
}

// IDs returns the hashes of needs.
func IDs(needs []Need) []ID {
	out := make([]ID, len(needs))
	for i, n := range needs {
		out[i] = idOf(n.ID)
	}
	return out
}

// Rare counts the needs that occur in at most 5 % of the sessions, or in two, and those of
// them that are held (see Detail).
func (c *Corpus) Rare(needs []ID, held []byte) (n Count) {
	for k, id := range needs {
		if float64(c.counts[id]) > max(2, 0.05*float64(c.sessions)) {
			continue
		}
		n.Of++
		if k/8 < len(held) && held[k/8]&(1<<(k%8)) != 0 {
			n.Kept++
		}
	}
	return n
}
