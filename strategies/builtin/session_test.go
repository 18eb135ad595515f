package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// viewLines returns the position, role and content of each message in the view of s, with
// "+" before an addition.
func viewLines(s *sessiontest.Session) []string {
	var out []string
	for _, m := range s.View() {
		msg := s.Messages[m.Seq]
		content := msg.Content.Text
		for _, p := range msg.Content.Parts {
			content += "<" + p.Type + " " + p.Text + ">"
		}
		for _, c := range msg.ToolCalls {
			content += fmt.Sprintf(" %s=%s%s", c.ID, c.Name, c.Arguments)
		}
		mark := ""
		if !plan.IsSource(m.Kind) {
			mark = "+"
		}
		out = append(out, fmt.Sprintf("%s%d %s: %s", mark, m.Position, m.Role, strings.TrimSpace(content)))
	}
	return out
}

// viewTexts returns the role, text and calls of each message in the view of s.
func viewTexts(s *sessiontest.Session) []string {
	var out []string
	for _, m := range s.View() {
		x := s.Messages[m.Seq]
		line := string(x.Role) + ": " + x.Content.String()
		for _, c := range x.ToolCalls {
			line += " " + c.Name + "(" + c.Arguments + ")"
		}
		out = append(out, strings.ReplaceAll(strings.TrimSpace(line), "\n", "|"))
	}
	return out
}

// viewBriefly returns each message in the view of s, as Briefly writes it.
func viewBriefly(s *sessiontest.Session) []string {
	var out []string
	for _, m := range s.View() {
		out = append(out, sessiontest.Briefly(s.Messages[m.Seq]))
	}
	return out
}

// viewSeqs returns the seqs of the view of s, and for an addition its negative position.
func viewSeqs(s *sessiontest.Session) []int {
	var out []int
	for _, m := range s.View() {
		if plan.IsSource(m.Kind) {
			out = append(out, int(m.Seq))
		} else {
			out = append(out, -int(m.Position))
		}
	}
	return out
}

// byReason returns the seqs that a plan excludes and covers, by reason.
func byReason(p chat.Plan) map[string]string {
	out := map[string]string{}
	for _, x := range p.Exclude {
		out[x.Reason] = x.Seqs.String()
	}
	slices.SortFunc(p.Additions, func(a, b chat.Addition) int { return cmp.Compare(a.Position, b.Position) })
	for _, a := range p.Additions {
		out[a.Reason] += "+" + a.Covers.String()
	}
	return out
}

// fromSource returns m with a source.
func fromSource(source string, m chat.Message) chat.Message {
	m.SourceID = source
	return m
}

// toolCalls returns a call message; parts are an id, a name and arguments for each call.
func toolCalls(parts ...string) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
	for i := 0; i < len(parts); i += 3 {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: parts[i], Type: "function", Name: parts[i+1], Arguments: parts[i+2]})
	}
	return m
}

// answers returns a summarizer that always returns summary, or fails if that is empty.
func answers(summary string) plan.Summarizer {
	return plan.Func(func(context.Context, plan.Request) (string, error) {
		if summary == "" {
			return "", errors.New("the model fails")
		}
		return summary, nil
	})
}
