package migrations

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// connect connects to the database of a schema. The error is one line, and names the server.
func connect(ctx context.Context, dsn, schema string) (*pgx.Conn, error) {
	if err := CheckSchema(schema); err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	// Behind a pooler, prepared statements would be those of another connection.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to database at %s: %w", net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))), OneLine(err))
	}
	return conn, nil
}

// OneLine unwraps a connection error, whose text quotes the DSN, and merges the equal errors
// of several attempts at one address. It returns other errors unchanged.
func OneLine(err error) error {
	failed, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	var lines []string
	for line := range strings.Lines(failed.Unwrap().Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 1 {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			return op // the line has the address twice more
		}
	}
	return errors.New(strings.Join(lines, "; "))
}
