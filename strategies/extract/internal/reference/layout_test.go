package reference

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestListsAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching("[ a-c,;:\"'./é`]{1,8}"), 1, 6).Draw(t, "values")
		var list, want []string
		for _, v := range values {
			if v = strings.TrimSpace(v); v != "" && !strings.Contains(v, `"`) {
				list, want = append(list, quoteValue(v)), append(want, v)
			}
		}
		got := ParseList(strings.Join(list, ", "))
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%q was read as %q", want, got)
		}
	})
}
