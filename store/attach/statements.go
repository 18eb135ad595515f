package attach

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/migrations"
)

//go:embed attach.sql
var statements string

// sqlTemplate makes the statements of an attachment.
var sqlTemplate = template.Must(template.New("attach").Parse(statements))

// trigger is one of an attachment.
type trigger struct{ Event, When, Select string }

// SQL returns the statements that attach the table.
func (p *Plan) SQL(schema string) (string, error) {
	q := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	spec, err := json.Marshal(p.Spec)
	if err != nil {
		return "", err
	}
	// expression returns the SQL of a part of the message: that of the preset, or the column.
	expression := func(own, column string) string {
		switch {
		case own != "":
			return strings.ReplaceAll(own, "§", p.space) + "::text"
		case column != "":
			return "t." + q(column) + "::text"
		}
		return "NULL::text"
	}
	reads := p.preset.reads
	read := []string{
		expression("", p.Role), expression(reads.content, p.Content),
		expression(reads.toolCalls, p.ToolCalls), expression(reads.toolCallID, p.ToolCallID),
	}
	digest := "md5(ROW(" + strings.Join(read, ", ") + ")::text)::uuid"
	selected := slices.Concat([]string{"t." + q(p.Key) + "::text", digest, expression("", p.TenantColumn)}, read)
	var watched []string
	for _, c := range slices.Concat([]string{p.Role, p.Content, p.ToolCalls, p.ToolCallID}, p.preset.watch) {
		if c != "" {
			watched = append(watched, "t."+q(c))
		}
	}
	at := "NULL::timestamptz"
	if p.Time != "" {
		at = "t." + q(p.Time)
		if p.Timezone != "" && !strings.HasPrefix(p.types[p.Time], "timestamp with") {
			at += " AT TIME ZONE " + literal(p.Timezone)
		}
		at += "::timestamptz"
	}
	order := make([]string, len(p.Order))
	for i, c := range p.Order {
		order[i] = "t." + q(c)
	}
	where := cmp.Or(p.Where, "true")
	all := make([]string, len(p.columns))
	for i, c := range p.columns {
		all[i] = q(c)
	}
	_, table, _ := strings.Cut(p.Table, ".")
	d := map[string]any{
		"Schema": p.Schema, "SchemaLiteral": literal(p.Schema), "Compactor": schema, "Worker": migrations.Roles(schema)[3],
		"Table": p.relation, "TableLiteral": literal(p.relation), "ViewName": q(table), "Columns": all,
		"NameLiteral": literal(p.Name), "SpecLiteral": literal(string(spec)),
		"Session": q(p.Session), "SessionType": p.types[p.Session], "Key": q(p.Key), "KeyType": p.types[p.Key],
		"Content": q(p.Content), "ContentLiteral": literal(p.Content), "RoleLiteral": literal(p.Role),
		"ToolCalls": p.ToolCalls, "ToolCallsLiteral": literal(p.ToolCalls),
		"ToolCallID": p.ToolCallID, "ToolCallIDLiteral": literal(p.ToolCallID),
		"Read": strings.Join(append(selected, at), ", "), "Digest": digest, "Order": strings.Join(order, ", "),
		"Where": where, "JSON": p.preset.Format != "" && reads.content == "" || p.JSON, "View": !p.fenced, "NativeRole": p.nativeRole(),
		"Base":     strings.ReplaceAll(p.preset.base, "§", p.space),
		"Triggers": p.triggers("ROW("+strings.Join(watched, ", ")+")::text", where),
	}
	var encode bytes.Buffer
	one, err := template.New("encode").Parse(p.preset.encode())
	if err == nil {
		err = one.Execute(&encode, d)
	}
	if err != nil {
		return "", err
	}
	d["Encode"] = encode.String()
	var out strings.Builder
	err = sqlTemplate.Execute(&out, d)
	return out.String(), err
}

// nativeRole returns an SQL expression for the word by which the table has the role of m. A table that has no word
// for system messages or results has them as said by the user.
func (p *Plan) nativeRole() string {
	var b strings.Builder
	b.WriteString("CASE m->>'role'")
	for _, role := range slices.Sorted(maps.Keys(p.words)) {
		fmt.Fprintf(&b, " WHEN %s THEN %s", literal(role), literal(p.words[role]))
	}
	return b.String() + " ELSE " + literal(cmp.Or(p.words["user"], "user")) + " END"
}

// triggers returns those of the table: of statements, and of rows where it is partitioned, as an insert into a
// partition fires no other.
func (p *Plan) triggers(watched, where string) []trigger {
	q := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	from := func(side string) string {
		if p.parted {
			return "(SELECT (" + strings.ToUpper(side) + ").*) t"
		}
		return side + "_rows t"
	}
	key := "t." + q(p.Session) + " AS session, t." + q(p.Key) + "::text AS key"
	one := func(side string) string { return "SELECT " + key + " FROM " + from(side) + " WHERE (" + where + ")" }
	differ := func(a, b string) string {
		s := "SELECT " + key + ", " + watched + " AS said, (" + where + ") AS there FROM "
		return "(" + s + from(a) + " EXCEPT " + s + from(b) + ")"
	}
	each := func(event, sides string) string {
		if p.parted {
			return event + " ON " + p.relation + " FOR EACH ROW"
		}
		return event + " ON " + p.relation + " REFERENCING " + sides + " FOR EACH STATEMENT"
	}
	all := []trigger{
		{"insert", each("INSERT", "NEW TABLE AS new_rows"), one("new")},
		{
			"update", each("UPDATE", "OLD TABLE AS old_rows NEW TABLE AS new_rows"),
			"SELECT DISTINCT x.session, x.key FROM (" + differ("old", "new") + " UNION " + differ("new", "old") + ") x",
		},
		{"delete", each("DELETE", "OLD TABLE AS old_rows"), one("old")},
		{
			"truncate", "TRUNCATE ON " + p.relation + " FOR EACH STATEMENT",
			"SELECT r.session, r.key FROM " + p.Schema + ".rows r WHERE NOT r.gone",
		},
	}
	if b := p.preset.beside; b.table != "" {
		for event, side := range map[string]string{"insert": "NEW", "update": "NEW", "delete": "OLD"} {
			all = append(all, trigger{
				"beside_" + event,
				event + " ON " + p.space + "." + b.table + " REFERENCING " + side + " TABLE AS changed FOR EACH STATEMENT",
				strings.ReplaceAll(b.rows, "§", p.space),
			})
		}
	}
	return all
}

// literal returns a string as SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
