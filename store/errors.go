package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/strategies/chat"
)

// The kinds of error that callers can act on; match them with errors.Is.
var (
	// ErrNotFound: the session, run or message does not exist.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: an argument is out of range or a message is malformed.
	ErrInvalid = errors.New("invalid")
	// ErrConflict: the id exists with other content.
	ErrConflict = errors.New("conflict")
	// ErrStale: the session has changed since it was read.
	ErrStale = errors.New("stale")
	// ErrInUse: a conflicting run or object exists; the message names it.
	ErrInUse = errors.New("in use")
	// ErrNotApplicable: the run's state does not allow it.
	ErrNotApplicable = errors.New("not applicable")
	// ErrArchived: content that it needs is in the archive, see Restore.
	ErrArchived = errors.New("archived")
	// ErrPurged: content that it needs was purged, as the policy says.
	ErrPurged = errors.New("purged")
	// ErrDamaged: the archive lacks content of messages, or has other content.
	ErrDamaged = errors.New("damaged")
	// ErrSpendingLimit: no model may be asked now, see LimitSpending.
	ErrSpendingLimit = errors.New("spending limit reached")
	// ErrBusy: the lock was not acquired within LockTimeout, or a worker holds the
	// session; try again later.
	ErrBusy = errors.New("busy")
	// ErrForbidden: the connection's role lacks a right, or it is bound to another tenant.
	ErrForbidden = errors.New("forbidden")
	// ErrLogin: the server refuses the login, or the database does not exist. Trying again does
	// not help.
	ErrLogin = errors.New("login refused")
	// ErrUnavailable: the database could not be reached or is restarting.
	ErrUnavailable = errors.New("database unavailable")
	// ErrNoSpace, an ErrUnavailable: the disk of the database is full.
	ErrNoSpace = fmt.Errorf("%w: no space", ErrUnavailable)
	// ErrNotMigrated: the schema or part of it is missing.
	ErrNotMigrated = errors.New("schema is missing or old: run `compactor migrate up`")
)

// hintDamaged is the hint of errors about stored messages that cannot be read.
const hintDamaged = "compactor doctor says what is damaged"

// Error is an error of the database with a message for the user. It unwraps to one of
// the sentinels above.
type Error struct {
	Kind    error
	Message string
	Hint    string
	// archived are the messages that an ErrArchived is about.
	archived chat.Ranges
}

func (e *Error) Error() string {
	if e.Hint != "" {
		return e.Message + " (" + e.Hint + ")"
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Kind }

// mapError maps driver errors to the kinds above. It drops texts of the database that
// could quote content.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// The schema's own functions raise texts that are meant for users. The name of the
		// function is cut off, as callers prefix errors with the operation.
		function, text, named := strings.Cut(pg.Message, ": ")
		if !named || strings.Trim(function, "abcdefghijklmnopqrstuvwxyz_") != "" {
			text = pg.Message
		}
		raised, withCode := raisedKinds[pg.Code], "database: "+pg.Message+" ("+pg.Code+")"
		switch {
		case pg.Code == "23505" && pg.ConstraintName == "":
			raised = ErrConflict
		case pg.Code == "40001" && pg.Hint == "" && strings.Contains(pg.Message, "is at revision"):
			raised = ErrStale
		}
		switch {
		case raised != nil:
			return &Error{Kind: raised, Message: text, Hint: pg.Hint}
		case pg.Code == "CA001":
			seqs, _ := chat.ParseRanges(pg.Detail)
			return &Error{Kind: ErrArchived, Message: pg.Message, Hint: pg.Hint, archived: seqs}
		case pg.Code == "55P03", pg.Code == "40P01", pg.Code == "40001", pg.Code == "23505":
			return &Error{Kind: ErrBusy, Message: "database: " + pg.Message}
		case pg.Code == "3F000", pg.Code == "42P01", pg.Code == "42883":
			return ErrNotMigrated
		case pg.Code == "53100":
			return &Error{Kind: ErrNoSpace, Message: withCode}
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "57"), strings.HasPrefix(pg.Code, "53"):
			return &Error{Kind: ErrUnavailable, Message: withCode}
		case strings.HasPrefix(pg.Code, "54"): // nested too deeply, an id too long to index
			return &Error{Kind: ErrInvalid, Message: "database refused a value: " + pg.Message}
		case pg.Code == "22021":
			return &Error{Kind: ErrInvalid, Message: "a text is not valid UTF-8 or has a NUL character"}
		case strings.HasPrefix(pg.Code, "22"):
			return &Error{Kind: ErrInvalid, Message: "database refused a value: " + pg.Code}
		}
		return &Error{Kind: errInternal, Message: withCode}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if what, _, failed := strings.Cut(err.Error(), ": "); failed && strings.HasPrefix(what, "failed to encode args[") {
		return &Error{Kind: ErrInvalid, Message: "database: " + what} // pgx's text quotes the value
	}
	return &Error{Kind: ErrUnavailable, Message: "database: " + scrub(err).Error()}
}

// invalid returns an ErrInvalid with a message for the user.
func invalid(message string, args ...any) error {
	return &Error{Kind: ErrInvalid, Message: fmt.Sprintf(message, args...)}
}

var errInternal = errors.New("database error")

// raisedKinds are the kinds of the errors that the schema's functions raise, by their codes.
var raisedKinds = map[string]error{
	"P0002": ErrNotFound, "22023": ErrInvalid, "CA002": ErrPurged, "CA003": ErrDamaged,
	"42501": ErrForbidden, "55006": ErrInUse, "55000": ErrNotApplicable,
}

// scrub returns migrations.OneLine of an error, or ErrLogin for a refused login.
func scrub(err error) error {
	line := migrations.OneLine(err)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (strings.HasPrefix(pg.Code, "28") || pg.Code == "3D000") {
		return &Error{Kind: ErrLogin, Message: line.Error()}
	}
	return line
}

// wrap maps an error of the driver and prefixes it with the operation; nil stays nil.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return prefix(op, mapError(err))
}

// prefix puts the operation before an error, unless a function of the schema has done so.
func prefix(op string, err error) error {
	named := op[:strings.LastIndexByte(op, ' ')+1] // without the id, which may have the tenant before it
	if own, ok := errors.AsType[*Error](err); ok && named != "" && strings.HasPrefix(own.Message, named) {
		return err
	}
	return fmt.Errorf("%s: %w", op, err)
}
