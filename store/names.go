package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// HasTenant reports whether a tenant has sessions, and returns the first tenants that do, at
// most so many.
func (s Operator) HasTenant(ctx context.Context, tenant string, most int) (known bool, some []string, err error) {
	query := `
		WITH RECURSIVE ` + turns(`tenant`, `compactor.sessions r WHERE true`, `$2`) + `
		SELECT EXISTS (SELECT FROM compactor.sessions WHERE tenant = $1), ARRAY(SELECT tenant FROM turn WHERE n > 0 LIMIT $3)`
	err = s.pool.QueryRow(ctx, s.q(query), tenant, "", most).Scan(&known, &some)
	return known, some, wrap("look for a tenant", err)
}

// HasModel reports whether a session has a model whose name begins with a prefix. It reads all
// sessions where there is none.
func (s Operator) HasModel(ctx context.Context, prefix string) (bool, error) {
	const query = `
		SELECT EXISTS (SELECT FROM (SELECT DISTINCT model FROM compactor.sessions) s
			WHERE compactor.model_has_prefix(s.model, lower($1)))`
	return queryRow(ctx, s.Store, "look for a model", pgx.RowTo[bool], query, prefix)
}

// Labels returns the keys of the labels that sessions have, at most so many. It reads all sessions.
func (s Operator) Labels(ctx context.Context, most int) ([]string, error) {
	const query = `
		SELECT DISTINCT key FROM compactor.sessions CROSS JOIN LATERAL jsonb_object_keys(labels) key
		WHERE labels <> '{}' ORDER BY 1 LIMIT $1`
	return queryRows(ctx, s.Store, "look for labels", pgx.RowTo[string], query, most)
}
