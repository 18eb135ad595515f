package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

type modelsCmd struct {
	Name       string     `arg:"" optional:"" help:"Show what holds for a model of this name."`
	AllTenants allTenants `help:"Show what reports of every tenant have taught."`
}

// modelJSON describes the models of a prefix.
type modelJSON struct {
	Model      string      `json:"model"`
	Window     chat.Tokens `json:"window"`
	WindowFrom string      `json:"window_from"` // table, settings, policy or unknown
	Family     string      `json:"family"`
	Encoding   string      `json:"encoding"`
	Factor     float64     `json:"factor"`
	Estimated  bool        `json:"estimated"` // counts are Factor times those of Encoding
}

func newModelJSON(cfg config.Config, model string) modelJSON {
	limits := cfg.Policy.Limits(model, cfg.Models.Window)
	encoding, family := cfg.Models.Counting(model)
	from := "table"
	switch window, known := cfg.Models.Window(model); {
	case !limits.WindowKnown:
		from = "unknown"
	case !known || chat.Tokens(window) != limits.Window:
		from = "policy"
	case cfg.Models.Has(model):
		from = "settings"
	}
	return modelJSON{
		Model: model, Window: limits.Window, WindowFrom: from,
		Family: family.Name, Encoding: encoding, Factor: cmp.Or(family.Factor, 1), Estimated: family.Factor > 0,
	}
}

// maxLearned bounds the list of calibrations.
const maxLearned = 1000

func (c *modelsCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	names := []string{c.Name}
	if c.Name == "" {
		names = cfg.Models.Prefixes()
		slices.Sort(names)
	}
	models := []modelJSON{}
	for _, name := range slices.Compact(names) {
		models = append(models, newModelJSON(cfg, name))
	}
	learned := []store.Calibration{}
	if cfg.Database.URL != "" {
		st, err := e.Open(ctx)
		if err != nil {
			return err
		}
		if learned, err = st.Operator.Calibrations(ctx, c.AllTenants.tenant(cfg), c.Name, maxLearned); err != nil {
			return err
		}
	}
	return e.show(map[string]any{"table_date": tokens.TableDate, "models": models, "learned": learned}, func() {
		columns[modelJSON]{
			{"model", term.Text("MODEL"), nil},
			{"window", term.Num("WINDOW"), nil},
			{"family", term.Text("FAMILY"), nil},
			{"encoding", term.Text("ENCODING"), nil},
			{"factor", term.Num("FACTOR"), func(m modelJSON) any {
				return cmp.Or(when(m.Estimated, strconv.FormatFloat(m.Factor, 'g', -1, 64)), "exact")
			}},
			{"window_from", term.Text("FROM"), nil},
		}.write(e, models)
		e.say("")
		e.say("table of %s; %s tokens for a model that it does not have", tokens.TableDate,
			term.Count(cfg.Policy.Limits("", cfg.Models.Window).Window))
		if len(learned) == 0 {
			return
		}
		e.say("")
		type row = store.Calibration
		known := func(r row, text string) any { return when(r.Line.Scale > 0, text) }
		columns[row]{
			{"tenant", term.Text("TENANT"), nil},
			{"model", term.Text("MODEL"), nil},
			{"reports", term.Num("REPORTS"), nil},
			{"line", term.Num("OVERHEAD"), func(r row) any { return known(r, term.Count(r.Line.Overhead)) }},
			{"line", term.Num("SCALE"), func(r row) any { return known(r, fmt.Sprintf("%.2f", r.Line.Scale)) }},
			{"deviation", term.Num("OFF"), func(r row) any { return known(r, fmt.Sprintf("%.1f %%", 100*r.Deviation)) }},
			{"updated_at", term.Num("LAST REPORT"), func(r row) any { return e.since(r.UpdatedAt) }},
		}.write(e, learned)
	})
}

// noteUnknown notes, once for each, a model whose window is not known.
func (e *Env) noteUnknown(cfg config.Config, model string) {
	if m := newModelJSON(cfg, model); model != "" && m.WindowFrom == "unknown" && !slices.Contains(e.unknown, model) {
		e.unknown = append(e.unknown, model)
		e.note("the model %s is not known: its window is taken as %s tokens (see `compactor models --help`)",
			term.Clean(strings.ToValidUTF8(model, "?")), term.Count(m.Window))
	}
}

// openModels returns a client of the configured models, nil if none is configured. With a
// nil limiter or nil cooldowns the client keeps them in memory.
func openModels(c config.Config, environ []string, logger *slog.Logger, limiter llm.Limiter,
	cooldowns llm.Cooldowns,
) (summary.Model, error) {
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
