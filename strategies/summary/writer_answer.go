package summary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
)

// request is one prompt with its hashes.
type request struct {
	system, user string
	// key hashes everything that shapes the answer, hash the prompt alone.
	key, hash string
	maxTokens int
}

func (w *Writer) newRequest(m *input, system, user string) request {
	q := request{system: system, user: user, maxTokens: w.callTokens(m)}
	q.hash = hashOf(system, user)
	q.key = hashOf(w.o.Scope, w.o.Model.Identity(), PromptVersion, redact.Version, chunkerVersion, q.maxTokens, system, user)
	return q
}

// chunkerVersion is part of each answer key. Change it with the division into parts.
const chunkerVersion = "parts/1"

// hashOf returns a hash of values, marshalled as JSON so that their boundaries count.
func hashOf(values ...any) string {
	b, err := json.Marshal(values)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// spareShare is added to the output limit of a call, as a fraction of the prose budget: models
// write more than they are asked for, and an answer that is cut off was bought for nothing.
const spareShare = 0.25

// answerTokens returns the output limit of a call with a prose budget.
func (w *Writer) answerTokens(prose int) int {
	return int(w.o.Settings.Size.CallTokens(chat.Tokens(prose))) + int(spareShare*float64(prose))
}

// callTokens returns the output limit of a call.
func (w *Writer) callTokens(m *input) int { return w.answerTokens(m.prose) }

// prose returns the model's validated summary of a part of the messages. A rejected answer
// gets one repair call.
func (w *Writer) prose(ctx context.Context, m *input, previous string, part []*chat.Message) (string, error) {
	system, user := w.prompt(m, previous, part)
	text, rejected, err := w.answer(ctx, m, w.newRequest(m, system, user), false)
	if rejected == nil || err != nil {
		return text, err
	}
	if w.o.Settings.Overspent(m.costMicros) {
		return "", &plan.Failure{Code: string(rejected.code)}
	}
	repair := w.newRequest(m, system, user+"\n\n"+repairNote(*rejected))
	text, rejected, err = w.answer(ctx, m, repair, true)
	if err != nil || rejected == nil {
		return text, err
	}
	return "", &plan.Failure{Code: string(rejected.code)}
}

// answer returns the stored or a new answer to a question, validated and redacted.
func (w *Writer) answer(ctx context.Context, m *input, q request, repair bool) (string, *rejection, error) {
	answers := w.o.Answers
	call := Call{PromptHash: q.hash, Repair: repair}
	defer func() { m.report.Calls = append(m.report.Calls, call) }()
	id, a, known, err := answers.Ask(ctx, q.key, q.hash)
	if failure, ok := errors.AsType[*plan.Failure](err); ok { // no model may be asked
		call.Failed = failure.Code
		return "", nil, failure
	}
	if err != nil {
		return "", nil, storeError(err)
	}
	if call.Reused = a != nil; a == nil {
		var bought StoredAnswer
		bought, err = w.callModel(ctx, q)
		call.count(bought)
		if err != nil {
			call.Failed = codeOf(err)
			m.costMicros += bought.CostMicros
			// The cost is recorded even if ctx is done.
			if err := answers.Fail(ctx, id, call.Failed, bought); err != nil {
				return "", nil, storeError(err)
			}
			return "", nil, err
		}
		if err := answers.Answer(ctx, id, bought); err != nil {
			return "", nil, storeError(err)
		}
		a = &bought
	}
	m.costMicros += a.CostMicros
	call.Model = a.Model
	m.report.Model = a.Model
	text, rejected := w.validate(m, a)
	if rejected != nil {
		call.Rejected = string(rejected.code)
		if known == "" {
			if err := answers.Reject(ctx, q.key, string(rejected.code)); err != nil {
				return "", nil, storeError(err)
			}
		}
	}
	return text, rejected, nil
}

// storeError wraps an error of the AnswerStore. It is no failure of the summary: the run
// is delivered again, without a fallback.
func storeError(err error) error {
	return fmt.Errorf("%w: %w", plan.ErrInterrupted, err)
}

// callModel calls the model and returns its answer with usage and cost, which are also set
// on failure.
func (w *Writer) callModel(ctx context.Context, q request) (StoredAnswer, error) {
	got, err := w.o.Model.Complete(ctx, llm.Call{
		System: q.system, User: q.user, MaxTokens: q.maxTokens, InputTokens: estimateTokens(q.system) + estimateTokens(q.user),
		IgnoreCooldown: w.o.Manual, Log: w.o.Log,
	})
	a := StoredAnswer{
		Text: storable(got.Text), Model: got.Model, FinishReason: got.FinishReason, Attempts: got.Attempts, CostMicros: got.CostMicros, Took: got.Duration,
		HTTPStatus: got.Status, ServerError: got.Server.String(),
	}
	usage := got.Usage
	if got.Refusal != "" {
		a.FinishReason = finishRefusal
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		usage, a.Attempts, a.CostMicros, a.Model = failed.Usage, failed.Attempts, failed.CostMicros, failed.Model
		a.HTTPStatus, a.ServerError = failed.Status, failed.Server.String()
	}
	a.Estimated = usage.Estimated
	a.Input, a.Cached, a.Output, a.Reasoning = int64(usage.Input), int64(usage.Cached), int64(usage.Output), int64(usage.Reasoning)
	return a, err
}

// storable returns a text without characters that Postgres rejects.
func storable(s string) string {
	m := chat.Message{Content: chat.TextContent(s)}
	chat.Sanitize(&m)
	return m.Content.Text
}

// finishRefusal is the finish reason recorded for an answer with a refusal field.
const finishRefusal = "refusal"

func (c *Call) count(a StoredAnswer) {
	c.Input, c.Cached, c.Output, c.CostMicros, c.Attempts = a.Input, a.Cached, a.Output, a.CostMicros, a.Attempts
	c.Estimated = a.Estimated
}

// codeOf returns the failure code of a call.
func codeOf(err error) string {
	var failed *llm.Error
	switch {
	case errors.As(err, &failed):
		return string(failed.Class)
	case errors.Is(err, context.Canceled):
		return string(llm.Canceled)
	case errors.Is(err, context.DeadlineExceeded):
		return string(llm.Timeout)
	}
	return "failed"
}

// validate returns the accepted text of an answer, or why it is rejected.
func (w *Writer) validate(m *input, a *StoredAnswer) (string, *rejection) {
	v := validator{sections: DefaultSections(), max: chat.Tokens(w.callTokens(m)), sources: m.sources, secrets: &m.secrets}
	if m.custom() {
		v.sections = nil
	}
	got, rejected := v.read(*a)
	m.report.RedactedAnswer.Add(got.redacted)
	m.report.Unquoted += got.unquoted
	m.report.Dropped += got.dropped
	m.numbered = got.numbered
	return got.text, rejected
}
