package policy

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
)

// The steps that shorten messages before they are summarized.
const (
	TailLines         = "tail_lines"
	CapToolContent    = "cap_tool_content"
	ClearOlderOutputs = "clear_older_outputs"
	DropAgentItems    = "drop_agent_items"
	DropOldest        = "drop_oldest"
)

// PreTrim is one step with its parameter. A 0 takes the default of the step.
type PreTrim struct {
	Step string `yaml:"step" json:"step"`
	// Lines is the number of last lines of a tool output that tail_lines keeps; 30 by default.
	// It cuts the oldest outputs, until all messages fit into one prompt.
	Lines int `yaml:"lines,omitempty" json:"lines,omitempty"`
	// Tokens limits the sum of all tool outputs for cap_tool_content, 50,000 by default, and
	// all messages for drop_agent_items and drop_oldest, by default to the input of the
	// model.
	Tokens chat.Tokens `yaml:"tokens,omitempty" json:"tokens,omitempty"`
	// Keep is the number of newest outputs that clear_older_outputs keeps; 3 by default. It too
	// clears the oldest first, and no more than needed.
	Keep int `yaml:"keep,omitempty" json:"keep,omitempty"`
}

// preTrimParams holds the parameter of each step.
var preTrimParams = map[string]string{
	TailLines: "lines", CapToolContent: "tokens", ClearOlderOutputs: "keep", DropAgentItems: "tokens", DropOldest: "tokens",
}

// PreTrimSteps returns the names of the steps, in the order in which to use them.
func PreTrimSteps() []string {
	return []string{TailLines, CapToolContent, ClearOlderOutputs, DropAgentItems, DropOldest}
}

func (p PreTrim) validate(fs *FieldErrors) {
	known := slices.Contains(PreTrimSteps(), p.Step)
	fs.CheckOneOf("step", p.Step, PreTrimSteps()...)
	for _, n := range []struct {
		key            string
		value, maximum int64
	}{{"lines", int64(p.Lines), 1_000_000}, {"tokens", int64(p.Tokens), int64(maxTokens)}, {"keep", int64(p.Keep), 1_000_000}} {
		CheckRange(fs, n.key, n.value, 0, n.maximum)
		takes := preTrimParams[p.Step]
		fs.Check(!known || n.value <= 0 || takes == n.key, n.key, n.value, "nothing: %s takes %s", p.Step, takes)
	}
}
