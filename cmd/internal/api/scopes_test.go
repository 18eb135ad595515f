package api_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
)

// described is an operation of the document.
type described struct {
	method, path, scope, summary string
	body                         any // of withBody
}

// operations returns the operations of the document, by path and method.
func (s *server) operations(t *testing.T) (out []described) {
	t.Helper()
	for path, item := range s.doc.Paths.Map() {
		for method, op := range item.Operations() {
			scope, _ := op.Extensions["x-scope"].(string)
			if scope == "" {
				t.Errorf("%s %s has no x-scope", method, path)
			}
			out = append(out, described{method: method, path: path, scope: scope, summary: op.Summary})
		}
	}
	slices.SortFunc(out, func(a, b described) int { return strings.Compare(a.path+" "+a.method, b.path+" "+b.method) })
	return out
}

// request returns the path of an operation with a value for each parameter, and a body.
func (d described) request(doc *openapi3.T) (path string, body any) {
	op := doc.Paths.Value(d.path).GetOperation(d.method)
	path = d.path
	for _, p := range op.Parameters {
		if p.Value.In != "path" {
			continue
		}
		value := "x"
		switch schema := p.Value.Schema.Value; {
		case len(schema.Enum) > 0:
			value = fmt.Sprint(schema.Enum[0])
		case schema.Type.Includes("integer"):
			value = "1"
		}
		path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", value)
	}
	if op.RequestBody == nil {
		return path, nil
	}
	if media := op.RequestBody.Value.Content.Get("application/json"); media != nil && media.Schema != nil {
		return path, example(media.Schema.Value)
	}
	return path, "{}"
}

// example returns a value that a schema allows.
func example(schema *openapi3.Schema) any {
	switch {
	case schema == nil || schema.Type == nil:
		return "x"
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case schema.Type.Includes("object"):
		out := map[string]any{}
		for _, name := range schema.Required {
			out[name] = example(schema.Properties[name].Value)
		}
		return out
	case schema.Type.Includes("array"):
		if schema.MinItems == 0 {
			return []any{}
		}
		return []any{example(schema.Items.Value)}
	case schema.Type.Includes("integer"), schema.Type.Includes("number"):
		return 1
	case schema.Type.Includes("boolean"):
		return true
	}
	return "x"
}

// What each scope may call is a page, which -update rewrites.
func TestScopesAreDocumented(t *testing.T) {
	s := newServer(t)
	const file, begin, end = "../../../deploy/docs/api.md", "<!-- generated -->\n", "<!-- end -->\n"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s lacks %q or %q", file, begin, end)
	}
	var table strings.Builder
	table.WriteString("| operation | scope | what it does |\n|---|---|---|\n")
	for _, d := range s.operations(t) {
		fmt.Fprintf(&table, "| `%s %s` | %s | %s |\n", d.method, d.path, d.scope, strings.ReplaceAll(d.summary, "|", `\|`))
	}
	want := before + begin + table.String() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(raw), want); diff != "" {
		t.Errorf("the table differs; run this test with -update (-page +document):\n%s", diff)
	}
}

func TestEveryOperationNeedsItsScope(t *testing.T) {
	s := newServer(t)
	scopes := []string{store.ScopeRead, store.ScopeAppend, store.ScopeOperate, store.ScopeAdmin}
	keys := map[string]string{}
	for _, scope := range scopes {
		keys[scope] = s.key(t, scope, "acme")
	}
	s.do(t, keys[store.ScopeRead], http.MethodGet, "/v1/stats", nil).want(t, 200) // so that the server knows of keys
	for _, d := range s.operations(t) {
		path, body := d.request(s.doc)
		at := slices.Index(scopes, d.scope)
		if at < 0 {
			t.Errorf("%s %s: scope %q", d.method, d.path, d.scope)
			continue
		}
		for _, lower := range scopes[:at] {
			if r := s.do(t, keys[lower], d.method, path, body); r.status != http.StatusForbidden || !strings.Contains(r.body, "this needs a key of scope "+d.scope) {
				t.Errorf("%s %s with a key of scope %s: %d %s", d.method, path, lower, r.status, r.body)
			}
		}
		for _, key := range []string{"", "cpk_unknown"} {
			if r := s.do(t, key, d.method, path, body); r.status != http.StatusUnauthorized {
				t.Errorf("%s %s with the key %q: %d %s", d.method, path, key, r.status, r.body)
			}
		}
	}
}
