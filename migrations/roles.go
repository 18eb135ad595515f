package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Roles returns the names of a schema's group roles: application, reader, operator and
// worker, such as compactor_application. Their rights are in functions/zz_grants.sql.
func Roles(schema string) []string {
	return []string{schema + "_application", schema + "_reader", schema + "_operator", schema + "_worker"}
}

// maxSchemaForRoles is the length of a schema's name up to which the names of its roles
// fit into an identifier. Postgres cuts off the rest, and with it the part that differs.
const maxSchemaForRoles = 63 - len("_application")

// CreateRoles creates the roles of a schema that do not exist, and returns their names.
// missing holds the statements that create those for which the connection lacks the
// right. The next Up grants the roles their rights. Safe for concurrent use.
func CreateRoles(ctx context.Context, dsn, schema string) (created, missing []string, err error) {
	if len(schema) > maxSchemaForRoles {
		return nil, nil, fmt.Errorf("create roles: schema %q: want at most %d letters, as its roles are named after it",
			schema, maxSchemaForRoles)
	}
	conn, err := connect(ctx, dsn, schema)
	if err != nil {
		return nil, nil, fmt.Errorf("create roles: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const query = `SELECT r FROM unnest($1::text[]) WITH ORDINALITY u(r, n) WHERE r NOT IN (SELECT rolname FROM pg_roles) ORDER BY n`
	rows, _ := conn.Query(ctx, query, Roles(schema)) // rows hold the error
	roles, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, nil, fmt.Errorf("create roles: %w", err)
	}
	for _, role := range roles {
		statement := "CREATE ROLE " + role + " NOLOGIN"
		_, err := conn.Exec(ctx, statement)
		pg, _ := errors.AsType[*pgconn.PgError](err)
		switch {
		case err == nil:
			created = append(created, role)
		case pg != nil && pg.Code == "42501": // insufficient privilege
			missing = append(missing, statement)
		case pg != nil && (pg.Code == "42710" || pg.Code == "23505"): // another process has just created it
		default:
			return created, missing, fmt.Errorf("create role %s: %w", role, err)
		}
	}
	return created, missing, nil
}
