package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// Session is a conversation in a file.
type Session struct {
	ID       string
	Model    string
	Messages []Message
	// Extra holds unknown keys, byte for byte.
	Extra map[string]json.RawMessage
	// Repairs is the number of places that SanitizeJSON repaired in the input. It is not
	// written.
	Repairs int
}

// LineError is the error of a line, or of a document starting on that line, that is no
// session and no message. The reader continues after it.
type LineError struct {
	Line int // the first line is 1
	Err  error
	// NoRecord reports that the line is neither a session nor a message, as one that was
	// not written whole.
	NoRecord bool
}

// errNoRecord is the error of a value that is neither a session nor a message.
var errNoRecord = errors.New("no record")

// Error returns the line, the message if known, and the reason. It never quotes content.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// Reader reads sessions from a file in one of these forms, detected by its content:
//
//   - JSONL, one session object per line: {"session_id" or "id", "model",
//     "messages": […], …}
//   - JSONL, one message per line, which together are one session
//   - one JSON document on one or more lines: a session object, or an array of
//     messages, which is one session
//
// Lines may have any length; one session at a time is in memory. A Reader is not safe for
// concurrent use.
type Reader struct {
	in   source
	line int // number of the last line read
	// document reports that the file is JSON over several lines rather than JSONL.
	document bool
	started  bool
	pieces   [][]byte // further values of the last line
	last     []byte   // the last value
	unended  bool     // the last line has no line break
	repairs  int      // in the current value
	err      error
	single   *Session // the session of a file with one message per line
	gathered bool
}

// Line returns the number of the line that was read last.
func (r *Reader) Line() int { return r.line }

// Last returns the JSON value that was read last, sanitized; nil if it was no JSON.
func (r *Reader) Last() json.RawMessage { return r.last }

// Gathered reports whether the last session that Next returned consists of all the messages
// of a file with one message per line.
func (r *Reader) Gathered() bool { return r.gathered }

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: source{in: bufio.NewReaderSize(r, 64<<10)}}
}

// Next returns the next session, and io.EOF after the last one. After a *LineError Next
// continues with the following line; any other error is that of the underlying reader and
// is returned by all further calls.
func (r *Reader) Next() (Session, error) {
	for {
		value, line, err := r.value()
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return Session{}, err
		case err != nil && r.single != nil:
			s := *r.single
			Adopt(s.Messages)
			r.single, r.gathered = nil, true
			return s, nil
		case err != nil:
			return Session{}, io.EOF
		}
		s, whole, err := r.session(value)
		if err != nil {
			return Session{}, &LineError{Line: line, Err: err, NoRecord: errors.Is(err, errNoRecord)}
		}
		if whole {
			return s, nil
		}
	}
}

// NextValue returns the next JSON value of the file, sanitized, its first line, and the
// number of repaired places. It is for readers of other formats, and returns the same
// errors as Next. Use either method on one Reader, not both.
func (r *Reader) NextValue() (value json.RawMessage, line, repairs int, err error) {
	value, line, err = r.value()
	if err != nil {
		return nil, 0, 0, err
	}
	repairs, r.repairs = r.repairs, 0
	return value, line, repairs, nil
}

// value returns the next JSON value of the file, sanitized, and its first line.
func (r *Reader) value() ([]byte, int, error) {
	r.last = nil
	value, line, err := r.nextValue()
	r.last = value
	return value, line, err
}

func (r *Reader) nextValue() ([]byte, int, error) {
	if len(r.pieces) > 0 {
		return r.piece(r.pieces[0], r.pieces[1:])
	}
	if r.err != nil {
		return nil, 0, r.err
	}
	if r.document {
		return r.nextDocument(nil)
	}
	line, err := r.readLine()
	if err != nil {
		return nil, 0, err
	}
	first := !r.started
	r.started = true
	clean, repairs := SanitizeJSON(line)
	switch {
	case json.Valid(clean):
		r.repairs = repairs
		return clean, r.line, nil
	case bytes.IndexByte(line, 0) >= 0: // a run of NUL bytes stands for what was never written
		all := bytes.FieldsFunc(line, func(c rune) bool { return c == 0 })
		if len(all) == 0 {
			return nil, 0, r.nulBytes()
		}
		return r.piece(all[0], all[1:])
	}
	if all := glued(clean); all != nil {
		r.repairs = repairs
		return r.piece(all[0], all[1:])
	}
	if first && (line[0] == '{' || line[0] == '[') {
		return r.nextDocument(line)
	}
	return r.piece(line, nil)
}

const nul = "\x00"

// nulBytes returns the error of a line of NUL bytes.
func (r *Reader) nulBytes() error {
	return &LineError{Line: r.line, Err: errors.New("NUL bytes"), NoRecord: true}
}

// piece returns a part of the last line and keeps the others.
func (r *Reader) piece(piece []byte, rest [][]byte) ([]byte, int, error) {
	r.pieces = rest
	clean, repairs := SanitizeJSON(piece)
	r.repairs += repairs
	if err := json.Unmarshal(clean, new(json.RawMessage)); err != nil {
		r.repairs = 0
		err = noValue(err)
		if r.unended && len(rest) == 0 && (clean[0] == '{' || clean[0] == '[') {
			err = errors.New("the last line is cut off")
		}
		return nil, 0, &LineError{Line: r.line, Err: err, NoRecord: true}
	}
	return clean, r.line, nil
}

// glued returns the objects that a line consists of if nothing separates them, else nil.
func glued(line []byte) (all [][]byte) {
	if line[0] != '{' || line[len(line)-1] != '}' {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(line))
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return all
		} else if err != nil || raw[0] != '{' {
			return nil
		}
		all = append(all, raw)
	}
}

// TextFollows reports whether the next line is no JSON, so that the file is not one of sessions
// alone. It waits for that line.
func (r *Reader) TextFollows() bool {
	if len(r.pieces) > 0 {
		return false
	}
	next, err := r.readLine()
	if err != nil {
		return false
	}
	r.unreadLine(next)
	return next[0] != '{' && next[0] != '[' && next[0] != 0
}

// unreadLine returns the last line to the source.
func (r *Reader) unreadLine(line []byte) {
	back := bytes.Clone(line)
	if !r.unended {
		back = append(back, '\n')
	}
	r.in.back = append(back, r.in.back...)
	r.line--
}

// readLine returns the next non-empty line, trimmed.
func (r *Reader) readLine() ([]byte, error) {
	for {
		line, err := r.in.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			r.err = fmt.Errorf("read line %d: %w", r.line+1, err)
			return nil, r.err
		}
		if len(line) > 0 {
			r.line++
			r.unended = line[len(line)-1] != '\n'
		}
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			r.err = io.EOF
			return nil, io.EOF
		}
	}
}

// session decodes a session, or adds a single message to the session of the file, in which
// case whole is false.
func (r *Reader) session(value []byte) (s Session, whole bool, err error) {
	repairs := r.repairs
	r.repairs = 0
	if rawjson.Kind(value) == '[' {
		s := Session{Repairs: repairs}
		if s.Messages, err = readMessages(value); err != nil {
			return Session{}, false, err
		}
		return s, true, nil
	}
	if rawjson.Kind(value) != '{' {
		return Session{}, false, fmt.Errorf("%w: want a session, a message or an array of messages, got %s", errNoRecord, rawjson.KindName(value))
	}
	var f rawjson.Object
	if err := json.Unmarshal(value, &f); err != nil {
		return Session{}, false, noValue(err)
	}
	if _, ok := f["messages"]; ok {
		s, err := readSession(f)
		s.Repairs = repairs
		return s, err == nil, err
	}
	if _, ok := f["role"]; !ok {
		return Session{}, false, fmt.Errorf("%w: neither a session (no messages) nor a message (no role)", errNoRecord)
	}
	n := 0
	if r.single != nil {
		n = len(r.single.Messages)
	}
	m, err := readMessage(f)
	if err == nil {
		err = m.checkForm()
	}
	if err != nil {
		return Session{}, false, fmt.Errorf("message %d: %w", n, err)
	}
	if r.single == nil {
		r.single = &Session{}
	}
	r.single.Messages = append(r.single.Messages, m)
	r.single.Repairs += repairs
	return Session{}, false, nil
}

func readSession(f rawjson.Object) (Session, error) {
	var s Session
	id := "session_id"
	if raw := f.Take(id); raw != nil {
		f[id] = raw
	} else {
		id = "id"
	}
	switch rawjson.Kind(f[id]) {
	case '"', '0', 'n', 0:
	default:
		return s, fmt.Errorf("%s: want a string, got %s", id, rawjson.KindName(f[id]))
	}
	s.ID = takeID(f, id)
	s.Model = takeString(f, "model")
	raw := f["messages"]
	delete(f, "messages")
	var err error
	if s.Messages, err = readMessages(raw); err != nil {
		return Session{}, err
	}
	if len(f) > 0 {
		s.Extra = f
	}
	return s, nil
}

func readMessages(raw json.RawMessage) ([]Message, error) {
	if rawjson.Kind(raw) != '[' {
		return nil, fmt.Errorf("messages: want an array, got %s", rawjson.KindName(raw))
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		return nil, noValue(err)
	}
	ms := make([]Message, len(raws))
	for i, raw := range raws {
		err := ms[i].UnmarshalJSON(raw)
		if err == nil {
			err = ms[i].checkForm()
		}
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	Adopt(ms)
	return ms, nil
}

// noValue adds the offset to a JSON syntax error, whose text omits it.
func noValue(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("no valid JSON at byte %d: %w", syntax.Offset, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("no valid JSON: %w", err)
	}
	return err
}
