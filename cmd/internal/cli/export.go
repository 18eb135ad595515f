package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

type exportCmd struct {
	Sessions      []string `arg:"" optional:"" name:"session" help:"Sessions to write."`
	AllSessions   bool     `help:"Write every session of the tenant."`
	View          bool     `xor:"what" help:"Write the view (the default)."`
	Log           bool     `xor:"what" help:"Write every source message, in order."`
	Format        string   `enum:"chat,responses,anthropic,sharegpt,claude-code,codex,pi" default:"chat" help:"Format to write (${enum})."`
	DropReasoning bool     `help:"Omit the models' reasoning and its signatures."`
	Output        string   `short:"o" aliases:"out" placeholder:"FILE" help:"File to write; default: standard output. The file is created once it is complete."`
}

func (*exportCmd) Help() string {
	return `Writes sessions in a format that import reads; chat-completions, the default, loses nothing and has one session per line. It includes message ids, so importing an export repeatedly is safe. Content that another format cannot represent is counted on standard error:

` + formatHelp() + `
A file of Claude Code, Codex or pi holds one session. With --json and -o the counts are written to standard output.

Examples:

    compactor export chat-42
    compactor export chat-42 --format anthropic
    compactor export --all-sessions --log -o backup.jsonl`
}

func (c *exportCmd) Validate() error {
	if c.AllSessions == (len(c.Sessions) > 0) {
		return errors.New("name sessions, or give --all-sessions")
	}
	if f, err := formats.Lookup(c.Format); err == nil && f.Log && (c.AllSessions || len(c.Sessions) > 1) {
		return fmt.Errorf("--format %s: a file holds one session; name one", c.Format)
	}
	return nil
}

func (c *exportCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) (err error) {
	target := e.Out.W
	if c.Output != "" {
		f, ferr := createFile(c.Output)
		if ferr != nil {
			return wrong("--output: %w", ferr)
		}
		defer func() {
			err = errors.Join(err, finishFile(f, c.Output, err == nil))
		}()
		target = f
	}
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
		return term.JSON(e.Out.W, map[string]any{"file": c.Output, "sessions": sessions, "messages": messages, "losses": losses})
	default:
		e.note("%s: %s, %s", c.Output, term.Plural(sessions, "session", "sessions"), term.Plural(messages, "message", "messages"))
	}
	return nil
}

// createFile creates a temporary file that finishFile renames to path. A device or a pipe
// (/dev/stdout) is written to directly.
func createFile(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.OpenFile(path, os.O_WRONLY, 0)
	}
	if path == "-" {
		return nil, errors.New("-: want the name of a file")
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return nil, &fs.PathError{Op: "create", Path: path, Err: e.Err}
	}
	return f, err
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

func (c *exportCmd) write(ctx context.Context, st *store.Store, tenant string, w io.Writer, losses map[string]int) (sessions, messages int, err error) {
	one := func(row store.SessionRow) error {
		s, err := c.session(ctx, st, row)
		if err != nil {
			return err
		}
		sessions, messages = sessions+1, messages+len(s.Messages)
		lost, err := formats.Write(w, c.Format, s, formats.Options{DropReasoning: c.DropReasoning})
		add(&losses, lost)
		return err
	}
	if c.AllSessions {
		return sessions, messages, eachSession(ctx, st, tenant, one)
	}
	for _, id := range c.Sessions {
		row, err := st.Session(ctx, store.Key{Tenant: tenant, Session: id})
		if err == nil {
			err = one(row)
		}
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

// eachSession calls do for all sessions of a tenant, or of all tenants for "". It reads
// them in pages.
func eachSession(ctx context.Context, st *store.Store, tenant string, do func(store.SessionRow) error) error {
	const page = 500
	f := store.SessionFilter{Tenant: tenant, Limit: page}
	for {
		rows, err := st.Sessions(ctx, f)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := do(row); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return nil
		}
		f.After = rows[len(rows)-1].SID
	}
}
