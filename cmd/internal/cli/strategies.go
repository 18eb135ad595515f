package cli

import (
	"errors"
	"io"
	"slices"
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
	shown := e.Registry.Describe()
	if c.Name != "" {
		if _, err := e.Registry.New(c.Name, nil); errors.Is(err, plan.ErrUnknownStrategy) {
			return &exitError{exitUsage, err}
		}
		shown = slices.DeleteFunc(shown, func(s plan.Info) bool { return s.Name != c.Name })
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"strategies": shown})
	}
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
	return err
}
