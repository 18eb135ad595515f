package reference

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTopic(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]topic{
		"":                               nil,
		"the API":                        {"the", "api"},
		"the db_pool and the Migrations": {"db_pool", "migrations"},
		"ab1 in src/a.go.":               {"ab1", "src/a.go"},
		"登录 页面":                          {"登录", "页面"},
	} {
		if diff := cmp.Diff(want, newTopic(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
	text := "no\nA Zeppelin!\n\n" + strings.Repeat("x", 3*maxTopicRange) + "ZEPPELIN"
	var near []bool
	for _, at := range []int{0, 3, 14, 15, 20, len(text) - 1} {
		near = append(near, newTopic("zeppelin").matchesNear(text, at))
	}
	if diff := cmp.Diff([]bool{false, true, true, false, false, true}, near); diff != "" {
		t.Error(diff)
	}
}
