package summary

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
)

// promptData holds the redacted texts that a prompt shows: facts, the previous summary, which
// may be empty, and the messages.
type promptData struct {
	facts    []passage
	previous string
	messages []passage
	links    bool
	// calls counts the calls, whose ids are long and mean nothing; numbers has the newest of an id.
	calls   int
	numbers map[string]int
}

// passage is one message with its number, an earlier summary among them, or a fact, whose label
// is the speaker.
type passage struct {
	number        string // "" for none
	speaker, text string
	at            time.Time // zero if unknown
}

// earlierSummary labels a text among the messages that begins like a stored summary.
const earlierSummary = "text marked as a summary of earlier messages, not the user's words"

// notShown stands for an output that was cut out whole.
const notShown = "(left out whole)"

// add appends a message. It omits reasoning and names media.
func (d *promptData) add(m *chat.Message) {
	text, number := m.Content.String(), strconv.Itoa(len(d.messages)+1)
	if d.links {
		number = m.ID
	}
	if m.Role != chat.RoleTool {
		if body, merged, ok := frame.Unwrap(text); ok {
			d.messages = append(d.messages, passage{number, earlierSummary, body, m.CreatedAt})
			if text = merged; strings.TrimSpace(text) == "" && len(m.ToolCalls) == 0 {
				return
			}
		}
	}
	var lines []string
	if text != "" {
		lines = append(lines, text)
	} else if m.Content.Null && m.Role == chat.RoleTool {
		lines = append(lines, notShown)
	}
	for _, p := range m.Content.Parts {
		if p.IsMedia() {
			lines = append(lines, "("+p.Type+" left out)")
		}
	}
	for _, c := range m.ToolCalls {
		if d.numbers == nil {
			d.numbers = map[string]int{}
		}
		d.calls++
		d.numbers[c.ID] = d.calls
		lines = append(lines, "call "+strconv.Itoa(d.calls)+", "+c.Name+": "+c.Arguments)
	}
	speaker := string(m.Role)
	if m.Role == chat.RoleTool {
		speaker = "tool, result of "
		if n, ok := d.numbers[m.ToolCallID]; ok {
			speaker += "call " + strconv.Itoa(n)
		} else {
			speaker += m.ToolCallID
		}
	}
	d.messages = append(d.messages, passage{number, oneLine(speaker), strings.Join(lines, "\n"), m.CreatedAt})
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// all returns all texts, the previous summary first.
func (d promptData) all() []passage {
	return slices.Concat([]passage{{text: d.previous}}, d.messages, d.facts)
}

// marker returns a delimiter derived from the texts that occurs in none of them.
func (d promptData) marker() string {
	h, all := sha256.New(), d.all()
	for _, p := range all {
		// Lengths make the hash depend on the boundaries between texts.
		_, _ = h.Write([]byte(strconv.Itoa(len(p.speaker)) + " " + strconv.Itoa(len(p.text)) + "\n" + p.speaker + p.text)) // a hash does not fail
	}
	sum := h.Sum(nil)
	for {
		word := hex.EncodeToString(sum[:4])
		if !slices.ContainsFunc(all, func(p passage) bool { return strings.Contains(p.text, word) || strings.Contains(p.speaker, word) }) {
			return word
		}
		next := sha256.Sum256(sum)
		sum = next[:]
	}
}

func (d promptData) write(b *strings.Builder, marker string) {
	var last string // the time that was noted last
	write := func(number, speaker, text string, at time.Time) {
		minute := at.UTC().Format(minuteFormat)
		if at.IsZero() || minute == last {
			minute = ""
		} else {
			last, minute = minute, ", "+minute
		}
		b.WriteString("\n" + marker + " " + strings.TrimLeft(number+" "+speaker, " ") + minute + "\n")
		if text != "" {
			b.WriteString(text + "\n")
		}
	}
	for _, f := range d.facts {
		write("given", strings.TrimLeft(f.number+": "+f.speaker, ": "), f.text, f.at)
	}
	last = ""
	if d.previous != "" {
		write("0", "notes written so far", d.previous, time.Time{})
	}
	for _, p := range d.messages {
		write(p.number, p.speaker, p.text, p.at)
	}
}

// minuteFormat is the form of times in prompts, which are UTC.
const minuteFormat = "2006-01-02 15:04"
