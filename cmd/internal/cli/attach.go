package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/attach"
)

// attachCmd prints or executes the SQL that attaches a table, lists attachments, or compares one with the log.
type attachCmd struct {
	Table string `arg:"" optional:"" help:"The table, or an attachment by its name. Without one, attachments are listed."`

	Apply  bool `help:"Execute the SQL instead of printing it, and read the rows that are there."`
	Check  bool `help:"Compare each row of an attached table with the log. Exit code 5 if one differs."`
	Repair bool `help:"With --check: read the rows that differ again."`
	Window int  `placeholder:"N" help:"With --check: of how many of the newest rows the application makes a prompt."`

	Preset       string            `placeholder:"NAME" help:"Whose table it is: ${presets_of_tables}; found by default."`
	Name         string            `placeholder:"NAME" help:"Name of the attachment; by default that of the table."`
	Session      string            `placeholder:"COLUMN" help:"Column with the conversation of a row."`
	Key          string            `placeholder:"COLUMN" help:"Column that names a row; by default the primary key."`
	Order        []string          `placeholder:"COLUMN,…" help:"Columns that order the rows of a conversation; by default the key."`
	Role         string            `placeholder:"COLUMN" help:"Column with the role."`
	RoleMap      map[string]string `mapsep:"," placeholder:"THEIRS=OURS,…" help:"Roles of the table as user, assistant, system or tool."`
	Content      string            `placeholder:"COLUMN" help:"Column with the text, or with a message as JSON."`
	ToolCalls    string            `placeholder:"COLUMN" help:"Column with tool calls as JSON, as in chat-completions."`
	ToolCallID   string            `name:"tool-call-id" placeholder:"COLUMN" help:"Column with the call that a result answers."`
	Time         string            `placeholder:"COLUMN" help:"Column with the time of a row."`
	Timezone     string            `placeholder:"ZONE" help:"Zone of times without one, such as UTC."`
	TenantColumn string            `placeholder:"COLUMN" help:"Column with the tenant; without it, all rows are of the tenant of --tenant."`
	Model        string            `placeholder:"NAME" help:"Model of the sessions, which decides their window."`
	OnDelete     string            `placeholder:"keep|exclude|erase" help:"Messages of deleted rows stay, leave the view, or are erased."`
	Where        string            `placeholder:"SQL" help:"Condition on rows, such as done. Others are as if they were not there."`
}

func (c *attachCmd) Run(ctx context.Context, e *Env, cfg config.Config, st *store.Store) error {
	switch {
	case c.Apply && c.Check:
		return wrong("give --apply or --check, not both")
	case c.Repair && !c.Check, c.Window != 0 && !c.Check:
		return wrong("--repair, --window: are for --check")
	case c.Table == "":
		return listAttachments(ctx, e, st)
	case c.Check:
		return c.check(ctx, e, st)
	}
	tenant := cfg.Tenant
	if c.TenantColumn != "" || tenant == store.DefaultTenant {
		tenant = ""
	}
	p, err := attach.NewPlan(ctx, st, attach.Spec{
		Name: c.Name, Table: c.Table, Preset: c.Preset, Session: c.Session, Key: c.Key, Order: c.Order, Role: c.Role, Roles: c.RoleMap,
		Content: c.Content, ToolCalls: c.ToolCalls, ToolCallID: c.ToolCallID, Time: c.Time, Timezone: c.Timezone,
		Tenant: tenant, TenantColumn: c.TenantColumn, Model: c.Model, OnDelete: c.OnDelete, Where: c.Where,
	})
	if err != nil {
		return err
	}
	if !c.Apply {
		statements, err := p.Script(store.Schema(st))
		if err != nil {
			return err
		}
		return e.show(map[string]any{"attachment": p.Spec, "schema": p.Schema, "warnings": p.Warnings, "sql": statements}, func() {
			_, err := fmt.Fprint(e.Out.W, statements)
			e.wrote(err)
			advise(p, e.note)
			e.note("nothing is changed: --apply executes this and reads the rows that are there")
		})
	}
	return apply(ctx, e, st, p)
}

func apply(ctx context.Context, e *Env, st *store.Store, p *attach.Plan) error {
	a, err := p.Apply(ctx, st)
	if err != nil {
		return err
	}
	progress := e.Err.Progress("sessions read", 0)
	for more := true; more; {
		var n int
		if n, more, err = a.Drain(ctx); err != nil {
			return err
		}
		progress.Add(int64(n))
	}
	s, err := a.Status(ctx)
	progress.Done(plural(int(s.Sessions), "session") + " read")
	if err != nil {
		return err
	}
	return e.show(map[string]any{"attachment": a.Spec, "schema": a.Schema, "status": s, "warnings": p.Warnings}, func() {
		e.pairs(attachmentPairs(a, s)...)
		e.say("")
		advise(p, e.say)
	})
}

// advise says what is left to the application.
func advise(p *attach.Plan, say func(string, ...any)) {
	for _, w := range p.Warnings {
		say("warning: %s", w)
	}
	_, table, _ := strings.Cut(p.Table, ".")
	if !p.Fenced() {
		say("the compacted history of a conversation: SELECT … FROM %s.\"%s\", as from %s", p.Schema, table, p.Table)
		switch {
		case p.Screen:
			say("the application also shows people these rows: change the query of the prompt alone, and no search_path")
		case p.Preset == "mastra":
			say("it names the schema itself: give a second store, which only reads, schemaName %s", p.Schema)
		default:
			say("for an application that uses the table for prompts alone: ALTER ROLE … SET search_path = %s, public", p.Schema)
		}
	}
	if p.Window != "" {
		say("a summary is the first row, so a limit to the newest rows must not cut it off: %s", p.Window)
	}
}

func attachmentPairs(a *attach.Attachment, s attach.Status) []pair {
	return []pair{
		{"attachment", a.Name},
		{"table", a.Table},
		{"preset", a.Preset},
		{"model", cmp.Or(a.Model, "none, so that the window is that of an unknown model (policy.window_tokens)")},
		{"on delete", a.OnDelete},
		{"sessions", term.Count(s.Sessions) + fmt.Sprintf(", as %s:ID", a.Name)},
		{"rows", term.Count(s.Rows)},
		{"messages", term.Count(s.Messages)},
		{"waiting", term.Count(s.Notes) + when(!s.Backfilled, ", and rows of before the attachment")},
		{"no messages", term.Count(s.Faults)},
	}
}

func (c *attachCmd) check(ctx context.Context, e *Env, st *store.Store) error {
	a, err := attach.Get(ctx, st, c.Table)
	if err != nil {
		return err
	}
	s, err := a.Status(ctx)
	if err != nil {
		return err
	}
	if c.Repair && len(s.Ungranted) > 0 {
		if err := a.Grant(ctx); err != nil {
			return err
		}
	}
	total, first, err := a.Check(ctx, 50, c.Repair)
	if err != nil {
		return err
	}
	cut, err := a.CutOff(ctx, c.Window)
	if err != nil {
		return err
	}
	result := map[string]any{"attachment": a.Spec, "status": s, "differences": total, "first": append([]attach.Difference{}, first...), "cut_off": cut}
	err = e.show(result, func() {
		if len(first) > 0 {
			columns[attach.Difference]{
				{"session", term.Text("SESSION"), nil}, {"key", term.Text("ROW"), nil}, {"difference", term.Text("DIFFERENCE"), nil},
			}.write(e, first)
		}
		e.pairs(append(attachmentPairs(a, s), pair{"differ", term.Count(total) + when(c.Repair && total > 0, ", to be read again")})...)
		if len(s.Ungranted) > 0 {
			e.note("%s on the table and not on the view, whose schema their search_path passes over: %s%s",
				term.Plural(len(s.Ungranted), "role has rights", "roles have rights"), strings.Join(s.Ungranted, ", "),
				when(!c.Repair, "; --repair grants them"))
		}
		if s.Fenced {
			e.note("the table has got row-level security, which the view does not heed: detach and attach it again, without a view")
		}
		if cut.Sessions > 0 {
			e.note("%s a view of more than %d rows: an application that reads no more than these does not see the summary (%s)",
				term.Plural(int(cut.Sessions), "session has", "sessions have"), cut.Rows, a.WindowSetting())
		}
	})
	if err == nil && total > 0 {
		err = &exitError{exitFindings, nil}
	}
	return err
}

func listAttachments(ctx context.Context, e *Env, st *store.Store) error {
	all, err := attach.List(ctx, st)
	if err != nil {
		return err
	}
	return e.show(map[string]any{"attachments": append([]*attach.Attachment{}, all...)}, func() {
		if len(all) == 0 {
			e.say("no table is attached")
			return
		}
		t := e.Out.Table(term.Text("ATTACHMENT"), term.Text("TABLE"), term.Text("PRESET"), term.Text("ON DELETE"), term.Text("SCHEMA"))
		for _, a := range all {
			t.Row(a.Name, a.Table, a.Preset, a.OnDelete, a.Schema)
		}
		e.wrote(t.Write())
	})
}

// presetsOfTables returns the names of presets for the help.
func presetsOfTables() string {
	var names []string
	for _, p := range attach.Presets() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// tableHelp returns the part of the help that lists the presets.
func tableHelp() string {
	var b strings.Builder
	for _, p := range attach.Presets() {
		fmt.Fprintf(&b, "    %-12s %s\n", p.Name, p.Doc)
	}
	return b.String()
}

// detachCmd drops an attachment.
type detachCmd struct {
	Name  string `arg:"" help:"The attachment or its table."`
	Force bool   `help:"Forget rows that were written and not read yet."`
}

func (c *detachCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	a, err := attach.Get(ctx, st, c.Name)
	if err != nil {
		return err
	}
	if err := a.Detach(ctx, c.Force); err != nil {
		return err
	}
	return e.answer(map[string]any{"detached": a.Name, "table": a.Table},
		"%s is detached: it is as before, without triggers. Its sessions stay in the log (%s:…)", a.Table, a.Name)
}
