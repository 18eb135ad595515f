package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// SourceColumn is a column of a query on somebody else's tables.
type SourceColumn struct {
	Name string
	// JSON: the values are JSON text (types json and jsonb).
	JSON bool
}

// ReadSource runs one query on a database of an application, read-only, and hands
// its rows on as they arrive, as text, nil for NULL. It keeps none of them, and
// values are valid only until row returns. An error of row ends the query and is
// returned as it is; what Postgres has against the query is ErrInvalid.
func ReadSource(ctx context.Context, dsn, query string, row func(columns []SourceColumn, values [][]byte) error) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return &Error{Kind: ErrInvalid, Message: "not a valid Postgres DSN"} // pgx's text may quote the password
	}
	// Times as text that says its zone, whatever the server's settings are.
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"application_name": "compactor import", "default_transaction_read_only": "on",
		"timezone": "UTC", "datestyle": "ISO", "intervalstyle": "iso_8601", "statement_timeout": "0",
	})
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return &Error{Kind: ErrUnavailable, Message: fmt.Sprintf("connect to database at %s: %v", host(cfg), scrub(err))}
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = conn.Close(end)
	}()
	if _, err := conn.Exec(ctx, "BEGIN READ ONLY"); err != nil {
		return mapError(err)
	}
	// The extended protocol takes one statement, so a query cannot end the
	// transaction that holds it.
	result := conn.PgConn().ExecParams(ctx, query, nil, nil, nil, nil)
	var columns []SourceColumn
	for result.NextRow() {
		if columns == nil {
			for _, f := range result.FieldDescriptions() {
				columns = append(columns, SourceColumn{Name: f.Name, JSON: f.DataTypeOID == pgtype.JSONOID || f.DataTypeOID == pgtype.JSONBOID})
			}
		}
		if err := row(columns, result.Values()); err != nil {
			// Reading the rest to its end could take as long as the query.
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
