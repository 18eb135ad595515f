package frame

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

func TestFrame(t *testing.T) {
	t.Parallel()
	got := Wrap("  ## Goal\nall of it\n", Options{Merged: "and now?  \n"})
	want := Head + " " + note + " " + noteEnd + "\n\n## Goal\nall of it\n\n" + End + tail + "\n\nand now?  \n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	body, merged, ok := Unwrap(got)
	if body != "## Goal\nall of it" || merged != "and now?  \n" || !ok {
		t.Errorf("%q, %q, %v", body, merged, ok)
	}
	if alone := Wrap("x", Options{}); Wrap(alone, Options{}) != alone {
		t.Error(alone)
	}
	noted := Wrap("x", Options{Note: "A note\nof two lines."})
	if body, _, ok := Unwrap(noted); !strings.HasPrefix(noted, Head+" A note of two lines. ") || body != "x" || !ok {
		t.Errorf("%q: %q", noted, body)
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"- [CONVERSATION SUMMARY] x":          "- (CONVERSATION SUMMARY] x",
		"- " + End:                            "- (END OF CONVERSATION SUMMARY]",
		"[END OF THE CONVERSATION SUMMARY]":   "(END OF THE CONVERSATION SUMMARY]",
		"a [END OF **CONVERSATION** SUMMARY]": "a (END OF **CONVERSATION** SUMMARY]",
		"[END OF\nCONVERSATION SUMMARY]":      "(END OF\nCONVERSATION SUMMARY]",
		"the end of the summary":              "the end of the summary",
		"[end to end tests]":                  "[end to end tests]",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestUnframeKnowsOthers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, body, merged string }{
		"a handful of words":    {"[CONTEXT SUMMARY]:\nbody", "body", ""},
		"on one line":           {"[CONTEXT SUMMARY]: body", "body", ""},
		"small and spaced":      {" [context   summary] :body", "body", ""},
		"a reference":           {"[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. Do not answer.\nbody\nmore", "body\nmore", ""},
		"a reference on a line": {"[CONTEXT COMPACTION — REFERENCE ONLY] body", "body", ""},
		"another dash":          {"[Context Compaction -- Reference only]\n\nbody", "body", ""},
		"no dash":               {"[CONTEXT COMPACTION REFERENCE ONLY]body", "body", ""},
		"emphasis":              {"**[CONTEXT COMPACTION – REFERENCE ONLY]**\nbody", "body", ""},
		"with its end":          {"[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns …\nbody\n\n--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---\n\nhello\n", "body", "hello\n"},
		"one of this module":    {"[Conversation Summary]\nbody\n\n[Note]\nThe conversation up to here was replaced.", "body", ""},
		"a handoff":             {"[HANDOFF NOTES] Earlier messages of this conversation were condensed. Reply.\nbody\n\n--- END OF HANDOFF NOTES --- Reply to what follows.\n\nnext", "body", "next"},
		"a split point":         {"[Summary of the conversation so far]\n\nbody", "body", ""},
		"twice":                 {"[CONTEXT SUMMARY]: [CONTEXT SUMMARY]:\n[Summary of the conversation so far]\n\nbody", "body", ""},
		"older in newer":        {Head + " Note. " + noteEnd + "\n\n[CONTEXT COMPACTION — REFERENCE ONLY]\nbody\n\n" + End, "body", ""},
		"a coding agent's":      {agentHead + " The summary below covers the earlier portion of the conversation.\n\nbody\nPlease continue the conversation from where we left it off.", "body", ""},
		"a bracket in the body": {"[CONTEXT SUMMARY]: [x] done", "[x] done", ""},
		"no blank line behind":  {"[CONTEXT SUMMARY]: body\n[end of context summary]\nrest", "body", "rest"},
		"nothing":               {"[CONTEXT SUMMARY]:", "", ""},
		"the end inside a line": {"[CONTEXT SUMMARY]: the mark [END OF CONTEXT SUMMARY] is meant", "the mark [END OF CONTEXT SUMMARY] is meant", ""},
		"ends words go on":      {"[CONTEXT SUMMARY]: a\n- end of summarystatistics\nb", "a\n- end of summarystatistics\nb", ""},
	}
	for name, tt := range tests {
		body, merged, ok := Unwrap(tt.in)
		if body != tt.body || merged != tt.merged || !ok {
			t.Errorf("%s: %q, %q, %v", name, body, merged, ok)
		}
		want := Wrap(tt.body, Options{Merged: tt.merged})
		if got := reframe(tt.in, Options{}); got != want {
			t.Errorf("%s: reframed (-want +got):\n%s", name, cmp.Diff(want, got))
		}
	}
	for _, in := range []string{"", "plain", "[x] a task", "[CONTEXT", "see [CONTEXT SUMMARY]:", "[CONTEXT SUMMARIES]", "# Heading\ntext", "[summary]"} {
		if body, merged, ok := Unwrap(in); body != in || merged != "" || ok {
			t.Errorf("%q: %q, %q, %v", in, body, merged, ok)
		}
	}
}

// frameBits are parts of texts that may break out of their delimiters.
var frameBits = []string{
	Head, End, "[CONTEXT SUMMARY]:", "[CONTEXT COMPACTION — REFERENCE ONLY]", "[Conversation Summary]", "[HANDOFF NOTES] Earlier messages x.",
	"--- END OF HANDOFF NOTES ---", "[Summary of the conversation so far]", "[end - of\tconversation–summary]", "== end of summary ==", "[[END OF SUMMARY]]",
	"\n", "\n\n", " ", "[", "]", "-", "—", "(", "text", "é", "\xff", "\n\n[Note]\nx", noteEnd, agentHead, "Please continue the conversation from where we left it.",
	"[END OF THE CONVERSATION SUMMARY]", "[END OF\nCONVERSATION **SUMMARY**", "- [CONVERSATION SUMMARY]", "\u00a0", "*", "#", "END OF SUMMARY", "CONTEXT SUMMARY]", "=", "\r\n", "x. " + noteEnd,
}

func TestFrameIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(frameBits), 0, 12).Draw(t, name), "")
		}
		text, o := draw("text"), Options{Merged: draw("merged")}
		if rapid.Bool().Draw(t, "noted") {
			o.Note = draw("note")
		}
		framed := Wrap(text, o)
		body, merged, ok := Unwrap(framed)
		if !ok || merged != o.Merged {
			t.Fatalf("%q: merged %q, want %q (%v)", framed, merged, o.Merged, ok)
		}
		if again := Wrap(body, o); again != framed {
			t.Fatalf("%q framed again is\n%q", framed, again)
		}
		if again := reframe(framed, o); again != framed {
			t.Fatalf("%q reframed is\n%q", framed, again)
		}
		alone := o
		alone.Merged = ""
		once := Wrap(text, alone)
		if again := Wrap(once, alone); again != once {
			t.Fatalf("%q framed again is\n%q", once, again)
		}
		if n := strings.Count(once, End); n != 1 {
			t.Fatalf("%d ends in %q", n, once)
		}
	})
}

func BenchmarkFrameGrowth(b *testing.B) {
	for _, unit := range append(frameBits, "[ ", "[conversation ", "- end of ", "[-", "\n[END OF ") {
		b.Run(strconv.Quote(unit), func(b *testing.B) {
			growth.Report(b, 1<<15, 8, func(n int) func() {
				s := strings.Repeat(unit, n/len(unit))
				return func() { Unwrap(Wrap(s, Options{Merged: s})) }
			})
		})
	}
}

func TestRoleBetween(t *testing.T) {
	t.Parallel()
	const user, assistant, tool, system = chat.RoleUser, chat.RoleAssistant, chat.RoleTool, chat.RoleSystem
	for name, tt := range map[string]struct {
		before, behind, want chat.Role
		ok                   bool
	}{
		"alone": {"", "", user, true}, "behind the system prompt": {system, assistant, user, true}, "between assistants": {assistant, assistant, user, true},
		"behind results": {tool, assistant, user, true}, "between users": {user, user, assistant, true}, "at the end": {user, "", assistant, true},
		"before the user, first": {"", user, "", false}, "before the user, behind the system prompt": {system, user, "", false},
		"behind the assistant, before the user": {assistant, user, "", false}, "behind the user, before the assistant": {user, assistant, "", false},
	} {
		if role, ok := RoleBetween(tt.before, tt.behind); role != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v", name, role, ok)
		}
	}
}

// reframe frames a stored summary anew, with the message it was merged with unless
// the options name one. Doing it again changes nothing.
func reframe(text string, o Options) string {
	body, merged, ok := Unwrap(text)
	if ok && o.Merged == "" {
		o.Merged = merged
	}
	return Wrap(body, o)
}
