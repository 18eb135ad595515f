package plan

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestTotalsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int { return rapid.IntRange(0, 3).Draw(t, name) }
		want := Totals{n("a"), n("b"), n("c"), chat.Tokens(n("d")), n("e"), n("f"), n("g"), chat.Tokens(n("h"))}
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Totals
		if err := json.Unmarshal(raw, &got); err != nil || got != want {
			t.Fatalf("%+v became %s and %+v, %v", want, raw, got, err)
		}
	})
}

func TestTheJSONOfTotalsNamesThePartWhereItIsNotAll(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]Totals{
		`{}`:                                    {},
		`{"groups":2,"messages":3,"tokens":40}`: {2, 3, 0, 40, 2, 3, 0, 40},
		`{"groups":2,"messages":3,"tokens":40,"included_groups":1,"included_tokens":0}`: {2, 3, 0, 40, 1, 3, 0, 0},
	} {
		if raw, err := json.Marshal(of); err != nil || string(raw) != want {
			t.Errorf("%+v is %s, %v, want %s", of, raw, err, want)
		}
	}
	// Counts may be given that are not written.
	var got Totals
	full := `{"groups":2,"messages":3,"tool_calls":0,"tokens":40,"included_groups":1,"included_messages":1,"included_tool_calls":0,"included_tokens":9}`
	if err := json.Unmarshal([]byte(full), &got); err != nil || got != (Totals{2, 3, 0, 40, 1, 1, 0, 9}) {
		t.Errorf("%s is %+v, %v", full, got, err)
	}
}
