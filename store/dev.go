package store

import "context"

// Statements for the demo and the benches. Production commands call none of them.

// Analyze updates the planner's statistics after a large import.
func (s Admin) Analyze(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, s.q(`ANALYZE compactor.message_log, compactor.sessions`))
	return wrap("analyze", err)
}

// DropSchema removes the schema and everything in it.
func (s Admin) DropSchema(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `DROP SCHEMA IF EXISTS `+s.schema+` CASCADE`)
	return wrap("drop schema", err)
}
