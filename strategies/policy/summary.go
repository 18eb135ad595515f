package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// Summary holds the settings of summaries.
type Summary struct {
	// Writer is model, which writes an extract where no model is configured, or extractive,
	// which never asks a model.
	Writer string `yaml:"writer" json:"writer"`
	// OnFailure selects the replacement of a missing summary at the end of a pipeline:
	// keep, extractive, truncate or marker.
	OnFailure string `yaml:"on_failure" json:"on_failure"`
	// Size is the length of summaries, unless the strategy sets one.
	Size Size `yaml:"size" json:"size"`
	// References is the budget of the calls and references beside the prose of a model, as a
	// fraction of the size; they are at most as long as the prose.
	References float64 `yaml:"references" json:"references"`
	// Focus is a topic that every summary emphasizes.
	Focus string `yaml:"focus" json:"focus,omitempty"`
	// Instruction is added to the prompt.
	Instruction string `yaml:"instruction" json:"instruction,omitempty"`
	// Tools says which tools change something, for the log of actions.
	Tools Tools `yaml:"tools" json:"tools,omitzero"`
	// PreTrim shortens the input of the model, in order. It changes nothing stored.
	PreTrim []PreTrim `yaml:"pre_trim" json:"pre_trim"`
	// MaxParts is the maximum number of prompts for one summary. The oldest messages that
	// do not fit are left out.
	MaxParts int `yaml:"max_parts" json:"max_parts"`
	// MaxCost is the cost from which no further call is made for a summary, in the unit
	// of the prices; 0 for no limit.
	MaxCost float64 `yaml:"max_cost" json:"max_cost,omitempty"`
	// Cooldown is how long automatic runs leave a session alone after a summary failed
	// for a transient reason; CooldownNoModel, after one failed because no model is configured.
	Cooldown        time.Duration `yaml:"cooldown" json:"cooldown"`
	CooldownNoModel time.Duration `yaml:"cooldown_no_model" json:"cooldown_no_model"`
}

// Tools classifies tools and their results for the log of actions. Acts and Looks name tools, by
// names or by patterns in which * is any text, such as deploy_*. They come before the verbs in a
// name; of those that match a tool, the longest decides.
// Failed and Succeeded are texts in results, in any case.
type Tools struct {
	// Acts change something: their calls come first in the log of actions.
	Acts []string `yaml:"acts" json:"acts,omitempty"`
	// Looks change nothing.
	Looks []string `yaml:"looks" json:"looks,omitempty"`
	// Failed are texts of calls that failed, such as "no seats left".
	Failed []string `yaml:"failed" json:"failed,omitempty"`
	// Succeeded are texts of calls that succeeded although they read like failures: "errors: none".
	Succeeded []string `yaml:"succeeded" json:"succeeded,omitempty"`
}

func (t Tools) validate(fs *FieldErrors) {
	for _, list := range []struct {
		key   string
		names []string
	}{{"acts", t.Acts}, {"looks", t.Looks}} {
		for i, name := range list.names {
			key := fmt.Sprintf("%s[%d]", list.key, i)
			_, err := path.Match(name, "")
			fs.Check(err == nil && strings.TrimSpace(name) != "", key, quote(name), "the name of a tool, or a pattern such as deploy_*")
			fs.Check(list.key == "acts" || !slices.Contains(t.Acts, name), key, quote(name), "a tool that is not in acts")
		}
	}
	for i, s := range t.Failed {
		fs.Check(strings.TrimSpace(s) != "", fmt.Sprintf("failed[%d]", i), quote(s), "a text in the results of calls that failed")
	}
	for i, s := range t.Succeeded {
		key := fmt.Sprintf("succeeded[%d]", i)
		fs.Check(strings.TrimSpace(s) != "", key, quote(s), "a text in the results of calls that succeeded")
		fs.Check(!slices.Contains(t.Failed, s), key, quote(s), "a text that is not in failed")
	}
}

// The values of Summary.Writer.
const (
	WriterModel      = "model"
	WriterExtractive = "extractive"
)

// The values of Summary.OnFailure.
const (
	OnFailureKeep       = "keep"       // leave the history as it is
	OnFailureExtractive = "extractive" // insert a summary extracted without a model
	OnFailureTruncate   = "truncate"   // exclude the oldest groups
	OnFailureMarker     = "marker"     // insert a note that the summary is missing
)

// DefaultSummary returns the default settings of summaries.
func DefaultSummary() Summary {
	return Summary{
		Writer: WriterModel, OnFailure: OnFailureKeep, Size: DefaultSize(), References: 0.25,
		// Shorten the outputs of tools. Of the rest, the newest messages matter most.
		PreTrim:  []PreTrim{{Step: TailLines}, {Step: CapToolContent}},
		MaxParts: 4, Cooldown: backoff.Cooldown, CooldownNoModel: backoff.CooldownNoProvider,
	}
}

const (
	// maxCooldown is the longest cooldown that can be configured.
	maxCooldown = 30 * 24 * time.Hour
	// maxRetryAfter bounds the cooldown that a server can request.
	maxRetryAfter = 24 * time.Hour
)

// CooldownAfter returns the cooldown of a session after a missing summary, by the code of
// the failure and the retry-after of the model.
func (s Summary) CooldownAfter(code string, retryAfter time.Duration) time.Duration {
	cooldown := s.Cooldown
	if slices.Contains([]string{"no_model", "auth", "quota_exhausted", "model_not_found"}, code) {
		cooldown = s.CooldownNoModel
	}
	return max(cooldown, min(retryAfter, maxRetryAfter))
}

// Overspent reports whether a cost, in millionths, has reached MaxCost.
func (s Summary) Overspent(micros int64) bool {
	return s.MaxCost > 0 && float64(micros) >= s.MaxCost*1e6
}

func (p Policy) validateSummary(fs *FieldErrors) {
	s := p.Summary
	fs.CheckOneOf("summary.writer", s.Writer, WriterModel, WriterExtractive)
	fs.CheckOneOf("summary.on_failure", s.OnFailure, OnFailureKeep, OnFailureExtractive, OnFailureTruncate, OnFailureMarker)
	fs.Check(s.References >= 0 && s.References <= 1, "summary.references", s.References, "a fraction, 0 to 1")
	CheckRange(fs, "summary.max_parts", s.MaxParts, 1, 1000)
	fs.Check(s.MaxCost >= 0, "summary.max_cost", s.MaxCost, "0 or more")
	CheckRange(fs, "summary.cooldown", s.Cooldown, 0, maxCooldown)
	CheckRange(fs, "summary.cooldown_no_model", s.CooldownNoModel, 0, maxCooldown)
	fs.Prefix = "summary.size."
	s.Size.validate(fs)
	fs.Prefix = "summary.tools."
	s.Tools.validate(fs)
	for i, step := range s.PreTrim {
		fs.Prefix = fmt.Sprintf("summary.pre_trim[%d].", i)
		step.validate(fs)
	}
	fs.Prefix = ""
}

// MarshalJSON writes durations as text ("2s").
func (s Summary) MarshalJSON() ([]byte, error) {
	type plain Summary
	return json.Marshal(struct {
		plain
		Cooldown        string `json:"cooldown"`
		CooldownNoModel string `json:"cooldown_no_model"`
	}{plain(s), s.Cooldown.String(), s.CooldownNoModel.String()})
}
