package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// The exit codes, which the help documents.
const (
	exitInternal    = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitFindings    = 5
	exitInterrupted = 130
)

// exitError is an error with an exit code. With a nil err nothing is printed, as the
// command has reported the problem already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// wrong returns an error with exitUsage.
func wrong(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode returns the exit code of a non-nil error.
func exitCode(ctx context.Context, err error) int {
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitInterrupted
	case errors.Is(err, store.ErrInvalid):
		return exitUsage
	case errors.Is(err, store.ErrNotFound):
		return exitNotFound
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrNotApplicable),
		errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrForbidden):
		return exitRefused
	}
	return exitInternal
}

// codeNames are the names of the exit codes in errors as JSON.
var codeNames = map[int]string{
	exitInternal: "internal", exitUsage: "usage", exitNotFound: "not_found", exitRefused: "refused", exitFindings: "findings",
	exitInterrupted: "interrupted",
}

// fail writes an error to Err, line by line or with --json as an object, and returns its
// exit code, 0 for nil.
func (e *Env) fail(ctx context.Context, err error) int {
	if err == nil {
		return 0
	}
	code := exitCode(ctx, err)
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return code
	}
	text := e.scrub(err.Error())
	if code == exitInterrupted {
		text = "interrupted"
	}
	if e.JSON {
		_ = term.JSON(e.Err.W, map[string]any{"error": map[string]any{"code": codeNames[code], "message": text}})
		return code
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			e.note("compactor: %s", line)
		}
	}
	return code
}

// scrub masks passwords of connection strings, which errors of libraries may hold.
func (e *Env) scrub(text string) string {
	for _, s := range e.secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, config.Redact(s))
		}
	}
	// Redact may mask too much, so it is applied to words with a URL only.
	return regexp.MustCompile(`[^ \n]*://[^ \n]*`).ReplaceAllStringFunc(text, func(word string) string {
		if strings.Contains(word, "://user:password@host:") { // the form that a message asks for
			return word
		}
		return config.Redact(word)
	})
}
