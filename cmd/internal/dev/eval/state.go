package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// State stores measurements in a file of JSON lines, one per row, so that a resumed run
// does not repeat them. Each line is written with a single call as soon as its row is
// complete; an incomplete last line is dropped when the file is opened. A nil State stores
// nothing. It is safe for concurrent use, but not by several processes.
type State struct {
	mu   sync.Mutex
	file *os.File
	rows map[string]Row
	err  error
}

// errState is returned if a row could not be written.
var errState = errors.New("write state")

// OpenState opens or creates the file, unless one of its complete lines is not a row.
func OpenState(path string) (*State, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // rows may hold message content
	if err != nil {
		return nil, err
	}
	s := &State{file: f, rows: map[string]Row{}}
	if err := s.read(path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *State) read(path string) error {
	all, err := io.ReadAll(s.file)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(all, '\n') + 1
	n := 0
	for line := range bytes.Lines(all[:whole]) {
		n++
		var r Row
		if json.Unmarshal(line, &r) != nil || r.Key == "" {
			return fmt.Errorf("%s: line %d is not a row of an eval state", path, n)
		}
		s.rows[r.Key] = r
	}
	if n == 0 && whole < len(all) && !bytes.HasPrefix(all, []byte(`{"key":`)) {
		return fmt.Errorf("%s: line 1 is not a row of an eval state", path)
	}
	if err := s.file.Truncate(int64(whole)); err != nil {
		return err
	}
	_, err = s.file.Seek(int64(whole), io.SeekStart)
	return err
}

// Len returns the number of rows.
func (s *State) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}

func (s *State) get(key string) (Row, bool) {
	if s == nil {
		return Row{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[key]
	return r, ok
}

// put appends a row. It writes nothing after an error, which may leave half a line.
func (s *State) put(r Row) error {
	if s == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.rows[r.Key] = r
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		s.err = fmt.Errorf("%w: %w", errState, err)
	}
	return s.err
}

// Close closes the file.
func (s *State) Close() error { return s.file.Close() }
