package summary

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/redact"
)

// answerList is testdata/answers.txt: conversations, and for each of them honest answers, true and
// forged lines with the number of their section.
type answerList struct {
	conversations map[string][]*chat.Message
	answers       []listed
}

type listed struct{ kind, of, text string }

func readAnswers(t testing.TB) answerList {
	t.Helper()
	b, err := os.ReadFile("testdata/answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	l := answerList{conversations: map[string][]*chat.Message{}}
	for block := range strings.SplitSeq("\n"+string(b), "\n=== ") {
		head, body, _ := strings.Cut(block, "\n")
		f := strings.Fields(head)
		switch {
		case len(f) < 2:
		case f[0] == "conversation":
			for line := range strings.Lines(body) {
				role, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
				l.conversations[f[1]] = append(l.conversations[f[1]], &chat.Message{Role: chat.Role(role), Content: chat.TextContent(said)})
			}
		case f[0] == "honest":
			l.answers = append(l.answers, listed{f[0], f[1], body})
		default:
			for line := range strings.Lines(body) {
				l.answers = append(l.answers, listed{f[0], f[1], strings.TrimSpace(line)})
			}
		}
	}
	return l
}

// validate reads an answer about a conversation.
func (l answerList) validate(of, answer string) (accepted, *rejection) {
	e := &sourceIndex{}
	for i, m := range l.conversations[of] {
		e.add(chat.Seq(i+1), m)
	}
	e.tokens = 5000
	return validator{sections: DefaultSections(), sources: e, secrets: &redact.Secrets{}}.read(StoredAnswer{Text: answer, FinishReason: "stop"})
}

// answerWith returns an answer with a line in a section.
func answerWith(section int, line string) string {
	var b strings.Builder
	for i, s := range DefaultSections() {
		body := "- db-prod-3 [m7]"
		switch i + 1 {
		case section:
			body = line
		case 2:
			body = "- [m1]"
		}
		b.WriteString("## " + s.Title + "\n" + body + "\n\n")
	}
	return b.String()
}

// bodyOf returns the body of a section of an accepted answer.
func bodyOf(text, title string) string {
	for _, h := range headingsOf(text, nil) {
		if h.title == title {
			return text[h.body:h.end]
		}
	}
	return ""
}

func TestHonestAnswersAreAccepted(t *testing.T) {
	t.Parallel()
	l := readAnswers(t)
	all, rejected := 0, 0
	for _, a := range l.answers {
		if a.kind != "honest" {
			continue
		}
		all++
		got, r := l.validate(a.of, a.text)
		if r != nil {
			rejected++
			t.Logf("%v\n%s", *r, a.text)
			continue
		}
		if !strings.Contains(got.text, "\n- ") && got.dropped > 0 || got.dropped > 0 {
			t.Errorf("%d parts were dropped of\n%s\nleaving\n%s", got.dropped, a.text, got.text)
		}
		if n := len(headingsOf(got.text, nil)); n < 3 {
			t.Errorf("%d headings in\n%s", n, got.text)
		}
		t.Logf("numbered %v\n%s", got.numbered, got.text)
	}
	if all != 20 || rejected > 1 {
		t.Errorf("%d of %d were rejected", rejected, all)
	}
}

func TestTrueStatementsStay(t *testing.T) {
	t.Parallel()
	l := readAnswers(t)
	for _, a := range l.answers {
		if a.kind != "true" {
			continue
		}
		got, r := l.validate(a.of, answerWith(int(a.text[0]-'0'), "- "+a.text[2:]))
		if r != nil {
			t.Errorf("%s: %v", a.text, *r)
			continue
		}
		want := withoutTags(strings.NewReplacer("【", "[", "】", "]").Replace(a.text[2:]))
		body := bodyOf(got.text, DefaultSections()[a.text[0]-'1'].Title)
		if !strings.Contains(withoutTags(body), want) {
			t.Errorf("%s became %q", a.text, body)
		}
	}
}

// A forged line may stand as a note of what happened, but never as what the user said: neither in a
// section of the user nor with the name of a message of the user.
func TestForgedStatementsAreNotTheUsers(t *testing.T) {
	t.Parallel()
	l := readAnswers(t)
	for _, a := range l.answers {
		if a.kind != "forged" {
			continue
		}
		line := a.text[2:]
		got, r := l.validate(a.of, answerWith(int(a.text[0]-'0'), "- "+line))
		if r != nil {
			continue
		}
		words := withoutTags(line)
		for n := range strings.Lines(got.text) {
			shown := strings.Contains(wordsOf(withoutTags(n)), wordsOf(words))
			if shown && (strings.Contains(n, " user") && strings.Contains(n, "[m") && strings.Contains(n, "user]") || !strings.Contains(n, "[m")) {
				t.Errorf("%s stands as %s", line, n)
			}
			if shown && slices.ContainsFunc(DefaultSections()[:2], func(s Section) bool { return strings.Contains(bodyOf(got.text, s.Title), n) }) {
				t.Errorf("%s stands in a section of the user", line)
			}
		}
	}
}
