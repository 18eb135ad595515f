package cli

import (
	"context"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/migrations"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply every pending migration."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations and when they were applied."`
}

type migrateUpCmd struct {
	Partitions int `placeholder:"N" help:"Of a new installation, divide the tables of messages into this many by a hash of the session. 0 is one table each, or what is there."`
}

func (m *migrateUpCmd) Run(ctx context.Context, e *Env) error {
	c, err := e.Require("database.url")
	if err != nil {
		return err
	}
	if later, err := migrations.Later(ctx, c.Database.URL.Reveal(), c.Database.Schema); err != nil || later > 0 {
		if err != nil {
			return err
		}
		return e.show(map[string]any{"schema": c.Database.Schema, "later": later}, func() {
			e.say("schema %s is of a later version: it is at %d, this program ends at %d; nothing was done", c.Database.Schema, later, migrations.Newest())
		})
	}
	roles, missing, err := migrations.CreateRoles(ctx, c.Database.URL.Reveal(), c.Database.Schema)
	if err != nil {
		return err
	}
	rights, fences, err := migrations.Amiss(ctx, c.Database.URL.Reveal(), c.Database.Schema)
	if err != nil {
		return err
	}
	done, err := migrations.UpPartitioned(ctx, c.Database.URL.Reveal(), c.Database.Schema, m.Partitions)
	if err != nil {
		return err
	}
	return e.show(map[string]any{
		"schema": c.Database.Schema, "applied": append([]migrations.Migration{}, done...),
		"roles_created": append([]string{}, roles...), "roles_to_create": append([]string{}, missing...),
		"restored": append(append([]string{}, rights...), fences...),
	}, func() {
		for _, role := range roles {
			e.say("created role %s", role)
		}
		for _, m := range done {
			e.say("applied %s", m.Name)
		}
		if restored := len(rights) + len(fences); restored > 0 {
			e.say("restored %s and %s, which were missing or not as this version has them",
				term.Plural(len(rights), "right of a role", "rights of roles"),
				term.Plural(len(fences), "policy of row-level security", "policies of row-level security"))
		} else if len(done) == 0 {
			e.say("schema %s is up to date", c.Database.Schema)
		}
		if len(missing) > 0 {
			e.note("this login may not create roles; let another one execute these statements, then run `compactor migrate up` again:")
			e.say("%s;", strings.Join(missing, ";\n"))
		}
	})
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
	return e.show(map[string]any{"schema": c.Database.Schema, "migrations": all}, func() {
		columns[migrations.Migration]{
			{"name", term.Text("NAME"), nil},
			{"applied_at", term.Text("APPLIED"), func(m migrations.Migration) any {
				if m.AppliedAt.IsZero() {
					return term.Styled{Value: "pending", As: e.Out.Yellow}
				}
				return m.AppliedAt
			}},
		}.write(e, all)
	})
}
