package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Action is something that an operator did.
type Action struct {
	Place   string    `json:"id"` // for the next page
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Action  string    `json:"action"` // such as run.compact, pause.create or policy.apply
	Tenant  string    `json:"tenant"` // empty: all
	Session *string   `json:"session,omitempty"`
	Object  string    `json:"object"` // the number or the name
	Note    string    `json:"note"`
}

// AuditLog returns what operators did for a tenant, or for any and all with an empty one, the newest
// first. before is the Place of the last one of the page before, "" for the first page.
func (s Admin) AuditLog(ctx context.Context, tenant, before string, limit int) ([]Action, error) {
	return queryRows(ctx, s.Store, "audit log", pgx.RowToStructByPos[Action], `SELECT * FROM compactor.audit_log($1, nullif($2, ''), $3)`,
		tenant, before, limit)
}
