package store

import "context"

// RegisterStrategies records strategies with the names of their parameters, for Request
// to check options against. It adds to what other workers have registered.
func (s Worker) RegisterStrategies(ctx context.Context, params map[string][]string) error {
	const query = `
		INSERT INTO compactor.strategies AS k (name, params)
		SELECT name, ARRAY(SELECT jsonb_array_elements_text(params)) FROM jsonb_each($1) s(name, params) ORDER BY name
		ON CONFLICT (name) DO UPDATE SET params = ARRAY(SELECT DISTINCT unnest(k.params || excluded.params)), registered_at = now()
		WHERE NOT k.params @> excluded.params`
	return execute(ctx, s.Store, "register strategies", query, params)
}
