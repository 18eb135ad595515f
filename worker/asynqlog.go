package worker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// asynqRepeat is the interval between two logged lines of the same kind.
	asynqRepeat = time.Minute
	// asynqKinds bounds the number of kinds that are remembered.
	asynqKinds = 100
)

// asynqLogger implements asynq.Logger. It logs one line of each kind per asynqRepeat:
// during an outage of Redis, each component of asynq logs every few seconds.
type asynqLogger struct {
	*slog.Logger

	mu    sync.Mutex
	kinds map[string]*asynqKind
}

type asynqKind struct {
	at       time.Time // of the last logged line
	repeated int       // lines dropped since
}

func (l *asynqLogger) Debug(args ...any) { l.write(slog.LevelDebug, args) }
func (l *asynqLogger) Info(args ...any)  { l.write(slog.LevelInfo, args) }
func (l *asynqLogger) Warn(args ...any)  { l.write(slog.LevelWarn, args) }
func (l *asynqLogger) Error(args ...any) { l.write(slog.LevelError, args) }
func (l *asynqLogger) Fatal(args ...any) { l.write(slog.LevelError, args) }

func (l *asynqLogger) write(level slog.Level, args []any) {
	text := fmt.Sprint(args...)
	repeated, ok := l.due(text)
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("text", text)}
	if repeated > 0 {
		attrs = append(attrs, slog.Int("repeated", repeated))
	}
	l.LogAttrs(context.Background(), level, "asynq", attrs...)
}

// due reports whether to log a line, and how many of its kind were dropped since the last
// one. Lines are of one kind if they agree up to the first colon or equals sign.
func (l *asynqLogger) due(text string) (repeated int, ok bool) {
	kind := text
	if i := strings.IndexAny(text, ":="); i >= 0 {
		kind = text[:i]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[kind]
	if k != nil && time.Since(k.at) < asynqRepeat {
		k.repeated++
		return 0, false
	}
	if k == nil {
		if l.kinds == nil || len(l.kinds) >= asynqKinds {
			l.kinds = map[string]*asynqKind{}
		}
		k = &asynqKind{}
		l.kinds[kind] = k
	}
	repeated = k.repeated
	k.at, k.repeated = time.Now(), 0
	return repeated, true
}
