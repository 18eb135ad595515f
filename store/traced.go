package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"
)

// traced begins a transaction with the trace context of ctx, if that is recorded: the rows of the
// outbox and the runs that the transaction makes keep it, for the span of the run.
func traced(ctx context.Context, batch *pgx.Batch) {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() {
		batch.Queue(`SELECT set_config('compactor.traceparent', $1, true)`, fmt.Sprintf("00-%s-%s-%s", c.TraceID(), c.SpanID(), c.TraceFlags()))
	}
}
