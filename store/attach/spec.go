package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
)

// How a deleted row changes its messages: Spec.OnDelete.
const (
	Keep    = "keep"    // nothing
	Exclude = "exclude" // they leave the view, and stay in the log
	Erase   = "erase"   // their words are erased, also from summaries
)

// Spec says which table is attached, and how its rows are messages. Names of columns are as they are stored, without
// quotes.
type Spec struct {
	Name   string `json:"name,omitempty"` // of the attachment; by default that of the table
	Table  string `json:"table,omitempty"`
	Preset string `json:"preset,omitempty"`

	Session    string   `json:"session,omitempty"`
	Key        string   `json:"key,omitempty"`
	Order      []string `json:"order,omitempty"` // in which the application reads the rows of a session
	Role       string   `json:"role,omitempty"`
	Content    string   `json:"content,omitempty"`
	ToolCalls  string   `json:"tool_calls,omitempty"`
	ToolCallID string   `json:"tool_call_id,omitempty"`
	Time       string   `json:"time,omitempty"`
	Timezone   string   `json:"timezone,omitempty"` // of a time without one
	// Roles maps roles of the table to user, assistant, system and tool. Others are refused.
	Roles map[string]string `json:"roles,omitempty"`

	Tenant       string `json:"tenant,omitempty"`
	TenantColumn string `json:"tenant_column,omitempty"`
	Model        string `json:"model,omitempty"`
	OnDelete     string `json:"on_delete,omitempty"` // Keep, Exclude or Erase
	Where        string `json:"where,omitempty"`     // an SQL condition on rows; others are as if they were not there

	JSON bool `json:"json,omitempty"` // the content column is of a type of JSON; set by NewPlan
}

// defaultRoles are those of Spec.Roles.
var defaultRoles = map[string]string{
	"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
	"system": "system", "developer": "system", "tool": "tool",
}

// Plan is a Spec for a table that exists, and will be an attachment.
type Plan struct {
	Spec
	Schema string // of the attachment, quoted where necessary
	Window string
	Screen bool
	// Warnings are for its owner, before it is attached.
	Warnings []string

	preset   Preset
	words    map[string]string // of the table for user, assistant, system and tool
	relation string            // the table, qualified and quoted
	space    string            // its schema, quoted
	types    map[string]string
	columns  []string
	defaults []defaultValue
	// generated columns are computed by the table.
	generated map[string]bool
	parted    bool // it is partitioned
	fenced    bool // it has row-level security
}

// defaultValue is that of a column, as SQL.
type defaultValue struct{ Column, Expression string }

// NewPlan looks at the table and completes the spec. It changes nothing. store.ErrNotFound: there is no such table.
// store.ErrInvalid: the table or the spec cannot be attached, as the error says.
func NewPlan(ctx context.Context, st *store.Store, s Spec) (*Plan, error) {
	p := &Plan{Spec: s}
	err := store.InTx(ctx, st, "attach", func(tx pgx.Tx) error { return p.resolve(ctx, tx, store.Schema(st)) })
	return p, err
}

// Fenced reports that the table has row-level security, so that there is no view.
func (p *Plan) Fenced() bool { return p.fenced }

func (p *Plan) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

func refuse(format string, args ...any) error {
	return &store.Error{Kind: store.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

var nameOfAttachment = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

func (p *Plan) resolve(ctx context.Context, tx pgx.Tx, schema string) error {
	const find = `
		SELECT c.oid, n.nspname, c.relname, c.relkind IN ('r', 'p') AND NOT c.relispartition AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid))), c.relkind = 'p', c.relrowsecurity,
			coalesce((SELECT min(a.attname::text) FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
				WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1), '')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = coalesce(to_regclass((SELECT string_agg(quote_ident(x), '.') FROM unnest(string_to_array($1, '.')) x)),
			CASE WHEN $1 ~ '^[A-Za-z0-9_$.]+$' THEN to_regclass($1) END)`
	var oid uint32
	var space, table, primary string
	var ordinary bool
	err := tx.QueryRow(ctx, find, p.Table).Scan(&oid, &space, &table, &ordinary, &p.parted, &p.fenced, &primary)
	if err != nil {
		if errors.Is(err, pgx.ErrNoRows) || isData(err) {
			return &store.Error{Kind: store.ErrNotFound, Message: fmt.Sprintf("there is no table %s that this login may see", p.Table)}
		}
		return err
	}
	if space == schema {
		return refuse("%s.%s is no table of an application: it is in the schema of this installation, perhaps as the login's "+
			"search_path begins with it; make it in another, such as public.%s", space, table, table)
	}
	if !ordinary {
		return refuse("%s.%s is no table of an application, or is a part of another one: attach the whole", space, table)
	}
	p.relation, p.space = pgx.Identifier{space, table}.Sanitize(), pgx.Identifier{space}.Sanitize()
	p.Table = space + "." + table
	p.Name = cmp.Or(p.Name, strings.Trim(regexp.MustCompile(`[^a-z0-9_]+`).ReplaceAllString(strings.ToLower(table), "_"), "_"))
	if !nameOfAttachment.MatchString(p.Name) {
		return refuse("name %q: want up to 40 lower-case letters, digits and _", p.Name)
	}
	p.Schema = schema + "_" + p.Name
	// A length is cut off, and character without one would be a single letter.
	const columns = `
		SELECT a.attname::text, CASE WHEN t.oid = 'bpchar'::regtype THEN 'bpchar' WHEN n.nspname = 'pg_catalog' THEN format_type(t.oid, NULL)
			ELSE quote_ident(n.nspname) || '.' || quote_ident(t.typname) END,
			a.attgenerated <> '', coalesce(CASE WHEN a.attidentity <> '' THEN format('nextval(%L::regclass)', pg_get_serial_sequence(a.attrelid::regclass::text, a.attname))
				WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END, '')
		FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
		WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
	rows, _ := tx.Query(ctx, columns, oid) // rows hold the error
	p.types, p.generated = map[string]string{}, map[string]bool{}
	var name, kind, value string
	var generated bool
	if _, err := pgx.ForEachRow(rows, []any{&name, &kind, &generated, &value}, func() error {
		p.columns, p.types[name], p.generated[name] = append(p.columns, name), kind, generated
		if value != "" {
			p.defaults = append(p.defaults, defaultValue{pgx.Identifier{name}.Sanitize(), value})
		}
		return nil
	}); err != nil {
		return err
	}
	if err := p.usePreset(ctx, tx); err != nil {
		return err
	}
	p.Key = cmp.Or(p.Key, primary)
	if len(p.Order) == 0 {
		p.Order = []string{p.Key}
	}
	p.JSON = strings.HasPrefix(p.types[p.Content], "json")
	if p.Roles == nil {
		p.Roles = defaultRoles
	}
	if err := p.validate(); err != nil {
		return err
	}
	if err := p.sampleRoles(ctx, tx); err != nil {
		return err
	}
	return p.look(ctx, tx, oid, schema)
}

// sampleRoles finds by which words the table has roles, and warns of those that are none.
func (p *Plan) sampleRoles(ctx context.Context, tx pgx.Tx) error {
	p.words = map[string]string{}
	for _, native := range slices.Sorted(maps.Keys(p.Roles)) {
		if role := p.Roles[native]; p.words[role] == "" || native == role {
			p.words[role] = native
		}
	}
	lower := map[string]string{}
	for native, role := range p.Roles {
		lower[strings.ToLower(native)] = role
	}
	p.Roles = lower
	if p.Role == "" {
		return nil
	}
	query := fmt.Sprintf(`SELECT DISTINCT r FROM (SELECT %s::text AS r FROM %s LIMIT 1000) s WHERE r IS NOT NULL ORDER BY r LIMIT 20`,
		pgx.Identifier{p.Role}.Sanitize(), p.relation)
	rows, _ := tx.Query(ctx, query) // rows hold the error
	seen, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, native := range seen {
		switch role := p.Roles[strings.ToLower(native)]; {
		case role != "":
			p.words[role] = native
		case p.preset.Format == "":
			p.warn("rows have the role %q, which --role-map does not name: they will not be in the log", native)
		}
	}
	return err
}

// usePreset completes the spec by its preset, or by the first that has the columns of the table and reads one of its
// rows.
func (p *Plan) usePreset(ctx context.Context, tx pgx.Tx) error {
	var names []string
	for _, known := range Presets() {
		names = append(names, known.Name)
		d := known.Spec
		has := known.sample != ""
		for _, c := range slices.Concat([]string{d.Session, d.Key, d.Content}, d.Order, known.watch) {
			has = has && p.types[c] != ""
		}
		if has && known.needs != "" {
			if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, p.space+"."+known.needs).Scan(&has); err != nil {
				return err
			}
		}
		if p.Preset != "" && p.Preset != known.Name || p.Preset == "" && !has && known.Name != "generic" {
			continue
		}
		if p.Preset == "" && known.sample != "" {
			var matches bool
			query := fmt.Sprintf(`SELECT coalesce((SELECT %s FROM (SELECT %s::text AS c FROM %s LIMIT 1) s), true)`,
				known.sample, pgx.Identifier{d.Content}.Sanitize(), p.relation)
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, query).Scan(&matches) })
			if err != nil && !isData(err) {
				return err
			}
			if err != nil || !matches {
				continue
			}
		}
		p.preset, p.Preset, p.Window, p.Screen = known, known.Name, known.Window, known.Screen
		p.Session, p.Key, p.Content = cmp.Or(p.Session, d.Session), cmp.Or(p.Key, d.Key), cmp.Or(p.Content, d.Content)
		p.Role = cmp.Or(p.Role, d.Role)
		if len(p.Order) == 0 {
			p.Order = d.Order
		}
		if p.Time == "" && p.types[d.Time] != "" {
			p.Time, p.Timezone = d.Time, cmp.Or(p.Timezone, d.Timezone)
		}
		return nil
	}
	return refuse("there is no preset %q: want one of %s", p.Preset, strings.Join(names, ", "))
}

func (p *Plan) validate() error {
	needed := map[string]string{"--session": p.Session, "--key": p.Key, "--content": p.Content}
	if p.preset.Format == "" {
		needed["--role"] = p.Role
	}
	for _, flag := range slices.Sorted(maps.Keys(needed)) {
		if needed[flag] == "" {
			return refuse("%s is of no known program: name its columns, %s among them (it has %s)",
				p.Table, flag, strings.Join(p.columns, ", "))
		}
	}
	named := append(slices.Clone(p.Order), p.Session, p.Key, p.Content, p.Role, p.ToolCalls, p.ToolCallID, p.Time, p.TenantColumn)
	for _, c := range named {
		if c != "" && p.types[c] == "" {
			return refuse("%s has no column %s: it has %s", p.Table, c, strings.Join(p.columns, ", "))
		}
	}
	for native, role := range p.Roles {
		if !slices.Contains([]string{"user", "assistant", "system", "tool"}, role) {
			return refuse("role %s of %s: want user, assistant, system or tool", role, native)
		}
	}
	switch p.OnDelete {
	case Keep, Exclude, Erase:
	case "":
		return refuse("say by --on-delete how a deleted row changes its messages: keep (they stay), " +
			"exclude (they leave the view and stay in the log) or erase (their words are erased)")
	default:
		return refuse("--on-delete %s: want keep, exclude or erase", p.OnDelete)
	}
	if p.Tenant != "" && p.TenantColumn != "" {
		return refuse("give a tenant or the column that has it, not both")
	}
	return nil
}

// narrow is how many characters a column holds at least in which a summary has room.
const narrow = 8000

// look refuses tables that cannot be attached, and warns of traits of others.
func (p *Plan) look(ctx context.Context, tx pgx.Tx, oid uint32, schema string) error {
	const query = `
		SELECT coalesce(bool_or(a.attname = $2), false), coalesce(bool_or(a.attname = $3 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1), false),
			coalesce((SELECT a.atttypmod - 4 FROM pg_attribute a WHERE a.attrelid = $1 AND a.attname = $4 AND a.atttypid IN ('varchar'::regtype, 'bpchar'::regtype) AND a.atttypmod > 0), 0)
		FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indrelid = $1`
	var bySession, unique bool
	var width int
	if err := tx.QueryRow(ctx, query, oid, p.Session, p.Key, p.Content).Scan(&bySession, &unique, &width); err != nil {
		return err
	}
	if width > 0 && width < narrow {
		return refuse("column %s of %s holds at most %d characters: a summary does not fit, want text, or %d", p.Content, p.Table, width, narrow)
	}
	if len(p.Schema) > 63 {
		return refuse("the schema %s would have a name that is too long: give a shorter --name", p.Schema)
	}
	if !unique && !p.parted {
		return refuse("column %s of %s has no unique index of its own, so it names no row: choose another --key", p.Key, p.Table)
	}
	var taken string
	attached := `SELECT coalesce((SELECT name FROM ` + schema + `.attachments WHERE name = $1 OR spec->>'table' = $2 LIMIT 1), '')`
	if err := tx.QueryRow(ctx, attached, p.Name, p.Table).Scan(&taken); err != nil {
		return err
	}
	if taken != "" {
		return &store.Error{
			Kind: store.ErrInUse, Message: fmt.Sprintf("%s is attached as %s already, or its name is taken", p.Table, taken),
			Hint: "compactor detach " + taken,
		}
	}
	if p.preset.Format == "responses" || p.preset.Format == "langchain" {
		var sealed bool
		sample := fmt.Sprintf(`SELECT EXISTS (SELECT FROM (SELECT %s::text AS c FROM %s LIMIT 20) s WHERE c LIKE '%%"__enc__"%%')`,
			pgx.Identifier{p.Content}.Sanitize(), p.relation)
		if err := tx.QueryRow(ctx, sample).Scan(&sealed); err != nil {
			return err
		}
		if sealed {
			return refuse("the messages of %s are encrypted by the application (EncryptedSession) and cannot be read here", p.Table)
		}
	}
	if !bySession {
		p.warn("no index begins with %s, so that each read of a session reads the whole table, as those of the application do: "+
			"CREATE INDEX CONCURRENTLY ON %s (%s)", p.Session, p.relation, pgx.Identifier{p.Session}.Sanitize())
	}
	if p.fenced {
		p.warn("the table has row-level security: no view is made, as it would show rows that the policies hide; " +
			"read prompts with compactor.view or over HTTP")
	}
	if p.parted {
		p.warn("the table is partitioned: TRUNCATE of one partition, and DROP, go unnoticed until `compactor attach --check --repair`")
	}
	if p.Time != "" && p.Timezone == "" && !strings.HasPrefix(p.types[p.Time], "timestamp with") {
		return refuse("column %s has times without a zone: give their --timezone, such as UTC", p.Time)
	}
	return nil
}
