package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
)

type configCmd struct {
	Example configExampleCmd `cmd:"" help:"Write a configuration file with every setting, its default and a description."`
	Print   configPrintCmd   `cmd:"" help:"Show every effective setting and its source."`
}

type configExampleCmd struct{}

func (*configExampleCmd) Run(e *Env) error {
	return e.answer(map[string]any{"example": config.Example()}, "%s", strings.TrimSuffix(config.Example(), "\n"))
}

type configPrintCmd struct {
	Model string `placeholder:"NAME" help:"Also explain the policy's limits for this model."`
}

func (c *configPrintCmd) Run(e *Env, cfg config.Config) error {
	out := map[string]any{"file": cfg.File(), "settings": cfg.Entries()}
	explanation := cfg.Policy.Explain(c.Model, cfg.Models.Window, e.Registry.Fill)
	if c.Model != "" {
		out["policy"] = map[string]any{
			"model": c.Model, "limits": cfg.Policy.Limits(c.Model, cfg.Models.Window),
			"explanation": explanation,
		}
	}
	return e.show(out, func() {
		e.wrote(cfg.Print(e.Out))
		if c.Model == "" {
			return
		}
		e.say("")
		for _, line := range explanation {
			e.say("%s", term.Clean(line))
		}
		all := cfg.SchedulerConfig().SchedulesInForce()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			e.say("sweeps: %s (schedule %s)", all[name].Text(), name)
		}
	})
}
