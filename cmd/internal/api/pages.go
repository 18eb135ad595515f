package api

import (
	"bytes"
	"context"
	"crypto/cipher"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/sessionstore/compactor/store"
)

// PagesPath is the path of the dashboard: see Options.Pages.
const PagesPath = "/ui/"

// Caller calls the operations of a Server within its process, with the rights of a key. It is for one request of a page.
type Caller struct {
	s      *Server
	secret string
	key    store.APIKey
}

// Caller returns the caller of a request whose secret was given in some other way than by its header. Its
// errors are problems, as those of requests.
func (s *Server) Caller(r *http.Request, secret string) (*Caller, error) {
	key, err := s.admit(r, secret)
	if err != nil {
		return nil, problemOf(err)
	}
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		x.caller = &caller{key: key} // for the log
	}
	return &Caller{s: s, secret: secret, key: key}, nil
}

// Key returns the key, a zero one on a server without keys.
func (c *Caller) Key() store.APIKey { return c.key }

// May reports whether the key has a scope.
func (c *Caller) May(scope string) bool { return (&caller{key: c.key}).may(scope) }

// Call calls an operation: a method and the path with its query. in is its body, nil for none, []byte for
// one that is not JSON; out gets the answer and may be nil. Errors are of type *Problem.
func (c *Caller) Call(ctx context.Context, method, target string, in, out any) error {
	raw, ok := in.([]byte)
	if in != nil && !ok {
		var err error
		if raw, err = json.Marshal(in); err != nil {
			return problemOf(err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(raw))
	if err != nil {
		return problem(http.StatusNotFound, "no_such_path", "this is no path")
	}
	if in == nil {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Content-Type", "application/json")
	w := &recorder{header: http.Header{}}
	c.serve(w, r)
	if w.status >= http.StatusBadRequest {
		p := &Problem{Status: w.status, Code: "internal", Detail: http.StatusText(w.status)}
		_ = json.Unmarshal(w.Bytes(), p)
		return p
	}
	if out == nil || w.Len() == 0 {
		return nil
	}
	if err := json.Unmarshal(w.Bytes(), out); err != nil {
		return problemOf(err)
	}
	return nil
}

// Stream answers a request with the stream of events.
func (c *Caller) Stream(w http.ResponseWriter, r *http.Request) {
	u := *r.URL
	u.Path = "/v1/events"
	inner := r.Clone(r.Context())
	inner.URL = &u
	c.serve(w, inner)
}

func (c *Caller) serve(w http.ResponseWriter, r *http.Request) {
	own, err := c.s.callerFor(r, c.secret, c.key)
	if err != nil {
		writeProblem(w, r, problemOf(err))
		return
	}
	c.s.operations.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, own)))
}

// Cipher returns the cipher of what the dashboard leaves with browsers. It is the same in all processes of the installation.
func (s *Server) Cipher(ctx context.Context) (cipher.AEAD, error) {
	if c := s.cipher.Load(); c != nil {
		return *c, nil
	}
	c, err := s.o.Store.Worker.ItemCipher(ctx, "\x00dashboard") // the name of no tenant
	if err == nil {
		s.cipher.Store(&c)
	}
	return c, err
}

// Path returns the path of an operation: segments are escaped, also dots that would be taken for another path.
func Path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteByte('/')
		if s == "." || s == ".." {
			b.WriteString(strings.ReplaceAll(s, ".", "%2E"))
		} else {
			b.WriteString(url.PathEscape(s))
		}
	}
	return b.String()
}

// recorder keeps an answer in memory.
type recorder struct {
	bytes.Buffer
	header http.Header
	status int
}

func (w *recorder) Header() http.Header    { return w.header }
func (w *recorder) WriteHeader(status int) { w.status = status }

// servePages answers a request for the dashboard, and reports whether it is one.
func (s *Server) servePages(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case s.pages == nil:
		return false
	case r.URL.Path == "/" && r.Method == http.MethodGet, r.URL.Path+"/" == PagesPath:
		http.Redirect(w, r, PagesPath, http.StatusSeeOther)
	case strings.HasPrefix(r.URL.Path, PagesPath):
		r.Body = http.MaxBytesReader(w, r.Body, int64(s.o.Config.API.MaxBody))
		s.pages.ServeHTTP(w, r)
	default:
		return false
	}
	return true
}
