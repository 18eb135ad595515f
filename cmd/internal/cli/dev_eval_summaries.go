//go:build !nodev

package cli

import (
	"context"
	"iter"

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
			for i := range in.Log {
				d.Add(&in.Log[i])
			}
			return in.Fit(d.Text), eval.Usage{}, nil
		})
}

// evalModel returns the same policy with the configured models.
func evalModel(settings policy.Summary, models summary.Model) eval.Policy {
	return eval.Summary(modelPolicy, modelDoc,
		models.Identity()+summary.PromptVersion+extract.Version+programVersion(), func(ctx context.Context, in eval.Input) (string, eval.Usage, error) {
			w := summary.New(summary.Options{Settings: settings, Model: models})
			t := plan.Task{Previous: in.Previous, Messages: spoken(in.Messages), MaxTokens: max(1, int(in.Budget))}
			if in.Previous != "" {
				t.Originals = func(context.Context, int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
					return func(yield func(chat.Original, error) bool) {
						for _, m := range spoken(in.Log) {
							if !yield(chat.Original{Message: m}, nil) {
								return
							}
						}
					}, nil, nil
				}
			}
			text, err := w.Write(ctx, t)
			return text, eval.UsageOf(w.Provenance()), err
		})
}

// spoken returns the messages that are no instructions.
func spoken(ms []chat.Message) (out []*chat.Message) {
	for i := range ms {
		if r := ms[i].Role; r != chat.RoleSystem && r != chat.RoleDeveloper {
			out = append(out, &ms[i])
		}
	}
	return out
}
