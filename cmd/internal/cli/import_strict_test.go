package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	claudeTalk = `{"type":"file-history-snapshot","messageId":"m","snapshot":{}}
{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"talk","message":{"role":"user","content":"go"}}
{"type":"attachment","uuid":"f","parentUuid":"u1","sessionId":"talk","attachment":{"type":"file","content":"x"}}
{"type":"assistant","uuid":"a1","parentUuid":"f","sessionId":"talk","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"so"}]}}
`
	qwenTalk  = `{"uuid":"1","parentUuid":null,"sessionId":"q","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}` + "\n"
	droidTalk = `{"type":"session_start","id":"d"}` + "\n" + `{"type":"message","id":"1","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}` + "\n"
)

// Nothing of a file is stored if it is refused, and a line is skipped only with a note.
func TestImportRefusesFilesWhole(t *testing.T) {
	t.Parallel()
	db := database(t)
	empty := func(step string) {
		t.Helper()
		if r := invoke(t, db, "export", "--all-sessions").want(t, 0); r.stdout != "" {
			t.Fatalf("%s: %s", step, r.stdout)
		}
	}
	one := `{"session_id":"one","messages":[{"role":"user","content":"x"}]}`
	for name, c := range map[string]struct {
		text, want string
		more       []string
	}{
		"another program's":       {droidTalk, "looks like a session file of Factory Droid, which is not read; read are chat, responses", nil},
		"another later on":        {claudeTalk + strings.ReplaceAll(qwenTalk, `"1"`, `"2"`), "line 5: looks like the format qwen-code, not claude-code", nil},
		"skipped lines, strict":   {claudeTalk + `{"type":"user","uu`, "line 5: the last line is cut off", []string{"--strict"}},
		"a later session, strict": {one + "\nnonsense\n" + one, "line 2: no valid JSON", []string{"--strict", "--keep-going"}},
		"text behind a document":  {"[\n" + `{"role":"user","content":"x"}` + "\n]\n\nand so on", "line 5: text after the end", nil},
		"a bracket too much":      {one + "\n}", "line 2: no valid JSON", nil},
		"no message":              {`{"type":"file-history-snapshot","messageId":"m","snapshot":{}}` + "\n", "no message of the format claude-code", nil},
		"a message of nothing":    {claudeTalk + strings.ReplaceAll(claudeTalk, `"content":"go"`, `"stop":1`), "line 6", nil},
		"UTF-16":                  {"\xff\xfe{\x00", "the text is UTF-16", nil},
	} {
		r := invoke(t, db, append([]string{"import", file(t, "talk.jsonl", c.text)}, c.more...)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit code %d, %s; want %q", name, r.code, r.stderr, c.want)
		}
		empty(name)
		if r := invoke(t, nil, append([]string{"compact-file", file(t, "talk.jsonl", c.text)}, c.more[:min(1, len(c.more))]...)...); r.code != exitUsage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: compact-file: exit code %d, %s", name, r.code, r.stderr)
		}
	}
	invoke(t, db, "import", "--keep-going", file(t, "d.jsonl", droidTalk), file(t, "talk.jsonl", claudeTalk)).want(t, exitUsage, "Factory Droid", "sessions     1")
	invoke(t, db, "view", "talk").want(t, 0)
	for _, text := range []string{claudeTalk + "nonsense\n", claudeTalk} {
		e := &Env{Environ: db, Stdin: strings.NewReader(text)}
		if r := invokeWith(t, e, "import", "-", "--strict"); (r.code == 0) != (text == claudeTalk) {
			t.Errorf("standard input: exit code %d, %s", r.code, r.stderr)
		}
	}
}

func TestImportSaysWhatIsLeftOutAndWhere(t *testing.T) {
	t.Parallel()
	db := database(t)
	path := file(t, "talk.jsonl", claudeTalk+`{"type":"user","uu`)
	r := invoke(t, db, "import", path).want(t, 0, "SKIPPED", "line 5  talk     the last line is cut off", "no messages  file-history-snapshot 1", "left out     attachment:file 1 (first at "+path+": line 3)")
	if strings.Contains(r.stdout, "file-history-snapshot 1 (") {
		t.Error(r.stdout)
	}
	got := importedOf(t, invoke(t, db, "import", "--json", path).want(t, 0))
	want := Imported{
		Sessions: 1, Messages: 2, Counters: []string{"o200k_base"}, Formats: map[string]int{"claude-code": 1},
		Other: map[string]int{"attachment:file": 1, "file-history-snapshot": 1}, First: map[string]string{"attachment:file": path + ": line 3", "file-history-snapshot": path + ": line 1"},
		Skipped: []Failure{{Where: path + ": line 5", Session: "talk", Error: "the last line is cut off"}}, Failures: []Failure{},
	}
	if diff := cmp.Diff(want, got, noTime); diff != "" {
		t.Error(diff)
	}
	invoke(t, nil, "compact-file", path).want(t, 0, "talk: line 5 is skipped: the last line is cut off", "talk: fields and records left out: attachment:file 1 (first at line 3)", "talk: records that are not messages: file-history-snapshot 1")
	one := decode[struct{ Sessions []fileJSON }](t, invoke(t, nil, "compact-file", path, "--json").want(t, 0)).Sessions[0]
	if one.First["attachment:file"] != 3 || len(one.Skipped) != 1 {
		t.Errorf("%+v", one)
	}
}
