package formats

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// headSize is the size of the beginning of a file that detection reads.
const headSize = 256 << 10

// Reader reads the sessions of a file. One session is in memory at a time, with
// those of its sub-agents where the file is a log.
type Reader struct {
	// SkipLines leaves out the lines of a session that are no record at all and lists them in
	// its report, unless they are more than its messages. A message that is invalid is an
	// error with SkipLines, too, and its session is not read then.
	SkipLines bool

	format  Format
	first   facts // of the first value of a file that shows no format
	chat    *chat.Reader
	dec     decoder           // nil for chat, which is read by chat itself
	refused error             // the file is none of the format
	invalid []*chat.LineError // to be returned
	skipped []*chat.LineError // by SkipLines
	broken  bool              // an invalid value that is not skipped
	ready   *Session          // read before the errors were returned
	queue   []Session
	ended   bool
	certain bool // the values have shown the format
	pending int  // repairs of values that are parts of a session
	// gathered reports that the last session was made of several values.
	gathered bool
}

// NewReader returns a Reader of r in the named format; Auto detects it by the first 256 KiB
// of r, for which it waits.
func NewReader(r io.Reader, name string) (*Reader, error) {
	in := bufio.NewReaderSize(r, headSize)
	out := &Reader{}
	if mark, _ := in.Peek(4); isUTF16(mark) {
		out.refused = &chat.LineError{Line: 1, Err: errors.New("the text is UTF-16: convert it to UTF-8")}
	}
	if name == Auto {
		head, _ := in.Peek(headSize) // an error comes again when it is read
		found := detect(head)
		if found.looks != "" && out.refused == nil {
			out.refused = &chat.LineError{Line: max(found.line, 1), Err: notRead(found.looks, "")}
		}
		if name = cmp.Or(found.name, "chat"); found.name == "" {
			out.first = found.first
		}
	}
	f, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	out.format = f
	if f.table != nil && f.table.many {
		out.chat = chat.NewReader(&elements{in: in})
	} else {
		out.chat = chat.NewReader(in)
	}
	if f.decoder != nil {
		out.dec = f.decoder()
	}
	return out, nil
}

// errNoRecord is the error of a value that is no record of its format at all.
var errNoRecord = errors.New("no record of the format")

// isUTF16 reports whether a text begins with the mark of UTF-16, or with ASCII in it.
func isUTF16(b []byte) bool {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return true
	}
	return len(b) == 4 && bytes.Count(b, []byte{0}) == 2 && b[0] == 0 == (b[2] == 0)
}

// Format returns the format of the file.
func (r *Reader) Format() Format { return r.format }

// Gathered reports whether the last session of Next was made of all values of the file, so
// that it lacks those that could not be read.
func (r *Reader) Gathered() bool { return r.gathered }

// Next returns the next session, and io.EOF after the last one. After a *chat.LineError, for
// a value that is invalid, Next continues with the following value, unless the value shows
// that the file is of another format; any other error is that of the underlying reader and is
// returned by all further calls. Messages are valid (see chat.Message.Validate).
func (r *Reader) Next() (Session, error) {
	for {
		switch s, refused := r.ready, r.refused; {
		case refused != nil:
			r.refused = io.EOF
			return Session{}, refused
		case len(r.invalid) > 0:
			err := r.invalid[0]
			r.invalid = r.invalid[1:]
			return Session{}, err
		case s != nil:
			r.ready = nil
			return *s, nil
		}
		s, err := r.next()
		if err == nil && r.gathered && r.SkipLines && r.broken {
			continue // the errors have been returned
		}
		if err == nil {
			err = r.check(&s)
		}
		var invalid *chat.LineError
		switch {
		case errors.As(err, &invalid):
			r.invalidValue(invalid)
		case errors.Is(err, io.EOF):
			if len(r.skipped) == 0 {
				return Session{}, io.EOF
			}
			r.invalid, r.skipped = r.skipped, nil
		case err != nil:
			return Session{}, err
		default:
			r.ready = &s
			if r.gathered {
				continue
			}
			// Lines between sessions are no lines of a session.
			r.invalid, r.skipped = r.skipped, nil
			if r.chat.TextFollows() {
				if _, err := r.next(); errors.As(err, &invalid) { // before the session that it follows
					r.invalidValue(invalid)
					r.invalid, r.skipped = append(r.invalid, r.skipped...), nil
				}
			}
		}
	}
}

// invalidValue records a value that cannot be read: to be skipped, or to be returned.
func (r *Reader) invalidValue(err *chat.LineError) {
	if near := r.first.nearest(); len(near) > 0 && err.NoRecord {
		err.Err = fmt.Errorf("%w; nearest: %s", err.Err, strings.Join(near, ", "))
	}
	looks := shapeOf(r.chat.Last())
	switch {
	case looks != "" && looks != r.format.Name:
		r.refused = &chat.LineError{Line: err.Line, Err: fmt.Errorf("%w (%w)", notRead(looks, r.format.Name), err.Err)}
	case errors.Is(err, chat.ErrForeign):
		r.refused = err
	case err.NoRecord && r.SkipLines:
		r.skipped = append(r.skipped, err)
	default:
		r.broken = r.broken || !err.NoRecord
		r.invalid, r.skipped = append(append(r.invalid, r.skipped...), err), nil
	}
}

// check completes a session, and returns why it cannot be one.
func (r *Reader) check(s *Session) error {
	line := r.chat.Line()
	for i := range s.Messages {
		if err := s.Messages[i].Validate(); err != nil {
			return &chat.LineError{Line: line, Err: fmt.Errorf("messages[%d]: %w", i, err)}
		}
	}
	if !r.gathered {
		return nil
	}
	skipped := r.skipped
	r.skipped = nil
	switch n := len(skipped); {
	case n > len(s.Messages):
		err := fmt.Errorf("not certainly of the format %s, as %d values cannot be read: %w", r.format.Name, n, skipped[0].Err)
		return &chat.LineError{Line: skipped[0].Line, Err: err}
	case len(s.Messages) == 0:
		return &chat.LineError{Line: 1, Err: fmt.Errorf("no message of the format %s in %d values", r.format.Name, s.Report.Values)}
	}
	for _, err := range skipped {
		s.Report.Skipped = append(s.Report.Skipped, Skipped{Line: err.Line, Reason: err.Err.Error()})
	}
	return nil
}

// next returns the next session.
func (r *Reader) next() (Session, error) {
	if r.dec == nil {
		one, err := r.chat.Next()
		r.gathered = r.chat.Gathered()
		return Session{Session: one}, err
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
		var invalid *chat.LineError
		if err != nil && (errors.As(err, &invalid) || !errors.Is(err, io.EOF)) {
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
		if err := r.isTable(value); err != nil {
			return Session{}, &chat.LineError{Line: line, Err: err}
		}
		s, err := r.dec.add(value, line)
		switch {
		case err != nil:
			return Session{}, &chat.LineError{Line: line, Err: err, NoRecord: errors.Is(err, errNoRecord)}
		case s == nil:
			r.pending += repairs
		default:
			s.Repairs += repairs
			r.gathered = false
			return *s, nil
		}
	}
}

// isTable returns an error for a value that shows another format than one that is only read. Once a value has
// shown that one, none is looked at.
func (r *Reader) isTable(value []byte) error {
	if r.format.table == nil || r.certain {
		return nil
	}
	switch shown := shows(value); shown {
	case r.format.Name:
		r.certain = true
	case "":
	default:
		return notRead(shown, r.format.Name)
	}
	return nil
}
