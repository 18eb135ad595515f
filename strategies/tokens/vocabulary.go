package tokens

import "math/bits"

// multiplier spreads keys over the upper bits of a product (2⁶⁴ over the golden ratio).
const multiplier = 0x9E3779B97F4A7C15

// vocabulary is the set of the tokens of an encoding: hash tables with open addressing that
// are less than half full, which nothing changes after they are loaded.
type vocabulary struct {
	short [9]keys // tokens of 1 to 8 bytes, by their length
	// long has the hash of a longer token in the upper half of an entry, with the token's
	// offset in text and its length, which is never 0, below.
	long  []uint64
	shift uint8
	text  string // all tokens, one after the other
}

// keys is a set of numbers other than absent.
type keys struct {
	slots []uint64
	shift uint8
}

// absent marks an empty slot. It is no piece of valid UTF-8.
const absent = 1<<64 - 1

const (
	maxTokenLen = 1<<8 - 1
	maxTextLen  = 1<<24 - 1
)

// newVocabulary returns the set of tokens of 1 to maxTokenLen bytes, at most maxTextLen in
// all: text consists of them, and ends has the beginning of the first one and all ends.
func newVocabulary(text string, ends []uint32) vocabulary {
	v := vocabulary{text: text}
	var count [10]int
	for id := 1; id < len(ends); id++ {
		count[min(ends[id]-ends[id-1], 9)]++
	}
	for n := range v.short {
		v.short[n].slots, v.short[n].shift = newSlots(count[n])
		for i := range v.short[n].slots {
			v.short[n].slots[i] = absent
		}
	}
	v.long, v.shift = newSlots(count[9])
	for id := 1; id < len(ends); id++ {
		start, end := int(ends[id-1]), int(ends[id])
		if n := end - start; n < len(v.short) {
			v.short[n].add(load(text, start, n))
		} else {
			v.addLong(start, end)
		}
	}
	return v
}

// newSlots returns the slots of a table for n entries, more than twice as many, and the shift
// of a hash to a slot.
func newSlots(n int) ([]uint64, uint8) {
	size := bits.Len(uint(2*n + 1))
	return make([]uint64, 1<<size), uint8(64 - size)
}

// has reports whether s[i:j] is a token.
func (v *vocabulary) has(s string, i, j int) bool {
	n := j - i
	if n < len(v.short) {
		k := &v.short[n]
		return k.slots[k.slot(load(s, i, n))] != absent
	}
	if n > maxTokenLen {
		return false
	}
	h := hash(s, i, n)
	for at := h >> v.shift; ; at++ {
		at &= uint64(len(v.long) - 1)
		e := v.long[at]
		if e == 0 {
			return false
		}
		if e>>32 == h&(1<<32-1) && int(e&maxTokenLen) == n {
			if start := int(e >> 8 & maxTextLen); v.text[start:start+n] == s[i:j] {
				return true
			}
		}
	}
}

func (v *vocabulary) addLong(start, end int) {
	h := hash(v.text, start, end-start)
	at := h >> v.shift
	for v.long[at] != 0 {
		at = (at + 1) & uint64(len(v.long)-1)
	}
	v.long[at] = h<<32 | uint64(start)<<8 | uint64(end-start)
}

// slot returns the slot that holds a key, or the empty one where it would be.
func (k *keys) slot(key uint64) uint64 {
	at := (key ^ key>>29) * multiplier >> k.shift
	for {
		at &= uint64(len(k.slots) - 1)
		if e := k.slots[at]; e == key || e == absent {
			return at
		}
		at++
	}
}

func (k *keys) add(key uint64) { k.slots[k.slot(key)] = key }

// load returns the n bytes at s[i], at most 8, as a number.
func load(s string, i, n int) uint64 {
	if i+8 <= len(s) {
		return load8(s[i:i+8]) & (1<<(8*n) - 1)
	}
	var k uint64
	for j := range n {
		k |= uint64(s[i+j]) << (8 * j)
	}
	return k
}

func load8(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// hash returns a hash of the n bytes at s[i], at least 8.
func hash(s string, i, n int) uint64 {
	h := uint64(n) * multiplier
	for end := i + n - 8; ; i += 8 {
		i = min(i, end)
		h = (h ^ load8(s[i:i+8])) * multiplier
		h ^= h >> 32
		if i == end {
			return h * multiplier
		}
	}
}
