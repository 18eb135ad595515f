package builtin

import (
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Hosts holds the functions of package agent that the vectors test together with the
// strategies. Package agent imports this one, so an external test file sets them.
var Hosts struct {
	Engine   func(HostOptions) (EngineHost, error)
	Feedback func(before, after []chat.Message, beforeTokens, afterTokens chat.Tokens) HostFeedback
	Trigger  func(ratio float64, window, used chat.Tokens) (fires bool, utilization float64, known bool)
	Used     func(usage map[string]int64) (chat.Tokens, bool)
	Estimate func([]chat.Message) chat.Tokens
	Split    func([]chat.Message) (head, tail []chat.Message)
	Join     func(head, tail []chat.Message) []chat.Message
}

// HostOptions are those options of an agent.Engine that the vectors set. The engine
// applies plans without a guard.
type HostOptions struct {
	Window          chat.Tokens
	Main, Auxiliary plan.Summarizer
	New             func(plan.Summarizer) (plan.Strategy, error)
	Now             func() time.Time
	Estimate        func([]chat.Message) chat.Tokens
}

// EngineHost is an agent.Engine.
type EngineHost interface {
	ShouldCompress(chat.Tokens) bool
	HasContent([]chat.Message) bool
	OnSessionReset()
	Compress(messages []chat.Message, focus string, known chat.Tokens) (HostCompression, error)
	Status() EngineStatus
}

// Compressing holds the arguments of one compression.
type Compressing struct {
	Focus  string
	Tokens chat.Tokens
}

// HostCompression has the fields of agent.Compression.
type HostCompression struct {
	Messages      []chat.Message
	Compressed    bool
	NoSummary     string
	Before, After chat.Tokens
	Savings       float64
}

// EngineStatus holds the parts of an agent.Status that the vectors have.
type EngineStatus struct {
	Threshold                 chat.Tokens
	Compressions, Ineffective int
	Cooldown                  time.Duration
	LastError                 string
}

// HostFeedback has the fields of agent.Feedback.
type HostFeedback struct {
	Noop                bool
	Headline, TokenLine string
	Note                string
}
