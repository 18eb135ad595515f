package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// SourceColumn is a column of a query on an application's tables.
type SourceColumn struct {
	Name string
	// JSON reports whether the values are JSON text (types json and jsonb).
	JSON bool
}

// ReadSource runs one read-only query on an application's database and calls row for each
// row as it arrives. Values are text, nil for NULL, and valid until row returns. An error
// of row ends the query and is returned unchanged; query errors are ErrInvalid.
func ReadSource(ctx context.Context, dsn, query string, row func(columns []SourceColumn, values [][]byte) error) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return &Error{Kind: ErrInvalid, Message: "not a valid Postgres DSN"} // pgx's text may quote the password
	}
	cfg.RuntimeParams["application_name"] = "compactor import"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return &Error{Kind: ErrUnavailable, Message: fmt.Sprintf("connect to database at %s: %v", host(cfg), scrub(err))}
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = conn.Close(end)
	}()
	// Fix the text format of times, whatever the server's settings are, for the transaction
	// only, as a pooler shares its connections.
	_, err = conn.Exec(ctx, `BEGIN READ ONLY; SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO';
		SET LOCAL intervalstyle = 'iso_8601'; SET LOCAL statement_timeout = 0`)
	if err != nil {
		return mapError(err)
	}
	// The extended protocol accepts one statement, so a query cannot end its own
	// read-only transaction.
	result := conn.PgConn().ExecParams(ctx, query, nil, nil, nil, nil)
	var columns []SourceColumn
	for result.NextRow() {
		if columns == nil {
			for _, f := range result.FieldDescriptions() {
				isJSON := f.DataTypeOID == pgtype.JSONOID || f.DataTypeOID == pgtype.JSONBOID
				columns = append(columns, SourceColumn{Name: f.Name, JSON: isJSON})
			}
		}
		if err := row(columns, result.Values()); err != nil {
			// Close would read the remaining rows.
			_ = conn.PgConn().CancelRequest(ctx)
			_, _ = result.Close()
			return err
		}
	}
	_, err = result.Close()
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return &Error{Kind: ErrInvalid, Message: "query: " + pg.Message + " (" + pg.Code + ")", Hint: pg.Hint}
	}
	return mapError(err)
}
