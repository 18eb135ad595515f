package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
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

// preTrimUses names the number that each step takes.
var preTrimUses = map[string]string{
	TailLines: "lines", CapToolContent: "tokens", ClearOlderOutputs: "keep", DropAgentItems: "tokens", DropOldest: "tokens",
}

// PreTrimSteps returns the names of the steps, in the order in which they make sense.
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
	uses, known := preTrimUses[p.Step]
	if !known {
		fault("step", fmt.Sprintf("%q", p.Step), "one of "+strings.Join(PreTrimSteps(), ", "))
	}
	for _, n := range []struct {
		key         string
		value, most int64
	}{{"lines", int64(p.Lines), 1_000_000}, {"tokens", int64(p.Tokens), 1_000_000_000}, {"keep", int64(p.Keep), 1_000_000}} {
		switch {
		case n.value < 0 || n.value > n.most:
			fault(n.key, n.value, fmt.Sprintf("0 to %d", n.most))
		case known && n.value != 0 && uses != n.key:
			fault(n.key, n.value, "nothing: "+p.Step+" takes "+uses)
		}
	}
	return errors.Join(faults...)
}
