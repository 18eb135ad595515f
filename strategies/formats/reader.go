package formats

import (
	"bufio"
	"errors"
	"io"

	"github.com/sessionstore/compactor/strategies/chat"
)

// headSize is the size of the beginning of a file that detection reads.
const headSize = 256 << 10

// Reader reads the sessions of a file. One session is in memory at a time, with
// those of its sub-agents where the file is a log.
type Reader struct {
	format  Format
	chat    *chat.Reader
	dec     decoder // nil for chat, which is read by chat itself
	queue   []Session
	ended   bool
	pending int // repairs of values that are parts of a session
	// gathered reports that the last session was made of several values.
	gathered bool
}

// NewReader returns a Reader of r in the named format; Auto detects it by the first 256 KiB
// of r, for which it waits.
func NewReader(r io.Reader, name string) (*Reader, error) {
	in := bufio.NewReaderSize(r, headSize)
	if name == Auto {
		head, _ := in.Peek(headSize) // an error comes again when it is read
		name = Detect(head)
	}
	f, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	out := &Reader{format: f, chat: chat.NewReader(in)}
	if f.decoder != nil {
		out.dec = f.decoder()
	}
	return out, nil
}

// Format returns the format of the file.
func (r *Reader) Format() Format { return r.format }

// Gathered reports whether the last session of Next was made of all values of the file, so
// that it lacks those that could not be read.
func (r *Reader) Gathered() bool { return r.gathered || r.chat.Gathered() }

// Next returns the next session, and io.EOF after the last one. After a *chat.LineError, for
// a value that is invalid, Next continues with the following value; any other error is that
// of the underlying reader and is returned by all further calls.
func (r *Reader) Next() (Session, error) {
	if r.dec == nil {
		s, err := r.chat.Next()
		if err != nil {
			return Session{}, err
		}
		return Session{Session: s}, nil
	}
	for {
		if len(r.queue) > 0 {
			s := r.queue[0]
			r.queue = r.queue[1:]
			r.gathered = true
			return s, nil
		}
		if r.ended {
			return Session{}, io.EOF
		}
		value, line, repairs, err := r.chat.NextValue()
		var fault *chat.LineError
		if err != nil && (errors.As(err, &fault) || !errors.Is(err, io.EOF)) {
			return Session{}, err
		}
		if err != nil {
			r.ended = true
			r.queue = r.dec.end()
			if len(r.queue) > 0 {
				r.queue[0].Repairs += r.pending
			}
			continue
		}
		s, err := r.dec.add(value)
		switch {
		case err != nil:
			return Session{}, &chat.LineError{Line: line, Err: err}
		case s == nil:
			r.pending += repairs
		default:
			s.Repairs += repairs
			r.gathered = false
			return *s, nil
		}
	}
}
