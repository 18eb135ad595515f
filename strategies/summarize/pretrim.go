package summarize

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// The steps that make messages smaller before they are summarized.
const (
	TailLines         = "tail_lines"
	CapToolContent    = "cap_tool_content"
	ClearOlderOutputs = "clear_older_outputs"
	DropAgentItems    = "drop_agent_items"
	DropOldest        = "drop_oldest"
)

// PreTrim is one step of a policy. Each number belongs to one or two steps and is 0
// for that step's default.
type PreTrim struct {
	Step string `yaml:"step" json:"step"`
	// Lines is how many lines of each tool output tail_lines keeps; 30 by default.
	Lines int `yaml:"lines,omitempty" json:"lines,omitempty"`
	// Tokens is how many tokens all tool outputs together have after cap_tool_content,
	// 50,000 by default; or all messages after drop_agent_items and drop_oldest, by
	// default what the Trimmer says.
	Tokens chat.Tokens `yaml:"tokens,omitempty" json:"tokens,omitempty"`
	// Keep is how many of the newest outputs clear_older_outputs leaves; 3 by default.
	Keep int `yaml:"keep,omitempty" json:"keep,omitempty"`
}

const (
	defaultLines                = 30
	defaultToolCap  chat.Tokens = 50_000
	defaultKeep                 = 3
	mostPreTrimSize chat.Tokens = 1_000_000_000
)

// preTrims are what the steps are by name.
var preTrims = map[string]struct {
	uses string // keys of its numbers
	run  func(*trim, PreTrim)
}{
	TailLines:         {"lines", (*trim).tailLines},
	CapToolContent:    {"tokens", (*trim).capToolContent},
	ClearOlderOutputs: {"keep", (*trim).clearOlder},
	DropAgentItems:    {"tokens", (*trim).dropAgentItems},
	DropOldest:        {"tokens", (*trim).dropOldest},
}

// PreTrimSteps are the names of the steps, in the order in which they make sense.
func PreTrimSteps() []string {
	return []string{TailLines, CapToolContent, ClearOlderOutputs, DropAgentItems, DropOldest}
}

// Validate reports everything that is wrong with p at once, with the names that are
// allowed; nil for nothing.
func (p PreTrim) Validate() error {
	var faults []error
	fault := func(key string, value any, want string) {
		faults = append(faults, fmt.Errorf("%s: %v: want %s", key, value, want))
	}
	step, known := preTrims[p.Step]
	if !known {
		fault("step", fmt.Sprintf("%q", p.Step), "one of "+strings.Join(PreTrimSteps(), ", "))
	}
	for _, n := range []struct {
		key         string
		value, most int64
	}{{"lines", int64(p.Lines), 1_000_000}, {"tokens", int64(p.Tokens), int64(mostPreTrimSize)}, {"keep", int64(p.Keep), 1_000_000}} {
		switch {
		case n.value < 0 || n.value > n.most:
			fault(n.key, n.value, fmt.Sprintf("0 to %d", n.most))
		case known && n.value != 0 && step.uses != n.key:
			fault(n.key, n.value, "nothing: "+p.Step+" takes "+step.uses)
		}
	}
	return errors.Join(faults...)
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
func (t Trimmer) Run(steps []PreTrim, ms []*chat.Message) ([]*chat.Message, []Trimmed) {
	work := &trim{Trimmer: t, ms: slices.Clone(ms), sizes: make([]chat.Tokens, len(ms))}
	for i, m := range ms {
		work.sizes[i] = t.Counter.Message(m)
	}
	cut := make([]Trimmed, len(steps))
	for i, p := range steps {
		work.cut = Trimmed{}
		if step, ok := preTrims[p.Step]; ok {
			step.run(work, p)
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
