package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

type source struct {
	path   string
	format string
	name   string // prefix of the names of sessions without an id
	in     io.ReadCloser
}

type sources []source

// openSources opens all files, so that a missing file is reported before anything is
// imported. It returns the sum of their sizes, 0 if one is unknown.
func openSources(ctx context.Context, paths []string, stdin io.Reader, format string) (all sources, size int64, err error) {
	var faults []error
	unknown := false
	names := map[string]bool{}
	for _, path := range paths {
		if path == "-" {
			all = append(all, source{path: "standard input", format: format, name: "stdin", in: io.NopCloser(interruptible{ctx, stdin})})
			unknown = true
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder: name the files in it", path)
		}
		if err != nil {
			faults = append(faults, errors.Join(err, f.Close()))
			continue
		}
		size += info.Size()
		unknown = unknown || !info.Mode().IsRegular()
		// Files of one name in different folders are different sessions.
		name := fileSession(path)
		if names[name] {
			name = strings.TrimSuffix(filepath.ToSlash(filepath.Clean(path)), filepath.Ext(path))
		}
		names[name] = true
		all = append(all, source{path: path, format: format, name: name, in: f})
	}
	if len(faults) > 0 {
		all.close()
		return nil, 0, &exitError{exitUsage, errors.Join(faults...)}
	}
	if unknown {
		size = 0
	}
	return all, size, nil
}

// folderNames has the files that a program calls the same in each session, and how many folders above them
// the name of the session is.
var folderNames = map[string]int{"api_conversation_history": 1, "chat_history": 1, "context": 1, "wire": 3}

// fileSession returns the name for the session of a file without an id.
func fileSession(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	up := folderNames[name]
	if up == 0 {
		return name
	}
	full, err := filepath.Abs(path)
	for range up {
		full = filepath.Dir(full)
	}
	if folder := filepath.Base(full); err == nil && folder != "." && folder != string(filepath.Separator) {
		return folder
	}
	return name
}

// interruptible is a reader whose Read returns when its context is cancelled, even if the
// underlying reader blocks, as a terminal does.
type interruptible struct {
	ctx context.Context //nolint:containedctx // Read has none
	in  io.Reader
}

func (r interruptible) Read(b []byte) (int, error) {
	type read struct {
		n   int
		err error
	}
	own := make([]byte, len(b)) // as the read may outlive this call
	done := make(chan read, 1)
	go func() {
		n, err := r.in.Read(own)
		done <- read{n, err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case got := <-done:
		return copy(b, own[:got.n]), got.err
	}
}

func (all sources) close() {
	for _, s := range all {
		_ = s.in.Close() // only read
	}
}

// items reads the sessions of all files, one after the other.
func (all sources) items(read func(int64)) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		known := conversations{}
		for _, s := range all {
			if !s.items(known, read, yield) {
				return
			}
		}
	}
}

// conversations holds the sessions of an import by id. Files may hold several
// conversations with one id (replays of a task), each of which becomes a session. A
// conversation that equals another, or is a prefix of it, is the same one.
type conversations map[string][][]uint64

// seed is the seed of hashes that are not persisted.
var seed = maphash.MakeSeed()

// name returns the id under which a conversation is stored: its own, or one with "#2" and
// so on appended if other conversations have it.
func (c conversations) name(id string, messages []chat.Message) (name string, other bool) {
	var h maphash.Hash
	h.SetSeed(seed)
	chain := make([]uint64, len(messages)) // hashes of the prefixes
	for i, m := range messages {
		_, _ = h.Write(m.AppendJSON(nil)) // cannot fail
		chain[i] = h.Sum64()
	}
	n := 0
	for ; n < len(c[id]); n++ {
		was := c[id][n]
		if k := min(len(was), len(chain)); k == 0 || was[k-1] == chain[k-1] {
			if len(chain) > len(was) {
				c[id][n] = chain
			}
			break
		}
	}
	if n == len(c[id]) {
		c[id] = append(c[id], chain)
	}
	if n == 0 {
		return id, false
	}
	return fmt.Sprintf("%s#%d", id, n+1), true
}

func (s source) items(known conversations, read func(int64), yield func(Item) bool) bool {
	r, err := formats.NewReader(countingReader{s.in, read}, s.format)
	if err != nil {
		return yield(Item{Where: s.path, Err: err, Fatal: true})
	}
	r.SkipLines = true
	for n := 1; ; n++ {
		session, err := r.Next()
		item := Item{
			Session: session.Session, Report: session.Report, Format: r.Format().Name, File: s.path,
			Where: fmt.Sprintf("%s: session %d", s.path, n),
		}
		var line *chat.LineError
		switch {
		case errors.Is(err, io.EOF):
			return true
		case errors.As(err, &line):
			item = Item{Where: fmt.Sprintf("%s: line %d", s.path, line.Line), Err: line.Unwrap()}
		case err != nil:
			item = Item{Where: s.path, Err: err, Fatal: true}
		case session.ID == "":
			if r.Gathered() && r.Format().Name == "chat" {
				n = 1
			}
			item.ID = fmt.Sprintf("%s-%d", s.name, n)
		default:
			item.ID, item.Renamed = known.name(session.ID, session.Messages)
		}
		if !yield(item) || item.Fatal {
			return false
		}
	}
}

// verify reads all files once and returns the first fault of each, lines that an import would
// skip among them. The files are then at their beginning again; standard input is copied to a
// temporary file for that.
func (all sources) verify(ctx context.Context) error {
	var faults []error
	for i := range all {
		file, isFile := all[i].in.(*os.File)
		if !isFile {
			var err error
			if file, err = os.CreateTemp("", "compactor-*"); err != nil {
				return err
			}
			defer os.Remove(file.Name()) //nolint:errcheck // only a copy
			_, err = io.Copy(file, all[i].in)
			if err = errors.Join(err, all[i].in.Close()); err != nil {
				return errors.Join(err, file.Close())
			}
			all[i].in = file
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("--strict: %s: %w", all[i].path, err)
		}
		r, err := formats.NewReader(file, all[i].format)
		for err == nil && ctx.Err() == nil {
			_, err = r.Next()
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, io.EOF):
			faults = append(faults, fmt.Errorf("%s: %w", all[i].path, err))
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return &exitError{exitUsage, errors.Join(faults...)}
	}
	return nil
}

// countingReader reports the number of bytes read.
type countingReader struct {
	in   io.Reader
	read func(int64)
}

func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.read(int64(n))
	return n, err
}
