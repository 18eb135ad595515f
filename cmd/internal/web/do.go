package web

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/api"
)

// done is the data of the template of a result.
type done struct {
	// Answer is the JSON of the operation.
	Answer map[string]any
	// Form has the fields of the form.
	Form url.Values
	// Said is the sentence of success.
	Said string
}

// do calls the operation that a form names and shows its result in the place of the form:
//
//	_method, _path   the operation, as POST and /v1/runs/17/undo
//	_result          the template of the result, which begins with result-; without one the sentence _said
//	?name            a parameter of its query
//	name             a field of its body: a text, or by a suffix of the name :bool, :number, :micros (millionths), :list (words)
//	                 or :json; a dot leads into an object
//	:raw             the whole body
//
// Empty fields are left out.
func (s *site) do(q *request) {
	if err := q.r.ParseForm(); err != nil || !s.sameToken(q.r, q.sign) {
		p := &api.Problem{Status: http.StatusForbidden, Code: "stale_page", Detail: "The page is too old for this: load it again."}
		s.fail(q, "", p)
		return
	}
	form := q.r.PostForm
	body, query, err := operationOf(form)
	if err != nil {
		s.fail(q, "", err)
		return
	}
	operation, fixed, _ := strings.Cut(form.Get("_path"), "?")
	if !strings.HasPrefix(operation, "/v1/") {
		s.fail(q, "", &api.Problem{Status: http.StatusNotFound, Code: "no_such_path", Detail: "The form names no operation."})
		return
	}
	if values, err := url.ParseQuery(fixed); err == nil {
		maps.Copy(query, values)
	}
	d := done{Form: form, Said: form.Get("_said")}
	if err := q.Call(q.r.Context(), form.Get("_method"), operation+"?"+query.Encode(), body, &d.Answer); err != nil {
		s.fail(q, "", err)
		return
	}
	name := form.Get("_result")
	if !strings.HasPrefix(name, "result-") || s.templates["error"].Lookup(name) == nil {
		name = "result"
	}
	if d.Said != "" {
		q.w.Header().Set("HX-Trigger", "changed")
	}
	s.write(q, http.StatusOK, name, view{q, "", "", d})
}

// operationOf returns the body and the query that the fields of a form are.
func operationOf(form url.Values) (body any, query url.Values, err error) {
	query, object := url.Values{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		value := strings.TrimSpace(form.Get(name))
		switch {
		case value == "" || strings.HasPrefix(name, "_"):
		case name == ":raw":
			body = []byte(form.Get(name))
		case strings.HasPrefix(name, "?"):
			query[name[1:]] = form[name]
		default:
			field, kind, _ := strings.Cut(name, ":")
			v, err := fieldOf(kind, value)
			if err != nil {
				return nil, nil, &api.Problem{
					Status: http.StatusUnprocessableEntity, Code: "invalid", Field: "body." + field, Detail: field + ": " + err.Error(),
				}
			}
			at := object
			names := strings.Split(field, ".")
			for _, n := range names[:len(names)-1] {
				inner, ok := at[n].(map[string]any)
				if !ok {
					inner = map[string]any{}
					at[n] = inner
				}
				at = inner
			}
			at[names[len(names)-1]] = v
		}
	}
	if method := form.Get("_method"); body == nil && (len(object) > 0 || method != http.MethodGet && method != http.MethodDelete) {
		body = object
	}
	return body, query, nil
}

func fieldOf(kind, value string) (any, error) {
	switch kind {
	case "":
		return value, nil
	case "bool":
		return value == "true" || value == "on", nil
	case "number", "micros":
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, errors.New("want a number, as 1234.5") // a comma may be that of thousands or of decimals
		}
		if kind == "micros" {
			return math.Round(n * 1e6), nil
		}
		return n, nil
	case "list":
		return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' }), nil
	}
	if !json.Valid([]byte(value)) {
		return nil, errors.New("want JSON")
	}
	return json.RawMessage(value), nil
}
