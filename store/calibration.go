package store

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// ModelKey returns a model's name as thresholds and calibrations have it, as the SQL function
// model_key does: in lower case and without its provider.
func ModelKey(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}

// Line is what reports of usage say of the size of a prompt: Overhead tokens, of tool
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

// Calibration is what the reports for a tenant and a model have taught.
type Calibration struct {
	Tenant  string `json:"tenant"`
	Model   string `json:"model"` // in lower case and without a provider
	Reports int64  `json:"reports"`
	Line    Line   `json:"line,omitzero"`
	// Deviation is the median relative deviation of the latest reports from Line.
	Deviation float64   `json:"deviation"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Calibrations returns what reports have taught, for a tenant or, if tenant is empty, for
// all, the models with most reports first.
func (s *Store) Calibrations(ctx context.Context, tenant string, limit int) ([]Calibration, error) {
	const query = `SELECT tenant, model, reports, coalesce(overhead, 0), coalesce(scale, 0), coalesce(deviation, 0), updated_at
		FROM compactor.calibrations WHERE $1 = '' OR tenant = $1 ORDER BY reports DESC, tenant, model LIMIT $2`
	return queryRows(ctx, s, "list calibrations", func(row pgx.CollectableRow) (c Calibration, err error) {
		err = row.Scan(&c.Tenant, &c.Model, &c.Reports, &c.Line.Overhead, &c.Line.Scale, &c.Deviation, &c.UpdatedAt)
		return c, err
	}, query, tenant, limit)
}
