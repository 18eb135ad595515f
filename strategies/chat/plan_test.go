package chat

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPlanGone(t *testing.T) {
	t.Parallel()
	if got := (Plan{Include: RangesOf(1)}).Gone(); got != nil {
		t.Errorf("a plan that takes nothing out takes out %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		seqs := rapid.Custom(func(t *rapid.T) Ranges {
			return RangesOf(rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 30), func(i int) Seq { return Seq(i) }), 0, 6).Draw(t, "seqs")...)
		})
		var p Plan
		var want Ranges
		for _, r := range rapid.SliceOf(seqs).Draw(t, "exclude") {
			p.Exclude, want = append(p.Exclude, Exclusion{Seqs: r}), want.Union(r)
		}
		for _, r := range rapid.SliceOf(seqs).Draw(t, "covers") {
			p.Additions, want = append(p.Additions, Addition{Covers: r}), want.Union(r)
		}
		if got := p.Gone(); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
