package chat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// outline reads everything and writes one line per session and error.
func outline(r io.Reader) []string {
	var out []string
	in := chat.NewReader(r)
	for {
		s, err := in.Next()
		var line *chat.LineError
		switch {
		case errors.Is(err, io.EOF) && !errors.As(err, &line):
			return out
		case errors.As(err, &line):
			out = append(out, err.Error())
		case err != nil:
			return append(out, "fatal: "+err.Error())
		default:
			text := s.ID + "/" + s.Model + ":"
			for _, m := range s.Messages {
				text += " " + m.Content.String()
			}
			out = append(out, text)
		}
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	msg := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	session := func(id, text string) string {
		return `{"session_id":"` + id + `","model":"m","messages":[` + msg(text) + `]}`
	}
	pretty := func(s string) string {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(s), "", "  "); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	tests := map[string]struct {
		in   string
		want []string
	}{
		"nothing":             {"", nil},
		"blank lines":         {"\n \r\n\n", nil},
		"one session a line":  {session("a", "1") + "\n\n" + session("b", "2"), []string{"a/m: 1", "b/m: 2"}},
		"a byte order mark":   {"\xef\xbb\xbf" + session("a", "1") + "\r\n", []string{"a/m: 1"}},
		"an id by its name":   {`{"id":7,"messages":[]}`, []string{"7/:"}},
		"one document":        {pretty(session("a", "1")), []string{"a/m: 1"}},
		"documents in a row":  {pretty(session("a", "1")) + "\n" + pretty(session("b", "2")) + "\n", []string{"a/m: 1", "b/m: 2"}},
		"a line after one":    {pretty(session("a", "1")) + session("b", "2"), []string{"a/m: 1", "b/m: 2"}},
		"an array":            {"[" + msg("1") + "," + msg("2") + "]", []string{"/: 1 2"}},
		"a pretty array":      {pretty("[" + msg("1") + "," + msg("2") + "]"), []string{"/: 1 2"}},
		"an array by lines":   {"[\n" + msg("1") + "\n]\n", []string{"/: 1"}},
		"an array a line":     {"[" + msg("1") + "]\n[" + msg("2") + "]", []string{"/: 1", "/: 2"}},
		"one message a line":  {msg("1") + "\n" + msg("2") + "\n", []string{"/: 1 2"}},
		"a NUL in a document": {strings.Replace(pretty(session("a", "1")), `"1"`, "\"\x00\"", 1), []string{"a/m: \uFFFD"}},
		"a malformed line": {
			session("a", "1") + "\n{\"messages\":[}\n" + session("b", "2"),
			[]string{"a/m: 1", "line 2: no valid JSON at byte 14: invalid character '}' looking for beginning of value", "b/m: 2"},
		},
		"a malformed first line": {
			"{\"messages\":[}\n" + session("b", "2"),
			[]string{"line 1: no valid JSON at byte 14: invalid character '}' looking for beginning of value", "b/m: 2"},
		},
		"a first line cut in a string": {
			strings.TrimSuffix(session("a", "1"), `"}]}`) + "\n" + session("b", "2") + "\n" + session("c", "3"),
			[]string{"line 1: no valid JSON at byte 70: invalid character '\\n' in string literal", "b/m: 2", "c/m: 3"},
		},
		"a first line cut between tokens": {
			"{\"messages\":[\n" + session("b", "2") + "\n" + session("c", "3"),
			[]string{"line 1: no valid JSON at byte 89: invalid character '{' after array element", "b/m: 2", "c/m: 3"},
		},
		"a first line cut, then one more": {
			"{\"messages\":[\n" + session("b", "2") + "\n",
			[]string{"line 1: no valid JSON: unexpected EOF", "b/m: 2"},
		},
		"a document cut short": {
			pretty(session("a", "1"))[:60],
			[]string{"line 1: no valid JSON: unexpected EOF"},
		},
		"a broken document": {
			"{\n  \"messages\": [}\n  ]\n}",
			[]string{"line 1: no valid JSON at byte 18: invalid character '}' looking for beginning of value"},
		},
		"a broken message in a session": {
			`{"messages":[` + msg("1") + `,{"role":3}]}` + "\n" + session("b", "2"),
			[]string{"line 1: messages[1]: role: want a string, got a number", "b/m: 2"},
		},
		"a broken message of its own": {
			msg("1") + "\n{\"role\":\"user\",\"content\":1}\n" + msg("2"),
			[]string{"line 2: message 1: content: want a string, an array of parts or null, got a number", "/: 1 2"},
		},
		"neither": {
			`{"a":1}` + "\n12\nhello\n",
			[]string{
				"line 1: no record: neither a session (no messages) nor a message (no role)",
				"line 2: no record: want a session, a message or an array of messages, got a number",
				"line 3: no valid JSON at byte 1: invalid character 'h' looking for beginning of value",
			},
		},
		"a last line that is cut off": {
			msg("1") + "\n" + `{"role":"user","con`,
			[]string{"line 2: the last line is cut off", "/: 1"},
		},
		"lines of NUL bytes":          {msg("1") + "\n\x00\x00\x00\x00\n" + msg("2"), []string{"line 2: NUL bytes", "/: 1 2"}},
		"NUL bytes before a message":  {msg("1") + "\n\x00\x00\x00" + msg("2") + "\n" + msg("3") + "\x00\x00", []string{"/: 1 2 3"}},
		"NUL bytes behind a document": {pretty(session("a", "1")) + "\n\x00\x00\x00", []string{"a/m: 1", "line 11: NUL bytes"}},
		"NUL bytes on the last line of a document": {
			pretty(session("a", "1")) + "\x00\x00\r\n\x00\x00\n\x00" + pretty(session("b", "2")) + "\x00",
			[]string{"a/m: 1", "line 11: NUL bytes", "b/m: 2"},
		},
		"NUL bytes for the rest of a line": {
			msg("1") + "\n{\"role\":\"us\x00\x00\x00\x00" + msg("2") + "\n" + msg("3"),
			[]string{"line 2: no valid JSON at byte 11: unexpected end of JSON input", "/: 1 2 3"},
		},
		"messages on one line":          {msg("1") + msg("2") + "\n" + msg("3") + " " + msg("4"), []string{"/: 1 2 3 4"}},
		"sessions on one line, later":   {session("a", "1") + "\n" + session("b", "2") + session("c", "3"), []string{"a/m: 1", "b/m: 2", "c/m: 3"}},
		"text behind a document":        {pretty(session("a", "1")) + "\n}", []string{"line 11: text after the end of the JSON"}},
		"text behind an array":          {"[" + msg("1") + "]\n\n  and more", []string{"/: 1", "line 3: no valid JSON at byte 1: invalid character 'a' looking for beginning of value"}},
		"text on the line of a session": {session("a", "1") + " and more", []string{"line 1: text after the end of the JSON"}},
		"text on the first of many lines": {
			msg("1") + "and more\n" + msg("2") + "\n" + msg("3"),
			[]string{"line 1: text after the end of the JSON", "/: 2 3"},
		},
		"a message that says nothing": {
			msg("1") + "\n{\"role\":\"user\"}\n" + msg("2"),
			[]string{"line 2: message 1: content: missing; want a text, parts or tool_calls", "/: 1 2"},
		},
		"messages of another type": {`{"messages":{}}`, []string{"line 1: messages: want an array, got an object"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, outline(strings.NewReader(tt.in))); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, outline(iotest.OneByteReader(strings.NewReader(tt.in)))); diff != "" {
				t.Errorf("read byte by byte (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaderRepairsAndFails(t *testing.T) {
	t.Parallel()
	const line = `{"session_id":"a","messages":[{"role":"user","content":"\ud800\u0000"}],"x":"` + "\xff" + `"}`
	in := chat.NewReader(io.MultiReader(strings.NewReader(line+"\n"), iotest.ErrReader(errors.New("gone"))))
	s, err := in.Next()
	if err != nil || s.Repairs != 3 {
		t.Errorf("got %d repairs (%v), want 3", s.Repairs, err)
	}
	for range 2 {
		if _, err := in.Next(); err == nil || err.Error() != "read line 2: gone" {
			t.Errorf("got error %v, want the error of the file, for good", err)
		}
	}
}

func TestReaderTakesLongLines(t *testing.T) {
	t.Parallel()
	rewritten(t, chat.Session{ID: "a", Messages: []chat.Message{{Role: "user", Content: chat.TextContent(strings.Repeat("long ", 1<<20))}}})
}

// rewritten fails the test unless a session that is written is read as it was.
func rewritten(t *testing.T, s chat.Session) {
	t.Helper()
	var b bytes.Buffer
	if err := chat.WriteSession(&b, s); err != nil {
		t.Fatal(err)
	}
	again, err := chat.NewReader(&b).Next()
	if err != nil {
		t.Fatal(err)
	}
	again.Repairs = s.Repairs
	if !reflect.DeepEqual(s, again) { // cmp takes seconds where nothing differs
		t.Errorf("session %s: round trip (-want +got):\n%s", s.ID, cmp.Diff(s, again))
	}
}

// TestRealConversations reads, writes, checks and repairs the recorded sessions in DATA_DIR, or
// those beside the module.
func TestRealConversations(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("DATA_DIR")
	if dir == "" {
		dir = "../../../shared/data"
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no recorded conversations: set DATA_DIR to a folder of .jsonl files")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			in, messages := chat.NewReader(f), 0
			for {
				s, err := in.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				messages += len(s.Messages)
				rewritten(t, s)
				if left := chat.Check(chat.Describe(chat.Repaired(s.Messages))); len(left) > 0 {
					t.Errorf("session %s: %d faults left, first %v", s.ID, len(left), left[0])
				}
			}
			if messages == 0 {
				t.Error("no messages")
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"session_id":"a","messages":[{"role":"user","content":"x"}]}` + "\n{"))
	f.Add([]byte("{\n\"messages\":[\n{\"role\":\"user\"}]}\n{}"))
	f.Add([]byte("[\n{\"role\":\"tool\",\"tool_call_id\":\"\"}\n]"))
	f.Add([]byte(`{"role":"user"}` + "\n" + `{"role":"user","content":["\ud800"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := chat.NewReader(bytes.NewReader(data))
		for range len(data) + 2 {
			s, err := in.Next()
			var line *chat.LineError
			switch {
			case errors.As(err, &line):
				if line.Line < 1 || line.Line > bytes.Count(data, []byte("\n"))+1 {
					t.Errorf("line %d of %q", line.Line, data)
				}
				continue
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				t.Fatal(err)
			}
			rewritten(t, s)
		}
		t.Errorf("no end of %q", data)
	})
}
