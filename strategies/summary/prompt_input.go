package summary

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
)

// material is what a summary is made of, without secrets.
type promptInput struct {
	previous string
	said     []passage
}

// saying is one message, or an earlier summary among them.
type passage struct{ who, text string }

// earlierSummary is who speaks in a summary that stands among the messages.
const earlierSummary = "summary of earlier messages, not the user's words"

// add takes a message. Reasoning is left out, media are named.
func (d *promptInput) add(m *chat.Message) {
	text := m.Content.String()
	if m.Role != chat.RoleTool {
		if body, merged, ok := frame.Unwrap(text); ok {
			d.said = append(d.said, passage{earlierSummary, body})
			if text = merged; strings.TrimSpace(text) == "" && len(m.ToolCalls) == 0 {
				return
			}
		}
	}
	var b strings.Builder
	b.WriteString(text)
	for _, p := range m.Content.Parts {
		if p.IsMedia() {
			newLine(&b)
			b.WriteString("(" + p.Type + " left out)")
		}
	}
	for _, c := range m.ToolCalls {
		newLine(&b)
		b.WriteString("calls " + c.Name + " (" + c.ID + "): " + c.Arguments)
	}
	who := string(m.Role)
	if m.Role == chat.RoleTool {
		who = "tool, result of " + m.ToolCallID
	}
	d.said = append(d.said, passage{oneLine(who), b.String()})
}

func newLine(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (d *promptInput) size() int {
	n := len(d.previous)
	for _, s := range d.said {
		n += len(s.who) + len(s.text) + 64
	}
	return n
}

// marker returns a word made from the material that does not stand in it.
func (d *promptInput) marker() string {
	h := sha256.New()
	for _, s := range append([]passage{{"", d.previous}}, d.said...) {
		// Lengths keep two materials apart that join to the same text.
		_, _ = h.Write([]byte(strconv.Itoa(len(s.who)) + " " + strconv.Itoa(len(s.text)) + "\n" + s.who + s.text)) // a hash does not fail
	}
	sum := h.Sum(nil)
	for {
		word := hex.EncodeToString(sum[:8])
		if !d.contains(word) {
			return word
		}
		next := sha256.Sum256(sum)
		sum = next[:]
	}
}

func (d *promptInput) contains(word string) bool {
	if strings.Contains(d.previous, word) {
		return true
	}
	for _, s := range d.said {
		if strings.Contains(s.text, word) || strings.Contains(s.who, word) {
			return true
		}
	}
	return false
}

func (d *promptInput) write(b *strings.Builder, marker string) {
	if d.previous != "" {
		b.WriteString("\n" + marker + " 0 notes written so far\n" + d.previous + "\n")
	}
	for i, s := range d.said {
		b.WriteString("\n" + marker + " " + strconv.Itoa(i+1) + " " + s.who + "\n" + s.text + "\n")
	}
}
