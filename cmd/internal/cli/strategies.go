package cli

import (
	"errors"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/plan"
)

type strategiesCmd struct {
	Name string `arg:"" optional:"" help:"Show the parameters of this strategy."`
}

func (*strategiesCmd) Help() string {
	return `Strategies are used by the steps of a policy and by --strategy.

Examples:

    compactor strategies
    compactor strategies token_budget`
}

func (c *strategiesCmd) Run(e *Env) error {
	if c.Name != "" {
		if _, err := e.Registry.New(c.Name, nil); errors.Is(err, plan.ErrUnknownStrategy) {
			return &exitError{exitUsage, err}
		}
	}
	var shown []plan.Info
	var b strings.Builder
	for _, info := range e.Registry.Describe() {
		if c.Name != "" && c.Name != info.Name {
			continue
		}
		shown = append(shown, info)
		writeHelpItem(&b, "", info.Name, info.Doc)
		if c.Name == "" {
			continue
		}
		for _, p := range info.Params {
			value := "required"
			if !p.Required {
				value = "default " + p.Default
			}
			facts := []string{p.Type, value}
			if p.Range != "" {
				facts = append(facts, p.Range)
			}
			b.WriteString("\n")
			writeHelpItem(&b, "    ", p.Name, strings.Join(facts, "; "), p.Doc)
		}
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"strategies": shown})
	}
	_, err := e.Out.W.Write([]byte(b.String()))
	return err
}
