package summary

import "github.com/sessionstore/compactor/strategies/redact"

// Values of Provenance.WrittenBy.
const (
	ByModel   = "model"
	ByExtract = "extractive"
	ByMarker  = "marker"
	// ByOperator: a person wrote it, see Operator.
	ByOperator = "operator"
)

// Provenance describes how a summary was made. It is stored with the run and holds numbers,
// names and codes, no content of the conversation.
type Provenance struct {
	// WrittenBy is model, extractive, marker or operator; empty where there is no summary.
	WrittenBy string `json:"written_by,omitempty"`
	// Operator names the person who wrote it, and Note is that person's remark on it.
	Operator string `json:"operator,omitempty"`
	Note     string `json:"note,omitempty"`
	// Failure is the code of why the model wrote no summary.
	Failure string `json:"failure,omitempty"`
	// Model gave the last answer; the versions are those of its prompt.
	Model           string `json:"model,omitempty"`
	PromptVersion   string `json:"prompt_version,omitempty"`
	RedactorVersion string `json:"redactor_version"`
	// Messages and CoveredTokens measure the source; Updates reports whether an earlier
	// summary was updated.
	Messages      int  `json:"messages"`
	CoveredTokens int  `json:"covered_tokens"`
	Updates       bool `json:"updates,omitempty"`
	// Budget is the token limit of the summary, Tokens its size, References the size of its
	// block of references.
	Budget     int `json:"budget"`
	Tokens     int `json:"tokens"`
	References int `json:"reference_tokens,omitempty"`
	// Redacted counts the masked secrets of the source by kind, RedactedAnswer those of
	// the answers.
	Redacted       redact.Found `json:"redacted,omitempty"`
	RedactedAnswer redact.Found `json:"redacted_in_answer,omitempty"`
	// Unquoted counts the invented quotations that lost their marks, Dropped the parts of items of the
	// user that rest on no message of the user.
	Unquoted int `json:"unquoted,omitempty"`
	Dropped  int `json:"dropped,omitempty"`
	// Links counts the lines of the summary that name the messages that they rest on.
	Links int `json:"links,omitempty"`
	// Trimmed lists the content that was left out of the prompts; the store keeps it.
	Trimmed []Trim `json:"trimmed,omitempty"`
	// Parts counts the prompts that the messages were divided into, Halved the parts that
	// exceeded the context.
	Parts  int `json:"parts,omitempty"`
	Halved int `json:"halved,omitempty"`
	// Calls lists the calls in order.
	Calls []Call `json:"calls,omitempty"`
}

// Call is one call of a model, or a stored answer.
type Call struct {
	// PromptHash is the hash of the prompt; Reused marks a stored answer.
	PromptHash string `json:"prompt_hash"`
	Reused     bool   `json:"reused,omitempty"`
	// Rejected is the code of the validator; Repair marks a call after a rejection.
	Rejected string `json:"rejected,omitempty"`
	Repair   bool   `json:"repair,omitempty"`
	// Failed is the code of a call without an answer.
	Failed     string `json:"failed,omitempty"`
	Model      string `json:"model,omitempty"`
	Input      int64  `json:"input_tokens,omitempty"`
	Cached     int64  `json:"cached_tokens,omitempty"`
	Output     int64  `json:"output_tokens,omitempty"`
	CostMicros int64  `json:"cost_micros,omitempty"`
	Attempts   int    `json:"attempts,omitempty"`
	// Estimated counts the attempts whose tokens are estimated, as the server reported none.
	Estimated int `json:"estimated_attempts,omitempty"`
}
