package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// Summary is how summaries are made, and what becomes of a run without one.
type Summary struct {
	// OnFailure says what a missing summary leaves where it is the last step of
	// the pipeline: keep, extractive, truncate or marker.
	OnFailure string `yaml:"on_failure" json:"on_failure"`
	// Size is how long a summary may be, where the strategy does not say.
	Size Size `yaml:"size" json:"size"`
	// References is how much room references have beside the prose of a model, as a
	// fraction of the size.
	References float64 `yaml:"references" json:"references"`
	// Focus is a topic that every summary favours.
	Focus string `yaml:"focus" json:"focus,omitempty"`
	// Instruction is what a summary should be like, beside what the prompt says.
	Instruction string `yaml:"instruction" json:"instruction,omitempty"`
	// PreTrim shortens what a model reads, in order. It changes nothing that is stored.
	PreTrim []PreTrim `yaml:"pre_trim" json:"pre_trim"`
	// MaxParts is in how many prompts a summary may be made; the oldest messages beyond
	// them are left out.
	MaxParts int `yaml:"max_parts" json:"max_parts"`
	// MaxCost is what the calls for one summary may cost before no further one is made,
	// in the unit that prices are in; 0 is no limit.
	MaxCost float64 `yaml:"max_cost" json:"max_cost,omitempty"`
	// Cooldown is how long automatic runs leave a session alone after a summary failed
	// that may work later, CooldownNoModel after one for which there is no model.
	Cooldown        time.Duration `yaml:"cooldown" json:"cooldown"`
	CooldownNoModel time.Duration `yaml:"cooldown_no_model" json:"cooldown_no_model"`
}

// What Summary.OnFailure can be.
const (
	// OnFailureKeep leaves the history as the steps before left it.
	OnFailureKeep = "keep"
	// OnFailureExtractive puts a summary in its place that no model wrote.
	OnFailureExtractive = "extractive"
	// OnFailureTruncate drops the oldest groups.
	OnFailureTruncate = "truncate"
	// OnFailureMarker puts a note in its place that there is no summary.
	OnFailureMarker = "marker"
)

func onFailures() []string {
	return []string{OnFailureKeep, OnFailureExtractive, OnFailureTruncate, OnFailureMarker}
}

// DefaultSummary returns how a fresh installation makes summaries.
func DefaultSummary() Summary {
	return Summary{
		OnFailure: OnFailureKeep, Size: DefaultSize(), References: 0.25, PreTrim: defaultPreTrim(),
		MaxParts: 4, Cooldown: backoff.Cooldown, CooldownNoModel: backoff.CooldownNoProvider,
	}
}

// defaultPreTrim shortens what tools said, and leaves out what the agent did last before
// anything that the user said.
func defaultPreTrim() []PreTrim {
	return []PreTrim{{Step: TailLines}, {Step: CapToolContent}, {Step: DropAgentItems}}
}

// Rest returns how long automatic runs leave a session alone whose summary was not had: by
// the code of why, and at least as long as the model asked for.
func (s Summary) Rest(code string, asked time.Duration) time.Duration {
	rest := s.Cooldown
	switch code {
	case "no_model", "auth", "quota_exhausted":
		rest = s.CooldownNoModel
	}
	return max(rest, min(asked, mostRest))
}

// mostRest bounds what a server can ask for.
const mostRest = 24 * time.Hour

// Overspent reports whether so much, in millionths, is as much as a summary may cost.
func (s Summary) Overspent(micros int64) bool {
	return s.MaxCost > 0 && float64(micros) >= s.MaxCost*1e6
}

func (p Policy) validateSummary(fs *faults) {
	s := p.Summary
	fs.add(slices.Contains(onFailures(), s.OnFailure), "summary.on_failure", quote(s.OnFailure), "one of %s", strings.Join(onFailures(), ", "))
	fs.add(s.References >= 0 && s.References <= 1, "summary.references", s.References, "a fraction, 0 to 1")
	fs.add(s.MaxParts >= 1 && s.MaxParts <= 1000, "summary.max_parts", s.MaxParts, "1 to 1000")
	fs.add(s.MaxCost >= 0, "summary.max_cost", s.MaxCost, "0 or more")
	for key, d := range map[string]time.Duration{"summary.cooldown": s.Cooldown, "summary.cooldown_no_model": s.CooldownNoModel} {
		fs.add(d >= 0 && d <= 30*24*time.Hour, key, d, "0s to 720h")
	}
	fs.nested("summary.size.", s.Size.Validate())
	for i, step := range s.PreTrim {
		fs.nested(fmt.Sprintf("summary.pre_trim[%d].", i), step.Validate())
	}
}

// nested adds faults that were found elsewhere, each as "key: value: want what".
func (fs *faults) nested(prefix string, err error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, err := range joined.Unwrap() {
		key, rest, _ := strings.Cut(err.Error(), ": ")
		value, want, _ := strings.Cut(rest, ": want ")
		*fs = append(*fs, &FieldError{Key: prefix + key, Value: value, Want: want})
	}
}

type plainSummary Summary

// wireSummary is Summary as JSON: the same keys, durations as "2s".
type wireSummary struct {
	plainSummary
	Cooldown        string `json:"cooldown"`
	CooldownNoModel string `json:"cooldown_no_model"`
}

// MarshalJSON writes durations the way people write them.
func (s Summary) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireSummary{plainSummary(s), s.Cooldown.String(), s.CooldownNoModel.String()})
}

// UnmarshalJSON reads what MarshalJSON writes. Keys that are absent keep the receiver's
// values.
func (s *Summary) UnmarshalJSON(b []byte) error {
	w := wireSummary{plainSummary: plainSummary(*s)}
	w.PreTrim = nil
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	out := Summary(w.plainSummary)
	if out.PreTrim == nil {
		out.PreTrim = s.PreTrim
	}
	for _, d := range []struct {
		key, text string
		to        *time.Duration
	}{{"cooldown", w.Cooldown, &out.Cooldown}, {"cooldown_no_model", w.CooldownNoModel, &out.CooldownNoModel}} {
		if d.text == "" {
			continue
		}
		v, err := time.ParseDuration(d.text)
		if err != nil {
			return fmt.Errorf("summary.%s: %w", d.key, err)
		}
		*d.to = v
	}
	*s = out
	return nil
}
