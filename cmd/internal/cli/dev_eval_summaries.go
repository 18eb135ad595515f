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

// modelPolicy is the policy that calls the configured models.
const (
	modelPolicy = "model"
	modelDoc    = "a summary with references by the configured models; measured only if named"
)

// evalExtractive returns the policy that keeps an extractive summary of the messages
// before the cut, outside of a pipeline.
func evalExtractive() eval.Policy {
	return eval.Summary("extractive", "a summary with references, written without a model", extract.Version+" "+programVersion(),
		func(_ context.Context, in eval.Input) (string, eval.Usage, error) {
			d := extract.New(extract.Options{})
			if in.Previous != "" {
				d.AddPrevious(in.Previous)
			}
			for i := range in.Messages {
				d.Add(&in.Messages[i])
			}
			return d.Text(int(in.Budget)), eval.Usage{}, nil
		})
}

// evalModel returns the same policy with the configured models.
func evalModel(settings policy.Summary, models summary.Model) eval.Policy {
	return eval.Summary(modelPolicy, modelDoc,
		models.Identity()+summary.PromptVersion+extract.Version+programVersion(), func(ctx context.Context, in eval.Input) (string, eval.Usage, error) {
			w := summary.New(summary.Options{Settings: settings, Model: models})
			t := plan.Task{Previous: in.Previous, MaxTokens: max(1, int(in.Budget))}
			for i := range in.Messages {
				if r := in.Messages[i].Role; r != chat.RoleSystem && r != chat.RoleDeveloper {
					t.Messages = append(t.Messages, &in.Messages[i])
				}
			}
			text, err := w.Write(ctx, t)
			return text, eval.UsageOf(w.Provenance()), err
		})
}
