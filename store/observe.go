package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ObserveFunc receives each round trip to the database, for metrics: its kind (query,
// batch or connect), its duration, and its error, which matches the sentinels of this
// package. It is called concurrently and must return at once.
type ObserveFunc func(kind string, took time.Duration, err error)

// tracer implements pgx's interfaces of tracers.
type tracer struct{ observe ObserveFunc }

// startKey is the key of a context's value with the time at which a round trip began.
type startKey struct{}

func (tracer) begin(ctx context.Context) context.Context {
	return context.WithValue(ctx, startKey{}, time.Now())
}

func (t tracer) end(ctx context.Context, kind string, err error) {
	if began, ok := ctx.Value(startKey{}).(time.Time); ok {
		t.observe(kind, time.Since(began), mapError(err))
	}
}

func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return t.begin(ctx)
}

func (t tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	t.end(ctx, "query", d.Err)
}

func (t tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return t.begin(ctx)
}

func (tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (t tracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchEndData) {
	t.end(ctx, "batch", d.Err)
}

func (t tracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return t.begin(ctx)
}

func (t tracer) TraceConnectEnd(ctx context.Context, d pgx.TraceConnectEndData) {
	t.end(ctx, "connect", d.Err)
}

// PoolStats describes the connections of a store.
type PoolStats struct {
	// Busy connections execute a statement or a transaction, Idle ones wait for one, and
	// Max bounds their sum.
	Busy, Idle, Max int
	// Waits counts the statements that had to wait for a connection, Waited is the sum of
	// their waits.
	Waits  int64
	Waited time.Duration
}

// PoolStats returns the present state of the pool.
func (s *Store) PoolStats() PoolStats {
	st := s.pool.Stat()
	return PoolStats{
		Busy: int(st.AcquiredConns()), Idle: int(st.IdleConns()), Max: int(st.MaxConns()),
		Waits: st.EmptyAcquireCount(), Waited: st.EmptyAcquireWaitTime(),
	}
}
