package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"syscall"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/metrics"
)

// monitor serves the metrics and the health of a role. Without a listener it keeps none.
type monitor struct {
	metrics []*metrics.Metrics // of the databases; none without a listener
	health  metrics.Health
	server  *metrics.Server
}

// startMonitor opens the listener. Where another process has the default address, the role
// runs without one: several on one machine need no configuration. A configured address that
// cannot be used is an error.
func startMonitor(ctx context.Context, c config.Config, logger *slog.Logger) (*monitor, error) {
	if c.Metrics.Listen == metrics.Off {
		return &monitor{}, nil
	}
	v := newBuildVersion(debug.ReadBuildInfo())
	var databases []string
	for _, d := range c.Fleet() {
		databases = append(databases, d.Name())
	}
	m := &monitor{metrics: metrics.NewFleet(v.Version, v.Revision, databases)}
	var err error
	m.server, err = m.metrics[0].Serve(ctx, c.Metrics.Listen, &m.health)
	switch {
	case err != nil && c.Origin("metrics.listen").Source == config.FromDefault:
		logger.WarnContext(ctx, "no metrics and health checks: the address cannot be used; give this process one of its own (metrics.listen), or off",
			"address", c.Metrics.Listen, "in_use", errors.Is(err, syscall.EADDRINUSE), "error", err.Error())
		return &monitor{}, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &exitError{exitUsage, fmt.Errorf("metrics.listen: %s: another process uses this address: give each process one of its own, or %s", c.Metrics.Listen, metrics.Off)}
	case err != nil:
		return nil, &exitError{exitUsage, fmt.Errorf("metrics.listen: %s: %w", c.Metrics.Listen, err)}
	}
	if !m.server.Loopback() {
		logger.WarnContext(ctx, "metrics and health checks are open to other machines, without authentication", "address",
			m.server.Address())
	} else {
		logger.InfoContext(ctx, "serving metrics and health checks", "address", m.server.Address())
	}
	return m, nil
}

// of returns the metrics of a database, or nil.
func (m *monitor) of(database int) *metrics.Metrics {
	if m.metrics == nil {
		return nil
	}
	return m.metrics[database]
}

// start makes the process ready, as long as the servers of all apps are. It is no longer when
// ctx is done. Without Redis the API alone goes on: nothing that it answers needs it.
func (m *monitor) start(ctx context.Context, apps []*App, scrub func(string) string, parts roles) {
	check := func(name string, run func(context.Context) error) metrics.Check {
		return metrics.Check{Name: name, Run: func(ctx context.Context) error {
			err := run(ctx)
			if err != nil {
				err = errors.New(scrub(err.Error()))
			}
			return err
		}}
	}
	var checks []metrics.Check
	for i, app := range apps {
		if metrics := m.of(i); metrics != nil {
			metrics.Watch(app.Store.Operator, app.Config.Metrics.Tenants)
		}
		of := ""
		if name := app.Config.Name(); name != "" {
			of = " " + name
		}
		checks = append(checks, check("database"+of, app.Store.Ping), check("schema"+of, app.Store.CheckSchema))
	}
	if parts.scheduler || parts.worker {
		checks = append(checks, check("redis", func(ctx context.Context) error { return apps[0].client.Ping(ctx).Err() }))
	}
	m.health.Start(checks...)
	context.AfterFunc(ctx, m.health.Stop)
}

// close closes the listener.
func (m *monitor) close() error {
	if m.server == nil {
		return nil
	}
	return m.server.Close()
}
