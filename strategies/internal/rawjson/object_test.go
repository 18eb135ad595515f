package rawjson

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObjectTakesFields(t *testing.T) {
	t.Parallel()
	o, err := ParseObject([]byte(`{"s":"a","n":null,"b":true,"o":{"x":1},"rest": [1,
2]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := o.String("s"); got != "a" || o.TakeString("s") != "a" || o.TakeString("s") != "" || o.TakeString("b") != "" {
		t.Errorf("string %q", got)
	}
	if o.TakeString("n") != "" || !o.TakeTrue("b") || o.TakeTrue("b") || string(o.Object("o").Take("x")) != "1" || o.Object("rest") != nil {
		t.Errorf("left %s", o.JSON())
	}
	o.Set("z", "<\u00e9>", "none", json.RawMessage(nil))
	if d := cmp.Diff(`{"rest":[1,2],"z":"<é>"}`, string(o.Without("o").JSON())); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if o.Without("o", "rest", "z") != nil {
		t.Error("an empty object is not nil")
	}
	for in, want := range map[string]string{"[]": "want an object, got an array", "{x": "no valid JSON", "": "want an object, got nothing"} {
		if _, err := ParseObject([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	in := ` {"a" : [1, 2] , "b":{"c":"}"},"a":null} `
	var got []string
	for key, at := range Members([]byte(in)) {
		got = append(got, key+"="+in[at[0]:at[1]])
	}
	if d := cmp.Diff([]string{"a=[1, 2]", `b={"c":"}"}`, "a=null"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for key := range Members([]byte("[1]")) {
		t.Errorf("a member %q of an array", key)
	}
}
