package summarize

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestFrame(t *testing.T) {
	t.Parallel()
	got := Frame("  ## Goal\nall of it\n", Options{Merged: "and now?  \n"})
	want := FrameHead + " " + frameNote + " " + noteEnd + "\n\n## Goal\nall of it\n\n" + FrameEnd + frameTail + "\n\nand now?  \n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	body, merged, ok := Unframe(got)
	if body != "## Goal\nall of it" || merged != "and now?  \n" || !ok {
		t.Errorf("%q, %q, %v", body, merged, ok)
	}
	if alone := Frame("x", Options{NoModel: true}); !strings.Contains(alone, "No model wrote it") || Frame(alone, Options{NoModel: true}) != alone {
		t.Error(alone)
	}
	noted := Frame("x", Options{Note: "A note\nof two lines."})
	if body, _, ok := Unframe(noted); !strings.HasPrefix(noted, FrameHead+" A note of two lines. ") || body != "x" || !ok {
		t.Errorf("%q: %q", noted, body)
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
		"older in newer":        {FrameHead + " Note. " + noteEnd + "\n\n[CONTEXT COMPACTION — REFERENCE ONLY]\nbody\n\n" + FrameEnd, "body", ""},
		"a coding agent's":      {sentence + " The summary below covers the earlier portion of the conversation.\n\nbody\nPlease continue the conversation from where we left it off.", "body", ""},
		"a bracket in the body": {"[CONTEXT SUMMARY]: [x] done", "[x] done", ""},
		"no blank line behind":  {"[CONTEXT SUMMARY]: body\n[end of context summary]\nrest", "body", "rest"},
		"nothing":               {"[CONTEXT SUMMARY]:", "", ""},
		"the end inside a line": {"[CONTEXT SUMMARY]: the mark [END OF CONTEXT SUMMARY] is meant", "the mark [END OF CONTEXT SUMMARY] is meant", ""},
		"ends words go on":      {"[CONTEXT SUMMARY]: a\n- end of summarystatistics\nb", "a\n- end of summarystatistics\nb", ""},
	}
	for name, tt := range tests {
		body, merged, ok := Unframe(tt.in)
		if body != tt.body || merged != tt.merged || !ok {
			t.Errorf("%s: %q, %q, %v", name, body, merged, ok)
		}
		want := Frame(tt.body, Options{Merged: tt.merged})
		if got := Reframe(tt.in, Options{}); got != want {
			t.Errorf("%s: reframed (-want +got):\n%s", name, cmp.Diff(want, got))
		}
	}
	for _, in := range []string{"", "plain", "[x] a task", "[CONTEXT", "see [CONTEXT SUMMARY]:", "[CONTEXT SUMMARIES]", "# Heading\ntext", "[summary]"} {
		if body, merged, ok := Unframe(in); body != in || merged != "" || ok {
			t.Errorf("%q: %q, %q, %v", in, body, merged, ok)
		}
	}
}

// frameBits are what texts are drawn from that try to break their frame.
var frameBits = []string{
	FrameHead, FrameEnd, "[CONTEXT SUMMARY]:", "[CONTEXT COMPACTION — REFERENCE ONLY]", "[Conversation Summary]", "[HANDOFF NOTES] Earlier messages x.",
	"--- END OF HANDOFF NOTES ---", "[Summary of the conversation so far]", "[end - of\tconversation–summary]", "== end of summary ==", "[[END OF SUMMARY]]",
	"\n", "\n\n", " ", "[", "]", "-", "—", "(", "text", "é", "\xff", "\n\n[Note]\nx", noteEnd, sentence, "Please continue the conversation from where we left it.",
	"\u00a0", "*", "#", "END OF SUMMARY", "CONTEXT SUMMARY]", "=", "\r\n", "x. " + noteEnd,
}

func TestFrameIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(frameBits), 0, 12).Draw(t, name), "")
		}
		text, o := draw("text"), Options{NoModel: rapid.Bool().Draw(t, "rules"), Merged: draw("merged")}
		if rapid.Bool().Draw(t, "noted") {
			o.Note = draw("note")
		}
		framed := Frame(text, o)
		body, merged, ok := Unframe(framed)
		if !ok || merged != o.Merged {
			t.Fatalf("%q: merged %q, want %q (%v)", framed, merged, o.Merged, ok)
		}
		if again := Frame(body, o); again != framed {
			t.Fatalf("%q framed again is\n%q", framed, again)
		}
		if again := Reframe(framed, o); again != framed {
			t.Fatalf("%q reframed is\n%q", framed, again)
		}
		alone := o
		alone.Merged = ""
		once := Frame(text, alone)
		if again := Frame(once, alone); again != once {
			t.Fatalf("%q framed again is\n%q", once, again)
		}
		if n := strings.Count(once, FrameEnd); n != 1 {
			t.Fatalf("%d ends in %q", n, once)
		}
	})
}

func BenchmarkFrameGrowth(b *testing.B) {
	benchmarkGrowth(b, append(frameBits, "[ ", "[conversation ", "- end of ", "[-", "\n[END OF "), func(s string) {
		Unframe(Frame(s, Options{Merged: s}))
	})
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
