package summary

import (
	"strings"
	"testing"
)

func TestPartsOfSections(t *testing.T) {
	t.Parallel()
	text := "preamble\n# One\na\n```\n## not one\n```\n  ## **Two:**\n\n3. Goal:\nb\n**Active task**\nc\n- Goal\n> Goal\n#hash\n####### seven\nGoals\n"
	var got []string
	for _, p := range splitSections(text, DefaultSections()) {
		got = append(got, p.title+"="+strings.Join(strings.Fields(text[p.body:p.end]), " "))
	}
	want := "=preamble|One=a ``` ## not one ```|Two=|Goal=b|Active task=c - Goal > Goal #hash ####### seven Goals"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
}
