package plan

import (
	"encoding/json"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Totals counts a transcript, in total and the part in the view. Its JSON, of which the ledger
// holds two for each step of a run, leaves out zeros, and the part where it is all.
type Totals struct {
	Groups    int
	Messages  int
	ToolCalls int
	Tokens    chat.Tokens

	IncludedGroups    int
	IncludedMessages  int
	IncludedToolCalls int
	IncludedTokens    chat.Tokens
}

type totalsJSON struct {
	Groups    int         `json:"groups,omitempty"`
	Messages  int         `json:"messages,omitempty"`
	ToolCalls int         `json:"tool_calls,omitempty"`
	Tokens    chat.Tokens `json:"tokens,omitempty"`

	IncludedGroups    *int         `json:"included_groups,omitempty"`
	IncludedMessages  *int         `json:"included_messages,omitempty"`
	IncludedToolCalls *int         `json:"included_tool_calls,omitempty"`
	IncludedTokens    *chat.Tokens `json:"included_tokens,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (t Totals) MarshalJSON() ([]byte, error) {
	return json.Marshal(totalsJSON{
		t.Groups, t.Messages, t.ToolCalls, t.Tokens,
		part(t.IncludedGroups, t.Groups), part(t.IncludedMessages, t.Messages), part(t.IncludedToolCalls, t.ToolCalls), part(t.IncludedTokens, t.Tokens),
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Totals) UnmarshalJSON(raw []byte) error {
	var in totalsJSON
	err := json.Unmarshal(raw, &in)
	*t = Totals{
		in.Groups, in.Messages, in.ToolCalls, in.Tokens,
		whole(in.IncludedGroups, in.Groups), whole(in.IncludedMessages, in.Messages), whole(in.IncludedToolCalls, in.ToolCalls), whole(in.IncludedTokens, in.Tokens),
	}
	return err
}

// part returns a number unless it is all.
func part[T comparable](n, all T) *T {
	if n == all {
		return nil
	}
	return &n
}

// whole is the inverse of part.
func whole[T comparable](n *T, all T) T {
	if n == nil {
		return all
	}
	return *n
}
