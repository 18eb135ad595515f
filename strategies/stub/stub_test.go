package stub

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	t.Parallel()
	x := strings.Repeat
	tests := map[string]struct{ tool, arguments, result, want string }{
		"a command and its exit code":        {"terminal", `{"command":"make"}`, "a\nb\n{\"exit_code\" : -2}", "[terminal] ran `make` -> exit -2, 3 lines output"},
		"a command of 80 characters":         {"terminal", `{"command":"` + x("é", 80) + `"}`, " \n\x1c", "[terminal] ran `" + x("é", 80) + "` -> exit ?, 0 lines output"},
		"a longer command":                   {"terminal", `{"command":"` + x("é", 81) + `"}`, "", "[terminal] ran `" + x("é", 77) + "...` -> exit ?, 0 lines output"},
		"a command that is not a string":     {"terminal", `{"command":null}`, "x", "[terminal] ran `` -> exit ?, 1 lines output"},
		"a file":                             {"read_file", `{"offset": 40, "path": "a/b"}`, x("é", 1234567), "[read_file] read a/b from line 40 (1,234,567 chars)"},
		"no arguments":                       {"read_file", "", "abc", "[read_file] read ? from line 1 (3 chars)"},
		"arguments that are an array":        {"read_file", "[1]", "abc", "[read_file] read ? from line 1 (3 chars)"},
		"arguments that are null":            {"read_file", "null", "abc", "[read_file] read ? from line 1 (3 chars)"},
		"arguments that are no JSON":         {"read_file", `{"path": "a"`, "abc", "[read_file] read ? from line 1 (3 chars)"},
		"a name given twice":                 {"read_file", `{"path":"a","path":"b"}`, "", "[read_file] read b from line 1 (0 chars)"},
		"a written file":                     {"write_file", `{"path":"p","content":"a\nb"}`, "", "[write_file] wrote to p (2 lines)"},
		"nothing written":                    {"write_file", `{"path":"p","content":""}`, "", "[write_file] wrote to p (? lines)"},
		"a search":                           {"search_files", `{"pattern":"T"}`, `{"total_count": 12}`, "[search_files] content search for 'T' in . -> 12 matches"},
		"a search without a count":           {"search_files", `{"target":"files","path":"d"}`, "", "[search_files] files search for '?' in d -> ? matches"},
		"a patch":                            {"patch", `{"path":"p"}`, "ok", "[patch] replace in p (2 chars result)"},
		"a page":                             {"browser_navigate", `{"url":"u","ref":"@1"}`, "ok", "[browser_navigate] u (2 chars)"},
		"a part of a page":                   {"browser_click", `{"url":"","ref":"@1"}`, "ok", "[browser_click] ref=@1 (2 chars)"},
		"a page that is not named":           {"browser_snapshot", `{}`, "ok", "[browser_snapshot] (2 chars)"},
		"a web search":                       {"web_search", `{"query":"q"}`, "ok", "[web_search] query='q' (2 chars result)"},
		"one URL":                            {"web_extract", `{"urls":["u"]}`, "ok", "[web_extract] u (2 chars)"},
		"many URLs":                          {"web_extract", `{"urls": [ "u" , "v", {"w":[1, 2]} ]}`, "ok", "[web_extract] u (+2 more) (2 chars)"},
		"URLs that are no list":              {"web_extract", `{"urls":"u"}`, "ok", "[web_extract] ? (2 chars)"},
		"a goal":                             {"delegate_task", `{"goal":"` + x("g", 61) + `"}`, "ok", "[delegate_task] '" + x("g", 57) + "...' (2 chars result)"},
		"code":                               {"execute_code", `{"code":"a\nb"}`, "ok", "[execute_code] `a b` (1 lines output)"},
		"long code":                          {"execute_code", `{"code":"` + x("c", 61) + `"}`, "ok", "[execute_code] `" + x("c", 60) + "...` (1 lines output)"},
		"a skill":                            {"skill_view", `{"name":"n"}`, "ok", "[skill_view] name=n (2 chars)"},
		"a picture":                          {"vision_analyze", `{"question":"` + x("q", 51) + `"}`, "ok", "[vision_analyze] '" + x("q", 50) + "' (2 chars)"},
		"memory":                             {"memory", `{"action":"add"}`, "", "[memory] add on ?"},
		"todo":                               {"todo", `{`, "", "[todo] updated task list"},
		"clarify":                            {"clarify", `{}`, "", "[clarify] asked user a question"},
		"speech":                             {"text_to_speech", `{}`, "abc", "[text_to_speech] generated audio (3 chars)"},
		"a job":                              {"cronjob", `{"action":7}`, "", "[cronjob] 7"},
		"a process":                          {"process", `{"session_id":"s"}`, "", "[process] ? session=s"},
		"another tool":                       {"get", `{"a":"x","b":{"c":[1,2.5,null,true,"é\n"]},"d":1}`, "ok", `[get] a=x b={"c": [1, 2.5, null, true, "é\n"]} (2 chars result)`},
		"another tool with long arguments":   {"get", `{"a":"` + x("é", 41) + `"}`, "ok", "[get] a=" + x("é", 40) + " (2 chars result)"},
		"another tool, arguments named anew": {"get", `{"a":1,"a":2,"b":null,"c":3}`, "ok", "[get] a=2 b=null (2 chars result)"},
		"another tool without arguments":     {"get", `"s"`, "ok", "[get] (2 chars result)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Line(tt.tool, tt.arguments, tt.result); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	x := strings.Repeat
	tests := map[string]struct{ raw, want string }{
		"no JSON":                    {`{"a": "` + x("x", 300), ""},
		"nothing too long":           {`{"a": "` + x("x", 10) + `"}`, ""},
		"a value":                    {`{"a" :"` + x("x", 11) + `", "b": [ 1e3, 12345678901234567890123 ]}`, `{"a" :"` + x("x", 10) + `...[truncated]", "b": [ 1e3, 12345678901234567890123 ]}`},
		"a name stays":               {`{"` + x("n", 30) + `" : {"a":["` + x("é", 11) + `"]}}`, `{"` + x("n", 30) + `" : {"a":["` + x("é", 10) + `...[truncated]"]}}`},
		"a string alone":             {`"` + x("x", 30) + `"`, `"` + x("x", 10) + `...[truncated]"`},
		"escapes are one character":  {`["` + x(`\n`, 9) + `\u00e9\"rest of it"]`, `["` + x(`\n`, 9) + `\u00e9...[truncated]"]`},
		"pairs are one character":    {`["` + x(`\ud83d\uDE00`, 11) + `"]`, `["` + x(`\ud83d\uDE00`, 10) + `...[truncated]"]`},
		"halves are one each":        {`["` + x(`\ud83d`, 11) + `"]`, `["` + x(`\ud83d`, 10) + `...[truncated]"]`},
		"exactly as long as allowed": {`["` + x(`\n`, 10) + `", 1234567890]`, ""},
		"cut before":                 {`["` + x("x", 10) + `...[truncated]"]`, ""},
		"it may grow":                {`["` + x("x", 11) + `"]    `, `["` + x("x", 10) + `...[truncated]"]    `},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, changes := tt.want, tt.want != ""
			if !changes {
				want = tt.raw
			}
			if got, changed := Arguments(tt.raw, 12, 10); got != want || changed != changes {
				t.Errorf("got  %s (changed: %v)\nwant %s", got, changed, want)
			}
		})
	}
	if got, changed := Arguments(`"`+x("é", 20)+`"`, 22, 10); changed {
		t.Errorf("arguments within the limit became %s", got)
	}
}

// seeds are arguments of many kinds.
var seeds = []string{
	"", "null", "[]", "{}", "{bad", `"s"`, `[1]`, `{"a":`, `{"command": null}`, `{"urls":[1,[2,{"a":"]"}]]}`,
	`{"path":"p","content":"` + strings.Repeat("line\\n", 90) + `"}`, `{"a":"` + strings.Repeat(`\ud83d\ude00`, 20) + `"}`,
	` { "k" : [ { "k" : "\\\"" } , -1.5e+300 , true ] , "k" : "" } `, "{\"a\": \"\xff\xfe\"}", `{"":""}`, `[[[[[["deep"]]]]]]`,
}

func FuzzLine(f *testing.F) {
	for name := range describers {
		for _, s := range seeds {
			f.Add(name, s, "some output\n{\"exit_code\": 1, \"total_count\": 2}")
		}
	}
	f.Add("browser_type", `{"ref":"r"}`, "")
	f.Add("anything", `{"a":{"b":["c"]}}`, "")
	f.Fuzz(func(t *testing.T, tool, arguments, result string) {
		line := Line(tool, arguments, result)
		if !strings.HasPrefix(line, "["+tool+"]") {
			t.Errorf("%q does not name its tool", line)
		}
		if utf8.ValidString(tool) && !utf8.ValidString(line) {
			t.Errorf("%q is not UTF-8", line)
		}
		if limit := len(tool) + 8*len(arguments) + 200; len(line) > limit {
			t.Errorf("%d bytes from arguments of %d", len(line), len(arguments))
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, 0, 3)
		f.Add(s, 10, 200)
	}
	f.Fuzz(func(t *testing.T, raw string, limit, leaf int) {
		leaf = max(0, min(leaf, 1<<20))
		got, changed := Arguments(raw, limit, leaf)
		if changed == (got == raw) {
			t.Fatalf("changed is %v", changed)
		}
		if !json.Valid([]byte(raw)) {
			if changed {
				t.Fatalf("%q is not JSON and became %q", raw, got)
			}
			return
		}
		if !json.Valid([]byte(got)) {
			t.Fatalf("%q became %q", raw, got)
		}
		if utf8.ValidString(raw) && !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		if again, changed := Arguments(got, limit, leaf); changed {
			t.Fatalf("%q was cut again: %q", got, again)
		}
		if !changed {
			return
		}
		want := shorten(parse(t, raw), leaf)
		if parsed := parse(t, got); !reflect.DeepEqual(parsed, want) {
			t.Fatalf("%q became %q,\nwhich is %v\nnot      %v", raw, got, parsed, want)
		}
	})
}

func parse(t *testing.T, raw string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// shorten is a simple implementation of Arguments on decoded values.
func shorten(v any, leaf int) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = shorten(v[k], leaf)
		}
	case []any:
		for i := range v {
			v[i] = shorten(v[i], leaf)
		}
	case string:
		if r := []rune(v); len(r) > leaf {
			return string(r[:leaf]) + Truncated
		}
	}
	return v
}

func BenchmarkArguments(b *testing.B) {
	raw := `{"path":"p","edits":[` + strings.TrimSuffix(strings.Repeat(`{"old":"`+strings.Repeat("some text\\n", 100)+`","n":1},`, 50), ",") + "]}"
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		Arguments(raw, 500, 200)
	}
}
