package api

import (
	"cmp"
	_ "embed"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsHTML string

// documented is an operation as the page of the document shows it.
type documented struct {
	Method, Path string
	*huma.Operation
	Scope  string
	Fields []field
}

// field is a parameter, or a field of the body.
type field struct {
	Name, In string
	Required bool
	Text     string
	Type     string
	Enum     []any
	Default  any
}

// fields returns the parameters of an operation, and the fields of its body.
func (a *api) fields(op *huma.Operation) (out []field) {
	add := func(name, in string, required bool, text string, s *huma.Schema) {
		f := field{Name: name, In: in, Required: required, Text: text}
		if s != nil {
			f.Type, f.Enum, f.Default, f.Text = s.Type, s.Enum, s.Default, cmp.Or(text, s.Description)
		}
		out = append(out, f)
	}
	for _, p := range op.Parameters {
		add(p.Name, p.In, p.Required, p.Description, p.Schema)
	}
	if op.RequestBody == nil {
		return out
	}
	s := op.RequestBody.Content["application/json"].Schema
	if s.Ref != "" {
		s = a.OpenAPI().Components.Schemas.SchemaFromRef(s.Ref)
	}
	if len(s.Properties) == 0 {
		add("", "body", op.RequestBody.Required, op.RequestBody.Description, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		add(name, "body", slices.Contains(s.Required, name), "", s.Properties[name])
	}
	return out
}

// docs returns the page that shows the document. It loads nothing from elsewhere, and runs no script.
func (a *api) docs() http.HandlerFunc {
	byTag := map[string][]documented{}
	var tags []string
	paths := a.OpenAPI().Paths
	for path, item := range paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op == nil {
				continue
			}
			scope, _ := op.Extensions["x-scope"].(string)
			tag := op.Tags[0]
			if byTag[tag] == nil {
				tags = append(tags, tag)
			}
			byTag[tag] = append(byTag[tag], documented{op.Method, path, op, scope, a.fields(op)})
		}
	}
	slices.Sort(tags)
	for _, ops := range byTag {
		slices.SortFunc(ops, func(a, b documented) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	}
	page := template.Must(template.New("docs").Parse(docsHTML))
	var b strings.Builder
	err := page.Execute(&b, map[string]any{"Info": a.OpenAPI().Info, "Tags": tags, "Operations": byTag})
	return func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			writeProblem(w, r, problemOf(err))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "+
			"form-action 'none'; frame-ancestors 'none'")
		_, _ = w.Write([]byte(b.String()))
	}
}
