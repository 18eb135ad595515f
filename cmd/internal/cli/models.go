package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// openModels returns the client of the configured models, nil where there are none. limiter
// and cooldowns may be nil: then they are this process's own.
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

// variables looks up those that are not empty.
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

// openModelsFor is openModels where the steps ask for summaries, and nil where none does:
// then no key is needed.
func openModelsFor(steps []policy.Step, c config.Config, e *Env, logger *slog.Logger) (summary.Model, error) {
	if !asks(steps, e.Registry) {
		return nil, nil //nolint:nilnil // nobody would ask it
	}
	return openModels(c, e.Environ, logger, nil, nil)
}

// asks reports whether one of the steps, or a strategy within one, asks for summaries.
func asks(steps []policy.Step, registry *plan.Registry) bool {
	return slices.ContainsFunc(steps, func(s policy.Step) bool {
		_, err := registry.New(s.Strategy, s.Params)
		return errors.Is(err, plan.ErrNoSummarizer)
	})
}

// sparing has the collector run earlier than by default: what a worker reads of a large
// session is its memory, and less than half as much again is enough to work in. GOGC goes
// before.
func sparing(environ []string) {
	if !slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, "GOGC=") }) {
		debug.SetGCPercent(40)
	}
}
