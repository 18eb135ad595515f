// Package traces sends the spans of a process to a collector, as OTLP over HTTP. Nothing else knows
// the SDK: spans are made by OpenTelemetry's API. The variables of OpenTelemetry are read by its SDK.
package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// flushTimeout bounds the time for which Close waits for a collector.
	flushTimeout = 3 * time.Second
	// probeTimeout bounds Probe.
	probeTimeout = 3 * time.Second
	// longest bounds the text of an error, in which a collector may answer anything.
	longest = 300
)

// Provider makes spans and sends them in batches. Spans that a collector does not take in time are
// dropped: nothing waits for it.
type Provider struct {
	*sdktrace.TracerProvider
	stop context.CancelFunc
}

// Start returns a provider that sends to a URL. It does not connect. The caller must Close it.
func Start(ctx context.Context, url, version string, logger *slog.Logger) (*Provider, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { // such as for a variable that the SDK cannot read
		logger.Warn("traces", "error", text(err))
	}))
	// Later ones win: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are read last.
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "compactor"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("describe this process: %s", text(err))
	}
	sender, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url))
	if err != nil {
		return nil, errors.New(text(err))
	}
	stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
	e := &exporter{Exporter: sender, outage: backoff.NewOutage(logger, "collector of traces"), stopping: stopping}
	return &Provider{sdktrace.NewTracerProvider(sdktrace.WithBatcher(e), sdktrace.WithResource(described)), stop}, nil
}

// Close sends the spans that are left, within a few seconds.
func (p *Provider) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	defer p.stop()
	return p.Shutdown(ctx)
}

// exporter logs an outage of the collector once, in place of an error for each batch.
type exporter struct {
	*otlptrace.Exporter
	outage   *backoff.Outage
	stopping context.Context // done when Close does not wait any longer
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.stopping, cancel)() //nolint:contextcheck // it only cancels
	switch err := e.Exporter.ExportSpans(ctx, spans); {
	case err == nil:
		e.outage.Succeeded()
	case e.stopping.Err() == nil:
		e.outage.Failed(text(err))
	}
	return nil
}

// Probe reports whether a collector takes spans, by sending none.
func Probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTimeout, fmt.Errorf("no answer within %s", probeTimeout))
	defer cancel()
	client := otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(url), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	err := client.Start(ctx)
	if err == nil {
		err = client.UploadTraces(ctx, nil)
	}
	_ = client.Stop(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return errors.New(text(err))
	}
	return nil
}

// text returns the text of an error, bounded.
func text(err error) string {
	s := []rune(err.Error())
	return string(s[:min(len(s), longest)])
}
