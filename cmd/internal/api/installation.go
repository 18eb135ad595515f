package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
)

// installation registers the operation on the server and its database.
func (a *api) installation() {
	register(a, operation{
		scope: admins, method: http.MethodGet, path: "/v1/installation", id: "get-installation",
		summary: "The versions of the server and its database, its settings as doctor checks them, and the other databases of the fleet",
	}, getInstallation)
}

// Installation is a server, its database, and what belongs to them.
type Installation struct {
	Version   string          `json:"version" doc:"That of the server."`
	Go        string          `json:"go"`
	Schema    string          `json:"schema"`
	Applied   int             `json:"migrations_applied"`
	Pending   []string        `json:"migrations_pending" doc:"Names of migrations that are not applied."`
	Settings  []store.Setting `json:"settings" doc:"Of Postgres: those that protect messages or speed."`
	Database  string          `json:"database,omitempty" doc:"The name of this database in the configuration, where there are several."`
	Siblings  []string        `json:"siblings" doc:"Names of the other databases of the configuration."`
	Elsewhere []Elsewhere     `json:"elsewhere" doc:"Databases whose use counts for limits of this one."`
	Models    []string        `json:"models" doc:"Models that write summaries, the preferred one first."`
}

// Elsewhere is another database, whose use counts for limits of this one.
type Elsewhere struct {
	Database string  `json:"database"`
	Seconds  float64 `json:"read_seconds_ago"`
}

func getInstallation(ctx context.Context, c *caller, _ *struct{}) (*body[Installation], error) {
	if c.key.Tenant != nil {
		return nil, problem(http.StatusForbidden, "forbidden", "this needs a key of all tenants")
	}
	o := c.server.o
	out := Installation{
		Version: o.Version, Go: runtime.Version(), Schema: o.Config.Database.Schema, Database: o.Config.Name(), Siblings: append([]string{}, o.Config.Siblings()...),
		Pending: []string{}, Elsewhere: []Elsewhere{}, Models: []string{},
	}
	for _, m := range o.Config.LLM.Models {
		out.Models = append(out.Models, m.ID())
	}
	all, err := migrations.Status(ctx, o.Config.Database.URL.Reveal(), out.Schema)
	if err != nil {
		return nil, fmt.Errorf("installation: %w", err)
	}
	for _, m := range all {
		if m.AppliedAt.IsZero() {
			out.Pending = append(out.Pending, m.Name)
		} else {
			out.Applied++
		}
	}
	if out.Settings, err = c.server.o.Store.Admin.Settings(ctx); err != nil {
		return nil, err
	}
	found, err := c.server.o.Store.Admin.Elsewhere(ctx)
	for _, e := range found {
		out.Elsewhere = append(out.Elsewhere, Elsewhere{e.Database, e.Age.Seconds()})
	}
	return answer(out, err)
}
