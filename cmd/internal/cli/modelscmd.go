package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
)

type modelsCmd struct {
	Name       string `arg:"" optional:"" help:"Show what holds for a model of this name."`
	AllTenants bool   `help:"Show what reports of every tenant have taught."`
}

func (*modelsCmd) Help() string {
	return `Lists the context windows of models by the beginnings of their names, and how tokens are counted for them: by one of OpenAI's encodings, exact for its own models, and for those of others times the factor of their family, as an estimate. The setting models adds to this table.

With a database, also what reports of usage (report_usage) have taught of the size of prompts, for a tenant and a model: a prompt has OVERHEAD + SCALE × counted tokens, and the latest reports are OFF by so much in the median. Sessions without a report of their own are due by that. Five reports are needed; the latest 20 count.

Examples:

    compactor models
    compactor models claude-sonnet-5 --json`
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

// maxLearned bounds the list of what reports have taught.
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
		tenant := cfg.Tenant
		if c.AllTenants {
			tenant = ""
		}
		if learned, err = st.Operator.Calibrations(ctx, tenant, c.Name, maxLearned); err != nil {
			return err
		}
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"table_date": tokens.TableDate, "models": models, "learned": learned})
	}
	t := e.Out.Table(term.Text("MODEL"), term.Num("WINDOW"), term.Text("FAMILY"), term.Text("ENCODING"), term.Num("FACTOR"), term.Text("FROM"))
	for _, m := range models {
		factor := "exact"
		if m.Estimated {
			factor = strconv.FormatFloat(m.Factor, 'g', -1, 64)
		}
		t.Row(m.Model, term.Count(m.Window), m.Family, m.Encoding, factor, m.WindowFrom)
	}
	if err := t.Write(); err != nil {
		return err
	}
	e.say("")
	e.say("table of %s; %s tokens for a model that it does not have", tokens.TableDate, term.Count(cfg.Policy.Limits("", cfg.Models.Window).Window))
	if len(learned) == 0 {
		return nil
	}
	e.say("")
	t = e.Out.Table(term.Text("TENANT"), term.Text("MODEL"), term.Num("REPORTS"), term.Num("OVERHEAD"), term.Num("SCALE"), term.Num("OFF"), term.Num("LAST REPORT"))
	for _, r := range learned {
		overhead, scale, off := "", "", ""
		if r.Line.Scale > 0 {
			overhead, scale, off = term.Count(r.Line.Overhead), fmt.Sprintf("%.2f", r.Line.Scale), fmt.Sprintf("%.1f %%", 100*r.Deviation)
		}
		t.Row(r.Tenant, r.Model, r.Reports, overhead, scale, off, e.since(r.UpdatedAt))
	}
	return t.Write()
}

// maxDoctorModels bounds the models that doctor lists.
const maxDoctorModels = 20

// counting describes the table of models, and what reports of usage have taught.
func (x *doctorReport) counting(ctx context.Context, cfg config.Config, st *store.Store) error {
	const section = "tokens"
	x.add(section, "table of models", checkOK, fmt.Sprintf("of %s, %s in the settings",
		tokens.TableDate, term.Plural(len(cfg.Models), "model", "models")), "")
	used, err := st.Operator.Models(ctx, maxDoctorModels)
	if err != nil {
		return err
	}
	for _, name := range used {
		if m := newModelJSON(cfg, name); m.WindowFrom == "unknown" {
			x.add(section, term.Clean(name), checkWarn, fmt.Sprintf("this model is not known: its window is taken as %s tokens", term.Count(m.Window)),
				"set its window in the setting models")
		}
	}
	learned, err := st.Operator.Calibrations(ctx, "", "", maxDoctorModels+1)
	if err != nil {
		return err
	}
	if len(learned) == 0 {
		x.add(section, "reported usage", checkOK, "none: sizes of prompts are the counts of their messages", "")
	}
	for i, r := range learned {
		name := term.Clean(fmt.Sprintf("%s of tenant %s", r.Model, r.Tenant))
		switch reports := term.Plural(r.Reports, "report", "reports"); {
		case i == maxDoctorModels:
			x.add(section, "more models", checkOK, "`compactor models --all-tenants` lists them", "")
		case r.Line.Scale == 0:
			x.add(section, name, checkOK, reports+", too few yet", "")
		default:
			status := checkOK
			if r.Deviation > 0.15 {
				status = checkWarn
			}
			x.add(section, name, status, fmt.Sprintf("a prompt has %s tokens and %.2f for each one counted: %s, %.1f %% off in the median",
				term.Count(r.Line.Overhead), r.Line.Scale, reports, 100*r.Deviation),
				"reports may leave out what was cached, or agents with different tools share the model's name")
		}
	}
	return nil
}

// noteUnknown notes, once for each, a model whose window is not known.
func (e *Env) noteUnknown(cfg config.Config, model string) {
	if m := newModelJSON(cfg, model); model != "" && m.WindowFrom == "unknown" && !slices.Contains(e.unknown, model) {
		e.unknown = append(e.unknown, model)
		e.note("the model %s is not known: its window is taken as %s tokens (see `compactor models --help`)",
			term.Clean(strings.ToValidUTF8(model, "?")), term.Count(m.Window))
	}
}
