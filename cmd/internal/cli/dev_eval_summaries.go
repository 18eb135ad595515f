//go:build !nodev

package cli

import (
	"context"

	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// modelPolicy is the name of the policy that asks the configured models, modelDoc what
// it is.
const (
	modelPolicy = "model"
	modelDoc    = "the summary that the configured models write, with references; never measured unless it is named"
)

// evalExtractive returns the policy that writes a summary of what is before the cut, by itself
// and not as a step of a pipeline, without a model.
func evalExtractive() eval.Policy {
	return eval.Summary("extractive", "the summary with references that no model writes", extract.Version+" "+programVersion(),
		func(_ context.Context, in eval.Input) (string, eval.Usage, error) {
			d := extract.New(extract.Options{})
			for i := range in.Messages {
				d.Add(&in.Messages[i])
			}
			return d.Text(int(in.Budget)), eval.Usage{}, nil
		})
}

// evalModel returns the same with the models of the configuration.
func evalModel(settings policy.Summary, models summary.Model) eval.Policy {
	return eval.Summary(modelPolicy, modelDoc,
		models.Identity()+summary.PromptVersion+extract.Version+programVersion(), func(ctx context.Context, in eval.Input) (string, eval.Usage, error) {
			w := summary.New(summary.Options{Settings: settings, Model: models})
			t := plan.Task{MaxTokens: max(1, int(in.Budget))}
			for i := range in.Messages {
				if r := in.Messages[i].Role; r != chat.RoleSystem && r != chat.RoleDeveloper {
					t.Messages = append(t.Messages, &in.Messages[i])
				}
			}
			text, err := w.Write(ctx, t)
			return text, eval.UsageOf(w.Report()), err
		})
}
