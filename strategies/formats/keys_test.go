package formats_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

func TestTheKeysThatReadersSetAreTakenOut(t *testing.T) {
	t.Parallel()
	const raw = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"index":0,"pi":{"x":1}}],` +
		`"refusal":null,"pi":{"id":"1"},"parent_id":"p"}`
	var m chat.Message
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	losses := formats.Losses{}
	got := string(formats.WithoutKeys(m, losses).AppendJSON(nil))
	const want = `{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"},"id":"c","index":0,"type":"function"}],"refusal":null}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(formats.Losses{"extra": 2, "call extra": 1}, losses); diff != "" {
		t.Error(diff)
	}
	if again := string(m.AppendJSON(nil)); len(again) != len(raw) {
		t.Errorf("the message has changed: %s", again)
	}
}
