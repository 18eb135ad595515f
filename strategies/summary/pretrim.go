package summary

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const (
	defaultLines               = 30
	defaultToolCap chat.Tokens = 50_000
	defaultKeep                = 3
)

// preTrims maps names to steps.
var preTrims = map[string]func(*trim, policy.PreTrim){
	policy.TailLines:         (*trim).tailLines,
	policy.CapToolContent:    (*trim).capToolContent,
	policy.ClearOlderOutputs: (*trim).clearOlder,
	policy.DropAgentItems:    (*trim).dropAgentItems,
	policy.DropOldest:        (*trim).dropOldest,
}

// Trimmed totals the content that pre-trim steps removed.
type Trimmed struct {
	// Messages counts the messages left out.
	Messages int
	// Outputs counts the tool outputs shortened or cleared.
	Outputs int
	// Tokens is the number of tokens saved.
	Tokens chat.Tokens
}

// Plus returns the sum.
func (t Trimmed) Plus(u Trimmed) Trimmed {
	return Trimmed{t.Messages + u.Messages, t.Outputs + u.Outputs, t.Tokens + u.Tokens}
}

// String describes the removed content, "" for none.
func (t Trimmed) String() string {
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

// Trimmer makes messages smaller. It is a plain value, safe for concurrent use.
type Trimmer struct {
	// Counter counts tokens.
	Counter tokens.Counter
	// Limit is the token limit of all messages, for the steps that drop some; 0 is no
	// limit. After an overflow the caller lowers it and retries.
	Limit chat.Tokens
	// At is the time noted in cleared outputs. It is given, so that a second attempt
	// produces the same text.
	At time.Time
}

// Run applies steps in order and returns the messages and the amount each step removed. It
// does not change ms: trimmed messages are copies. Groups stay whole. Steps must be valid.
func (t Trimmer) Run(steps []policy.PreTrim, ms []*chat.Message) ([]*chat.Message, []Trimmed) {
	work := &trim{Trimmer: t, ms: slices.Clone(ms), sizes: make([]chat.Tokens, len(ms))}
	for i, m := range ms {
		work.sizes[i] = t.Counter.Message(m)
	}
	cut := make([]Trimmed, len(steps))
	for i, p := range steps {
		work.cut = Trimmed{}
		if step, ok := preTrims[p.Step]; ok {
			step(work, p)
		}
		cut[i] = work.cut
	}
	return work.ms, cut
}

// ErrProtected reports a message that must not be summarized.
var ErrProtected = errors.New("never summarized")

// Coverable returns nil if all messages may be summarized, and otherwise an error that wraps
// ErrProtected and names the others by index: system and developer messages, and those for
// which pinned, which may be nil, returns true.
func Coverable(ms []*chat.Message, pinned func(i int) bool) error {
	var faults []error
	for i, m := range ms {
		switch {
		case m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper:
			faults = append(faults, fmt.Errorf("message %d is a %s message: %w", i, m.Role, ErrProtected))
		case pinned != nil && pinned(i):
			faults = append(faults, fmt.Errorf("message %d is pinned: %w", i, ErrProtected))
		}
	}
	return errors.Join(faults...)
}
