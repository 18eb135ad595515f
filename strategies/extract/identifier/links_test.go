package identifier

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":                                   nil,
		"no link: //here":                    nil,
		"see https://a.example/b?c=d&e#f, ":  {"https://a.example/b?c=d&e#f"},
		"(http://a.example/x).":              {"http://a.example/x"},
		`"ssh://git@a.example/x.git"`:        {"ssh://git@a.example/x.git"},
		"a://b c://d":                        {"a://b", "c://d"},
		"https://a.example/ä/日本 x":           {"https://a.example/ä/日本"},
		"://x :// https://":                  nil,
		"[x](https://a.example/y) and **z**": {"https://a.example/y"},
	} {
		var got []string
		Links(in, func(start, end int) { got = append(got, in[start:end]) })
		if !cmp.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
