package metrics

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/store"
)

const (
	// other is the label of values beyond maxNames.
	other = "other"
	// unknown is the label of empty values.
	unknown = "unknown"
	// maxNames bounds the values of a label that a configuration, a strategy or a later
	// version may add to. The first ones get their own.
	maxNames = 50
)

// names bounds the values of a label. The zero value is ready to use. Safe for concurrent
// use.
type names struct {
	mu   sync.Mutex
	seen map[string]bool
}

// label returns the label of a name: the name itself, other beyond maxNames, or unknown.
func (n *names) label(name string) string {
	if name == "" {
		return unknown
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.seen[name]:
		return name
	case len(n.seen) >= maxNames:
		return other
	case n.seen == nil:
		n.seen = map[string]bool{}
	}
	n.seen[name] = true
	return name
}

// databaseCode returns the label of an error of the store. Answers of the database that
// callers expect, and ends of their contexts, are no errors of it.
func databaseCode(err error) string {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, store.ErrNotFound):
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, store.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, store.ErrBusy):
		return "busy"
	case errors.Is(err, store.ErrNotMigrated):
		return "not_migrated"
	case errors.Is(err, store.ErrForbidden):
		return "forbidden"
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrStale),
		errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrNotApplicable):
		return "refused"
	}
	return other
}

// redisCode returns the label of an error of Redis.
func redisCode(err error) string {
	var answer redis.Error
	var network net.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil), errors.Is(err, context.Canceled), redis.HasErrorPrefix(err, "NOSCRIPT"):
		return "" // a script that is not cached yet is sent
	case errors.As(err, &answer) && strings.Contains(strings.ToLower(answer.Error()), "unknown subcommand"):
		return "" // asked by the client of newer servers when it connects (CLIENT SETINFO), and goes on without
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.As(err, &answer):
		return "refused"
	}
	return "unavailable"
}
