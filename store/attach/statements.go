package attach

import (
	"bytes"
	"cmp"
	"crypto/md5" //nolint:gosec // for names
	_ "embed"
	"encoding/hex"
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

// Script returns the statements that attach the table, as one transaction for psql.
func (p *Plan) Script(schema string) (string, error) {
	sql, err := p.SQL(schema)
	return "BEGIN;\nSET LOCAL lock_timeout = '1s';\n" + sql + "COMMIT;\n", err
}

// SQL returns the statements that attach the table, for a transaction.
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
	tenant := expression("", p.TenantColumn)
	digest := "md5(ROW(" + strings.Join(append([]string{tenant}, read...), ", ") + ")::text)::uuid"
	selected := slices.Concat([]string{"t." + q(p.Key) + "::text", digest, tenant}, read)
	var watched []string
	for _, c := range slices.Concat([]string{p.TenantColumn, p.Role, p.Content, p.ToolCalls, p.ToolCallID}, p.preset.watch) {
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
		at = "CASE WHEN isfinite(" + at + ") THEN " + at + "::timestamptz END"
	}
	order := make([]string, len(p.Order))
	for i, c := range p.Order {
		order[i] = "t." + q(c)
	}
	where, rows := cmp.Or(p.Where, "true"), p.relation
	if p.Where != "" { // in a query of its own, so that its names are those of the table
		rows = "(SELECT * FROM " + p.relation + " WHERE (" + p.Where + "))"
	}
	trigger := p.Schema
	if sum := md5.Sum([]byte(p.Schema)); len(trigger) > 40 { //nolint:gosec // a short name
		trigger = trigger[:31] + "_" + hex.EncodeToString(sum[:4])
	}
	all := make([]string, len(p.columns))
	for i, c := range p.columns {
		all[i] = q(c)
	}
	var written []string
	for _, c := range p.columns {
		if !p.generated[c] {
			written = append(written, q(c))
		}
	}
	_, table, _ := strings.Cut(p.Table, ".")
	d := map[string]any{
		"Schema": p.Schema, "SchemaLiteral": literal(p.Schema), "Compactor": schema, "Worker": migrations.Roles(schema)[3],
		"Table": p.relation, "TableLiteral": literal(p.relation), "ViewName": q(table), "Columns": all,
		"ViewLiteral": literal(p.Schema + "." + q(table)), "Written": written, "Defaults": p.defaults,
		"NameLiteral": literal(p.Name), "SpecLiteral": literal(string(spec)),
		"Session": q(p.Session), "SessionType": p.types[p.Session], "Key": q(p.Key), "KeyType": p.types[p.Key],
		"Content": q(p.Content), "ContentLiteral": literal(p.Content), "RoleLiteral": literal(p.Role),
		"ToolCalls": p.ToolCalls, "ToolCallsLiteral": literal(p.ToolCalls),
		"ToolCallID": p.ToolCallID, "ToolCallIDLiteral": literal(p.ToolCallID),
		"Read": strings.Join(append(selected, at), ", "), "Digest": digest, "Order": strings.Join(order, ", "),
		"Where": where, "Rows": rows, "TriggerName": trigger, "KeyLiteral": literal(p.Key), "JSON": p.preset.Format != "" && reads.content == "" || p.JSON, "View": !p.fenced, "NativeRole": p.nativeRole(),
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

// nativeRole returns an SQL expression for the word by which the table has the role of m: that of the row t itself or of
// another row of its session, if one means this role. A table that has no word for system messages or results has them
// as said by the user.
func (p *Plan) nativeRole() string {
	var words strings.Builder
	words.WriteString("CASE")
	for _, role := range slices.Sorted(maps.Keys(p.words)) {
		fmt.Fprintf(&words, " WHEN m->>'role' = %s THEN %s", literal(role), literal(p.words[role]))
	}
	words.WriteString(" ELSE " + literal(cmp.Or(p.words["user"], "user")) + " END")
	if p.Role == "" {
		return words.String()
	}
	q := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	means := func(row string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "CASE lower(%s.%s::text)", row, q(p.Role))
		for _, native := range slices.Sorted(maps.Keys(p.Roles)) {
			fmt.Fprintf(&b, " WHEN %s THEN %s", literal(native), literal(p.Roles[native]))
		}
		return b.String() + " END = m->>'role'"
	}
	return fmt.Sprintf("coalesce(CASE WHEN %s THEN t.%s::text END, (SELECT x.%[2]s::text FROM %s x WHERE x.%s = t.%[4]s AND %s LIMIT 1), %s)",
		means("t"), q(p.Role), p.relation, q(p.Session), means("x"), words.String())
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
	there := " IS NOT NULL AND t." + q(p.Key) + " IS NOT NULL"
	one := func(side string) string {
		return "SELECT " + key + " FROM " + from(side) + " WHERE t." + q(p.Session) + there + " AND (" + where + ")"
	}
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
			"SELECT DISTINCT x.session, x.key FROM (" + differ("old", "new") + " UNION " + differ("new", "old") + ") x WHERE x.session IS NOT NULL AND x.key IS NOT NULL",
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
