package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
)

// The exit codes, as the help lists them.
const (
	exitInternal    = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitFindings    = 5
	exitInterrupted = 130
)

// exitError is an error that ends the process with a code of its own. Without err
// the command has said everything already.
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

// wrong is an error about what the caller gave.
func wrong(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode returns the code of an error that is not nil.
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
		errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrBusy):
		return exitRefused
	}
	return exitInternal
}

// fail writes an error as one line for each thing that was wrong and returns its
// exit code; 0 for none.
func (e *Env) fail(ctx context.Context, err error) int {
	if err == nil {
		return 0
	}
	code := exitCode(ctx, err)
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return code
	}
	if code == exitInterrupted {
		fmt.Fprintln(e.Err.W, "compactor: interrupted")
		return code
	}
	for line := range strings.Lines(e.scrub(err.Error())) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			fmt.Fprintf(e.Err.W, "compactor: %s\n", line)
		}
	}
	return code
}

// scrub takes the passwords of connection strings out of a text. Errors do not
// hold any, as far as this program goes; its libraries may.
func (e *Env) scrub(text string) string {
	for _, s := range e.secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, config.Redact(s))
		}
	}
	if strings.Contains(text, "://") {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			// Redact masks generously, so it gets only what looks like a DSN.
			fields := strings.Split(line, " ")
			for j, f := range fields {
				if strings.Contains(f, "://") && strings.Contains(f, "@") {
					fields[j] = config.Redact(f)
				}
			}
			lines[i] = strings.Join(fields, " ")
		}
		text = strings.Join(lines, "\n")
	}
	return text
}
