package store

import "context"

// Statements for the demo and the benches. Production commands call none of them.

// Analyze updates the planner's statistics after a large import.
func (s Admin) Analyze(ctx context.Context) error {
	return execute(ctx, s.Store, "analyze", `ANALYZE compactor.message_log, compactor.sessions`)
}

// DropSchema removes the schema and everything in it.
func (s Admin) DropSchema(ctx context.Context) error {
	return execute(ctx, s.Store, "drop schema", `DROP SCHEMA IF EXISTS `+s.schema+` CASCADE`)
}
