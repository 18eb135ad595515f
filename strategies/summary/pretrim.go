package summary

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

const (
	defaultLines               = 30
	defaultToolCap chat.Tokens = 50_000
	defaultKeep                = 3
)

// preTrims maps names to steps.
var preTrims = map[string]func(*trimmer, policy.PreTrim){
	policy.TailLines:         (*trimmer).tailLines,
	policy.CapToolContent:    (*trimmer).capToolContent,
	policy.ClearOlderOutputs: (*trimmer).clearOlder,
	policy.DropAgentItems:    (*trimmer).dropAgentItems,
	policy.DropOldest:        (*trimmer).dropOldest,
}

// Trim counts the content that a pre-trim step removed.
type Trim struct {
	Step string `json:"step"`
	// Messages counts the messages left out.
	Messages int `json:"messages,omitempty"`
	// Outputs counts the tool outputs shortened or cleared.
	Outputs int `json:"outputs,omitempty"`
	// Tokens is the number of tokens saved.
	Tokens chat.Tokens `json:"tokens"`
}

// add adds the counts of u.
func (t *Trim) add(u Trim) {
	t.Messages += u.Messages
	t.Outputs += u.Outputs
	t.Tokens += u.Tokens
}

// String describes the removed content, "" for none.
func (t Trim) String() string {
	var parts []string
	if t.Outputs > 0 {
		parts = append(parts, fmt.Sprintf("%d tool outputs shortened or cleared", t.Outputs))
	}
	if t.Messages > 0 {
		parts = append(parts, fmt.Sprintf("%d messages left out", t.Messages))
	}
	if len(parts) > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens in all", t.Tokens))
	}
	return strings.Join(parts, ", ")
}

// trimmer makes messages smaller. Tokens are estimates by messageTokens.
type trimmer struct {
	messages []*chat.Message
	sizes    []chat.Tokens // of each message
	// window is what one prompt has room for, in tokens: the steps that shorten all outputs do so
	// no further than needed for it. 0 is unknown.
	window chat.Tokens
	// limit is the token limit of all messages, for the steps that drop some; 0 is no limit.
	limit chat.Tokens
	// at is the time noted in cleared outputs. All deliveries of a run use the same, so
	// that they produce the same text.
	at  time.Time
	cut Trim
}

// trimMessages applies valid steps in order and returns the messages and the content that each
// step removed. It does not change the given messages, and groups stay whole.
func trimMessages(steps []policy.PreTrim, messages []*chat.Message, window, limit chat.Tokens, at time.Time) ([]*chat.Message, []Trim) {
	t := &trimmer{messages: slices.Clone(messages), sizes: make([]chat.Tokens, len(messages)), window: window, limit: limit, at: at}
	for i, m := range messages {
		t.sizes[i] = chat.Tokens(messageTokens(m))
	}
	cuts := make([]Trim, len(steps))
	for i, p := range steps {
		t.cut = Trim{Step: p.Step}
		if step, ok := preTrims[p.Step]; ok {
			step(t, p)
		}
		cuts[i] = t.cut
	}
	return t.messages, cuts
}
