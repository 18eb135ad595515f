package store

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Line estimates the size of a prompt from reports of usage: Overhead tokens, of tool
// definitions and the like, and Scale for each stored one. It is zero as long as there are
// too few reports.
type Line struct {
	Overhead chat.Tokens `json:"overhead"`
	Scale    float64     `json:"scale"`
}

// Tokens returns the size of the prompt of a view that is counted with so many tokens. The
// SQL function estimated_tokens returns the same.
func (l Line) Tokens(counted chat.Tokens) chat.Tokens {
	return l.Overhead + chat.Tokens(math.Ceil(l.Scale*float64(counted)))
}

// Calibration is the result of the reports for a tenant and a model.
type Calibration struct {
	Tenant  string `json:"tenant"`
	Model   string `json:"model"` // in lower case and without a provider
	Reports int64  `json:"reports"`
	Line    Line   `json:"line,omitzero"`
	// Deviation is the median relative deviation of the latest reports from Line.
	Deviation float64   `json:"deviation"`
	UpdatedAt time.Time `json:"updated_at"`
}

// joinCalibration joins the calibration of the model of a session s. It has the expression of
// the SQL function model_key, which not every role may call.
const joinCalibration = `LEFT JOIN compactor.calibrations c ON c.tenant = s.tenant AND c.model = lower(regexp_replace(s.model, '^.*/', ''))`

// Calibrations returns the calibrations for a tenant and a model, or for all if one is empty,
// those with most reports first.
func (s Operator) Calibrations(ctx context.Context, tenant, model string, limit int) ([]Calibration, error) {
	const query = `SELECT tenant, model, reports, coalesce(overhead, 0), coalesce(scale, 0), coalesce(deviation, 0), updated_at
		FROM compactor.calibrations WHERE ($1 = '' OR tenant = $1) AND ($2 = '' OR model = lower(regexp_replace($2, '^.*/', '')))
		ORDER BY reports DESC, tenant, model LIMIT $3`
	return queryRows(ctx, s.Store, "list calibrations", func(row pgx.CollectableRow) (c Calibration, err error) {
		return c, row.Scan(&c.Tenant, &c.Model, &c.Reports, &c.Line.Overhead, &c.Line.Scale, &c.Deviation, &c.UpdatedAt)
	}, query, tenant, model, limit)
}

// Models returns the names of the models of the 10,000 newest sessions, the most frequent
// first.
func (s Operator) Models(ctx context.Context, limit int) ([]string, error) {
	const query = `SELECT model FROM (SELECT model FROM compactor.sessions ORDER BY sid DESC LIMIT 10000) newest
		WHERE model <> '' GROUP BY model ORDER BY count(*) DESC, model LIMIT $1`
	return queryRows(ctx, s.Store, "list models", pgx.RowTo[string], query, limit)
}
