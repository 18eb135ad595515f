package api

import (
	"compress/gzip"
	"context"
	"crypto/cipher"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/worker"
)

// Options are the settings of a Server and the parts that it works with.
type Options struct {
	Config   config.Config
	Store    *store.Store
	Planner  *worker.Planner
	Registry *plan.Registry
	Logger   *slog.Logger
	Version  string
	// Observe is called after each request, with the pattern of its route; it may be nil.
	Observe func(route string, status int, took time.Duration)
	// Tracer makes a span for each operation; nil for none.
	Tracer trace.TracerProvider
	// Pages makes the handler of the dashboard, which serves all below PagesPath; nil for none.
	Pages func(*Server) http.Handler
}

// Server serves the API on an address.
type Server struct {
	o          Options
	keys       *keys
	asOperator bool
	loopback   bool
	listener   net.Listener
	http       *http.Server
	stopping   context.Context    // done when the server stops: streams end then
	stop       context.CancelFunc // of stopping
	streams    chan struct{}      // one element for each that is open
	compacting chan struct{}      // one element for each compaction without a session
	feeds      feeds
	overviews  reports.Overviews
	cipher     atomic.Pointer[cipher.AEAD]
	operations http.Handler // of requests with a caller
	pages      http.Handler // of the dashboard; may be nil
}

const (
	headerTimeout = 5 * time.Second
	maxHeader     = 64 << 10 // an id of 1,000 characters, percent-encoded, and a key
	drainTimeout  = 20 * time.Second
)

// ErrNoKeys reports that other machines can reach the address, and that there is no key.
var ErrNoKeys = errors.New("other machines can reach it, and there is no key: make one first " +
	"(`compactor key create --scope admin --all-tenants`), or listen on 127.0.0.1")

// Listen opens the listener of a server. Run serves on it.
func Listen(ctx context.Context, o Options) (*Server, error) {
	c := o.Config.API
	s := &Server{o: o, keys: newKeys(o.Store, c.RequestsPerSecond), streams: make(chan struct{}, c.MaxStreams)}
	s.compacting = make(chan struct{}, c.MaxCompactions)
	s.feeds.server = s
	var err error
	if s.asOperator, err = o.Store.MayBeOperator(ctx); err != nil {
		return nil, err
	}
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", c.Listen); err != nil {
		return nil, err
	}
	address, ok := s.listener.Addr().(*net.TCPAddr)
	s.loopback = ok && address.IP.IsLoopback()
	open, err := s.keys.open(ctx)
	switch {
	case err == nil && open && !s.loopback:
		err = ErrNoKeys
	case err == nil && c.TLSCert != "":
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err == nil {
			s.listener = tls.NewListener(s.listener, &tls.Config{
				Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			})
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	s.stopping, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.http = &http.Server{
		Handler:           s.handler(), //nolint:contextcheck // each request has a context of its own
		ReadHeaderTimeout: headerTimeout, ReadTimeout: c.ReadTimeout, WriteTimeout: c.WriteTimeout, IdleTimeout: c.IdleTimeout,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       log.New(io.Discard, "", 0), // of clients
	}
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	o.Logger.InfoContext(ctx, "serving the API", "url", scheme+"://"+address.String(), "keys", !open)
	if open {
		o.Logger.WarnContext(ctx, "there is no key: every program on this machine may do everything (see `compactor key create`)")
	}
	if !s.loopback && c.TLSCert == "" {
		o.Logger.WarnContext(ctx, "keys and messages are not encrypted on the way from other machines: "+
			"a proxy in front has to, or give api.tls_cert and api.tls_key")
	}
	if !s.asOperator {
		o.Logger.WarnContext(ctx, "keys of one tenant are refused: without the role operator, which the login may not take, "+
			"there is no row-level security: `compactor migrate up` creates it; grant it to the login, and start again")
	}
	return s, nil
}

// Address returns the address of the listener.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Run serves until ctx is cancelled, and then waits for the requests in progress.
func (s *Server) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(s.listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.http.RegisterOnShutdown(s.stop) // streams end by themselves never
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := s.http.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-ended //nolint:errcheck // it is that the server was closed
	s.stop()
	return err
}

// exchange records the facts of a request for the log.
type exchange struct {
	http.ResponseWriter
	status int
	caller *caller
	route  string
	err    error
	trace  string // the id of the trace, if it is recorded
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

type exchangeKey struct{}

// failed notes the error of a request for the log, where its answer does not have it.
func failed(ctx context.Context, err error) {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		x.err = err
	}
}

// handler returns all handlers that a request passes through.
func (s *Server) handler() http.Handler {
	s.operations = s.routes()
	if s.o.Pages != nil {
		s.pages = s.o.Pages(s)
	}
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		if s.servePages(w, r) {
			x.route = r.Pattern
			return
		}
		if !public(r.URL.Path) {
			c, err := s.authenticate(r)
			if err != nil {
				failed(r.Context(), err)
				writeProblem(w, r, problemOf(err))
				return
			}
			x.caller = c
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
		}
		if err := s.decode(w, r); err != nil {
			writeProblem(w, r, problemOf(err))
			return
		}
		s.traced(x, r, func(r *http.Request) {
			s.operations.ServeHTTP(w, r)
			x.route = r.Pattern
		})
	})
	pages := http.NewCrossOriginProtection() // in the browser of a person who may call the API
	pages.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, problem(http.StatusForbidden, "cross_origin", "pages of other origins may not call the API"))
	}))
	local := pages.Handler(inner)
	logged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		x := &exchange{ResponseWriter: w}
		defer func() { //nolint:contextcheck // it has that of the request
			p := recover()
			abort := p == http.ErrAbortHandler || p != nil && x.status != 0 //nolint:errorlint // as net/http compares it
			if p != nil && p != http.ErrAbortHandler {                      //nolint:errorlint // the same
				x.err = fmt.Errorf("panic: %T", p) // its value may be content
				s.o.Logger.ErrorContext(r.Context(), "a request panicked", "route", x.route, "stack", string(debug.Stack()))
			}
			if p != nil && !abort {
				writeProblem(x, r, problemOf(x.err))
			}
			s.record(r, x, time.Since(began))
			if abort {
				panic(http.ErrAbortHandler) // so that no client takes a part of an answer for the whole
			}
		}()
		local.ServeHTTP(x, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
	})
	compressed, _ := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.ExceptContentTypes([]string{"text/event-stream"})) // valid options
	return compressed(logged)
}

// decode bounds the body of a request and decompresses it. A body is JSON whatever curl says of it.
func (s *Server) decode(w http.ResponseWriter, r *http.Request) error {
	most := int64(s.o.Config.API.MaxBody)
	if r.ContentLength > most {
		return tooLarge(most)
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		r.Header.Set("Content-Type", "application/json")
	}
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return problem(http.StatusBadRequest, "invalid", "the body is not gzip, as Content-Encoding says")
		}
		r.Body = http.MaxBytesReader(w, unzipped, most)
		r.Header.Del("Content-Encoding")
		r.ContentLength = -1
	default:
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Encoding %q: want gzip, or none", coding)
	}
	return nil
}

// record logs a request, without its content, and counts it.
func (s *Server) record(r *http.Request, x *exchange, took time.Duration) {
	route := x.route
	if route == "" {
		route = "none"
	}
	if s.o.Observe != nil {
		s.o.Observe(route, x.status, took)
	}
	level := slog.LevelInfo
	if x.status >= 500 {
		level = slog.LevelWarn
	}
	if !s.o.Logger.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("route", route), slog.Int("status", x.status), slog.Duration("took", took.Round(time.Microsecond)),
	}
	if x.caller != nil {
		attrs = append(attrs, slog.String("key", x.caller.key.Prefix), slog.String("tenant", x.caller.tenant))
	}
	if x.trace != "" {
		attrs = append(attrs, slog.String("trace_id", x.trace))
	}
	if x.err != nil {
		attrs = append(attrs, slog.String("error", x.err.Error()))
	}
	s.o.Logger.LogAttrs(r.Context(), level, "request", attrs...)
}

// retryAfter returns a duration in whole seconds, at least one.
func retryAfter(wait time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
}
