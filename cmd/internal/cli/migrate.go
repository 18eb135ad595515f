package cli

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/migrations"
)

// migrateCmd groups the commands about the schema.
type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply every pending migration."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations and when they were applied."`
}

type migrateUpCmd struct{}

func (*migrateUpCmd) Help() string {
	return `Safe to run concurrently: one process migrates, the others wait.

Examples:

    compactor migrate up
    compactor migrate up --database-schema compactor_staging`
}

type migrationJSON struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at,omitempty"`
}

func migrationsJSON(ms []migrations.Migration) []migrationJSON {
	out := make([]migrationJSON, len(ms))
	for i, m := range ms {
		out[i] = migrationJSON{Version: m.Version, Name: m.Name}
		if !m.AppliedAt.IsZero() {
			at := m.AppliedAt.UTC()
			out[i].AppliedAt = &at
		}
	}
	return out
}

func (*migrateUpCmd) Run(ctx context.Context, e *Env) error {
	c, err := e.Require("database.url")
	if err != nil {
		return err
	}
	done, err := migrations.Up(ctx, c.Database.URL.Reveal(), c.Database.Schema)
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"schema": c.Database.Schema, "applied": migrationsJSON(done)})
	}
	for _, m := range done {
		e.say("applied %s", m.Name)
	}
	if len(done) == 0 {
		e.say("schema %s is up to date", c.Database.Schema)
	}
	return nil
}

type migrateStatusCmd struct{}

func (*migrateStatusCmd) Run(ctx context.Context, e *Env) error {
	c, err := e.Require("database.url")
	if err != nil {
		return err
	}
	all, err := migrations.Status(ctx, c.Database.URL.Reveal(), c.Database.Schema)
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"schema": c.Database.Schema, "migrations": migrationsJSON(all)})
	}
	t := e.Out.Table(term.Num("VERSION"), term.Text("NAME"), term.Text("APPLIED"))
	for _, m := range all {
		if m.AppliedAt.IsZero() {
			t.Row(m.Version, m.Name, term.Styled{Value: "pending", As: e.Out.Style().Yellow})
			continue
		}
		t.Row(m.Version, m.Name, m.AppliedAt)
	}
	return t.Write()
}
