package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Model overrides the facts of the built-in table about the models whose names begin with
// Prefix, or adds them. A field that is not set keeps that of the table.
type Model struct {
	Prefix string `yaml:"prefix" json:"prefix"`
	// Window is the context window in tokens, the sum of input and output.
	Window int `yaml:"window" json:"window,omitempty"`
	// Encoding is O200K or CL100K; counts are exact unless Factor is set.
	Encoding string `yaml:"encoding" json:"encoding,omitempty"`
	// Factor is the number of the model's tokens for each one of Encoding, or of O200K;
	// counts are then estimates.
	Factor float64 `yaml:"factor" json:"factor,omitempty"`
}

// maxWindow is larger than any window.
const maxWindow = 1_000_000_000

// Validate returns an error that describes the first invalid field.
func (m Model) Validate() error {
	switch {
	case strings.TrimSpace(m.Prefix) == "":
		return errors.New("want a model's name or its beginning as prefix")
	case m.Window < 0 || m.Window > maxWindow:
		return fmt.Errorf("window %d: want 0 (that of the table) to %d", m.Window, maxWindow)
	case m.Encoding != "" && encodings[m.Encoding] == nil:
		return fmt.Errorf("encoding %q: want %s or %s", m.Encoding, O200K, CL100K)
	case m.Factor != 0 && !(m.Factor >= 0.2 && m.Factor <= 5): // NaN, too
		return fmt.Errorf("factor %v: want 0 (that of the table), or 0.2 to 5", m.Factor)
	}
	return nil
}

// Table is a list of models that overrides the built-in table, whatever the lengths of
// their prefixes there; in the list, the longest prefix applies. Its zero value is the
// built-in table alone. All of its models must be valid.
type Table []Model

func (t Table) find(model string) Model {
	m, _ := lookupIn(t, func(m Model) string { return m.Prefix }, model)
	return m
}

// Has reports whether the list, not the built-in table, has a model.
func (t Table) Has(model string) bool { return t.find(model).Prefix != "" }

// Window returns the context window of a model in tokens, or DefaultWindow for an unknown
// one. A deployment may have less, so the setting of a policy overrides it.
func (t Table) Window(model string) (tokens int, known bool) {
	if m := t.find(model); m.Window > 0 {
		return m.Window, true
	}
	if f, ok := lookup(model); ok {
		return f.window, true
	}
	return DefaultWindow, false
}

// Counting returns the encoding that counts the tokens of a model, and its family with the
// factor of an estimate. Counts are taken as exact where no model is named, too: nothing is
// known then that would be a better estimate.
func (t Table) Counting(model string) (encoding string, f Family) {
	encoding, known := Encoding(model)
	f = openAI
	if !known && strings.TrimSpace(model) != "" {
		f = familyOf(model)
	}
	switch m := t.find(model); {
	case m.Encoding != "":
		return m.Encoding, Family{f.Name, m.Factor}
	case m.Factor != 0:
		return O200K, Family{f.Name, m.Factor}
	}
	return encoding, f
}

// ForModel returns the counter of a model: that of its Encoding, or for a model that has
// none of OpenAI's encodings, an estimate by O200K and a factor that is typical of its
// vendor (see chat.Estimates). It panics if the compiled-in ranks cannot be read.
func (t Table) ForModel(model string) Counter {
	encoding, f := t.Counting(model)
	c, err := Tiktoken(encoding)
	if err != nil {
		panic(err) // the build is broken
	}
	if f.Factor == 0 {
		return c
	}
	return scaled{c, f.Factor}
}

// Prefixes returns the prefixes of all known models, in lower case and without providers.
func (t Table) Prefixes() []string {
	out := make([]string, 0, len(t)+len(facts))
	for _, m := range t {
		out = append(out, strings.ToLower(m.Prefix))
	}
	for _, f := range facts {
		out = append(out, f.prefix)
	}
	return out
}

// Version identifies the table: it is the same as long as all models have the same
// windows and counters.
func (t Table) Version() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %v %v", t, facts, families))
	return TableDate + "-" + hex.EncodeToString(sum[:4])
}

// ForModel is Table.ForModel of the built-in table.
func ForModel(model string) Counter { return Table(nil).ForModel(model) }

// Window is Table.Window of the built-in table.
func Window(model string) (tokens int, known bool) { return Table(nil).Window(model) }

// Models is Table.Prefixes of the built-in table.
func Models() []string { return Table(nil).Prefixes() }
