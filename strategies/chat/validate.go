package chat

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// ErrForeign is the error of a message in the format of another API.
var ErrForeign = errors.New("not chat-completions")

// Validate returns why a message that was read as chat-completions cannot be stored, nil if it
// can. The error names the field and the format, and never quotes content. The database refuses
// the same (the SQL function parse_messages).
func (m *Message) Validate() error {
	if err := m.checkForm(); err != nil {
		return err
	}
	return m.usable()
}

// checkForm returns why a message is not chat-completions: a message of the user or the assistant
// that holds nothing, or calls, results and contents where the format of another API has them,
// which would be stored as if they were not there. It looks at the message alone, not at the
// calls before it.
func (m *Message) checkForm() error {
	if format := m.foreign(); format != "" {
		return fmt.Errorf("%w: %s", ErrForeign, format)
	}
	// An empty string is content, and so is an explicit null of the assistant: models answer both.
	null := m.Role == RoleAssistant && m.Content.Null && !m.Content.Absent
	if (m.Role != RoleUser && m.Role != RoleAssistant) || null || !m.holdsNothing() {
		return nil
	}
	return errors.New("content: missing; want a text, parts or tool_calls")
}

// holdsNothing reports whether a message has neither content nor calls, nor anything else that
// a model can have said.
func (m *Message) holdsNothing() bool {
	if parts := m.Content.Parts; !m.Content.Null && (parts == nil || len(parts) > 0) {
		return false
	}
	if len(m.ToolCalls) > 0 || m.Reasoning != "" {
		return false
	}
	for key, raw := range m.Extra {
		if saidKey.MatchString(key) && filled(raw) {
			return false
		}
	}
	return true
}

// saidKey matches the keys beside content and tool_calls that hold words or calls of a model.
var saidKey = regexp.MustCompile(`^(function_call|refusal|audio)$|reasoning|thinking`)

// callPart matches the types of parts that are calls and results of the client's tools in other APIs, and resultPart
// of those the results. Parts of tools that a provider runs itself are content, as tool_search_tool_result.
var (
	callPart   = regexp.MustCompile(`^(tool-|(dynamic-tool|tool_?([uU]se|[cC]all(_output)?|[rR]equest|[rR]esult|[rR]esponse|output)|function_?([cC]all(_output)?|[rR]esult|[rR]esponse))$)`)
	resultPart = regexp.MustCompile(`[rR]esult|[rR]esponse|_output`)
)

// foreign names the format of another API that the message is in, "" for none.
func (m *Message) foreign() string {
	var call, result string
	for _, p := range m.Content.Parts {
		switch typ := p.Type; {
		case typ == "":
			o, _ := rawjson.ParseObject(p.Raw) // nil for a string
			if o["toolUse"] != nil {
				call = max(call, "toolUse")
			}
			if o["toolResult"] != nil {
				result = max(result, "toolResult")
			}
		case !callPart.MatchString(typ):
		case resultPart.MatchString(typ):
			result = max(result, typ)
		default:
			call = max(call, typ)
		}
	}
	if len(m.ToolCalls) > 0 {
		call = ""
	}
	if m.ToolCallID != "" {
		result = ""
	}
	first := func(key string) (rawjson.Object, bool) {
		all, err := rawjson.ParseArray(m.Extra[key])
		if err != nil || len(all) == 0 {
			return nil, false
		}
		o, err := rawjson.ParseObject(all[0])
		return o, err == nil
	}
	parts, hasParts := first("parts")
	_, invocations := first("toolInvocations")
	_, contents := first("contents")
	in := cmp.Or(call, result)
	switch {
	case call == "tool_use" && m.Role == RoleAssistant || result == "tool_result" && m.Role == RoleUser:
		return "Anthropic format (" + in + " in content): read it with --format anthropic, or convert it to chat-completions"
	case call == "tool-call" || result == "tool-result":
		return foreignFormat("Vercel AI SDK", in+" in content")
	case call == "toolUse" || result == "toolResult":
		return foreignFormat("Bedrock Converse", in+" in content")
	case (m.Role == RoleUser || m.Role == RoleAssistant) && !slices.Contains([]string{"", "tool_use", "tool_result"}, in):
		return foreignFormat("another", in+" in content")
	case hasParts && parts["type"] == nil:
		return foreignFormat("Gemini", "parts")
	case hasParts:
		return foreignFormat("Vercel AI SDK", "parts")
	case invocations:
		return foreignFormat("Vercel AI SDK", "toolInvocations")
	case contents:
		return foreignFormat("Agent Framework", "contents")
	}
	return ""
}

func foreignFormat(name, sign string) string {
	return name + " format (" + sign + "): convert it to chat-completions"
}
