package cli

import (
	"context"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/metrics"
)

type healthCmd struct {
	Ready bool `help:"Also whether it is ready for work: Postgres and Redis answer, and the schema has all migrations."`
}

func (c *healthCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	if cfg.Metrics.Listen == metrics.Off {
		return wrong("metrics.listen is %s: there is no listener to ask", metrics.Off)
	}
	if err := metrics.Probe(ctx, cfg.Metrics.Listen, c.Ready); err != nil {
		return err
	}
	status := "alive"
	if c.Ready {
		status = "ready"
	}
	return e.show(map[string]string{"status": status}, func() { e.say("%s", status) })
}
