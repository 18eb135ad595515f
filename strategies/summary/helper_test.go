package summary

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/redact"
)

const ask = "Please fix the login page, it breaks on Safari when cookies are off"

func said(r chat.Role, s string) *chat.Message {
	return &chat.Message{Role: r, Content: chat.TextContent(s)}
}

// asked returns the index of messages of the user.
func asked(texts ...string) *sourceIndex {
	e := &sourceIndex{}
	for i, s := range texts {
		e.add(chat.Seq(i+1), said(chat.RoleUser, s))
	}
	return e
}

// notes returns an answer with some sections.
func notes(bodies map[string]string) string {
	var b strings.Builder
	for _, s := range DefaultSections() {
		if body := bodies[s.Title]; body != "" {
			b.WriteString("## " + s.Title + "\n" + body + "\n\n")
		}
	}
	return b.String()
}

func good() string {
	return notes(map[string]string{
		ActiveTask: "The login page breaks on Safari. [m1]", Wishes: "- It has to work with cookies off. [m1]",
		"Done and decided": "- Read the handler.", "State": "- `web/login.ts`: the handler", "Next": "- Set the cookie in `web/login.ts`.",
	})
}

// with returns good with a text in a section.
func with(title, body string) string {
	return strings.Replace(good(), "## "+title+"\n", "## "+title+"\n"+body+"\n", 1)
}

// read validates an answer to a prompt with or without sections.
func read(e *sourceIndex, sections []Section, a StoredAnswer) (accepted, *rejection) {
	return validator{sections: sections, sources: e, secrets: &redact.Secrets{}, max: 4000}.read(a)
}

// scripted is a model that gives the same answer to every call and keeps the calls.
type scripted struct {
	answer string
	window int
	calls  []llm.Call
}

func (s *scripted) Usable(context.Context) llm.Profile {
	return llm.Profile{Name: "m", Window: s.window}
}
func (*scripted) Identity() string { return "scripted" }

func (s *scripted) Complete(_ context.Context, c llm.Call) (llm.Answer, error) {
	s.calls = append(s.calls, c)
	return llm.Answer{Text: s.answer, Model: "m", FinishReason: "stop"}, nil
}

// session returns turns in which files are changed and committed, an hour apart.
func session(turns int) []*chat.Message {
	begin := time.Date(2026, time.May, 4, 9, 0, 0, 0, time.UTC)
	var out []*chat.Message
	for i := range turns {
		ms := []*chat.Message{
			said(chat.RoleUser, fmt.Sprintf("Request %d: fix web/page_%d.go, and keep the limit at %d rows.", i, i, 100+i)),
			called(fmt.Sprint("a", i)), returned(fmt.Sprint("a", i), numbered(200)),
			called(fmt.Sprint("b", i)), returned(fmt.Sprint("b", i), fmt.Sprintf("[main %07x] page %d", 0xabc1000+i, i)),
			said(chat.RoleAssistant, fmt.Sprintf("Page %d is fixed.", i)),
		}
		ms[1].ToolCalls[0].Arguments = fmt.Sprintf(`{"command":"go test ./web -run Page%d"}`, i)
		ms[3].ToolCalls[0].Arguments = fmt.Sprintf(`{"command":"git commit -m page-%d"}`, i)
		for _, m := range ms {
			m.CreatedAt = begin.Add(time.Duration(i) * time.Hour)
		}
		out = append(out, ms...)
	}
	return out
}

// seqsFrom returns the seqs of n messages.
func seqsFrom(first chat.Seq, n int) []chat.Seq {
	out := make([]chat.Seq, n)
	for i := range out {
		out[i] = first + chat.Seq(i)
	}
	return out
}

// asks writes a summary with a model and returns it with the calls.
func asks(t *testing.T, m *scripted, s policy.Summary, task plan.Task) (string, []llm.Call) {
	t.Helper()
	text, err := New(Options{Settings: s, Model: m, Window: 128_000}).Write(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return text, m.calls
}

var answered = notes(map[string]string{
	ActiveTask: "Fix the pages. [m1]", Wishes: "- Keep the limit at 100 rows. [m1]", "State": "All pages are fixed so far, and each of them is committed on its own. [m6]",
})
