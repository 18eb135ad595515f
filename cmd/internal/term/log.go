package term

import (
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
)

// Logger returns a logger that writes to the output. Format is "text", "json", or "auto"
// for coloured text on a terminal and JSON elsewhere. Level is debug, info, warn or error;
// package config validates both.
func (o Output) Logger(level, format string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // info if it is invalid
	if format == "text" || format != "json" && o.TTY {
		return slog.New(tint.NewTextHandler(o.W, &tint.Options{Level: l, TimeFormat: time.TimeOnly, NoColor: !o.Color}))
	}
	return slog.New(slog.NewJSONHandler(o.W, &slog.HandlerOptions{Level: l}))
}
