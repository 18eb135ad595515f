package api

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sessionstore/compactor/store"
)

// routes returns the handler of all paths.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	c := huma.DefaultConfig("Compactor", s.o.Version)
	c.CreateHooks = nil // every answer would have the URL of a schema
	c.DocsPath, c.SchemasPath = "", ""
	c.Info.Description = "Keeps stored conversations of LLM agents within the context window, without deleting messages. " +
		"Ids are any string, percent-encoded in paths. Errors are problems of RFC 9457 with a stable code."
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "http", Scheme: "bearer", Description: "A key of `compactor key create`."},
	}
	c.Security = []map[string][]string{{"key": {}}}
	a := &api{API: humago.New(mux, c), s: s, mux: mux}
	a.UseMiddleware(slashes)
	a.sessions()
	a.appending()
	a.views()
	a.reports()
	a.events()
	a.messages()
	a.timeline()
	a.runs()
	a.compaction()
	a.fleet()
	a.bulk()
	a.keys()
	a.policies()
	a.installation()
	a.mcp()
	mux.HandleFunc("GET /docs", a.docs()) // of all that is registered by now
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { writeProblem(w, r, unknownPath(mux, r)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := strings.TrimSuffix(r.URL.EscapedPath(), "/"); p != "" && path.Clean(p) != p { // http.ServeMux would redirect to another path
			writeProblem(w, r, problem(http.StatusNotFound, "no_such_path",
				"a part of this path is empty, . or ..: percent-encode ids, also the dots of these"))
			return
		}
		if raw := r.URL.RawPath; loneSlash.MatchString(raw) {
			r.URL.RawPath = loneSlash.ReplaceAllString(raw, slashID)
			r.URL.Path, _ = url.PathUnescape(r.URL.RawPath) // as it was valid
		}
		mux.ServeHTTP(w, r)
	})
}

// unknownPath returns the problem of a request that no operation is for.
func unknownPath(mux *http.ServeMux, r *http.Request) *Problem {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, pattern := mux.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL}); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return problem(http.StatusNotFound, "no_such_path", "there is nothing at this path: see /openapi.json")
	}
	list := strings.Join(allowed, ", ")
	return problem(http.StatusMethodNotAllowed, "method_not_allowed", "this path takes %s: see /openapi.json", list).with("Allow", list)
}

// loneSlash matches an id that is a slash, which http.ServeMux takes for the end of a path: it is given another
// form that no id has, and gets its own back as a parameter.
var loneSlash = regexp.MustCompile(`(?i)/%2F(/|$)`)

const slashID = "/%2F%00$1"

func slashes(ctx huma.Context, next func(huma.Context)) {
	if strings.Contains(ctx.URL().RawPath, "/%2F%00") {
		ctx = slashContext{ctx}
	}
	next(ctx)
}

type (
	humaContext  huma.Context // whose method Context a field would hide
	slashContext struct{ humaContext }
)

func (c slashContext) Param(name string) string {
	if v := c.humaContext.Param(name); v != "/\x00" {
		return v
	}
	return "/"
}

// public reports whether a path needs no key: it has nothing of anybody's.
func public(path string) bool {
	return path == "/docs" || path == "/openapi.json" || path == "/openapi.yaml"
}

// api registers operations.
type api struct {
	huma.API
	s   *Server
	mux *http.ServeMux
}

// operation has the properties that all operations have.
type operation struct {
	scope, method, path, id, summary string
	// more changes the operation; it may be nil.
	more func(*huma.Operation)
}

// register adds an operation. handle gets a caller that has the scope.
func register[I, O any](a *api, o operation, handle func(context.Context, *caller, *I) (*O, error)) {
	op := huma.Operation{
		Method: o.method, Path: o.path, OperationID: o.id, Summary: o.summary, MaxBodyBytes: int64(a.s.o.Config.API.MaxBody),
		BodyReadTimeout: a.s.o.Config.API.ReadTimeout, // less than 0 would lift the server's
		Tags:            []string{strings.Split(o.path, "/")[2]},
		Extensions:      map[string]any{"x-scope": o.scope},
		Parameters:      []*huma.Param{tenantParam},
		Errors: []int{
			http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
			http.StatusServiceUnavailable,
		},
	}
	if o.method != http.MethodGet {
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType)
	}
	if o.more != nil {
		o.more(&op)
	}
	op.Middlewares = append(op.Middlewares, func(ctx huma.Context, next func(huma.Context)) { // before its parameters are read
		u := ctx.URL()
		p := unknownParameter(&u, parameters(ctx.Operation()))
		if c := callerOf(ctx.Context()); !c.may(o.scope) {
			p = forbidden(o.scope, c.key.Scope)
		}
		if p == nil {
			next(ctx)
			return
		}
		if s, ok := ctx.(slashContext); ok {
			ctx = s.humaContext
		}
		r, w := humago.Unwrap(ctx)
		writeProblem(w, r, p)
	})
	huma.Register(a.API, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, callerOf(ctx), in)
		if err != nil {
			failed(ctx, err)
			return nil, problemOf(err)
		}
		return out, nil
	})
}

// parameters returns the names of the parameters of a query that an operation has.
func parameters(op *huma.Operation) (names []string) {
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	return names
}

// unknownParameter returns the problem of a query with another parameter than these: who asks for a
// dry run where there is none should not get the change.
func unknownParameter(u *url.URL, names []string) *Problem {
	if u.RawQuery == "" {
		return nil
	}
	for name := range u.Query() {
		if !slices.Contains(names, name) {
			return invalid("query."+name, "%s: there is no such parameter, want %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// fails returns a change that adds the statuses of errors to an operation.
func fails(statuses ...int) func(*huma.Operation) {
	return func(op *huma.Operation) { op.Errors = append(op.Errors, statuses...) }
}

// tenantParam is a parameter of all operations: see authenticate.
var tenantParam = &huma.Param{
	Name: "tenant", In: "query", Description: "With a key of all tenants: the one that is meant.", Schema: &huma.Schema{Type: huma.TypeString},
}

func forbidden(want, has string) *Problem {
	return problem(http.StatusForbidden, "forbidden", "this needs a key of scope %s; this one has %s", want, has)
}

// raw returns a handler of its own, outside of the document, for callers with a scope, with these parameters and tenant.
func (s *Server) raw(scope string, handle func(http.ResponseWriter, *http.Request, *caller) error, names ...string) http.HandlerFunc {
	names = append(names, tenantParam.Name)
	return func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(r.Context())
		err := error(nil)
		if !c.may(scope) {
			err = forbidden(scope, c.key.Scope)
		} else if p := unknownParameter(r.URL, names); p != nil {
			err = p
		} else {
			err = handle(w, r, c)
		}
		if err != nil {
			failed(r.Context(), err)
			writeProblem(w, r, problemOf(err))
		}
	}
}

// SessionPath is the parameter of paths below a session.
type SessionPath struct {
	Session string `path:"session" minLength:"1" doc:"The session's id, percent-encoded."`
}

// Page selects a page of a list.
type Page struct {
	Limit int `query:"limit" minimum:"0" default:"100" doc:"Rows of a page, at most api.max_page."`
}

// limit returns the number of rows of a page.
func (p Page) limit(c *caller) (int, error) {
	if most := c.server.o.Config.API.MaxPage; p.Limit > most {
		return 0, invalid("query.limit", "limit %d: want at most %d (api.max_page)", p.Limit, most)
	}
	return p.Limit, nil
}

// numbered returns the number of rows of a page, and the cursor of one whose cursors are numbers.
func (p Page) numbered(c *caller, cursor string) (limit int, after int64, err error) {
	if limit, err = p.limit(c); err != nil {
		return 0, 0, err
	}
	if after, err = strconv.ParseInt("0"+cursor, 10, 64); err != nil {
		return 0, 0, invalid("query.after", "after: want next of the page before")
	}
	return limit, after, nil
}

// page returns a page with the cursor of the next one, 0 for none.
func page[T any](items []T, next int64, err error) (*body[list[T]], error) {
	out := list[T]{Items: append([]T{}, items...)}
	if next > 0 {
		out.Next = strconv.FormatInt(next, 10)
	}
	return answer(out, err)
}

// items returns a list without pages.
func items[T any](rows []T, err error) (*body[list[T]], error) { return page(rows, 0, err) }

// body is an answer with a JSON body.
type body[T any] struct{ Body T }

func answer[T any](v T, err error) (*body[T], error) { return &body[T]{v}, err }

// list is the body of a list; next is the cursor of the next page.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"The value of the parameter after of the next page; absent on the last."`
}

// Scopes in operations.
const (
	reads    = store.ScopeRead
	appends  = store.ScopeAppend
	operates = store.ScopeOperate
	admins   = store.ScopeAdmin
)
