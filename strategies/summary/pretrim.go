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

// preTrims are the steps by name.
var preTrims = map[string]func(*trim, policy.PreTrim){
	policy.TailLines:         (*trim).tailLines,
	policy.CapToolContent:    (*trim).capToolContent,
	policy.ClearOlderOutputs: (*trim).clearOlder,
	policy.DropAgentItems:    (*trim).dropAgentItems,
	policy.DropOldest:        (*trim).dropOldest,
}

// Trimmed is what a step cut, or several did.
type Trimmed struct {
	// Messages is how many were left out.
	Messages int
	// Outputs is how many outputs of tools were shortened or cleared.
	Outputs int
	// Tokens is how many tokens that saved.
	Tokens chat.Tokens
}

// Plus is both together.
func (t Trimmed) Plus(u Trimmed) Trimmed {
	return Trimmed{t.Messages + u.Messages, t.Outputs + u.Outputs, t.Tokens + u.Tokens}
}

// String says what was cut, empty for nothing.
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
	// Limit is how many tokens the messages may have in all, for the steps that drop
	// some; 0 is no limit. After an overflow the caller lowers it and tries again.
	Limit chat.Tokens
	// At is the time that cleared outputs are said to be cleared at. It is given, for a
	// second attempt has to make the same text.
	At time.Time
}

// Run applies steps in order and says what each cut. The messages given are not
// changed: who is trimmed is copied. Groups stay whole. Steps have to be valid.
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

// ErrProtected is wrapped where a message was to be summarized that never may be.
var ErrProtected = errors.New("never summarized")

// Coverable is nil if all messages may enter a summarizer, and otherwise an error that
// wraps ErrProtected and names those by index that may not: instructions of the system
// or the developer, and what pinned, which may be nil, reports.
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
