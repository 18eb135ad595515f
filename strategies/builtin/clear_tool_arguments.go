package builtin

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/stub"
)

// newClearToolArguments returns a strategy that shortens large arguments of older tool
// calls. They stay valid JSON; ids and results are unchanged.
func newClearToolArguments(a *plan.Args) (plan.Strategy, error) {
	keep := keepLastToolCallGroups(a, 1)
	limit := int(a.Int(plan.Int{Name: "max_chars", Default: 500, Min: 0, Doc: "arguments of at most this many characters stay as they are"}))
	leaf := int(a.Int(plan.Int{Name: "value_chars", Default: 200, Min: 0, Doc: "how many characters stay of each string in larger arguments"}))
	exclude := a.Strings("exclude_tools", nil, "tools whose calls stay as they are; a name may end in *")
	candidates := func(t *plan.Transcript) []int {
		entries := entriesOf(t, olderToolCalls(t, keep)...)
		return slices.DeleteFunc(entries, func(i int) bool { return !plan.MakesCalls(&t.Entries[i]) })
	}
	return &rewriter{"clear_tool_arguments", candidates, func(_ *plan.Transcript, _ *plan.Entry, m *chat.Message) (chat.Message, chat.Tokens, bool) {
		short, ok := shortenArguments(m, func(c chat.ToolCall) (string, bool) {
			if len(exclude) > 0 && named(exclude, c.Name) {
				return "", false
			}
			args, ok := stub.Arguments(c.Arguments, limit, leaf)
			return args, ok && utf8.RuneCountInString(args) < utf8.RuneCountInString(c.Arguments)
		})
		return short, 0, ok
	}}, nil
}

// shortenArguments returns a message with the arguments that shorten returns for its calls,
// and whether there are any.
func shortenArguments(m *chat.Message, shorten func(c chat.ToolCall) (string, bool)) (chat.Message, bool) {
	out, changed := *m, false
	for i, c := range m.ToolCalls {
		arguments, ok := shorten(c)
		if !ok {
			continue
		}
		if !changed {
			out.ToolCalls, changed = slices.Clone(m.ToolCalls), true
		}
		out.ToolCalls[i] = withArguments(c, arguments)
	}
	return out, changed
}

// withArguments returns a call with other arguments. Its other fields stay, such as
// signatures that some providers require.
func withArguments(c chat.ToolCall, arguments string) chat.ToolCall {
	raw := c.Raw
	c.Arguments, c.Raw = arguments, nil
	var call, inner map[string]json.RawMessage
	if json.Unmarshal(raw, &call) != nil {
		return c // there is no JSON to preserve: it is encoded anew
	}
	body, input := "function", "arguments"
	if call[body] == nil {
		body, input = "custom", "input"
	}
	if json.Unmarshal(call[body], &inner) != nil || inner[input] == nil {
		return c
	}
	value := json.RawMessage(arguments) // some servers send the object itself
	if inner[input][0] == '"' {
		value = rawjson.Quote(arguments)
	}
	inner[input] = value
	call[body] = rawjson.Quote(inner)
	c.Raw = rawjson.Quote(call)
	return c
}
