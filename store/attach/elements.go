package attach

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// part is one of a row that has a list of them: of the AI SDK, or of Mastra, which has calls one level below.
type part struct {
	Type           string `json:"type"`
	Text           string `json:"text"`
	ToolCallID     string `json:"toolCallId"`
	ToolInvocation struct {
		ToolCallID string `json:"toolCallId"`
	} `json:"toolInvocation"`

	// Of a step of Laravel:
	Content   string                `json:"content"`
	ToolCalls []struct{ ID string } `json:"tool_calls"`
}

// elements returns for each part of a row the number of the message that has it, from 1, so that a row of which some
// messages have left the view can be written without their parts. A call and its result are one part, which goes with
// the call. It returns nil for a row that has no parts. Messages are in the order of the parts, so a text is looked
// for from the message of the part before it on.
func elements(value json.RawMessage, messages []chat.Message) (numbers []int) {
	var row struct {
		Parts []part `json:"parts"`
		Steps []part `json:"steps"`
	}
	if json.Unmarshal(value, &row.Parts) != nil && json.Unmarshal(value, &row) != nil || len(row.Parts)+len(row.Steps) == 0 {
		return nil
	}
	at := 0
	for _, p := range append(row.Parts, row.Steps...) {
		if i := slices.IndexFunc(messages[at:], p.in); i >= 0 {
			at += i
		}
		numbers = append(numbers, at+1)
	}
	return numbers
}

// in reports whether a message has the first call of the part, or its text.
func (p part) in(m chat.Message) bool {
	id, text := p.ToolCallID+p.ToolInvocation.ToolCallID, p.Content
	if len(p.ToolCalls) > 0 {
		id = p.ToolCalls[0].ID
	}
	if p.Type == "text" {
		text = p.Text
	}
	switch {
	case m.Role == chat.RoleTool:
		return false
	case id != "":
		return slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return c.ID == id })
	case text == "":
		return false
	}
	return strings.Contains(m.Content.Text, text) ||
		slices.ContainsFunc(m.Content.Parts, func(p chat.Part) bool { return strings.Contains(p.Text, text) })
}
