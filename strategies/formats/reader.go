package formats

import (
	"bufio"
	"errors"
	"io"

	"github.com/sessionstore/compactor/strategies/chat"
)

// headSize is how much of a file detection looks at.
const headSize = 256 << 10

// Reader reads the sessions of a file. One session is in memory at a time, with
// those of its sub-agents where the file is a log.
type Reader struct {
	format Format
	chat   *chat.Reader
	dec    decoder // nil for chat, which is read by chat itself
	queue  []Session
	ended  bool
	// pending are repairs of values that are parts of a session.
	pending int
	// gathered: the last session was made of several values.
	gathered bool
}

// NewReader returns a Reader of r in the named format, or in the one that the
// content shows where name is Auto. Detection waits for the first 256 KiB of r.
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

// Gathered reports whether the session that Next returned last was made of all the
// values of the file, so that it has gaps where some could not be read.
func (r *Reader) Gathered() bool { return r.gathered || r.chat.Gathered() }

// Next returns the next session, and io.EOF behind the last one. After a
// *chat.LineError, which is a value that cannot be used, Next goes on with the
// value behind it; any other error is one of the underlying reader and stays.
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
