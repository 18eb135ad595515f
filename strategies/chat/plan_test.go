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

func TestUnchangedEndsAtTheFirstChange(t *testing.T) {
	t.Parallel()
	// In the order of the view; 4 is not in it, and 7 is a summary that stands before 5.
	messages := []Meta{{Seq: 1, Position: 1, Tokens: 1}, {Seq: 2, Position: 2, Tokens: 2}, {Seq: 3, Position: 3, Tokens: 4}, {Seq: 4, Position: 4, Tokens: 8}, {Seq: 7, Position: 5, Tokens: 16}, {Seq: 5, Position: 5, Tokens: 32}}
	inView := func(i int) bool { return messages[i].Seq != 4 }
	seqs := func(q Seq) Ranges { return Ranges{{Lo: q, Hi: q + 1}} }
	for name, tt := range map[string]struct {
		plan Plan
		want Tokens
	}{
		"nothing":         {Plan{}, 1 + 2 + 4 + 16 + 32},
		"an exclusion":    {Plan{Exclude: []Exclusion{{Seqs: seqs(3)}}}, 1 + 2},
		"what is out":     {Plan{Exclude: []Exclusion{{Seqs: seqs(4)}}}, 1 + 2 + 4 + 16 + 32},
		"what comes back": {Plan{Include: seqs(4)}, 1 + 2 + 4},
		"a summary":       {Plan{Additions: []Addition{{Covers: seqs(3), Position: 2}}}, 1},
		"a replacement":   {Plan{Additions: []Addition{{Covers: seqs(5), Position: 5}}}, 1 + 2 + 4},
		"the first":       {Plan{Exclude: []Exclusion{{Seqs: seqs(1)}}}, 0},
	} {
		if got := tt.plan.Unchanged(messages, inView); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
