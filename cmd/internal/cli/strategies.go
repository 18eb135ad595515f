package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

type strategiesCmd struct {
	Name string `arg:"" optional:"" help:"Show the parameters of this strategy."`
}

func (c *strategiesCmd) Run(e *Env) error {
	shown := e.Registry.Describe()
	if c.Name != "" {
		if _, err := e.Registry.New(c.Name, nil); errors.Is(err, plan.ErrUnknownStrategy) {
			return &exitError{exitUsage, err}
		}
		shown = slices.DeleteFunc(shown, func(s plan.Info) bool { return s.Name != c.Name })
	}
	return e.show(map[string]any{"strategies": shown}, func() {
		var b strings.Builder
		for _, s := range shown {
			writeHelpItem(&b, "", s.Name, s.Doc)
			if c.Name == "" {
				continue
			}
			for _, p := range s.Params {
				facts := []string{p.Type, "default " + p.Default, p.Range}
				if p.Required {
					facts[1] = "required"
				}
				b.WriteString("\n")
				writeHelpItem(&b, "    ", p.Name, strings.TrimSuffix(strings.Join(facts, "; "), "; "), p.Doc)
			}
		}
		_, err := io.WriteString(e.Out.W, b.String())
		e.wrote(err)
	})
}

// presetHelp lists the presets of policies.
func presetHelp() string {
	var b strings.Builder
	for _, p := range policy.Presets() {
		writeHelpItem(&b, "    ", p.Name, p.Doc)
	}
	return b.String()
}

// strategyHelp lists the strategies and their parameters.
func strategyHelp(registry *plan.Registry) string {
	var b strings.Builder
	b.WriteString("Strategies and their parameters, with defaults of up to 20 characters; `compactor strategies NAME` explains them. Summaries are written by the configured models; without one they are extracts:\n\n")
	for _, info := range registry.Describe() {
		params := make([]string, len(info.Params))
		for i, p := range info.Params {
			params[i] = p.Name
			switch {
			case p.Required:
				params[i] += " (required)"
			case p.Default != "" && p.Default != "null" && len(p.Default) <= 20 && !strings.ContainsAny(p.Default, "\"[{"):
				params[i] += "=" + p.Default
			}
		}
		writeHelpItem(&b, "    ", info.Name, info.Doc, strings.Join(params, ", "))
	}
	return b.String()
}

// writeHelpItem writes a name after an indent and paragraphs, which are indented by four
// columns more and wrapped at 80.
func writeHelpItem(b *strings.Builder, indent, name string, paragraphs ...string) {
	b.WriteString(indent + name + "\n")
	for _, text := range paragraphs {
		line := indent + "   "
		for word := range strings.FieldsSeq(text) {
			if len(line)+1+len(word) > 80 {
				b.WriteString(line + "\n")
				line = indent + "   "
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
}

// parseStrategies parses the values of --strategy and validates their parameters together
// with those that the policy fills in. The error joins all problems.
func parseStrategies(specs []string, p policy.Policy, registry *plan.Registry) ([]policy.Step, error) {
	var faults []error
	p.Pipeline = nil
	for _, spec := range specs {
		s, err := parseStrategy(spec)
		if err != nil {
			faults = append(faults, fmt.Errorf("--strategy %s: %w", spec, err))
			continue
		}
		p.Pipeline = append(p.Pipeline, s)
	}
	for _, err := range strategies.CheckSteps(registry, p) {
		faults = append(faults, fmt.Errorf("--strategy: %w", err))
	}
	if len(faults) > 0 {
		return nil, &exitError{exitUsage, errors.Join(faults...)}
	}
	return p.Pipeline, nil
}

// summarizing returns the registry with a summarizer, which strategies that write
// summaries require for the validation of their parameters.
func summarizing(registry *plan.Registry) *plan.Registry {
	return registry.With(summary.New(summary.Options{}))
}

// parseStrategy parses NAME[:param=value,…]. A value that is not valid JSON is a string.
func parseStrategy(spec string) (policy.Step, error) {
	name, rest, given := strings.Cut(spec, ":")
	s := policy.Step{Strategy: strings.TrimSpace(name)}
	if s.Strategy == "" {
		return s, errors.New("want NAME or NAME:param=value,…")
	}
	if !given || strings.TrimSpace(rest) == "" {
		return s, nil
	}
	s.Params = map[string]any{}
	for _, pair := range splitTop(rest) {
		param, text, ok := strings.Cut(pair, "=")
		param = strings.TrimSpace(param)
		if !ok || param == "" {
			return s, fmt.Errorf("%q: want param=value", pair)
		}
		if _, twice := s.Params[param]; twice {
			return s, fmt.Errorf("%s is given twice", param)
		}
		s.Params[param] = paramValue(strings.TrimSpace(text))
	}
	return s, nil
}

func paramValue(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if !json.Valid([]byte(text)) || d.Decode(&v) != nil || v == nil {
		return text
	}
	return v
}

// splitTop splits at commas outside of brackets and quotes.
func splitTop(s string) []string {
	var out []string
	depth, start, quoted := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '[' || b == '{':
			depth++
		case b == ']' || b == '}':
			depth--
		case b == ',' && depth == 0:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}
