// Package web serves the dashboard: pages that show and steer the fleet through the operations of the HTTP API, whose
// rights and errors are theirs, too. It holds no rule of its own.
package web

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/store"
)

// Options are the settings of the dashboard.
type Options struct {
	Version string
	// HideTexts keeps texts of messages off pages until they are asked for.
	HideTexts bool
	// SignOut is how long a browser stays signed in without a request.
	SignOut time.Duration
	// Secure sends the cookie over TLS only.
	Secure bool
}

//go:embed assets templates
var files embed.FS

// request is a request for a page, by a key.
type request struct {
	*api.Caller
	Options
	w    http.ResponseWriter
	r    *http.Request
	sign signIn
	// Tenant is the one that the page is limited to; "" for all.
	Tenant string
	// Op and Admin report whether the key may operate, and administer.
	Op, Admin bool
	Now       time.Time
}

// get reads the answer of a GET operation; query has names and values in turn.
func (q *request) get(out any, operation string, query ...string) error {
	return q.Call(q.r.Context(), http.MethodGet, q.target(operation, query...), nil, out)
}

// target returns an operation with a query of the names and values in turn that are not empty, and the tenant.
func (q *request) target(operation string, query ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			v.Add(query[i], query[i+1])
		}
	}
	if q.Tenant != "" {
		v.Set("tenant", q.Tenant)
	}
	if len(v) == 0 {
		return operation
	}
	return operation + "?" + v.Encode()
}

// param returns a parameter of the page's address.
func (q *request) param(name string) string { return q.r.URL.Query().Get(name) }

// view is the data of the template of a page.
type view struct {
	*request
	Title string
	// Nav is the entry of the navigation that is current.
	Nav  string
	Data any
}

// URL returns the address of the page.
func (v view) URL() string { return v.r.URL.RequestURI() }

// Query returns the address of the page with other parameters: names and values in turn, an empty one takes it away.
// The page of a list begins anew.
func (v view) Query(set ...string) string {
	q := v.r.URL.Query()
	q.Del("after")
	for i := 0; i+1 < len(set); i += 2 {
		if q.Del(set[i]); set[i+1] != "" {
			q.Set(set[i], set[i+1])
		}
	}
	return "?" + q.Encode()
}

// Param returns a parameter of the page's address.
func (v view) Param(name string) string { return v.param(name) }

// Filtered reports whether the address says more than which page it is.
func (v view) Filtered() bool { return v.r.URL.RawQuery != "" }

// Path returns the part of the address that says which page it is.
func (v view) Path() string { return v.r.URL.Path }

// FilterTenant returns the tenant that the links of the navigation keep: that of a list, not that of one session or run.
func (v view) FilterTenant() string {
	if v.Key().Tenant != nil || v.param("id") != "" || v.param("run") != "" {
		return ""
	}
	return v.Tenant
}

// site is the handler of the dashboard. Safe for concurrent use.
type site struct {
	Options
	server    *api.Server
	templates map[string]*template.Template
	// nonce and token stand in templates for those of the request. They are drawn for the process, so that no text of others has them.
	nonce, token string
	version      string // of the assets
}

// page is a page below api.PagesPath. What load returns may have a method Title.
type page struct {
	pattern, template, nav, title string
	load                          func(*request) (any, error)
}

var pages = slices.Concat([]page{{"", "overview", "overview", "Overview", overview}}, sessionPages, runPages, fleetPages, adminPages)

// Pages returns the constructor of the handler of all paths below api.PagesPath for a server. The handler is safe for concurrent use.
func Pages(o Options) func(*api.Server) http.Handler {
	return func(server *api.Server) http.Handler { return newSite(server, o).routes() }
}

func newSite(server *api.Server, o Options) *site {
	s := &site{Options: o, server: server, nonce: rand.Text(), token: rand.Text(), version: assetsVersion()}
	s.templates = s.parse()
	return s
}

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	for _, p := range pages {
		pattern := cmp.Or(p.pattern, "{$}")
		mux.HandleFunc("GET "+api.PagesPath+pattern, s.with(func(q *request) {
			data, err := p.load(q)
			if err != nil {
				s.fail(q, p.nav, err)
				return
			}
			if to, ok := data.(redirect); ok {
				http.Redirect(q.w, q.r, string(to), http.StatusSeeOther)
				return
			}
			title := p.title
			if t, ok := data.(interface{ Title() string }); ok {
				title = t.Title()
			}
			s.write(q, http.StatusOK, p.template, view{q, title, p.nav, data})
		}))
	}
	mux.HandleFunc("POST "+api.PagesPath+"do", s.with(s.do))
	mux.HandleFunc("GET "+api.PagesPath+"live", s.with(func(q *request) { q.Stream(q.w, q.r) }))
	mux.HandleFunc("GET "+api.PagesPath+"sign-in", s.showSignIn)
	mux.HandleFunc("POST "+api.PagesPath+"sign-in", s.signIn)
	mux.HandleFunc("POST "+api.PagesPath+"sign-out", s.signOut)
	root, _ := fs.Sub(files, "assets") // it is a valid name
	assets := http.FileServerFS(root)
	mux.HandleFunc("GET "+api.PagesPath+"assets/{version}/{file...}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("version") == s.version {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		r.URL.Path = "/" + r.PathValue("file")
		assets.ServeHTTP(w, r)
	})
	mux.HandleFunc("/", s.with(func(q *request) {
		s.fail(q, "", &api.Problem{Status: http.StatusNotFound, Code: "no_such_page", Detail: "There is no page at this address."})
	}))
	return mux
}

// with returns the handler of requests that are signed in.
func (s *site) with(handle func(*request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := s.admit(w, r)
		if err != nil {
			p, _ := errors.AsType[*api.Problem](err)
			if p != nil && p.Status == http.StatusUnauthorized && r.Method == http.MethodGet {
				if r.Header.Get("HX-Request") != "" { // the whole page is loaded again, and goes there
					w.Header().Set("HX-Refresh", "true")
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				http.Redirect(w, r, api.PagesPath+"sign-in?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
				return
			}
			s.fail(&request{Options: s.Options, w: w, r: r, Now: time.Now()}, "", err)
			return
		}
		handle(q)
	}
}

// fail shows an error: in its place where a part of a page was asked for, else as a page.
func (s *site) fail(q *request, nav string, err error) {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok {
		p = &api.Problem{
			Status: http.StatusInternalServerError,
			Code:   "internal",
			Detail: "The page cannot be shown; the log of the server has the error.",
		}
	}
	name := "error"
	if q.Caller == nil || q.r.Method != http.MethodGet {
		name = "problem"
	}
	s.write(q, p.Status, name, view{q, http.StatusText(p.Status), nav, p})
}

// write answers with a template. A page that fails halfway is not sent.
func (s *site) write(q *request, status int, name string, v view) {
	var b bytes.Buffer
	t, block := s.templates[name], "layout"
	if t == nil {
		t, block = s.templates["error"], name
	}
	if err := t.ExecuteTemplate(&b, block, v); err != nil {
		panic(err) // the server logs it
	}
	nonce := rand.Text()
	h := q.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'nonce-"+nonce+"'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "HX-Request")
	q.w.WriteHeader(status)
	out := bytes.ReplaceAll(b.Bytes(), []byte(s.nonce), []byte(nonce))
	_, _ = q.w.Write(bytes.ReplaceAll(out, []byte(s.token), []byte(cmp.Or(q.sign.Token, "-")))) //nolint:gosec // the template escapes
}

// may sets the rights of the key of a request.
func (q *request) may() {
	q.Op, q.Admin = q.May(store.ScopeOperate), q.May(store.ScopeAdmin)
}
