package rawjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Objects, arrays and strings are decoded as the decoder of the standard library decodes them.
func FuzzValuesAreThoseOfTheDecoder(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { } `, `[]`, "[ \n]", `{"a":1,"b":[1,{"c":"]}"}],"a":null}`, `{"":"","\u0061":"\\\"","\ud83d\ude00":"\ud83d","x":"\u00e9\/\b\f\n\r\t\u2028"}`,
		`[ "a" , -1.5e3 , true,false,null,{"a" : [ ] } , "\\" ]`, "{\"a\xff\":\"b\xff\\n\"}", `{"a":"` + strings.Repeat(`\\`, 9) + `"}`, `"text"`, `{"a"}`, `{"a":1}}`, `[1,]`, "", "nul", "[\"\t\"]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var object map[string]json.RawMessage
		wrong := Kind([]byte(s)) != '{' || json.Unmarshal([]byte(s), &object) != nil
		got, err := ParseObject([]byte(s))
		if wrong != (err != nil) || err == nil && !reflect.DeepEqual(map[string]json.RawMessage(got), object) {
			t.Errorf("object %q: %q, %v, want %q", s, got, err, object)
		}
		var array []json.RawMessage
		wrong = Kind([]byte(s)) != '[' || json.Unmarshal([]byte(s), &array) != nil
		all, err := ParseArray([]byte(s))
		if wrong != (err != nil) || err == nil && !reflect.DeepEqual(all, array) {
			t.Errorf("array %q: %q, %v, want %q", s, all, err, array)
		}
		for _, value := range append(all, json.RawMessage(s)) {
			var text string
			if json.Unmarshal(value, &text) == nil && text != Text(value) {
				t.Errorf("string %q: %q, want %q", value, Text(value), text)
			}
		}
	})
}

func BenchmarkParseObject(b *testing.B) {
	content := strings.Repeat("\tif err := s.store(ctx, \\\"path/to/file\\\"); err != nil {\\n", 100)
	raw := []byte(`{"role":"assistant","content":"` + content + `","tool_calls":[{"id":"call_1","type":"function","function":{"name":"edit","arguments":"{}"}}]}`)
	raw = []byte(strings.ReplaceAll(string(raw), "\t", `\t`))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		o, err := ParseObject(raw)
		if err != nil || Text(o["content"]) == "" {
			b.Fatal(err)
		}
	}
}
