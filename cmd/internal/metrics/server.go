package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sessionstore/compactor/strategies/policy"
)

// Config holds the settings of the listener.
type Config struct {
	// Listen is the address of the listener, with a host; Off for none.
	Listen string `yaml:"listen"`
	// Tenants bounds the tenants that metrics name; the others are counted as one.
	Tenants int `yaml:"tenants"`
}

// Off is the value of Config.Listen without a listener.
const Off = "off"

// DefaultConfig returns the default settings.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:9464", Tenants: 20} }

// Validate reports every setting that is out of range, as an errors.Join of
// *policy.FieldError values.
func (c Config) Validate() error {
	var fs policy.FieldErrors
	host, port, err := net.SplitHostPort(c.Listen)
	n, notNumber := strconv.Atoi(port)
	fs.Check(c.Listen == Off || err == nil && host != "" && notNumber == nil && n >= 0 && n < 1<<16, "listen", strconv.Quote(c.Listen),
		"host:port, such as 127.0.0.1:9464 (0.0.0.0:9464 for all interfaces), or %s", Off)
	policy.CheckRange(&fs, "tenants", c.Tenants, 0, 500)
	return fs.Join()
}

// Server serves /metrics, /healthz and /readyz.
type Server struct {
	http     *http.Server
	listener net.Listener
	ended    chan struct{}
}

const (
	headerTimeout = 5 * time.Second
	// answerTimeout bounds the time for a response, longer than a query for the fleet.
	answerTimeout = 15 * time.Second
	maxHeader     = 16 << 10
	// maxScrapes bounds the scrapes at a time.
	maxScrapes = 4
	// closeTimeout is how long Close waits for responses.
	closeTimeout = time.Second
)

// Serve listens on an address and serves the metrics and the health of the process until
// Close.
func (m *Metrics) Serve(ctx context.Context, address string, health *Health) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.Handle("GET /readyz", health)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s := &Server{
		http: &http.Server{
			Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: time.Minute,
			MaxHeaderBytes: maxHeader,
			ErrorLog:       log.New(io.Discard, "", 0), // of clients
		},
		listener: listener, ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(listener) // ErrServerClosed, by Close
	}()
	return s, nil
}

// Address returns the address of the listener.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Loopback reports whether other machines cannot reach the listener.
func (s *Server) Loopback() bool {
	address, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// Close stops the listener and waits for the responses in progress.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.ended
	return err
}
