package formats

import (
	"bufio"
	"io"
)

// elements reads a list at the top of a file as its elements, a line each, so that one of them is in
// memory at a time. Another text is read as it is.
type elements struct {
	in                *bufio.Reader
	started, list     bool
	depth             int
	quoted, backslash bool
}

func (e *elements) Read(b []byte) (n int, err error) {
	for n < len(b) {
		c, err := e.in.ReadByte()
		if err != nil {
			return n, err
		}
		if c, ok := e.next(c); ok {
			b[n] = c
			n++
		}
		if n > 0 && e.in.Buffered() == 0 {
			break // the next byte may have to be waited for
		}
	}
	return n, nil
}

// next returns the byte in place of c, if there is one.
func (e *elements) next(c byte) (byte, bool) {
	space := c == ' ' || c == '\t' || c == '\r' || c == '\n'
	switch {
	case !e.started:
		e.started = !space && c < 0x80 // or a byte of the mark of UTF-8
		e.list = c == '['
		return c, !e.list
	case !e.list:
		return c, true
	case e.quoted:
		e.quoted = c != '"' || e.backslash
		e.backslash = c == '\\' && !e.backslash
		return c, true
	case space:
		return ' ', true
	case c == '"':
		e.quoted = true
	case c == '{' || c == '[':
		e.depth++
	case e.depth == 0 && (c == ',' || c == ']'):
		return '\n', true
	case c == '}' || c == ']':
		e.depth--
	}
	return c, true
}

var _ io.Reader = (*elements)(nil)
