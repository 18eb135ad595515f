package strategies

import (
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Counts are totals as users see them: of the view, and of all messages considered.
type Counts struct {
	Groups         int   `json:"groups"`
	Messages       int   `json:"messages"`
	ToolCalls      int   `json:"tool_calls"`
	Tokens         int64 `json:"tokens"`
	TotalGroups    int   `json:"total_groups"`
	TotalMessages  int   `json:"total_messages"`
	TotalToolCalls int   `json:"total_tool_calls"`
	TotalTokens    int64 `json:"total_tokens"`
}

// NewCounts returns the counts of totals.
func NewCounts(t plan.Totals) Counts {
	return Counts{
		t.IncludedGroups, t.IncludedMessages, t.IncludedToolCalls, int64(t.IncludedTokens),
		t.Groups, t.Messages, t.ToolCalls, int64(t.Tokens),
	}
}

// StepCounts is the result of a step as users see it.
type StepCounts struct {
	pipeline.StepResult
	Before Counts `json:"before"`
	After  Counts `json:"after"`
}

// NewStepCounts returns the results of steps as users see them.
func NewStepCounts(steps []pipeline.StepResult) []StepCounts {
	var out []StepCounts
	for _, s := range steps {
		out = append(out, StepCounts{s, NewCounts(s.Before), NewCounts(s.After)})
	}
	return out
}
