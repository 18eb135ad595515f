package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cooldowns are the models that all workers leave alone for a while, and until when.
// Safe for concurrent use.
type Cooldowns struct{ s *Store }

// Cooldowns returns those of this store.
func (s *Store) Cooldowns() Cooldowns { return Cooldowns{s} }

// Until returns how long a model is left alone; the zero time if it is not.
func (c Cooldowns) Until(ctx context.Context, model string) (time.Time, error) {
	const query = `SELECT until FROM compactor.model_cooldowns WHERE model = $1 AND until > now()`
	rows, err := c.s.pool.Query(ctx, c.s.q(query), model)
	if err != nil {
		return time.Time{}, wrap("model cooldown", err)
	}
	until, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil || len(until) == 0 {
		return time.Time{}, wrap("model cooldown", err)
	}
	return until[0], nil
}

// ModelCooldown is a model that is left alone.
type ModelCooldown struct {
	Model string
	Until time.Time
	// Code is the class of the failure that it rests after.
	Code string
}

// All returns the models that are left alone now, by name.
func (c Cooldowns) All(ctx context.Context) ([]ModelCooldown, error) {
	const query = `SELECT model, until, code FROM compactor.model_cooldowns WHERE until > now() ORDER BY model`
	rows, err := c.s.pool.Query(ctx, c.s.q(query))
	if err != nil {
		return nil, wrap("model cooldowns", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ModelCooldown])
	return out, wrap("model cooldowns", err)
}

// Set leaves a model alone until a time, or longer where it is already, with the code of
// why.
func (c Cooldowns) Set(ctx context.Context, model string, until time.Time, code string) error {
	const query = `
		INSERT INTO compactor.model_cooldowns (model, until, code) VALUES ($1, $2, $3)
		ON CONFLICT (model) DO UPDATE SET until = excluded.until, code = excluded.code, set_at = now()
		WHERE model_cooldowns.until < excluded.until`
	_, err := c.s.pool.Exec(ctx, c.s.q(query), model, until, code)
	return wrap("set model cooldown", err)
}
