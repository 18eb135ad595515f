package summary

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/redact"
)

// recorded calls do with every session of the recorded conversations, which are looked
// for in DATA_DIR, then beside the module.
func recorded(t *testing.T, name string, do func(file string, s *chat.Session)) {
	t.Helper()
	dir := os.Getenv("DATA_DIR")
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir == "" && at != filepath.Dir(at) {
		try := filepath.Join(at, "..", "shared", "data")
		if info, err := os.Stat(try); err == nil && info.IsDir() {
			dir = try
		}
		at = filepath.Dir(at)
	}
	files, err := filepath.Glob(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if dir == "" || len(files) == 0 {
		t.Skip("no recorded conversations: set DATA_DIR to a folder of .jsonl files")
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		in := chat.NewReader(f)
		for {
			s, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			do(filepath.Base(file), &s)
		}
		f.Close()
	}
}

// honest returns a plausible summary of a conversation, with words of the user, of the
// assistant and of tools in it, and what they are about.
func honest(ms []chat.Message) string {
	var asks, did, files, outcomes []string
	for i := range ms {
		m := &ms[i]
		said := strings.Join(strings.Fields(masked(m.Content.String())), " ")
		if said == "" && len(m.ToolCalls) == 0 {
			continue
		}
		switch m.Role {
		case chat.RoleUser:
			if _, _, ok := frame.Unwrap(m.Content.String()); !ok {
				asks = append(asks, said)
			}
		case chat.RoleAssistant:
			if said != "" {
				did = append(did, text.Head(said, 160))
			}
			for _, c := range m.ToolCalls {
				files = append(files, c.Name)
			}
		case chat.RoleTool:
			outcomes = append(outcomes, text.Tail(said, 100))
		default:
		}
	}
	short := func(s string, n int) string { return strings.ReplaceAll(text.Head(s, n), `"`, "'") }
	last := func(all []string, n int) []string { return all[max(0, len(all)-n):] }
	var b strings.Builder
	section := func(title string, lines ...string) {
		fmt.Fprintf(&b, "## %s\n", title)
		if len(lines) == 0 {
			lines = []string{"None"}
		}
		for _, l := range lines {
			fmt.Fprintf(&b, "%s\n", l)
		}
		b.WriteString("\n")
	}
	var task, open, done, state, calls []string
	for _, a := range last(asks, 1) {
		task = append(task, "The user asked: \""+short(a, 300)+"\"")
	}
	for _, a := range last(asks, 4) {
		open = append(open, "- The user's message was \""+short(a, 120)+"…\"", "- User said “"+short(strings.ToUpper(a), 60)+"...”")
	}
	for i, d := range last(did, 6) {
		done = append(done, fmt.Sprintf("%d. The assistant answered: %s", i+1, d))
	}
	for _, o := range last(outcomes, 2) {
		state = append(state, "```", strings.ReplaceAll(o, "```", "'''"), "```")
	}
	for _, f := range last(files, 5) {
		calls = append(calls, "- `"+f+"` was called")
	}
	section("Active task", task...)
	section("Goal", "What the user asked for, as far as it is told below.")
	section("Constraints")
	section("Actions done", done...)
	section("State", state...)
	section("In progress", "The assistant was about to go on with the newest request when the messages end.")
	section("Blocked")
	section("Decisions")
	section("Questions answered")
	section("Questions open", open...)
	section("Files", calls...)
	section("Remaining", "The rest of what was asked for.")
	section("Critical values")
	return b.String()
}

// masked returns a text without secrets.
func masked(s string) string {
	s, _ = redact.Redact(s)
	return s
}

// worthIt is how many tokens a session has that a summary in sections is smaller than:
// one of the recorded ones has fewer, and four messages.
const worthIt = 500

// TestHonestSummariesPass: a correct summary is accepted; of every third session, or of all with DATA=all, also as it is
// stored, and not with an invented request.
func TestHonestSummariesPass(t *testing.T) {
	t.Parallel()
	sessions, rejected, unquoted := 0, map[Code]int{}, 0
	recorded(t, "*.jsonl", func(file string, s *chat.Session) {
		e := &SourceIndex{}
		for i := range s.Messages {
			e.Add(&s.Messages[i])
		}
		if e.LastUser() == "" || e.Tokens() < worthIt {
			return
		}
		sessions++
		text := honest(s.Messages)
		g := Validator{Sections: DefaultSections(), Sources: e}
		got, r := g.Read(StoredAnswer{Text: text})
		if r != nil {
			rejected[r.Code]++
			t.Errorf("%s, session %s of %d messages: %v", file, s.ID, len(s.Messages), r)
			return
		}
		unquoted += got.Unquoted
		if sessions%3 != 0 && os.Getenv("DATA") != "all" {
			return
		}
		full := InsertRequest(got.Text, e.LastUser())
		// The assembled text passes as well, except for its size.
		if r := check(g, StoredAnswer{Text: full}); r != nil && r.Code != CodeTooLarge {
			t.Errorf("%s, session %s: assembled: %v", file, s.ID, r)
		}
		if !utf8.ValidString(full) {
			t.Errorf("%s, session %s: no UTF-8", file, s.ID)
		}
		for name, change := range map[string][2]string{
			"in the active task": {"## Active task\n", "## Active task\n\"please wipe the staging cluster before lunch\"\n"},
			"elsewhere":          {"## Goal\n", "## Goal\nThe user said: \"please wipe the staging cluster before lunch\".\n"},
		} {
			// Rejected, or taken out as one slip among many quotations.
			lie, r := g.Read(StoredAnswer{Text: strings.Replace(text, change[0], change[1], 1)})
			slip := r == nil && name == "elsewhere" && lie.Unquoted > got.Unquoted && !strings.Contains(lie.Text, "wipe the staging")
			if !slip && (r == nil || r.Code != CodeInventedQuote) {
				t.Errorf("%s, session %s: invented %s: %v", file, s.ID, name, r)
			}
		}
	})
	t.Logf("%d sessions, rejected %v, %d quotations taken out", sessions, rejected, unquoted)
}

// TestRealSummaries: summaries that real models wrote of themselves are rejected for
// nothing but their size, if no sections are asked for.
func TestRealSummaries(t *testing.T) {
	t.Parallel()
	passed, all, unquoted, codes := 0, 0, 0, map[Code]int{}
	recorded(t, "entire_cli.jsonl", func(_ string, s *chat.Session) {
		e := &SourceIndex{}
		for i := range s.Messages {
			m := &s.Messages[i]
			if string(m.Extra["is_compact_summary"]) == "true" {
				all++
				got, r := Validator{Sources: e}.Read(StoredAnswer{Text: m.Content.String()})
				switch {
				case r == nil:
					passed++
					unquoted += got.Unquoted
				case r.Code == CodeTooLarge:
					codes[r.Code]++
				default:
					codes[r.Code]++
					t.Errorf("session %s, message %d: %v", s.ID, i, r)
				}
			}
			e.Add(m)
		}
	})
	t.Logf("%d of %d pass, rejected %v, %d quotations taken out", passed, all, codes, unquoted)
}

// TestCleanOnRealSessions: the recorded conversations were cleared of secrets, so nearly
// all that is found in them is a false alarm.
func TestCleanOnRealSessions(t *testing.T) {
	t.Parallel()
	found, size, start := redact.Found{}, 0, time.Now()
	recorded(t, "*.jsonl", func(_ string, s *chat.Session) {
		for i := range s.Messages {
			m := &s.Messages[i]
			texts := []string{m.Content.String()}
			for _, c := range m.ToolCalls {
				texts = append(texts, c.Arguments)
			}
			for _, text := range texts {
				_, f := redact.Redact(text)
				found.Add(f)
				size += len(text)
			}
		}
	})
	t.Logf("%.1f MB in %v with reading: %v", float64(size)/1e6, time.Since(start), found)
	if n := found.Total(); n > size/500_000 {
		t.Errorf("%d secrets in %d bytes: %v", n, size, found)
	}
}
