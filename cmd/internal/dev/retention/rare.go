package retention

import (
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Corpus counts the sessions that each identifier and each word occurs in. It holds a number for
// each of them and is safe for concurrent use.
type Corpus struct {
	mu       sync.Mutex
	sessions int
	counts   map[ID]int32
}

// ID is a hash of an identifier or of a word.
type ID uint64

func idOf(id string) ID {
	h := fnv.New64a()
	h.Write([]byte(id))
	return ID(h.Sum64())
}

// wordID returns the hash of a word, which is not that of an identifier.
func wordID(w string) ID { return idOf(w + " ") }

// NewCorpus returns a corpus without sessions.
func NewCorpus() *Corpus { return &Corpus{counts: map[ID]int32{}} }

// Add counts the identifiers and words of a session.
func (c *Corpus) Add(ms []chat.Message) {
	found := map[ID]bool{}
	for i := range ms {
		text := Text(&ms[i])
		for _, id := range ids(text) {
			found[idOf(id)] = true
		}
		for w := range words(text, isLetter) {
			found[wordID(w)] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions++
	for id := range found {
		c.counts[id]++
	}
}

// IDs returns the hashes of the needs and of the words of a case, in their order.
func (c *Case) IDs() (needs, words []ID) {
	for _, n := range c.Needs {
		needs = append(needs, idOf(n.ID))
	}
	for _, w := range c.words {
		words = append(words, wordID(w))
	}
	return needs, words
}

// Rare counts those of the identifiers or words that occur in few sessions, and those of them that
// are held (see bits).
func (c *Corpus) Rare(ids []ID, held []byte) (n Count) {
	for k, id := range ids {
		if !isRare(int(c.counts[id]), c.sessions) {
			continue
		}
		n.Of++
		if k/8 < len(held) && held[k/8]&(1<<(k%8)) != 0 {
			n.Kept++
		}
	}
	return n
}

// isRare reports whether n of all are at most 5 %, or two.
func isRare(n, all int) bool { return float64(n) <= max(2, 0.05*float64(all)) }

// usedAgain returns the words that occur in few messages of pre, in none of the system, and that the
// user or the assistant uses in post, in alphabetical order.
func usedAgain(pre, post []chat.Message) []string {
	counts, used := map[string]int{}, map[string]bool{}
	for i := range pre {
		n := 1
		if system(&pre[i]) {
			n = len(pre)
		}
		for w := range words(Text(&pre[i]), isLetter) {
			counts[w] += n
		}
	}
	for i := range post {
		if post[i].Role == chat.RoleUser || post[i].Role == chat.RoleAssistant {
			maps.Copy(used, words(Text(&post[i]), isLetter))
		}
	}
	maps.DeleteFunc(used, func(w string, _ bool) bool { return counts[w] == 0 || !isRare(counts[w], len(pre)) })
	return slices.Sorted(maps.Keys(used))
}
