package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/formats"
)

// importCmd imports histories.
type importCmd struct {
	Files         []string `arg:"" optional:"" name:"file" help:"JSONL or JSON files; - is standard input."`
	FromSQL       string   `name:"from-sql" placeholder:"DSN" help:"Read rows of another Postgres in place of files; goes with --query."`
	Query         string   `placeholder:"SQL" help:"What to read: one row per message, in order."`
	Count         string   `enum:"exact,estimate" default:"exact" help:"Count tokens with the model's tokenizer, or estimate them (exact, estimate)."`
	Model         string   `placeholder:"NAME" help:"Model of sessions that name none."`
	SessionPrefix string   `placeholder:"TEXT" help:"Goes before every session's id."`
	KeepGoing     bool     `help:"Go on behind lines and sessions that cannot be imported, and report them at the end."`
	Format        string   `enum:"auto,chat,responses,anthropic,sharegpt,claude-code,codex,pi" default:"auto" help:"Format of the files (${enum}); auto looks at their content."`
	DropReasoning bool     `help:"Leave out the models' reasoning, with its signatures."`
	Workers       int      `default:"4" help:"Sessions imported at a time."`
}

// Help documents the command.
func (*importCmd) Help() string {
	return `A file is recognized by its content, or read as the --format says:

` + formatHelp() + `
Chat-completions come as one session object per line ({"session_id", "model", "messages": […]}), one message per line, or one JSON document. Of a session log each line is a message, a part of one, or counted by its kind; sub-agents are sessions of their own. A session without an id is named after its file and its place in it. Where several conversations have one id, the second gets #2 behind it, and so on.

With --from-sql the query gives the columns session_id, role and content, and optionally id, created_at, tool_calls (JSON), tool_call_id, name and model; or a column message with the whole message as JSON in place of role and content. Rows of one session that follow each other are imported together. The transaction is read-only.

Each session is imported in one piece or not at all. Importing the same again changes nothing. An import wakes nobody: what it makes due waits for the next sweep. Exit code 2 if anything could not be imported.

Examples:

    compactor import history.jsonl
    compactor import --format claude-code ~/.claude/projects/*/*.jsonl
    compactor import --keep-going --session-prefix crm/ exports/*.jsonl
    compactor import --from-sql "$APP_DATABASE_URL" --query "SELECT chat_id AS session_id, role, content, sent_at AS created_at FROM chat_messages ORDER BY chat_id, id"`
}

// Validate is called by the parser.
func (c *importCmd) Validate() error {
	switch {
	case c.FromSQL != "" && len(c.Files) > 0:
		return errors.New("give files or --from-sql, not both")
	case c.FromSQL != "" && c.Query == "":
		return errors.New("--from-sql: give the --query to run there")
	case c.FromSQL == "" && c.Query != "":
		return errors.New("--query: goes with --from-sql")
	case c.FromSQL == "" && len(c.Files) == 0:
		return errors.New("give at least one file, or --from-sql and --query")
	case c.FromSQL != "" && c.Format != formats.Auto:
		return errors.New("--format: is for files; rows of --from-sql have columns")
	case c.Workers < 1 || c.Workers > 64:
		return fmt.Errorf("--workers: %d: want 1 to 64", c.Workers)
	}
	return nil
}

// Run runs the command.
func (c *importCmd) Run(ctx context.Context, e *Env) error {
	e.secrets = append(e.secrets, c.FromSQL)
	sources, size, err := openSources(ctx, c.Files, e.Stdin, c.Format)
	if err != nil {
		return err
	}
	defer sources.close()
	st, cfg, err := e.Open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()

	unit := "bytes read"
	if c.FromSQL != "" {
		unit = "rows read"
	}
	progress := e.Err.Progress(unit, size)
	im := &Importer{
		Store: st, Tenant: cfg.Tenant, Prefix: c.SessionPrefix, Model: c.Model,
		DropReasoning: c.DropReasoning, Estimate: c.Count == "estimate", KeepGoing: c.KeepGoing, Workers: c.Workers,
	}
	items := sources.items(progress.Add)
	if c.FromSQL != "" {
		items = sqlItems(ctx, c.FromSQL, c.Query, progress.Add)
	}
	result, err := im.Run(ctx, items)
	progress.Done(term.Plural(result.Sessions, "session", "sessions") + " imported")
	if e.JSON {
		if werr := term.JSON(e.Out.W, result); werr != nil {
			return werr
		}
	} else if werr := result.print(e); werr != nil {
		return werr
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return inputError(err)
	case len(result.Failures) > 0:
		return wrong("%s could not be imported", term.Plural(len(result.Failures), "item", "items"))
	}
	return nil
}

// inputError is what was wrong with the input, unless it was the database.
func inputError(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotMigrated) || errors.Is(err, store.ErrBusy) {
		return err
	}
	return &exitError{exitUsage, err}
}

// print writes what the import came to.
func (r Imported) print(e *Env) error {
	if len(r.Failures) > 0 {
		style := e.Out.Style()
		t := e.Out.Table(term.Text("NOT IMPORTED"), term.Text("SESSION"), term.Text("REASON"))
		const most = 50
		for _, f := range r.Failures[:min(most, len(r.Failures))] {
			t.Row(term.Styled{Value: f.Where, As: style.Red}, f.Session, f.Error)
		}
		if err := t.Write(); err != nil {
			return err
		}
		if more := len(r.Failures) - most; more > 0 {
			e.say("… and %s more (--json lists them all)", term.Count(more))
		}
		e.say("")
	}
	messages := fmt.Sprintf("%s (%s new)", term.Count(r.Messages), term.Count(r.New))
	count := term.Count(r.Tokens)
	if len(r.Counters) > 0 {
		count += " (" + strings.Join(r.Counters, ", ") + ")"
	}
	sessions := term.Count(r.Sessions)
	if r.Renamed > 0 {
		sessions += fmt.Sprintf(" (%s under a name with #, as another conversation has the id)", term.Count(r.Renamed))
	}
	pairs := [][2]any{{"sessions", sessions}, {"messages", messages}, {"tokens", count}}
	for _, more := range []struct {
		name   string
		counts map[string]int
	}{{"formats", r.Formats}, {"no messages", r.Other}, {"left out", r.Dropped}} {
		if len(more.counts) > 0 {
			pairs = append(pairs, [2]any{more.name, listCounts(more.counts)})
		}
	}
	return e.Out.Pairs(append(pairs,
		[2]any{"repairs", r.Repairs}, [2]any{"failures", len(r.Failures)},
		[2]any{"time", time.Duration(r.Seconds * float64(time.Second))},
	)...)
}

// listCounts writes counts by kind: "joined 12, progress 3".
func listCounts(counts map[string]int) string {
	var all []string
	for _, kind := range sortedKeys(counts) {
		all = append(all, term.Clean(kind)+" "+term.Count(counts[kind]))
	}
	return strings.Join(all, ", ")
}

// formatHelp returns the part of the help that lists the formats.
func formatHelp() string {
	var b strings.Builder
	for _, f := range formats.All() {
		fmt.Fprintf(&b, "    %-12s %s\n", f.Name, f.Doc)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
