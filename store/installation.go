package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Installation returns the unique name of this schema, a jobs.Installation: the schema's name
// and a hash of a random id, which a migration stored, of the database and of its server. A new
// schema of the same name has another one, and so has a database that was restored from a dump
// or created from a template; only a physical copy of the whole server has the same.
func (s *Store) Installation(ctx context.Context) (string, error) {
	const query = `
		SELECT $1 || ':' || left(md5(concat_ws(' ', i.id, d.oid, c.system_identifier)), 12)
		FROM compactor.installation i, pg_database d, pg_control_system() c WHERE d.datname = current_database()`
	return queryRow(ctx, s, "name of the installation", pgx.RowTo[string], query, s.schema)
}
