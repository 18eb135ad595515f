package argument

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFields(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		want []Field
		ok   bool
	}{
		"an object":         {`{"b":"x","a":1.0,"c":true,"d":null}`, []Field{{"b", "x", 1, 1, "", ""}, {"a", "1.0", 1, 1, "", ""}, {"c", "true", 1, 1, "", ""}, {"d", "null", 1, 1, "", ""}}, true},
		"objects in a list": {`{"l":[{"k":"x"},{"k":"y"}],"z":[1,[2]]}`, []Field{{"k", "x", 2, 2, "", "l"}, {"k", "y", 3, 3, "", "l"}, {"z", "1", 1, 1, "", ""}, {"z", "2", 1, 1, "", ""}}, true},
		"nested objects":    {`[{"k":"x","of":{"k":"y","by":{"z":1}},"m":2}]`, []Field{{"k", "x", 1, 1, "", ""}, {"k", "y", 2, 1, "of", ""}, {"z", "1", 3, 1, "of by", ""}, {"m", "2", 1, 1, "", ""}}, true},
		"a string":          {`"x"`, []Field{{"", "x", 0, 0, "", ""}}, true},
		"no JSON":           {`{"a":`, nil, false},
		"two values":        {`{} {}`, nil, false},
		"nothing":           {``, nil, false},
		"too deep":          {strings.Repeat("[", 200) + strings.Repeat("]", 200), nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := Parse(tt.in)
			if ok != tt.ok || !cmp.Equal(got, tt.want, cmp.AllowUnexported(Field{})) {
				t.Errorf("%v, %t", got, ok)
			}
		})
	}
}
