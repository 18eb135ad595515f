package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// openModels returns a client of the configured models, nil if none is configured. With a
// nil limiter or nil cooldowns the client keeps them in memory.
func openModels(c config.Config, environ []string, logger *slog.Logger, limiter llm.Limiter, cooldowns llm.Cooldowns) (summary.Model, error) {
	if len(c.LLM.Models) == 0 {
		return nil, nil //nolint:nilnil // without a model summaries are extracts
	}
	client, err := llm.New(c.LLM, llm.Deps{
		Env: variables(environ), Log: logger, Limiter: limiter, Cooldowns: cooldowns,
	})
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("llm: %w", err)}
	}
	return client, nil
}

// variables returns a lookup function for non-empty variables.
func variables(environ []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, kv := range environ {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v, v != ""
			}
		}
		return "", false
	}
}

// summarizes reports whether one of the steps, or a strategy nested in one, has a model write
// summaries. Models are opened for these only, so that others require no key.
func summarizes(s policy.Summary, steps []policy.Step, registry *plan.Registry) bool {
	return s.Writer != policy.WriterExtractive && slices.ContainsFunc(steps, func(s policy.Step) bool {
		_, err := registry.New(s.Strategy, s.Params)
		return errors.Is(err, plan.ErrNoSummarizer)
	})
}
