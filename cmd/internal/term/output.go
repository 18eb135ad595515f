package term

import (
	"encoding/json"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// fallbackWidth is the width of a terminal that does not report one.
const fallbackWidth = 80

// Output is a writer and its capabilities. The zero values of those describe a pipe.
type Output struct {
	W io.Writer
	// TTY reports whether progress may redraw its line.
	TTY bool
	// Color reports whether escape sequences are rendered.
	Color bool
	// Width is the number of columns, 0 for no limit.
	Width int
}

// Detect returns the capabilities of w. environ has the form of os.Environ; a non-empty
// NO_COLOR and TERM=dumb are honoured.
func Detect(w io.Writer, environ []string) Output {
	o := Output{W: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o
	}
	dumb, noColor := false, false
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		switch k {
		case "TERM":
			dumb = v == "dumb"
		case "NO_COLOR":
			noColor = v != ""
		}
	}
	o.TTY = !dumb
	o.Color = o.TTY && !noColor
	o.Width = fallbackWidth
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		o.Width = width
	}
	return o
}

// Interactive reports whether r is a terminal, where a person can answer.
func Interactive(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// JSON writes v as one indented object and a newline. "<" and "&" stay readable.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
