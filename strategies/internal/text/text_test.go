package text

import (
	"testing"

	"pgregory.net/rapid"
)

func TestHeadAndTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		r := []rune(s)
		n := rapid.IntRange(-1, len(r)+1).Draw(t, "n")
		k := min(max(n, 0), len(r))
		if head, want := Head(s, n), string(r[:k]); head != want {
			t.Fatalf("head %q, want %q", head, want)
		}
		if tail, want := Tail(s, n), string(r[len(r)-k:]); tail != want {
			t.Fatalf("tail %q, want %q", tail, want)
		}
	})
	if Head("\xff\xfeab", 3) != "\xff\xfea" || Tail("a\xff\xfe", 2) != "\xff\xfe" {
		t.Error("invalid UTF-8 is cut elsewhere")
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	if got := Trim(" \x1c a b\u00a0\n"); got != "a b" {
		t.Errorf("%q", got)
	}
}
