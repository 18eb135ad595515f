package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// nextDocument reads a value that may span several lines, given its first line if that has
// been read. If the lines do not form one value and the second line looks like JSONL, only
// the first line is reported as malformed.
func (r *Reader) nextDocument(first []byte) ([]byte, int, error) {
	if first == nil {
		var err error
		if first, err = r.readLine(); err != nil {
			return nil, 0, err
		}
		if len(bytes.Trim(first, nul)) == 0 {
			return nil, 0, r.nulBytes()
		}
	}
	start := r.line
	in := &lineReader{in: &r.in}
	in.add(append(first, '\n'))
	dec := json.NewDecoder(in)
	var raw json.RawMessage
	err := dec.Decode(&raw)
	if in.err != nil && !errors.Is(in.err, io.EOF) {
		r.err = fmt.Errorf("read document at line %d: %w", start, in.err)
		return nil, 0, r.err
	}
	if err != nil {
		fault := &LineError{Line: start, Err: noValue(err), NoRecord: true}
		if r.document || !in.linesFollow(err) {
			r.err = io.EOF // a malformed document has no lines to continue with
			return nil, 0, fault
		}
		in.unread(1, nil)
		return nil, 0, fault
	}
	r.document = true
	end, within := int(dec.InputOffset()), false
	for i, l := range in.lines {
		r.repairs += l.repairs
		if end <= len(l.clean) {
			r.line = start + i - 1 // the rest of the line is read under its number
			in.unread(i+1, l.clean[end:])
			within = i == 0
			break
		}
		end -= len(l.clean)
	}
	// Only another document may follow.
	if next, err := r.readLine(); err == nil {
		if next[0] != '{' && next[0] != '[' && next[0] != 0 {
			r.repairs = 0
			if within && r.in.peek() == '{' { // a line among others
				r.document = false
			} else {
				r.err = io.EOF
			}
			return nil, 0, &LineError{Line: r.line, Err: errors.New("text after the end of the JSON"), NoRecord: true}
		}
		r.unreadLine(next)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, 0, &LineError{Line: start, Err: err}
	}
	return b.Bytes(), start, nil
}

// lineReader passes sanitized lines to a decoder and records them.
type lineReader struct {
	in    *source
	lines []docLine
	next  int // the next byte to return is lines[next].clean[pos]
	pos   int
	err   error
}

type docLine struct {
	orig, clean []byte
	repairs     int
}

// add adds a line. NUL bytes at its ends stand for what was never written.
func (d *lineReader) add(line []byte) {
	text := bytes.TrimRight(line, "\r\n")
	clean := line
	if kept := bytes.Trim(text, nul); len(kept) < len(text) {
		clean = slices.Concat(kept, line[len(text):])
	}
	clean, n := SanitizeJSON(clean)
	d.lines = append(d.lines, docLine{line, clean, n})
}

func (d *lineReader) Read(b []byte) (int, error) {
	if d.next == len(d.lines) {
		if d.err != nil {
			return 0, d.err
		}
		line, err := d.in.readLine()
		d.err = err
		if len(line) == 0 {
			return 0, err
		}
		d.add(line)
	}
	line := d.lines[d.next].clean
	n := copy(b, line[d.pos:])
	if d.pos += n; d.pos == len(line) {
		d.next, d.pos = d.next+1, 0
	}
	return n, nil
}

// linesFollow reports whether the input after the first line, which failed to decode with
// err, looks like JSONL.
func (d *lineReader) linesFollow(err error) bool {
	if len(d.lines[0].clean) <= 2 { // a bracket alone opens a document
		return false
	}
	if len(d.lines) == 1 {
		b := d.in.peek()
		return b == '{' || b == '['
	}
	second := d.lines[1].clean
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return json.Valid(second)
	}
	return second[0] == '{' || second[0] == '['
}

// unread returns rest and the lines from i on to the source.
func (d *lineReader) unread(i int, rest []byte) {
	back := bytes.Clone(rest)
	for _, l := range d.lines[i:] {
		back = append(back, l.orig...)
	}
	d.in.back = append(back, d.in.back...)
}

// source reads lines and supports returning them.
type source struct {
	back []byte // read before in
	in   *bufio.Reader
}

// readLine returns the next line with its line break.
func (s *source) readLine() ([]byte, error) {
	if len(s.back) == 0 {
		return s.in.ReadBytes('\n')
	}
	if i := bytes.IndexByte(s.back, '\n'); i >= 0 {
		line := s.back[: i+1 : i+1]
		s.back = s.back[i+1:]
		return line, nil
	}
	line := s.back
	s.back = nil
	more, err := s.in.ReadBytes('\n')
	return append(line, more...), err
}

// peek returns the next byte, 0 at the end.
func (s *source) peek() byte {
	if len(s.back) > 0 {
		return s.back[0]
	}
	b, err := s.in.Peek(1)
	if err != nil {
		return 0
	}
	return b[0]
}
