package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// logLines keeps a system's log lines.
type logLines struct {
	mu    sync.Mutex
	lines []string
	warns []string
}

func (l *logLines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l *logLines) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *logLines) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler.
func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", r.Time.Format("05.000"), r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, b.String())
	if r.Level >= slog.LevelWarn {
		l.warns = append(l.warns, b.String())
	}
	return nil
}

func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *logLines) loud() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.warns)
}

func (l *logLines) has(part string) bool {
	return slices.ContainsFunc(l.all(), func(line string) bool { return strings.Contains(line, part) })
}
