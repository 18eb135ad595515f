package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
)

type configCmd struct {
	Example configExampleCmd `cmd:"" help:"Write a configuration file with every setting, its default and a description."`
	Print   configPrintCmd   `cmd:"" help:"Show every effective setting and its source."`
}

type configExampleCmd struct{}

func (*configExampleCmd) Help() string {
	return `Examples:

    compactor config example > compactor.yaml`
}

func (*configExampleCmd) Run(e *Env) error {
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"example": config.Example()})
	}
	_, err := fmt.Fprint(e.Out.W, config.Example())
	return err
}

type configPrintCmd struct {
	Model string `placeholder:"NAME" help:"Also explain the policy's limits for this model."`
}

func (*configPrintCmd) Help() string {
	return `Passwords are masked. A setting comes from its default, a line of the file, an environment variable or a flag.

Examples:

    compactor config print
    compactor config print --model gpt-4o --start 90000 --target 60000`
}

func (c *configPrintCmd) Run(e *Env, cfg config.Config) error {
	if e.JSON {
		out := map[string]any{"file": cfg.File(), "settings": cfg.Entries()}
		if c.Model != "" {
			out["policy"] = map[string]any{
				"model": c.Model, "limits": cfg.Policy.Limits(c.Model, cfg.Models.Window), "explanation": cfg.Policy.Explain(c.Model, cfg.Models.Window, e.Registry.Fill),
			}
		}
		return term.JSON(e.Out.W, out)
	}
	if err := cfg.Print(e.Out); err != nil {
		return err
	}
	if c.Model != "" {
		e.say("")
		for _, line := range cfg.Policy.Explain(c.Model, cfg.Models.Window, e.Registry.Fill) {
			e.say("%s", term.Clean(line))
		}
		all := schedulesOf(cfg)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			e.say("sweeps: %s (schedule %s)", all[name].Text(), name)
		}
	}
	return nil
}
