package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// DefaultName is the name of the policy of sessions that no other one matches: that of the
// configuration, unless a version of it was applied.
const DefaultName = "default"

// scheduleKeys are the settings that only the policy of the configuration has: they concern
// the fleet.
var scheduleKeys = []string{"cron", "timezone", "debounce", "max_delay"}

// Spec returns a policy as JSON with every setting but the schedule, so that defaults of
// later versions do not change it.
func Spec(p Policy) (json.RawMessage, error) {
	p.ModelTable = ""
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(raw, &settings); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	maps.DeleteFunc(settings, func(key string, _ json.RawMessage) bool { return slices.Contains(scheduleKeys, key) })
	return json.Marshal(settings)
}

// SpecHash returns a hash of a spec.
func SpecHash(spec json.RawMessage) string { return hash(spec) }

// ReadSpec reads a spec, with the default schedule, and validates it. A setting that this
// version does not know is an error: without it, the policy would be another one.
func ReadSpec(raw []byte) (Policy, error) {
	p := Default()
	p.Pipeline, p.Summary.PreTrim = nil, nil // or elements would be merged
	p.Triggers, p.PinPaths = nil, nil
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("policy cannot be read: %w", err)
	}
	return p, p.Validate()
}

// duration is read as it is written: "2s".
type duration struct{ *time.Duration }

func (d duration) UnmarshalJSON(raw []byte) (err error) {
	var text string
	if err = json.Unmarshal(raw, &text); err == nil {
		*d.Duration, err = time.ParseDuration(text)
	}
	return err
}

// UnmarshalJSON reads the output of MarshalJSON. Unknown keys are errors; settings without a
// key keep their values.
func (p *Policy) UnmarshalJSON(raw []byte) error {
	type plain Policy
	return readStrictly(raw, &struct {
		*plain
		Debounce duration `json:"debounce"`
		MaxDelay duration `json:"max_delay"`
		Cooldown duration `json:"cooldown"`
	}{(*plain)(p), duration{&p.Debounce}, duration{&p.MaxDelay}, duration{&p.Cooldown}})
}

// UnmarshalJSON implements json.Unmarshaler as that of Policy does.
func (s *Summary) UnmarshalJSON(raw []byte) error {
	type plain Summary
	return readStrictly(raw, &struct {
		*plain
		Cooldown        duration `json:"cooldown"`
		CooldownNoModel duration `json:"cooldown_no_model"`
	}{(*plain)(s), duration{&s.Cooldown}, duration{&s.CooldownNoModel}})
}

func readStrictly(raw []byte, v any) error {
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	in.UseNumber() // parameters stay exact
	return in.Decode(v)
}

// Change is a setting that differs between two policies. From and To are JSON, empty where
// a policy does not have the setting.
type Change struct {
	Key  string `json:"key"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Diff returns the settings that differ between two specs, ordered by key. Those of a
// section are compared one by one, lists and maps of the user as a whole.
func Diff(from, to json.RawMessage) ([]Change, error) {
	a, aerr := settings(from)
	b, berr := settings(to)
	if err := errors.Join(aerr, berr); err != nil {
		return nil, err
	}
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	out := []Change{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a[key] != b[key] {
			out = append(out, Change{key, a[key], b[key]})
		}
	}
	return out, nil
}

// sections are the settings that hold others.
var sections = []string{"guards", "retention", "summary", "summary.size", "summary.tools"}

// settings returns the settings of a spec as compact JSON, by key ("summary.size.share").
func settings(raw json.RawMessage) (map[string]string, error) {
	out := map[string]string{}
	var walk func(prefix string, raw json.RawMessage) error
	walk = func(prefix string, raw json.RawMessage) error {
		var values map[string]json.RawMessage
		if err := json.Unmarshal(raw, &values); err != nil {
			return fmt.Errorf("policy cannot be read: %w", err)
		}
		for name, value := range values {
			key := strings.TrimPrefix(prefix+"."+name, ".")
			if slices.Contains(sections, key) {
				if err := walk(key, value); err != nil {
					return err
				}
				continue
			}
			var v any // decoded, as Postgres has another order of keys
			if err := readStrictly(value, &v); err != nil {
				return fmt.Errorf("policy cannot be read: %w", err)
			}
			var text strings.Builder
			enc := json.NewEncoder(&text)
			enc.SetEscapeHTML(false) // people read it
			if err := enc.Encode(v); err != nil {
				return err
			}
			if text := strings.TrimSuffix(text.String(), "\n"); text != "null" {
				out[key] = text
			}
		}
		return nil
	}
	if len(raw) == 0 {
		return out, nil
	}
	return out, walk("", raw)
}
