package tokens

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestSegmentsChangeNoCount compares counting in the smallest segments with encoding the
// whole text, for texts of characters that the patterns of the encodings distinguish.
func TestSegmentsChangeNoCount(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{
		"a", "B", "ab", "Word", "ß", "ſ", "ǅ", "中", "ʰ", "\u0301", "\u0903", "1", "23", "Ⅷ", "²", "'", "'s", "'LL", "'ſ", "’",
		" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u0085", "\u2028", "\u3000", "/", "//", "!", "?!", "\"", "🎉", "\u200d", "\uFFFD", "\x00", "\x1b[",
	})
	texts := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(pieces, 0, 40).Draw(t, "pieces"), "")
	})
	for _, name := range []string{O200K, CL100K} {
		c, err := Tiktoken(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				s := texts.Draw(t, "text")
				var got []int
				for segment := range segments(s, 1<<20, 1) {
					got = append(got, c.enc.EncodeOrdinary(segment)...)
				}
				if want := c.enc.EncodeOrdinary(s); !slices.Equal(want, got) {
					t.Fatalf("%q: got tokens %v, want %v", s, got, want)
				}
			})
		})
	}
}

func FuzzSegments(f *testing.F) {
	for _, s := range []string{"", "a b", strings.Repeat("aé", 40), "\n\n!!\u0301\u0301", "12345678901234567890"} {
		f.Add(s)
	}
	// Runs that are not linear to merge where they are not cut.
	for _, unit := range []string{"a", "A", "aA", " ", "\n", " \n", "-", "!?#", "/", "中文", "🎉", "👩‍", "\u0301", "a\u0301", "!\u0301", "1", "\u00a0", "QmFzZTY0IHRleHQ", "'s"} {
		f.Add(strings.Repeat(unit, 400))
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\uFFFD")
		const longest = 16
		joined := ""
		for segment := range segments(s, longest, 64) {
			if segment == "" || !utf8.ValidString(segment) {
				t.Fatalf("segment %q of %q", segment, s)
			}
			joined += segment
			// A piece spans at most three runs.
			run, was := 0, number
			for _, r := range segment {
				k := kindOf(r)
				if k == number || k != was && k != mark {
					run = 0
				}
				was = k
				if run += utf8.RuneLen(r); k != number && run > 4*longest {
					t.Fatalf("a run of %d bytes in %q", run, segment)
				}
			}
		}
		if joined != s {
			t.Fatalf("%q became %q", s, joined)
		}
	})
}
