package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cooldowns holds the models that no worker calls until a time. Safe for concurrent use.
type Cooldowns struct{ s *Store }

// Cooldowns returns the cooldowns of this store.
func (s Worker) Cooldowns() Cooldowns { return Cooldowns{s.Store} }

// Until returns the end of a model's cooldown; the zero time without one.
func (c Cooldowns) Until(ctx context.Context, model string) (time.Time, error) {
	const query = `SELECT until FROM compactor.model_cooldowns WHERE model = $1 AND compactor.cools(set_at, until, now())`
	until, err := queryRows(ctx, c.s, "model cooldown", pgx.RowTo[time.Time], query, model)
	if err != nil || len(until) == 0 {
		return time.Time{}, err
	}
	return until[0], nil
}

// ModelCooldown is the cooldown of one model.
type ModelCooldown struct {
	Model string
	Until time.Time
	// Code is the class of the failure that started it.
	Code string
}

// All returns the present cooldowns, ordered by model.
func (c Cooldowns) All(ctx context.Context) ([]ModelCooldown, error) {
	const query = `SELECT model, until, code FROM compactor.model_cooldowns WHERE compactor.cools(set_at, until, now()) ORDER BY model`
	return queryRows(ctx, c.s, "model cooldowns", pgx.RowToStructByPos[ModelCooldown], query)
}

// Set starts or extends the cooldown of a model; it never shortens one. code is the class
// of the failure.
func (c Cooldowns) Set(ctx context.Context, model string, until time.Time, code string) error {
	const query = `
		INSERT INTO compactor.model_cooldowns (model, until, code) VALUES ($1, $2, $3)
		ON CONFLICT (model) DO UPDATE SET until = excluded.until, code = excluded.code, set_at = now()
		WHERE model_cooldowns.until < excluded.until OR NOT compactor.cools(model_cooldowns.set_at, model_cooldowns.until, now())`
	return execute(ctx, c.s, "set model cooldown", query, model, until, code)
}
