package cli

import (
	"context"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/migrations"
)

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
		return term.JSON(e.Out.W, map[string]any{"schema": c.Database.Schema, "applied": append([]migrations.Migration{}, done...)})
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
		return term.JSON(e.Out.W, map[string]any{"schema": c.Database.Schema, "migrations": all})
	}
	t := e.Out.Table(term.Text("NAME"), term.Text("APPLIED"))
	for _, m := range all {
		if m.AppliedAt.IsZero() {
			t.Row(m.Name, term.Styled{Value: "pending", As: e.Out.Yellow})
			continue
		}
		t.Row(m.Name, m.AppliedAt)
	}
	return t.Write()
}
