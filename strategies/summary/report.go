package summary

import (
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/redact"
)

// Who wrote a summary.
const (
	ByModel   = "model"
	ByExtract = "extractive"
	ByMarker  = "marker"
)

// Report says how a summary came about. It is stored with the run and holds numbers,
// names and codes: nothing of the conversation.
type Report struct {
	// WrittenBy is model, extractive or marker; empty where there is no summary.
	WrittenBy string `json:"written_by,omitempty"`
	// Failure is why the model's summary was not had.
	Failure string `json:"failure,omitempty"`
	// Model is who answered last, PromptVersion and RedactorVersion what it was asked with.
	Model           string `json:"model,omitempty"`
	PromptVersion   string `json:"prompt_version,omitempty"`
	RedactorVersion string `json:"redactor_version"`
	// Messages and CoveredTokens are what was summarized, Updates whether that brought an
	// earlier summary up to date.
	Messages      int  `json:"messages"`
	CoveredTokens int  `json:"covered_tokens"`
	Updates       bool `json:"updates,omitempty"`
	// Budget is what the summary was to have, Tokens what it has, References how much of
	// that is the block that no model wrote.
	Budget     int `json:"budget"`
	Tokens     int `json:"tokens"`
	References int `json:"reference_tokens,omitempty"`
	// Redacted counts the secrets that were masked, by kind; RedactedAnswer those that a
	// model wrote.
	Redacted       redact.Found `json:"redacted,omitempty"`
	RedactedAnswer redact.Found `json:"redacted_in_answer,omitempty"`
	// Unquoted counts quotations in an answer that nobody said, and that were taken out.
	Unquoted int `json:"unquoted,omitempty"`
	// Trimmed is what the model was not shown; it is stored all the same.
	Trimmed []Trim `json:"trimmed,omitempty"`
	// Parts is in how many parts the messages were read, Halved how often one was too long.
	Parts  int `json:"parts,omitempty"`
	Halved int `json:"halved,omitempty"`
	// Calls are the answers that were had, in order.
	Calls []Call `json:"calls,omitempty"`
}

// Trim is one pre-trim step and what it cut.
type Trim struct {
	Step     string `json:"step"`
	Messages int    `json:"messages,omitempty"`
	Outputs  int    `json:"outputs,omitempty"`
	Tokens   int    `json:"tokens"`
}

// Author says in words who wrote the summary, "" where there is none.
func (r *Report) Author() string {
	var by string
	switch r.WrittenBy {
	case "":
		return ""
	case ByModel:
		by = "model " + r.Model
	case ByExtract:
		by = "no model: an extract"
	case ByMarker:
		by = "no model: a marker"
	default:
		by = r.WrittenBy
	}
	if r.Failure != "" {
		by += " (the model failed: " + r.Failure + ")"
	}
	return by
}

// Call is one answer.
type Call struct {
	// PromptHash is that of the prompt; Reused means that it was paid for before.
	PromptHash string `json:"prompt_hash"`
	Reused     bool   `json:"reused,omitempty"`
	// Rejected is the code of the gate, Repair that the call was to mend such an answer.
	Rejected string `json:"rejected,omitempty"`
	Repair   bool   `json:"repair,omitempty"`
	// Failed is the code of why there was no answer.
	Failed     string `json:"failed,omitempty"`
	Model      string `json:"model,omitempty"`
	Input      int64  `json:"input_tokens,omitempty"`
	Cached     int64  `json:"cached_tokens,omitempty"`
	Output     int64  `json:"output_tokens,omitempty"`
	CostMicros int64  `json:"cost_micros,omitempty"`
	Attempts   int    `json:"attempts,omitempty"`
}

// String returns the call on one line.
func (c Call) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case c.Reused:
		add("paid for before")
	case c.Input > 0 || c.Output > 0 || c.Failed == "":
		cached := ""
		if c.Cached > 0 {
			cached = fmt.Sprintf(" (%d cached)", c.Cached)
		}
		add("%d tokens in%s, %d out, cost %.4f", c.Input, cached, c.Output, float64(c.CostMicros)/1e6)
	}
	if c.Attempts > 1 {
		add("%d attempts", c.Attempts)
	}
	if c.Repair {
		add("to mend the one before")
	}
	if c.Rejected != "" {
		add("rejected: %s", c.Rejected)
	}
	if c.Failed != "" {
		add("failed: %s", c.Failed)
	}
	add("prompt %s", c.PromptHash)
	return strings.Join(parts, ", ")
}
