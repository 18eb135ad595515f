package cli

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"go.opentelemetry.io/otel/trace"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/traces"
)

// startTraces returns what makes the spans of the roles, nil where no collector is configured. flush
// sends those that are left; it takes some seconds at most.
func startTraces(ctx context.Context, c config.Config, logger *slog.Logger) (tracer trace.TracerProvider, flush func(), err error) {
	if c.Traces.Unused != "" {
		logger.WarnContext(ctx, "no traces", "reason", c.Traces.Unused)
	}
	url := c.Traces.URL()
	if url == "" {
		return nil, func() {}, nil
	}
	p, err := traces.Start(ctx, url, newBuildVersion(debug.ReadBuildInfo()).Version, logger)
	if err != nil {
		return nil, nil, &exitError{exitUsage, fmt.Errorf("traces.endpoint: %w", err)}
	}
	logger.InfoContext(ctx, "sending traces", "url", url)
	return p, func() {
		if err := p.Close(ctx); err != nil {
			logger.WarnContext(context.WithoutCancel(ctx), "the last spans were not sent", "error", err.Error())
		}
	}, nil
}

// traces checks that the configured collector takes spans.
func (x *doctorReport) traces(ctx context.Context, c config.Config) {
	const section, name = "traces", "collector"
	url := c.Traces.URL()
	if url == "" {
		if c.Traces.Unused != "" {
			x.add(section, name, checkWarn, c.Traces.Unused, "")
			return
		}
		x.add(section, name, checkOK, "none: no spans are made", "")
		return
	}
	if err := traces.Probe(ctx, url); err != nil {
		x.add(section, name, checkWarn, url+": "+err.Error(), "runs do not wait for it: their spans are lost; the port of OTLP over HTTP is 4318 by default, 4317 that of gRPC")
		return
	}
	x.add(section, name, checkOK, url, "")
}
