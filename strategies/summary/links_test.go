package summary

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

func TestTags(t *testing.T) {
	t.Parallel()
	known := map[chat.Seq]chat.Role{}
	for n := chat.Seq(1); n <= 9; n++ {
		known[n] = chat.RoleAssistant
	}
	known[3] = chat.RoleUser
	for text, want := range map[string]string{
		"a [m3]": "[m3 user]", "a [m3, m4]": "[m3 user, m4 assistant]", "a (m3; m4)": "[m3 user, m4 assistant]", "a【m3】": "[m3 user]",
		"a [m3-m5]": "[m3 user, m4 assistant, m5 assistant]", "a [m3–5]": "[m3 user, m4 assistant, m5 assistant]", "a [m3][m4]": "[m3 user] [m4 assistant]",
		"a [m3 user, m4 tool]": "[m3 user, m4 assistant]", "a [message 3]": "[m3 user]", "a [m3, m77]": "[m3 user]", "a [m77]": "", "a [m1-m99999999]": "[m1 assistant, m2 assistant, m3 user, m4 assistant, m5 assistant, m6 assistant, m7 assistant, m8 assistant]",
		"`a [m3]`": "", "```\n[m3]\n```": "", "a [3]": "", "(2026)": "", "x(m3)": "[m3 user]", "[x](m3)": "[m3 user]", "a [m3": "", "[-] [ ] [x]": "",
	} {
		var got []string
		for _, tag := range tagsIn(text, false) {
			if s := formatTag(tag.seqs(known), known); s != "" {
				got = append(got, s)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Links are stored with the seqs of the session, for each line, and an update keeps those of the
// notes before.
func TestLinksAreStored(t *testing.T) {
	t.Parallel()
	ms := session(12)
	answer := notes(map[string]string{
		ActiveTask: "Fix the pages. [m101]", Wishes: "- Keep the limit at 100 rows. [m101]\n- Never deploy. [m102]", "State": "Committed. [m105]\n\nAll pages\nwork. [m106, m999]",
	})
	first, calls := asks(t, &scripted{answer: answer, window: 64_000}, policy.DefaultSummary(), plan.Task{Messages: ms, Seqs: seqsFrom(101, len(ms))})
	if user := calls[0].User; !strings.Contains(user, " m101 user") || !strings.Contains(user, fmt.Sprintf(" m%d assistant", 100+len(ms))) {
		t.Errorf("%.2000s", user)
	}
	lines := strings.Split(first, "\n")
	byLine := map[string][]chat.Seq{}
	for _, l := range Links(first) {
		byLine[lines[l.Line]] = l.Seqs
	}
	want := map[string][]chat.Seq{
		"Fix the pages. [m101 user]": {101}, verbatimNote + " [m167 user]": {167}, "- Keep the limit at 100 rows. [m101 user]": {101},
		"Committed. [m105 tool]": {105}, "work. [m106 assistant]": {106},
	}
	if diff := cmp.Diff(want, byLine); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, first)
	}
	if strings.Contains(first, "Never deploy") || !strings.HasPrefix(first, "(Notes of a model. Brackets at the end of a line name ") {
		t.Errorf("%s", first)
	}

	m := &scripted{answer: strings.Replace(answer, "Never deploy. [m102]", "Keep the limit at 11 rows. [m201]", 1), window: 64_000}
	next := session(4)
	task := plan.Task{Messages: append([]*chat.Message{said(chat.RoleUser, frame.Wrap(first, frame.Options{}))}, next...), Seqs: append([]chat.Seq{180}, seqsFrom(201, len(next))...)}
	second, calls := asks(t, m, policy.DefaultSummary(), task)
	if user := calls[0].User; !strings.Contains(user, "\n- Keep the limit at 100 rows. [m101]\n") || strings.Contains(user, "(Notes of a model") || strings.Contains(user, "## References") {
		t.Errorf("%.3000s", user)
	}
	for _, line := range []string{"- Keep the limit at 100 rows. [m101 user]", "- Keep the limit at 11 rows. [m201 user]", "Committed. [m105 tool]"} {
		if !strings.Contains(second, "\n"+line+"\n") {
			t.Errorf("no %s in\n%s", line, second)
		}
	}
}

// Where the messages have no seqs, their order numbers them in prompts, and nothing names those in
// the stored text.
func TestOrdinalsAreNotStored(t *testing.T) {
	t.Parallel()
	ms := session(12)
	seqs := seqsFrom(1, len(ms))
	seqs[3] = 0
	for _, task := range []plan.Task{{Messages: ms}, {Messages: ms, Seqs: seqs}, {Messages: ms, Seqs: make([]chat.Seq, len(ms))}} {
		text, calls := asks(t, &scripted{answer: answered, window: 64_000}, policy.DefaultSummary(), task)
		if len(Links(text)) > 0 || strings.Contains(text, "[m1") || !strings.Contains(text, "Keep the limit at 100 rows.\n") || !strings.Contains(calls[0].User, " m1 user") {
			t.Errorf("%s", text)
		}
	}
}

// For any answer, a line in a section of the user names a message of the user, and no tag names an
// unknown message.
func TestSectionsOfTheUserRestOnTheUser(t *testing.T) {
	t.Parallel()
	bits := rapid.SliceOfN(rapid.SampledFrom([]string{
		"- keep it", "  - and that", "[m1]", "[m2]", " [m1, m3]", "(m7)", "\n", "\n\n", ". ", "## 2. The user's wishes and limits\n", "## State\n", "\n| a | b |\n", "|---|\n", "```\n", "drop it", "“all of the backups”", "* ", "[m4", "【m2】", "> ",
	}), 0, 40)
	e := &sourceIndex{}
	for i, role := range []chat.Role{chat.RoleUser, chat.RoleAssistant, chat.RoleTool} {
		e.add(chat.Seq(i+1), said(role, ask))
	}
	e.tokens = 10_000
	rapid.Check(t, func(t *rapid.T) {
		answer := answerWith(2, strings.Join(bits.Draw(t, "bits"), ""))
		got, r := read(e, DefaultSections(), StoredAnswer{Text: answer, FinishReason: "stop"})
		if r != nil {
			return
		}
		items := splitItems(bodyOf(got.text, Wishes))
		for i := range slices.Backward(items) {
			x := &items[i]
			if x.keep = x.keep || strings.Contains(x.text, "m1 user"); x.parent >= 0 && x.keep {
				items[x.parent].keep = true // by what is under it
			}
			if x.parent < 0 && !x.keep {
				t.Fatalf("%q of\n%s\nin\n%s", x.text, answer, got.text)
			}
		}
		for _, tag := range tagsIn(got.text, false) {
			if seqs := tag.seqs(e.authors); len(seqs) != len(tag.parts) && got.text[tag.start] != '(' {
				t.Fatalf("%s in\n%s", got.text[tag.start:tag.end], got.text)
			}
		}
	})
}
