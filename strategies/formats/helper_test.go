package formats_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// read reads all sessions of a text.
func read(tb testing.TB, text, format string) []formats.Session {
	tb.Helper()
	r, err := formats.NewReader(strings.NewReader(text), format)
	if err != nil {
		tb.Fatal(err)
	}
	var out []formats.Session
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			tb.Fatalf("%v in\n%.2000s", err, text)
		}
		out = append(out, s)
	}
}

// one reads the only session of a text.
func one(tb testing.TB, text, format string) formats.Session {
	tb.Helper()
	all := read(tb, text, format)
	if len(all) != 1 {
		tb.Fatalf("%d sessions in\n%.2000s", len(all), text)
	}
	return all[0]
}

func write(tb testing.TB, s chat.Session, format string) (string, formats.Losses) {
	tb.Helper()
	var b bytes.Buffer
	losses, err := formats.Write(&b, format, s, formats.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return b.String(), losses
}

// canon returns a session in which equivalent forms are equal.
func canon(tb testing.TB, s chat.Session) any {
	tb.Helper()
	o, err := formats.PlainSession(s)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// rawFiles returns the samples as programs write them, if they are there: in DATA_DIR,
// or beside the module.
func rawFiles(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("DATA_DIR")
	if dir == "" {
		at, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for ; dir == "" && at != filepath.Dir(at); at = filepath.Dir(at) {
			if try := filepath.Join(at, "..", "shared", "data"); isDir(try) {
				dir = try
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "raw", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if dir == "" || len(files) == 0 {
		t.Skip("no recorded sessions: set DATA_DIR to a folder with raw/*.jsonl")
	}
	return files
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func sum(m map[string]int) (n int) {
	for _, k := range m {
		n += k
	}
	return n
}

// outline returns a session in few words.
func outline(s chat.Session) []string {
	var out []string
	for _, m := range s.Messages {
		line := string(m.Role)
		if m.ID != "" {
			line += " " + m.ID
		}
		if text := m.Content.String(); text != "" {
			line += " " + text
		}
		if m.Reasoning != "" {
			line += " (" + m.Reasoning + ")"
		}
		for _, p := range m.Content.Parts {
			if p.Type != "text" {
				line += " +" + p.Type
			}
		}
		for _, c := range m.ToolCalls {
			line += fmt.Sprintf(" %s=%s(%s)", c.ID, c.Name, c.Arguments)
		}
		if m.ToolCallID != "" {
			line += " for " + m.ToolCallID
		}
		for _, key := range []string{"is_error", "is_meta", "is_compact_summary", "parent_id"} {
			if raw := m.Extra[key]; raw != nil {
				line += " " + key + "=" + string(raw)
			}
		}
		out = append(out, line)
	}
	return out
}
