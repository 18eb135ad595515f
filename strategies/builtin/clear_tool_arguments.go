package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/stub"
)

// clearToolArguments shortens large arguments of older tool calls. They stay valid JSON;
// ids and results are unchanged.
type clearToolArguments struct {
	keep        int64
	limit, leaf int
	exclude     []string
}

func newClearToolArguments(a *plan.Args) (plan.Strategy, error) {
	s := &clearToolArguments{
		keep:  keepLastToolCallGroups(a, 1),
		limit: int(a.Int(plan.Int{Name: "max_chars", Default: 500, Min: 0, Doc: "arguments of no more characters than this stay as they are"})),
		leaf:  int(a.Int(plan.Int{Name: "value_chars", Default: 200, Min: 0, Doc: "how much stays of the beginning of each string in larger ones"})),
	}
	s.exclude = a.Strings("exclude_tools", nil, "tools whose calls stay as they are; a name may end in *")
	return s, nil
}

// Name implements Strategy.
func (*clearToolArguments) Name() string { return "clear_tool_arguments" }

// Reads implements plan.Reader. It names the older messages that make calls.
func (s *clearToolArguments) Reads(t *plan.Transcript) []chat.Seq { return seqsOf(t, s.candidates(t)) }

// candidates returns the indexes of older call messages without pinned results.
func (s *clearToolArguments) candidates(t *plan.Transcript) []int {
	var out []int
	groups := t.Groups()
	for _, i := range olderToolCalls(t, s.keep) {
		if t.GroupPinned(i) {
			continue
		}
		for k := groups[i].Start; k < groups[i].End; k++ {
			if e := &t.Entries[k]; e.Included && plan.MakesCalls(e) {
				out = append(out, k)
			}
		}
	}
	return out
}

// Plan implements Strategy.
func (s *clearToolArguments) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var plan chat.Plan
	for _, i := range s.candidates(t) {
		m, err := t.Read(i)
		if err != nil {
			return chat.Plan{}, err
		}
		short, changed := *m, false
		for k, c := range m.ToolCalls {
			if len(s.exclude) > 0 && named(s.exclude, c.Name) {
				continue
			}
			args, ok := stub.Arguments(c.Arguments, s.limit, s.leaf)
			if !ok || utf8.RuneCountInString(args) >= utf8.RuneCountInString(c.Arguments) {
				continue
			}
			if !changed {
				short.ToolCalls, changed = slices.Clone(m.ToolCalls), true
			}
			short.ToolCalls[k] = withArguments(c, args)
		}
		if changed {
			plan.Additions = append(plan.Additions, replacement(&t.Entries[i], short, s.Name()))
		}
	}
	return plan, nil
}

// withArguments returns the call with other arguments. Its other fields stay, such as
// signatures that some providers require.
func withArguments(c chat.ToolCall, args string) chat.ToolCall {
	c.Arguments = args
	raw := c.Raw
	c.Raw = nil
	var call, body map[string]json.RawMessage
	if json.Unmarshal(raw, &call) != nil {
		return c // made in Go, or nothing that can be changed: it is written anew
	}
	for _, in := range [...]struct{ body, input string }{{"function", "arguments"}, {"custom", "input"}} {
		if call[in.body] == nil {
			continue
		}
		text, err := json.Marshal(args)
		if err != nil || json.Unmarshal(call[in.body], &body) != nil || body == nil {
			return c
		}
		body[in.input] = text
		if call[in.body], err = json.Marshal(body); err != nil {
			return c
		}
		if c.Raw, err = json.Marshal(call); err != nil {
			c.Raw = nil
		}
		return c
	}
	return c
}
