package term

import (
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
)

// Logger returns a logger for a format (text, json, or auto: text on a terminal, else JSON)
// and a level (debug, info, warn or error). Package config validates both.
func (o Output) Logger(level, format string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // info if it is invalid
	if format == "text" || format != "json" && o.TTY {
		return slog.New(tint.NewTextHandler(o.W, &tint.Options{Level: l, TimeFormat: time.TimeOnly, NoColor: !o.Color}))
	}
	return slog.New(slog.NewJSONHandler(o.W, &slog.HandlerOptions{Level: l, ReplaceAttr: inMillis}))
}

// inMillis gives a duration in JSON, which would be a number of nanoseconds, a unit: took is
// took_ms.
func inMillis(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Int64(a.Key+"_ms", a.Value.Duration().Milliseconds())
}
