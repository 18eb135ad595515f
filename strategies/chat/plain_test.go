package chat

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlainViewsHaveNoViolations compares the short path of Check with the full scan, on
// arbitrary views and on views that are plain by construction.
func TestPlainViewsHaveNoViolations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ordered := drawOrderedView(t)
		if !plain(ordered) {
			t.Fatalf("a view of whole groups is not plain: %+v", ordered)
		}
		for _, view := range [][]Meta{ordered, drawView(t)} {
			if !plain(view) {
				continue
			}
			if violations := scanView(view).violations; len(violations) > 0 {
				t.Fatalf("%v in %+v", violations, view)
			}
		}
	})
}

// viewBuilder numbers the messages of a view.
type viewBuilder []Meta

func (b *viewBuilder) add(m Meta) {
	m.Seq, m.Kind = Seq(len(*b)+1), KindSource
	m.Position = m.Seq
	*b = append(*b, m)
}

// drawOrderedView returns a view of more than three messages in whole groups.
func drawOrderedView(t *rapid.T) []Meta {
	var b viewBuilder
	for range rapid.IntRange(0, 2).Draw(t, "systems") {
		b.add(Meta{Role: RoleSystem, Flags: HasText})
	}
	b.add(Meta{Role: RoleUser, Flags: HasText})
	for range rapid.IntRange(3, 8).Draw(t, "groups") {
		switch rapid.IntRange(0, 3).Draw(t, "group") {
		case 0:
			b.add(Meta{Role: RoleUser, Flags: HasText})
		case 1:
			b.add(Meta{Role: RoleAssistant, Flags: HasText})
		case 2:
			b.add(Meta{Role: RoleAssistant, Flags: HasReasoning})
		case 3:
			calls := rapid.IntRange(1, 3).Draw(t, "calls")
			b.add(Meta{Role: RoleAssistant, Calls: calls})
			if rapid.Bool().Draw(t, "parallel") {
				b.add(Meta{Role: RoleAssistant, Calls: 1, Flags: Parallel})
				calls++
			}
			for range calls {
				b.add(Meta{Role: RoleTool, Flags: HasText | Paired})
			}
		}
	}
	return b
}

// drawView returns a view with incomplete groups, replacements and summaries anywhere.
func drawView(t *rapid.T) []Meta {
	var b viewBuilder
	left := 0
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		switch rapid.IntRange(0, 8).Draw(t, "step") {
		case 0:
			b.add(Meta{Role: RoleSystem, Flags: HasText})
		case 1:
			b.add(Meta{Role: RoleUser, Flags: HasText})
		case 2, 3:
			b.add(Meta{Role: RoleAssistant, Flags: HasReasoning})
		case 4:
			flags := rapid.SampledFrom([]Flags{0, Parallel}).Draw(t, "flags")
			calls := rapid.IntRange(1, 2).Draw(t, "calls")
			b.add(Meta{Role: RoleAssistant, Calls: calls, Flags: flags})
			if left += calls; flags == 0 {
				left = calls
			}
		case 5, 6:
			for ; left > 0; left-- {
				b.add(Meta{Role: RoleTool, Flags: HasText | Paired})
			}
		case 7:
			b.add(Meta{Role: RoleTool, Flags: HasText})
		case 8:
			b.add(Meta{Role: RoleAssistant, Flags: HasText})
		}
	}
	next := Seq(len(b) + 1)
	view := slices.DeleteFunc([]Meta(b), func(Meta) bool { return rapid.IntRange(0, 9).Draw(t, "gone") == 0 })
	for i := range view {
		if rapid.IntRange(0, 9).Draw(t, "replaced") == 0 {
			view[i].Seq, view[i].Kind = next, KindReplacement
			next++
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "summaries") {
		view = append(view, Meta{
			Seq: next, Position: Seq(rapid.IntRange(0, 14).Draw(t, "at")), Kind: KindSummary, Flags: HasText,
			Role: rapid.SampledFrom([]Role{RoleUser, RoleAssistant, RoleSystem}).Draw(t, "role"),
		})
		next++
	}
	slices.SortFunc(view, Compare)
	return view
}
