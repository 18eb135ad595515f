package term

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
)

// Logger returns a logger that writes to the output. Format is "text", "json", or "auto"
// for coloured text on a terminal and JSON elsewhere. Level is debug, info, warn or error.
func (o Output) Logger(level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	switch format {
	case "auto", "":
		format = "json"
		if o.TTY {
			format = "text"
		}
	case "json", "text":
	default:
		return nil, fmt.Errorf("log format %q: want auto, json or text", format)
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(o.W, &slog.HandlerOptions{Level: l})), nil
	}
	return slog.New(tint.NewTextHandler(o.W, &tint.Options{
		Level: l, TimeFormat: time.TimeOnly, NoColor: !o.Color,
	})), nil
}
