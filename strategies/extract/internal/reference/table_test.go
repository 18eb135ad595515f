package reference

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/extract/internal/identifier"
)

// TestBlocksAreReadBack: what a block lists is known to the next table, by whom and under which label.
func TestBlocksAreReadBack(t *testing.T) {
	t.Parallel()
	tab := NewTable(50, "")
	tab.Scan("Ship order W12345X to https://lamps.example/orders, see src/lamp.go.", Said)
	tab.MarkUser("Ship order W12345X")
	tab.Scan("run 7f3e9a1c-aaaa-bbbb-cccc-1234567890ab is done", Returned)
	block := tab.Block(400, "")
	want := Heading + "> order: W12345X\nurl: https://lamps.example/orders · path: src/lamp.go\nTools:\nrun: 7f3e9a1c-aaaa-bbbb-cccc-1234567890ab"
	if !strings.Contains(block, "> order: W12345X") || !strings.Contains(block, "src/lamp.go") || !strings.Contains(block, "\nTools:\nrun: 7f3e9a1c") {
		t.Fatalf("%s\nwant like\n%s", block, want)
	}
	next, byTools := NewTable(50, ""), false
	for l := range strings.Lines(block) {
		byTools = byTools || l == ToolsLine
		next.AddPreviousLine(strings.TrimSuffix(l, "\n"), byTools)
	}
	if again := next.Block(400, ""); len(strings.Fields(again)) != len(strings.Fields(block)) || !strings.Contains(again, "> order: W12345X") {
		t.Errorf("%s\nwas\n%s", again, block)
	}
	if got := tab.Block(400, "order W12345X, src/lamp.go"); strings.Contains(got, "W12345X") || strings.Contains(got, "lamp.go") {
		t.Errorf("it repeats the text above:\n%s", got)
	}
}

func TestABlockIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tab := NewTable(rapid.IntRange(1, 60).Draw(t, "limit"), rapid.SampledFrom([]string{"", "lamp"}).Draw(t, "focus"))
		for i := range rapid.IntRange(0, 200).Draw(t, "texts") {
			tab.Scan(fmt.Sprintf("%s: dir%d/lamp%d.go order W%05dX token: `T%d.x`", rapid.SampledFrom([]string{"a", "label", "password"}).Draw(t, "label"), i, i, i, i), Source(i%3))
		}
		if len(tab.entries) >= 2*tab.limit+8 {
			t.Errorf("%d entries, limit %d", len(tab.entries), tab.limit)
		}
		budget := rapid.IntRange(0, 4000).Draw(t, "budget")
		if block := tab.Block(budget, ""); utf8.RuneCountInString(block) > budget || strings.Count(block, "\n") > maxLines {
			t.Errorf("%d characters in %d lines of %d:\n%s", utf8.RuneCountInString(block), strings.Count(block, "\n"), budget, block)
		}
	})
}

func TestALabelThatReadsLikeASecret(t *testing.T) {
	t.Parallel()
	tab := NewTable(10, "")
	tab.Scan("the token: TestLexer4711.go is a file", Said)
	if got := tab.Block(200, ""); strings.Contains(got, "token: ") || !strings.Contains(got, "TestLexer4711.go") {
		t.Error(got)
	}
	if k := identifier.KindOf("TestLexer4711.go"); k != identifier.File {
		t.Error(k)
	}
}
