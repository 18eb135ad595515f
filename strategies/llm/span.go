package llm

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// modelSpan is the span of the requests to one model, by OpenTelemetry's conventions for generative
// AI, below that of the caller's context. It holds no text of prompts, answers or errors.
type modelSpan struct {
	trace.Span // nil before the first request

	requests int   // before them, negative
	before   Usage // the usage before them
}

// begin starts the span with the first request.
func (s *modelSpan) begin(ctx context.Context, m *model, limit int) {
	if s.Span != nil {
		return
	}
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("github.com/sessionstore/compactor/strategies/llm")
	_, s.Span = tracer.Start(ctx, "chat "+m.Name, trace.WithSpanKind(trace.SpanKindClient))
	if !s.IsRecording() {
		return
	}
	s.SetAttributes(attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", m.Name))
	if limit > 0 {
		s.SetAttributes(attribute.Int("gen_ai.request.max_tokens", limit))
	}
	if u, err := url.Parse(m.BaseURL); err == nil {
		port, _ := strconv.Atoi(u.Port())
		switch {
		case port > 0:
		case u.Scheme == "https":
			port = 443
		default:
			port = 80
		}
		s.SetAttributes(attribute.String("gen_ai.provider.name", provider(u.Hostname())),
			attribute.String("server.address", u.Hostname()), attribute.Int("server.port", port))
	}
}

// end ends the span with the last of so many requests, and the usage after it.
func (s *modelSpan) end(last classification, requests int, after Usage) {
	switch {
	case s.Span == nil:
		return
	case s.IsRecording():
		for key, n := range map[string]int{
			"gen_ai.usage.input_tokens": after.Input - s.before.Input, "gen_ai.usage.cache_read.input_tokens": after.Cached - s.before.Cached,
			"gen_ai.usage.output_tokens": after.Output - s.before.Output, "gen_ai.usage.reasoning.output_tokens": after.Reasoning - s.before.Reasoning,
			"compactor.requests": requests, "compactor.requests.estimated": after.Estimated - s.before.Estimated,
		} {
			if n > 0 {
				s.SetAttributes(attribute.Int(key, n))
			}
		}
		if model := name(last.model); model != "" {
			s.SetAttributes(attribute.String("gen_ai.response.model", model))
		}
		if last.finish != "" {
			s.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{last.finish}))
		}
		if last.class != "" {
			s.SetAttributes(attribute.String("error.type", string(last.class)))
			s.SetStatus(codes.Error, string(last.class))
		}
		if last.status > 0 && !isSuccess(last.status) {
			s.SetAttributes(attribute.Int("http.response.status_code", last.status))
		}
	}
	s.End()
}

// provider returns the name that the conventions have for the operator of a host; servers that they do not know are
// called by the API that they speak.
func provider(host string) string {
	for suffix, name := range map[string]string{
		"openai.azure.com": "azure.ai.openai", "anthropic.com": "anthropic", "generativelanguage.googleapis.com": "gcp.gemini", "amazonaws.com": "aws.bedrock",
		"mistral.ai": "mistral_ai", "groq.com": "groq", "deepseek.com": "deepseek", "x.ai": "x_ai", "cohere.com": "cohere", "perplexity.ai": "perplexity",
	} {
		if host == suffix || strings.HasSuffix(host, "."+suffix) {
			return name
		}
	}
	return "openai"
}
