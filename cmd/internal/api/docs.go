package api

import (
	_ "embed"
	"html/template"
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
	Scope string
	Body  bool // it takes one
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
			byTag[tag] = append(byTag[tag], documented{op.Method, path, op, scope, op.RequestBody != nil})
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
