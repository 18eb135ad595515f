package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sessionstore/compactor/store"
)

// tracerName names the spans of runs.
const tracerName = "github.com/sessionstore/compactor/worker"

// startSpan starts the span of an attempt, from its beginning, below that of its task and with a link
// to the request or the latest write before it. It is called when the attempt begins to plan, or
// fails: an attempt that declines has no span.
func (a *attempt) startSpan(ctx context.Context) context.Context {
	if a.span == nil {
		options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(a.start)}
		if a.claim.Traceparent != "" {
			write := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": a.claim.Traceparent})
			options = append(options, trace.WithLinks(trace.LinkFromContext(write))) // the SDK drops one that is not valid
		}
		_, a.span = a.w.tracer.Start(ctx, "run "+a.claim.Trigger, options...)
	}
	return trace.ContextWithSpan(ctx, a.span)
}

// endSpan ends the span of an attempt, if there is one. Only an attempt that changed the view has the
// attributes of the view after it.
func (a *attempt) endSpan(result string) {
	if a.span == nil {
		return
	}
	if a.span.IsRecording() {
		s := &a.claim.Session
		a.span.SetAttributes(
			attribute.String("messaging.system", "asynq"), attribute.String("messaging.operation.type", "process"),
			attribute.String("gen_ai.operation.name", "compact"), attribute.String("gen_ai.conversation.id", s.Key.Session),
			attribute.String("gen_ai.compaction.trigger", a.claim.Trigger),
			attribute.String("compactor.tenant", s.Key.Tenant), attribute.Int64("compactor.run", a.claim.Run),
			attribute.String("compactor.policy", store.PolicyName(s.Policy, s.PolicyVersion)),
			attribute.String("compactor.result", result), attribute.String("compactor.outcome", a.outcome),
			attribute.Int64("compactor.messages.before", a.ledger.MessagesBefore), attribute.Int64("compactor.tokens.before", a.ledger.TokensBefore),
		)
		if a.fired != "" {
			a.span.SetAttributes(attribute.String("compactor.fired", a.fired))
		}
		if result == store.StatusApplied {
			a.span.SetAttributes(attribute.Bool("gen_ai.conversation.compacted", true),
				attribute.Int64("compactor.messages.after", a.ledger.MessagesAfter), attribute.Int64("compactor.tokens.after", a.ledger.TokensAfter))
		}
	}
	a.span.End()
}

// failSpan marks a span as failed, with a code alone: the log has the text.
func failSpan(span trace.Span, code string) {
	span.SetAttributes(attribute.String("error.type", code))
	span.SetStatus(codes.Error, code)
}
