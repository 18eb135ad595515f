package chat

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlainViewsHaveNoFaults holds the short way of Check to the long one.
func TestPlainViewsHaveNoFaults(t *testing.T) {
	t.Parallel()
	met := false
	rapid.Check(t, func(t *rapid.T) {
		var view []Meta
		left := 0
		next := Seq(1)
		add := func(m Meta) {
			m.Seq, m.Position = next, next
			next++
			view = append(view, m)
		}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0:
				add(Meta{Role: RoleSystem, Kind: KindSource, Flags: HasText})
			case 1:
				add(Meta{Role: RoleUser, Kind: KindSource, Flags: HasText})
			case 2, 3:
				add(Meta{Role: RoleAssistant, Kind: KindSource, Flags: HasReasoning})
			case 4:
				left = rapid.IntRange(1, 2).Draw(t, "calls")
				add(Meta{Role: RoleAssistant, Kind: KindSource, Calls: left})
			case 5, 6:
				for ; left > 0; left-- {
					add(Meta{Role: RoleTool, Kind: KindSource, Flags: HasText | Paired})
				}
			case 7:
				add(Meta{Role: RoleTool, Kind: KindSource, Flags: HasText})
			case 8:
				add(Meta{Role: RoleAssistant, Kind: KindSource, Flags: HasText})
			}
		}
		view = slices.DeleteFunc(view, func(Meta) bool { return rapid.IntRange(0, 9).Draw(t, "gone") == 0 })
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
		if !plain(view) {
			return
		}
		met = met || len(view) > 3
		if faults := scanView(view).violations; len(faults) > 0 {
			t.Fatalf("%v in %+v", faults, view)
		}
	})
	if !met {
		t.Error("no view of some length was plain")
	}
}
