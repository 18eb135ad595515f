package api

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traced serves the request of a caller in a span below that of the client, which the header traceparent
// names. The span holds the route in place of the path, and no query, which may be a text to search for.
func (s *Server) traced(x *exchange, r *http.Request, serve func(*http.Request)) {
	if s.o.Tracer == nil {
		serve(r)
		return
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := s.o.Tracer.Tracer("github.com/sessionstore/compactor/cmd/internal/api").Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
	r = r.WithContext(ctx)
	if span.SpanContext().IsSampled() {
		x.trace = span.SpanContext().TraceID().String()
	}
	panicked := true
	defer func() {
		defer span.End()
		if !span.IsRecording() {
			return
		}
		span.SetAttributes(attribute.String("http.request.method", r.Method), attribute.Int("http.response.status_code", x.status))
		if x.status >= http.StatusInternalServerError || panicked {
			span.SetStatus(codes.Error, http.StatusText(x.status))
		}
		if _, route, ok := strings.Cut(r.Pattern, " "); ok { // none of a path that does not exist
			span.SetName(r.Method + " " + route)
			span.SetAttributes(attribute.String("http.route", route))
		}
		if id := r.PathValue("session"); id != "" {
			span.SetAttributes(attribute.String("gen_ai.conversation.id", strings.ToValidUTF8(id, "\uFFFD"))) // others cannot be sent
		}
		if x.caller != nil && x.caller.tenant != "" {
			span.SetAttributes(attribute.String("compactor.tenant", strings.ToValidUTF8(x.caller.tenant, "\uFFFD")))
		}
	}()
	serve(r)
	panicked = false
}
