package prose

import "testing"

func TestNumbersOfLinesAreBlanked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want string }{
		"a file that was shown": {"  1257→func a() {\n  1258→}\n  1259→\n", "      →func a() {\n      →}\n      →\n"},
		"what a search found":   {"1012:one\n1180:two\n1345-three\nport 8080", "    :one\n    :two\n    -three\nport 8080"},
		"a list":                {"1. one\n2. two\n3. three", "1. one\n2. two\n3. three"},
		"two in a row":          {"1257: a\n1258: b\nother", "1257: a\n1258: b\nother"},
		"amounts":               {"5000: Ann\n4000: Bob\n4500: Cy", "5000: Ann\n4000: Bob\n4500: Cy"},
		"nothing":               {"", ""},
	} {
		if got := BlankLineNumbers(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
