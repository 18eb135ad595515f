package summary

import (
	"context"
	"errors"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Limits of retries when a part exceeds the model's context.
const (
	// maxHalvings bounds how often the part is halved after llm.ContextTooLong.
	maxHalvings = 5
	// minPartTokens is the smallest part worth a call.
	minPartTokens = 500
)

// summarize summarizes with the model: in one call if all messages fit into its window, otherwise
// in several, each of which updates the summary of the parts before it.
func (w *Writer) summarize(ctx context.Context, m *input) (string, error) {
	if m.hopeless {
		return "", tooLarge()
	}
	model := w.o.Model.Usable(ctx)
	w.limitAnswer(m, model)
	room, err := w.partBudget(m, model)
	if err != nil {
		return "", err
	}
	w.trim(m, m.setFacts(room))
	budget := m.setFacts(room) // fewer, if the messages fit into one prompt now
	m.report.PromptVersion = PromptVersion
	todo := w.dropBeyondParts(m, messageGroups(m.messages), budget)
	previous, prose := m.previous, ""
	for len(todo) > 0 {
		part, rest, cut := nextPart(todo, budget)
		trimmed, trims := m.trimmed, len(m.report.Trimmed)
		if cut > 0 {
			m.addTrimmed(Trim{Step: "shorten", Outputs: len(part), Tokens: chat.Tokens(cut)})
		}
		m.more = len(rest) > 0
		prose, err = w.prose(ctx, m, previous, part)
		var failed *llm.Error
		if errors.As(err, &failed) && failed.Class == llm.ContextTooLong && m.report.Halved < maxHalvings && budget/2 >= minPartTokens {
			m.report.Halved++
			m.trimmed, m.report.Trimmed = trimmed, m.report.Trimmed[:trims] // it is cut anew
			budget = min(budget, messagesTokens(part)) / 2
			room /= 2
			budget = min(budget, m.setFacts(room))
			todo = w.dropBeyondParts(m, todo, budget)
			continue
		}
		if err != nil {
			return "", failure(err)
		}
		m.report.Parts++
		if len(rest) > 0 && w.o.Settings.Overspent(m.costMicros) {
			return "", &plan.Failure{Code: "over_budget"}
		}
		previous, todo = prose, rest
	}
	return w.assemble(m, prose, ByModel)
}

// dropBeyondParts drops the oldest groups until the rest fits into the remaining parts of
// MaxParts, at least one. This bounds the cost of a summary.
func (w *Writer) dropBeyondParts(m *input, all []messageGroup, budget int) []messageGroup {
	parts, left, most := 1, budget, max(1, w.o.Settings.MaxParts-m.report.Parts)
	for i, s := range slices.Backward(all) {
		size := min(s.size, budget)
		if size > left {
			parts, left = parts+1, budget
		}
		if parts > most {
			cut := Trim{Step: policy.DropOldest}
			for _, s := range all[:i+1] {
				cut.add(Trim{Messages: len(s.messages), Tokens: chat.Tokens(s.size)})
			}
			m.addTrimmed(cut)
			return all[i+1:]
		}
		left -= size
	}
	return all
}

// failure converts an *llm.Error to a *plan.Failure with its code and retry delay.
func failure(err error) error {
	var f *llm.Error
	if !errors.As(err, &f) {
		return err
	}
	return &plan.Failure{Code: string(f.Class), Wait: f.RetryAfter, Err: f}
}

func messagesTokens(messages []*chat.Message) int {
	n := 0
	for _, m := range messages {
		n += messageTokens(m)
	}
	return n
}

// prompt returns the prompt for a part of the messages.
func (w *Writer) prompt(m *input, previous string, part []*chat.Message) (system, user string) {
	return Prompt{
		Budget: chat.Tokens(m.prose), Focus: m.task.Focus, Custom: m.task.Instruction, links: true,
		facts: m.facts(part), more: m.more, script: m.sources.script(), cut: m.trimmed,
	}.Render(withoutAuthors(previous), part)
}

// trim applies the policy's pre-trim steps. If they leave no message, it keeps all of them:
// dropBeyondParts and nextPart then bound the prompts.
func (w *Writer) trim(m *input, budget int) {
	window := chat.Tokens(budget)
	messages, cuts := trimMessages(w.o.Settings.PreTrim, m.messages, window, window*chat.Tokens(w.o.Settings.MaxParts), w.o.At)
	if len(messages) == 0 {
		return
	}
	m.messages = messages
	for _, cut := range cuts {
		m.addTrimmed(cut)
	}
}

// limitAnswer bounds the answer by the model's output limit and by a quarter of its window,
// which also has to hold the previous summary and the messages.
func (w *Writer) limitAnswer(m *input, model llm.Profile) {
	most := model.Window / 4
	if model.MaxOutput > 0 {
		most = min(most, model.MaxOutput-model.ReasoningTokens)
	}
	if w.callTokens(m) > most {
		m.prose = w.proseWithin(most)
	}
}

// partBudget returns how many tokens of facts and messages fit into one prompt, beside the
// instructions, the previous summary and the answer.
func (w *Writer) partBudget(m *input, model llm.Profile) (int, error) {
	system, user := w.prompt(m, "-", nil) // an update is asked for with more words
	answer := w.callTokens(m)
	frame := estimateTokens(system) + estimateTokens(user) + max(estimateTokens(m.previous), answer)
	budget := int(0.95*float64(model.Window)) - frame - answer - model.ReasoningTokens
	if budget < minPartTokens {
		return 0, &plan.Failure{Code: string(llm.ContextTooLong)}
	}
	return budget, nil
}
