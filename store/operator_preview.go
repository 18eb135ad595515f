package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	// querySnapshot has the columns of queryRun, as a dry run over the view would have them.
	querySnapshot = `
		SELECT 'queued', 'operator', '{"from": "view", "dry_run": true}', now(), NULL::interval, '', 0, 0, false, false, false,
			` + selectSession + `
		FROM compactor.sessions s ` + joinPolicy + joinCalibration + ` WHERE s.tenant = $1 AND s.id = $2`
	querySnapshotView = selectMetas + ` FROM compactor.sessions s ` + joinView + ` WHERE s.tenant = $1 AND s.id = $2`
)

// Snapshot returns a session as a dry run over its view would plan on it, without a run:
// nothing is written. ErrNotFound names the session.
func (s Reader) Snapshot(ctx context.Context, k Key) (*Claim, error) {
	var batch pgx.Batch
	batch.Queue(s.q(querySnapshot), k.tenant(), k.Session)
	batch.Queue(s.q(querySnapshotView), k.tenant(), k.Session)
	results := s.pool.SendBatch(ctx, &batch)
	c, err := readClaim(results, &Claim{})
	if err = cmp.Or(err, mapError(results.Close())); err == nil {
		err = s.completeView(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", k, err)
	}
	return c, nil
}

// Sampled is a session of a sample, with its properties that policies match.
type Sampled struct {
	Session, Model string
	Labels         map[string]string
}

// Sample returns random sessions of a tenant with these labels.
func (s Operator) Sample(ctx context.Context, tenant string, labels map[string]string, limit int) ([]Sampled, error) {
	if labels == nil {
		labels = map[string]string{}
	}
	const query = `
		SELECT id, model, compactor.labels_of(tenant, id) FROM compactor.sessions
		WHERE tenant = $1 AND last_seq > 0 AND (labels @> $2 OR parent IS NOT NULL AND compactor.labels_of(tenant, id) @> $2)
		ORDER BY random() LIMIT $3`
	return queryRows(ctx, s.Store, "sample sessions", pgx.RowToStructByPos[Sampled], query, tenant, labels, limit)
}
