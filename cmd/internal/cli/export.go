package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

type exportCmd struct {
	Sessions      []string `arg:"" optional:"" name:"session" help:"Sessions to write."`
	AllSessions   bool     `help:"Write every session of the tenant."`
	View          bool     `xor:"what" help:"Write the view (the default)."`
	Log           bool     `xor:"what" help:"Write every source message, in order."`
	Format        string   `default:"chat" placeholder:"NAME" help:"Format to write: ${written}."`
	DropReasoning bool     `xor:"reasoning" help:"Omit the models' reasoning and its signatures."`
	SameOwner     bool     `xor:"reasoning" help:"Keep signed and encrypted reasoning. Without this flag it is left out, as providers bind it to the account and the end user that it was written for."`
	Output        string   `short:"o" aliases:"out" placeholder:"FILE" help:"File to write; default: standard output. The file is created once it is complete."`
}

func (c *exportCmd) Validate() error {
	if c.AllSessions == (len(c.Sessions) > 0) {
		return errors.New("name sessions, or give --all-sessions")
	}
	if err := formats.CanWrite(c.Format); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	if f, _ := formats.Lookup(c.Format); f.Log && (c.AllSessions || len(c.Sessions) > 1) {
		return fmt.Errorf("--format %s: a file holds one session; name one", c.Format)
	}
	return nil
}

func (c *exportCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) (err error) {
	target, finish, err := createFile("--output", c.Output, e.Out.W)
	if err != nil {
		return err
	}
	defer finish(&err)
	w := bufio.NewWriterSize(target, 64<<10)
	losses := map[string]int{}
	sessions, messages, err := c.write(ctx, st, cfg.Tenant, w, losses)
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(losses) > 0 {
		e.note("lost in %s: %s", c.Format, listCounts(losses))
	}
	switch {
	case c.Output == "":
	case e.JSON:
		return e.json(map[string]any{"file": c.Output, "sessions": sessions, "messages": messages, "losses": losses})
	default:
		e.note("%s: %s, %s", c.Output, plural(sessions, "session"), plural(messages, "message"))
	}
	return nil
}

// createFile returns a writer to the file that a flag names, or otherwise if it names none.
// The caller defers finish with its error: without one, the file takes its name, else it is
// removed. A device or a pipe (/dev/stdout) is written to directly. A file that is read-only or
// among others, those that the command reads or writes besides, is not replaced.
func createFile(flag, path string, otherwise io.Writer, others ...string) (w io.Writer, finish func(*error), err error) {
	if path == "" {
		return otherwise, func(*error) {}, nil
	}
	var f *os.File
	info, serr := os.Stat(path)
	switch {
	case serr == nil && !info.Mode().IsRegular():
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
	case path == "-":
		err = errors.New("-: want the name of a file")
	case serr == nil && info.Mode().Perm()&0o222 == 0:
		err = fmt.Errorf("%s: is read-only", path)
	case slices.ContainsFunc(others, func(o string) bool { return sameFile(path, o) }):
		err = fmt.Errorf("%s: the command reads or writes this file already: want another name", path)
	default:
		f, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = &fs.PathError{Op: "create", Path: path, Err: e.Err}
		}
	}
	if err != nil {
		return nil, nil, wrong("%s: %w", flag, err)
	}
	return f, func(err *error) { *err = errors.Join(*err, finishFile(f, path, *err == nil)) }, nil
}

// sameFile reports whether two names are of one file, which may not be there yet.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, aerr := os.Stat(a)
	y, berr := os.Stat(b)
	if aerr != nil || berr != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	return os.SameFile(x, y)
}

// finishFile renames a complete file to path and removes an incomplete one.
func finishFile(f *os.File, path string, complete bool) error {
	err := f.Close()
	if f.Name() == path {
		return err
	}
	if complete && err == nil {
		if err = os.Chmod(f.Name(), 0o644); err == nil { //nolint:gosec // as os.Create would make it
			err = os.Rename(f.Name(), path)
		}
		if err == nil {
			return nil
		}
	}
	return errors.Join(err, os.Remove(f.Name()))
}

func (c *exportCmd) write(
	ctx context.Context, st *store.Store, tenant string, w io.Writer, losses map[string]int,
) (sessions, messages int, err error) {
	for row, err := range sessionRows(ctx, st, tenant, c.Sessions) {
		if err != nil {
			return sessions, messages, err
		}
		s, err := c.session(ctx, st, row)
		if err != nil {
			return sessions, messages, err
		}
		sessions, messages = sessions+1, messages+len(s.Messages)
		lost, err := formats.Write(w, c.Format, s, formats.Options{DropReasoning: c.DropReasoning, DropSigned: !c.SameOwner, Log: c.Log})
		add(&losses, lost)
		if err != nil {
			return sessions, messages, err
		}
	}
	return sessions, messages, nil
}

func (c *exportCmd) session(ctx context.Context, st *store.Store, row store.SessionRow) (chat.Session, error) {
	k := store.Key{Tenant: row.Tenant, Session: row.Session}
	s := chat.Session{ID: row.Session, Model: row.Model}
	var stored []store.Stored
	var err error
	if c.Log {
		if stored, err = st.All(ctx, k); err == nil {
			stored = slices.DeleteFunc(stored, func(m store.Stored) bool { return m.Kind != chat.KindSource })
			slices.SortFunc(stored, func(a, b store.Stored) int { return int(a.Seq - b.Seq) })
		}
	} else {
		stored, _, err = st.View(ctx, k)
	}
	for _, m := range stored {
		s.Messages = append(s.Messages, m.Message)
	}
	return s, err
}

// sessionRows yields the named sessions of a tenant, or all of them without names, which
// it reads in pages. The tenant "" stands for all tenants. The first error ends it.
func sessionRows(ctx context.Context, st *store.Store, tenant string, names []string) iter.Seq2[store.SessionRow, error] {
	return func(yield func(store.SessionRow, error) bool) {
		for _, name := range names {
			row, err := st.Session(ctx, store.Key{Tenant: tenant, Session: name})
			if !yield(row, err) || err != nil {
				return
			}
		}
		const page = 500
		f := store.SessionFilter{Tenant: tenant, Limit: page}
		for more := len(names) == 0; more; {
			rows, next, err := st.Operator.Sessions(ctx, f)
			if err != nil {
				yield(store.SessionRow{}, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			f.After, more = next, next > 0
		}
	}
}
