package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/redact"
)

// samePass compares how the handoff came to its plan.
func (e *hermesEngine) samePass(want hermesStep, c HostCompression) error {
	p := e.last
	if (p != nil) != (want.Pruned != nil) {
		return fmt.Errorf("a pass: %v, want %v", p != nil, want.Pruned != nil)
	}
	if p == nil {
		return nil
	}
	results := 0
	for _, a := range p.pruned {
		if a.Message.Role == chat.RoleTool {
			results++
		}
	}
	if results != *want.Pruned || p.start != want.Start || p.tail != want.End || string(p.role) != want.Role || (p.role == "") != want.Merged {
		return fmt.Errorf("%d pruned, middle %d to %d, role %q, want %d, %d to %d, %q",
			results, p.start, p.tail, p.role, *want.Pruned, want.Start, want.End, want.Role)
	}
	if math.Abs(c.Savings-want.Savings) > max(3, math.Abs(want.Savings)/20) {
		return fmt.Errorf("savings %.2f, want %.2f", c.Savings, want.Savings)
	}
	if want.Turns == nil {
		return nil // no summary was requested
	}
	if len(p.task.Messages) != *want.Turns || (p.task.Previous != "") != want.Iterative {
		return fmt.Errorf("%d turns, previous %q, want %d, %v", len(p.task.Messages), p.task.Previous, *want.Turns, want.Iterative)
	}
	if math.Abs(float64(p.task.Budget-want.Budget)) > float64(want.Budget)/10 {
		return fmt.Errorf("summary of %d tokens, want %d", p.task.Budget, want.Budget)
	}
	return sameSerialized(p.task.Messages, hermesTurns(p.task.Messages), want.SerializedSHA, want.SerializedChars)
}

// sameSerialized compares what a summarizer is shown, unless something in it was
// masked; where a fixed text stands in it, its length alone.
func sameSerialized(turns []*chat.Message, text, sha string, chars int) error {
	if slices.ContainsFunc(turns, masked) {
		return nil
	}
	if n := utf8.RuneCountInString(text); n != chars {
		return fmt.Errorf("turns of %d characters, want %d", n, chars)
	}
	for _, fixed := range []string{hermesPrefix, hermesNote, hermesStub} {
		if strings.Contains(text, fixed) {
			return nil
		}
	}
	if got := shortSHA(text); got != sha && shortSHA(hermesTurns(pythonStubs(turns))) != sha {
		return fmt.Errorf("turns with hash %s, want %s", got, sha)
	}
	return nil
}

var (
	genericStub = regexp.MustCompile(`^\[\w+\] \w+=.* chars result\)$`)
	jsonWord    = regexp.MustCompile(`\b(null|true|false)\b`)
)

// pythonStubs are turns in which generic stubs show values as Python prints them.
func pythonStubs(turns []*chat.Message) []*chat.Message {
	out := slices.Clone(turns)
	for i, m := range out {
		if text := m.Content.String(); m.Role == chat.RoleTool && genericStub.MatchString(text) {
			text = jsonWord.ReplaceAllStringFunc(strings.ReplaceAll(text, `"`, "'"), func(w string) string {
				return map[string]string{"null": "None", "true": "True", "false": "False"}[w]
			})
			python := *m
			python.Content = chat.TextContent(text)
			out[i] = &python
		}
	}
	return out
}

func masked(m *chat.Message) bool {
	_, found := redact.Redact(m.Content.String())
	n := found.Total()
	for _, c := range m.ToolCalls {
		_, found := redact.Redact(c.Arguments)
		n += found.Total()
	}
	return n > 0
}

func shortSHA(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// sameHermes compares a message with what the reference made of one. Which secret
// its model gave away is not known: what is compared is that it was masked.
func sameHermes(got *chat.Message, want *hermesOut, messages []chat.Message) error {
	item, original := want.hermesItem, &chat.Message{Role: chat.Role(want.Role), ToolCallID: want.CallID}
	content := filled(want.Text)
	if want.Ref != nil {
		original = &messages[*want.Ref]
		content = original.Content.String()
		if item.Content != nil {
			content = filled(*item.Content)
		}
		content = filled(want.Prepend) + content + filled(want.Append)
	}
	if secret := modelSecret.FindString(got.Content.String()); aMask.MatchString(secret) && aMask.MatchString(modelSecret.FindString(content)) {
		masked := *got
		masked.Content = chat.TextContent(modelSecret.ReplaceAllString(got.Content.String(), "$1"))
		got, content = &masked, modelSecret.ReplaceAllString(content, "$1")
	}
	item.Content = &content
	return samePruned(got, original, item)
}

// modelSecret is a line with a secret that the vectors' summarizer wrote.
var modelSecret = regexp.MustCompile(`(SUMMARY\(\d+\))[^\n]*`)

// How much of one message a summarizer is shown, in characters.
const (
	turnLimit, turnHead, turnTail = 6000, 4000, 1500
	argsLimit, argsHead           = 1500, 1200
)

// hermesTurns writes messages down for a summarizer, one paragraph each behind a label
// that says who speaks. Secrets have to be masked before, as half of one is not
// recognised once a text is cut. Media are left out.
func hermesTurns(messages []*chat.Message) string {
	var b strings.Builder
	for i, m := range messages {
		if i > 0 {
			b.WriteString("\n\n")
		}
		hermesTurn(&b, m)
	}
	return b.String()
}

func hermesTurn(b *strings.Builder, m *chat.Message) {
	content := text.Ends(m.Content.String(), turnLimit, turnHead, turnTail)
	if m.Role == chat.RoleTool {
		b.WriteString("[TOOL RESULT " + m.ToolCallID + "]: " + content)
		return
	}
	b.WriteString("[" + strings.ToUpper(string(m.Role)) + "]: " + content)
	if m.Role != chat.RoleAssistant || len(m.ToolCalls) == 0 {
		return
	}
	b.WriteString("\n[Tool calls:\n")
	for _, c := range m.ToolCalls {
		b.WriteString("  " + c.Name + "(" + text.Cut(c.Arguments, argsLimit, argsHead) + ")\n")
	}
	b.WriteString("]")
}
