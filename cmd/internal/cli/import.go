package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/formats"
)

type importCmd struct {
	Files   []string `arg:"" optional:"" name:"file" help:"JSONL or JSON files; - is standard input."`
	FromSQL string   `name:"from-sql" placeholder:"DSN" help:"Read rows of another Postgres instead of files; requires --query."`
	Query   string   `placeholder:"SQL" help:"Query that returns one row per message, in order."`
	Format  string   `enum:"auto,chat,responses,anthropic,sharegpt,claude-code,codex,pi,qwen-code,gemini-cli,gemini,copilot-cli,kimi,grok,cline,goose,opencode,openhands,langchain,vercel,mastra,bedrock,chatgpt" default:"auto" help:"Format of the files (${enum}); auto looks at their content."`
	Strict  bool     `help:"Import nothing if any line of the files cannot be read."`
	ImportOptions
}

func (c *importCmd) Validate() error {
	switch {
	case c.FromSQL != "" && len(c.Files) > 0:
		return errors.New("give files or --from-sql, not both")
	case c.FromSQL != "" && c.Query == "":
		return errors.New("--from-sql: give the --query to run there")
	case c.FromSQL == "" && c.Query != "":
		return errors.New("--query: requires --from-sql")
	case c.FromSQL == "" && len(c.Files) == 0:
		return errors.New("give at least one file, or --from-sql and --query")
	case c.FromSQL != "" && c.Strict:
		return errors.New("--strict: is for files")
	case c.FromSQL != "" && c.Format != formats.Auto:
		return errors.New("--format: cannot be combined with --from-sql")
	}
	return nil
}

func (c *importCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	e.secrets = append(e.secrets, c.FromSQL)
	sources, size, err := openSources(ctx, c.Files, e.Stdin, c.Format)
	if err != nil {
		return err
	}
	defer sources.close()
	if c.Strict {
		if err := sources.verify(ctx); err != nil {
			return err
		}
	}
	st, err := e.Open(ctx)
	if err != nil {
		return err
	}

	unit := "bytes read"
	if c.FromSQL != "" {
		unit = "rows read"
	}
	progress := e.Err.Progress(unit, size)
	im := &Importer{Store: st, Tenant: cfg.Tenant, Models: cfg.Models, ImportOptions: c.ImportOptions}
	items := sources.items(progress.Add)
	if c.FromSQL != "" {
		items = sqlItems(ctx, c.FromSQL, c.Query, progress.Add)
	}
	result, err := im.Run(ctx, items)
	progress.Done(plural(result.Sessions, "session") + " imported")
	if werr := e.show(result, func() { result.print(e) }); werr != nil {
		return werr
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return inputError(err)
	case len(result.Failures) > 0:
		return wrong("%s could not be imported", plural(len(result.Failures), "item"))
	}
	return nil
}

// inputError gives an error exitUsage, unless the database caused it.
func inputError(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotMigrated) || errors.Is(err, store.ErrBusy) {
		return err
	}
	return &exitError{exitUsage, err}
}

func (r Imported) print(e *Env) {
	e.writeFailures(e.Out, "NOT IMPORTED", r.Failures, len(r.Failures), "--json lists them all")
	e.writeFailures(e.Out, "SKIPPED", r.Skipped, len(r.Skipped), "--json lists them all")
	e.pairs(
		pair{"sessions", term.Count(r.Sessions) + when(r.Renamed > 0,
			fmt.Sprintf(" (%s renamed with #, as another conversation has the id)", term.Count(r.Renamed)))},
		pair{"messages", fmt.Sprintf("%s (%s new)", term.Count(r.Messages), term.Count(r.New))},
		pair{"tokens", term.Count(r.Tokens) + when(len(r.Counters) > 0, " ("+strings.Join(r.Counters, ", ")+")")},
		pair{"formats", listCounts(r.Formats)},
		pair{"no messages", listCounts(kinds(r.Other, true))},
		pair{"left out", listLeftOut(r.Other, r.Dropped, r.First)},
		pair{"repairs", plural(r.Repaired, "view") + ", " + plural(r.Repairs, "character")},
		pair{"failures", len(r.Failures)},
		pair{"time", seconds(r.Seconds)},
	)
}

// writeFailures writes the first of total failures as a table; hint is where all are.
func (e *Env) writeFailures(o term.Output, heading string, all []Failure, total int, hint string) {
	if len(all) == 0 {
		return
	}
	const most = 50
	to := *e
	to.Out = o
	columns[Failure]{
		{"where", term.Text(heading), func(f Failure) any { return term.Styled{Value: f.Where, As: o.Red} }},
		{"session", term.Text("SESSION"), nil},
		{"error", term.Text("REASON"), nil},
	}.without(slices.ContainsFunc(all, func(f Failure) bool { return f.Session != "" }), "session").write(&to, all[:min(most, len(all))])
	if total > most {
		to.say("… and %s more (%s)", term.Count(total-most), hint)
	}
	to.say("")
	e.wrote(to.unwritten)
}

// listCounts formats counts by kind, such as "compacted 12, progress 3".
func listCounts(counts map[string]int) string {
	var all []string
	for _, kind := range sortedKeys(counts) {
		all = append(all, term.Clean(kind)+" "+term.Count(counts[kind]))
	}
	return strings.Join(all, ", ")
}

// kinds returns the counts of the records that are meta, or that are not (see formats.IsMeta).
func kinds(other map[string]int, meta bool) map[string]int {
	out := maps.Clone(other)
	maps.DeleteFunc(out, func(kind string, _ int) bool { return formats.IsMeta(kind) != meta })
	if n := out["joined"]; n > 0 {
		delete(out, "joined")
		out["joined to a message"] = n
	}
	return out
}

// listLeftOut formats the counts of records and fields that were left out, such as
// "progress 3 (first at line 12)".
func listLeftOut[P any](other, dropped map[string]int, first map[string]P) string {
	all := kinds(other, false)
	add(&all, dropped)
	var out []string
	for _, kind := range sortedKeys(all) {
		text := term.Clean(kind) + " " + term.Count(all[kind])
		if at, known := first[kind]; known {
			text += term.Clean(fmt.Sprintf(" (first at %v)", at))
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// formatHelp returns the part of the help that lists the formats, or only those that can be written, too.
func formatHelp(written bool) string {
	var b strings.Builder
	for _, f := range formats.All() {
		if f.Written() || !written {
			fmt.Fprintf(&b, "    %-12s %s\n", f.Name, f.Doc)
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
