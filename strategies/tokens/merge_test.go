package tokens

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	loader "github.com/pkoukk/tiktoken-go-loader"
)

// byBytes merges a piece as OpenAI's library does: again and again the leftmost two parts whose
// bytes together are the token of the lowest rank.
func byBytes(ranks map[string]int, piece string) []uint32 {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		at, lowest := -1, 0
		for i := range len(parts) - 1 {
			if rank, ok := ranks[parts[i]+parts[i+1]]; ok && (at < 0 || rank < lowest) {
				at, lowest = i, rank
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
	ids := make([]uint32, len(parts))
	for i, p := range parts {
		ids[i] = uint32(ranks[p])
	}
	return ids
}

// TestEveryTokenMergesAsByBytes shows that the table of pairs is complete: it has the pair of
// each token that merging can make, and no other. It compares every tenth token with merging by
// bytes, all with LONG_TESTS=1.
func TestEveryTokenMergesAsByBytes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{O200K, CL100K} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := Tiktoken(name)
			if err != nil {
				t.Fatal(err)
			}
			ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
			if err != nil {
				t.Fatal(err)
			}
			var buf scratch
			made := 0
			for token, rank := range ranks {
				if !b.vocab.has(token, 0, len(token)) || int(b.merges.size[rank]) != len(token) {
					t.Fatalf("token %d, %q, is not in the vocabulary", rank, token)
				}
				got := b.merges.encode(token, &buf)
				if len(token) > 1 && len(got) == 1 {
					made++
				}
				if rank%10 > 0 && os.Getenv("LONG_TESTS") == "" {
					continue
				}
				if want := byBytes(ranks, token); !slices.Equal(want, got) {
					t.Fatalf("token %d, %q: got %v, want %v", rank, token, got, want)
				}
				for _, no := range []string{token + "\x00", token + token, "\x00" + token, token[1:]} {
					if _, ok := ranks[no]; no != "" && ok != b.vocab.has(no, 0, len(no)) {
						t.Fatalf("%q: in the vocabulary: %v, want %v", no, !ok, ok)
					}
				}
			}
			pairs := 0
			for _, e := range b.merges.pairs {
				if e != 0 {
					pairs++
				}
			}
			if pairs != made {
				t.Errorf("got %d pairs, want %d", pairs, made)
			}
		})
	}
}

// TestPartsAddUp compares merging in parts with merging at once.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	for _, name := range []string{O200K, CL100K} {
		b, err := Tiktoken(name)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		var buf scratch
		// Few different characters make long tokens, so parts that reach far.
		for _, alphabet := range []string{"a", "ab", "aes", "in ", "-", "-=", "=\n", " \n", "*/", "_", "0", "\xef\xbf\xbd", "\xe4\xb8\xad", "etaoinshrdlu", "\x00\x01\xff"} {
			for range 50 {
				piece := make([]byte, window+rng.IntN(600))
				letter := byte(0)
				for i := range piece {
					if i == 0 || rng.IntN(4) > 0 { // runs, too
						letter = alphabet[rng.IntN(len(alphabet))]
					}
					piece[i] = letter
				}
				if want, got := len(b.merges.encode(string(piece), &buf)), b.merges.count(string(piece), &buf); got != want {
					t.Fatalf("%s: got %d tokens, want %d, of %q", name, got, want, piece)
				}
			}
		}
	}
}

func TestTablesAreSmall(t *testing.T) {
	t.Parallel()
	for _, name := range []string{O200K, CL100K} {
		b, err := Tiktoken(name)
		if err != nil {
			t.Fatal(err)
		}
		n := len(classes) + len(b.vocab.text) + len(b.merges.size) + 8*(len(b.vocab.long)+len(b.merges.pairs)+len(b.merges.filter))
		for _, k := range b.vocab.short {
			n += 8 * len(k.slots)
		}
		t.Logf("%s: %d bytes", name, n)
		if n > 30_000_000 {
			t.Errorf("the tables of %s take %d bytes, want at most 30 MB", name, n)
		}
	}
}

// BenchmarkLoad loads the ranks again and again.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := loadBPE(O200K, splitO200K); err != nil {
			b.Fatal(err)
		}
	}
}
