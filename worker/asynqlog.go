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
	// asynqRepeat is how often asynq's lines of a kind are handed on.
	asynqRepeat = time.Minute
	// asynqKinds bounds the memory for kinds of lines.
	asynqKinds = 100
)

// asynqLogger hands asynq's own lines on. While Redis is away, each part of asynq
// complains every few seconds; of the lines of a kind, one a minute is enough.
type asynqLogger struct {
	*slog.Logger

	mu    sync.Mutex
	kinds map[string]*asynqKind
}

type asynqKind struct {
	at       time.Time // of the last line handed on
	repeated int       // lines kept back since
}

func (l *asynqLogger) Debug(args ...any) { l.hand(slog.LevelDebug, args) }
func (l *asynqLogger) Info(args ...any)  { l.hand(slog.LevelInfo, args) }
func (l *asynqLogger) Warn(args ...any)  { l.hand(slog.LevelWarn, args) }
func (l *asynqLogger) Error(args ...any) { l.hand(slog.LevelError, args) }
func (l *asynqLogger) Fatal(args ...any) { l.hand(slog.LevelError, args) }

func (l *asynqLogger) hand(level slog.Level, args []any) {
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

// due reports whether a line is handed on, and how many of its kind were not since
// the last one. Lines are of a kind that say the same up to the details.
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
