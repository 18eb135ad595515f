package extract

import (
	"strings"
	"testing"
)

// References that the user said are marked, in the next summary as well; what others said
// under the same label is not.
func TestReferencesOfTheUserAreMarked(t *testing.T) {
	t.Parallel()
	d := digestOf(
		Options{},
		user("The ticket OPS-55213 and the order W48213K.\nThe wiki: https://wiki.example/fuses."),
		calls("", "1", "get_order", "id", "W48213K"), result("1", "invoice R77120X, order Z10042Q, ticket 99231"),
		assistant("The invoice is R77120X. Order Z10042Q is the older one."),
		user("<note>the cabinet C-55012 is closed</note>"),
	)
	next := New(Options{})
	next.AddPrevious(d.References(200))
	for name, block := range map[string]string{"first": d.References(200), "next": next.References(200)} {
		marked := map[string]bool{}
		for line := range strings.Lines(block) {
			for _, v := range []string{"55213", "W48213K", "https://wiki.example/fuses", "R77120X", "Z10042Q", "55012"} {
				if strings.Contains(line, v) {
					marked[v] = strings.HasPrefix(line, quoteMark)
				}
			}
		}
		for v, want := range map[string]bool{"55213": true, "https://wiki.example/fuses": true, "R77120X": false, "Z10042Q": false, "55012": false} {
			if got, listed := marked[v]; !listed || got != want {
				t.Errorf("%s: %s is listed %t, marked %t:\n%s", name, v, listed, got, block)
			}
		}
	}
}
