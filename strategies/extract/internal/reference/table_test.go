package reference

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
)

func TestNeedIsAChance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tab := NewTable(1, "")
		tab.bytesRead = rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "end")
		var raw [8]byte
		binary.LittleEndian.PutUint64(raw[:], rapid.Uint64().Draw(t, "value"))
		id := &Identifier{
			value: string(raw[:]), last: rapid.Int64Range(0, tab.bytesRead).Draw(t, "last"), neighbors: rapid.IntRange(1, math.MaxInt).Draw(t, "crowd"),
			Texts: rapid.IntRange(1, 1e9).Draw(t, "texts"), uses: rapid.IntRange(0, 1e9).Draw(t, "uses"),
		}
		if p := tab.score(id); !(p > 0 && p < 1) {
			t.Errorf("%v", p)
		}
		more := *id
		more.uses++
		if tab.score(&more) < tab.score(id) {
			t.Error("a use makes it less needed")
		}
	})
}

func TestASweepKeepsTheLikeliest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tab := NewTable(rapid.IntRange(1, 50).Draw(t, "limit"), "")
		tab.bytesRead = 1 << 20
		for i := range rapid.IntRange(0, 200).Draw(t, "identifiers") {
			id := tab.add(fmt.Sprintf("W%05d", i), identifier.Code)
			id.Texts, id.uses, id.neighbors = rapid.IntRange(1, 3).Draw(t, "texts"), rapid.IntRange(0, 2).Draw(t, "uses"), rapid.IntRange(1, 9).Draw(t, "crowd")
		}
		all := len(tab.idents)
		ranked := tab.ranked()
		tab.evict()
		if want := min(all, tab.limit); len(tab.idents) != want {
			t.Fatalf("%d of %d are left, want %d", len(tab.idents), all, want)
		}
		for _, c := range ranked[:len(tab.idents)] { // up to a step of the count
			if tab.idents[c.value] == nil && c.Score > 1.05*ranked[len(tab.idents)-1].Score {
				t.Errorf("%s with %v was dropped", c.value, c.Score)
			}
		}
	})
}

func TestLinksForProgramsAreNotListed(t *testing.T) {
	t.Parallel()
	const object = `{"id": 41733, "node_id": "PRRC_kwDOLamp41733", "url": "https://api.house.example/lamps/41733", "href":"https://api.house.example/lamps/41733/fuses",
"followers_url": "https://house.example/users/mira{/other}", "avatar_url": "https://avatars.house.example/u/7", "html_url": "https://house.example/lamps/41733#bulb"}`
	for _, used := range []bool{false, true} { // what is said counts
		tab := NewTable(50, "")
		tab.Scan(object, used)
		got := tab.Block(800, "", false)
		for _, v := range []string{"PRRC_kwDOLamp41733", "https://api.house", "https://avatars", "/users/mira"} {
			if strings.Contains(got, v) != used || !strings.Contains(got, "https://house.example/lamps/41733#bulb") {
				t.Errorf("%v, %s: %s", used, v, got)
			}
		}
	}
}
