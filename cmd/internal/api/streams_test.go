package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/cli"
	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
)

// memory is a listener of connections in memory, which take no files of the process.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.close.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// from is a connection from an address.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr {
	a, _ := net.ResolveTCPAddr("tcp", f.address)
	return a
}

// dial returns a connection from an address.
func (m *memory) dial(address string) net.Conn {
	client, server := net.Pipe()
	m.conns <- from{server, address}
	return client
}

// inMemory serves the API in memory until the test ends.
func (s *server) inMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
	running, err := api.Listen(t.Context(), api.Options{
		Config: s.app.Config, Store: s.st, Planner: s.app.Planner, Registry: s.app.Planner.Registry, Logger: s.app.Logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	running.On(m)
	s.run(t, cli.Role{Name: "api", Run: running.Run})
	return m
}

// opened is a stream in memory.
type opened struct {
	conn net.Conn
	in   *bufio.Reader
}

// open asks for a stream of events, and returns it with nothing, or the answer that refuses it.
func (m *memory) open(key string) (o opened, refused string, err error) {
	o.conn = m.dial("127.0.0.1:1")
	o.in = bufio.NewReaderSize(o.conn, 256)
	if _, err = fmt.Fprintf(o.conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", key); err != nil {
		return o, "", err
	}
	first, err := o.in.ReadString('\n')
	if err != nil || strings.HasPrefix(first, "HTTP/1.1 200 ") {
		return o, "", errors.Join(err, o.until(": connected"))
	}
	var rest strings.Builder
	for err == nil && !strings.HasSuffix(rest.String(), "\n0\r\n") && !strings.HasSuffix(rest.String(), "}\n") {
		var line string
		line, err = o.in.ReadString('\n')
		rest.WriteString(line)
	}
	return o, first + rest.String(), errors.Join(err, o.conn.Close())
}

// until reads until a line begins with a text.
func (o opened) until(text string) error {
	for {
		line, err := o.in.ReadString('\n')
		if err != nil || strings.HasPrefix(line, text) {
			return err
		}
	}
}

// each calls f for 0 to n-1, some at a time.
func each(n int, f func(int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 32 {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// Of 10,000 streams, those above the limit are refused and the others live; those that are closed give
// way to new ones.
func TestTenThousandStreams(t *testing.T) {
	attempts := 10_000
	if testing.Short() { // the race detector has a limit of goroutines
		attempts = 1000
	}
	most := attempts * 9 / 10
	s := newServer(t, func(c *config.Config) { c.API.MaxStreams, c.API.RequestsPerSecond = most, 1e6 })
	m, key := s.inMemory(t), s.key(t, "read", "")
	size := func() (bytes uint64, goroutines int) {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		return now.HeapAlloc + now.StackInuse, runtime.NumGoroutine()
	}
	bytes, goroutines := size()
	var lock sync.Mutex
	var live []opened
	refused := 0
	attempt := func(int) {
		o, answer, err := m.open(key)
		lock.Lock()
		defer lock.Unlock()
		switch {
		case err != nil:
			t.Errorf("%v after %q", err, answer)
		case answer == "":
			live = append(live, o)
		default:
			if refused++; !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, `"code":"too_many_streams"`) ||
				!strings.Contains(answer, fmt.Sprintf("%d streams of events are open (api.max_streams)", most)) || !strings.Contains(answer, "\nRetry-After: ") {
				t.Error(answer)
			}
		}
	}
	each(attempts, attempt)
	t.Cleanup(func() {
		for _, o := range live {
			_ = o.conn.Close()
		}
	})
	if len(live) != most || refused != attempts-most {
		t.Fatalf("%d live, %d refused", len(live), refused)
	}
	moreBytes, moreGoroutines := size()
	t.Logf("of a stream, with the client's end, beside other tests: %d bytes, %.1f goroutines",
		(int64(moreBytes)-int64(bytes))/int64(most), float64(moreGoroutines-goroutines)/float64(most))

	run := s.excluded(t, store.Key{Tenant: "acme", Session: "s"}, "a")
	each(most, func(i int) {
		if err := live[i].until("data: {"); err != nil {
			t.Errorf("run %d does not arrive: %v", run, err)
		}
	})
	const gone = 100
	for range gone {
		_ = live[0].conn.Close()
		live = live[1:]
	}
	storetest.Await(t, "new streams take the places", func() bool {
		attempt(0)
		return len(live) == most || t.Failed()
	})
	if before := refused; !t.Failed() {
		attempt(0)
		if refused != before+1 {
			t.Error("a stream more than the limit")
		}
	}
}

// The timeouts of a server end requests that are slow, and no stream.
func TestStreamsOutliveTimeouts(t *testing.T) {
	s := newServer(t)
	c := s.app.Config
	c.API.ReadTimeout, c.API.WriteTimeout, c.API.IdleTimeout = time.Second, time.Second, time.Second
	plain := "http://" + s.listen(t, c)
	cert, file, client := certificate(t)
	c.API.TLSCert, c.API.TLSKey = cert, file
	secure := "https://" + s.listen(t, c)
	both := client.Transport.(*http.Transport).Clone()
	both.ForceAttemptHTTP2 = true
	key := s.key(t, "read", "acme")
	var streams []*stream
	for _, address := range []string{plain, secure} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := both.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if http2 := address == secure; http2 != (resp.ProtoMajor == 2) {
			t.Fatalf("%s: %s", address, resp.Proto)
		}
		streams = append(streams, &stream{t: t, resp: resp, in: bufio.NewScanner(resp.Body)})
		streams[len(streams)-1].in.Scan()
	}
	// What begins after them and is ended by the timeouts shows that these have passed.
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(plain, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 9\r\n\r\n", s.key(t, "append", "acme")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Fatal(err)
	}
	run := s.excluded(t, store.Key{Tenant: "acme", Session: "s"}, "a")
	for _, stream := range streams {
		if e, _ := stream.next(); e.ID != run {
			t.Errorf("%+v, want run %d", e, run)
		}
	}
}

// A stream ends with its key: when that is revoked, when it expires, and without one, when there are keys.
func TestStreamsEndWithTheirKeys(t *testing.T) {
	s := newServer(t)
	open := s.stream(t, "", "")
	open.in.Scan()
	revoked, expired, kept := s.key(t, "read", "acme"), s.key(t, "append", "acme"), s.key(t, "operate", "acme")
	ending := []*stream{open, s.stream(t, revoked, ""), s.stream(t, expired, "")}
	for _, e := range ending[1:] {
		e.in.Scan()
	}
	lives := s.stream(t, kept, "")
	lives.in.Scan()
	if _, err := s.st.Admin.RevokeKey(t.Context(), "acme", "read-4", "test"); err != nil {
		t.Fatal(err)
	}
	var expiredAt time.Time
	s.query(t, `UPDATE compactor.api_keys SET expires_at = now() WHERE name = 'append-4' RETURNING expires_at`, &expiredAt)
	for _, e := range ending {
		for e.in.Scan() { // until the server ends it
		}
	}
	run := s.excluded(t, store.Key{Tenant: "acme", Session: "s"}, "a")
	if e, _ := lives.next(); e.ID != run {
		t.Errorf("%+v, want run %d", e, run)
	}
	for _, key := range []string{revoked, expired} {
		s.do(t, key, http.MethodGet, "/v1/events", nil).want(t, 401, `"code":"invalid_key"`)
	}
}

// Wrong keys lock their address out, and no other one; nor a key that the server knows.
func TestWrongKeysLockTheirAddressOut(t *testing.T) {
	s := newServer(t)
	m := s.inMemory(t)
	known, fresh := s.key(t, "read", "acme"), s.key(t, "append", "acme")
	get := func(address, key string, headers ...string) (status int, header http.Header) {
		t.Helper()
		conn := m.dial(address)
		defer conn.Close()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/v1/sessions", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header
	}
	expect := func(want int, address, key string) {
		t.Helper()
		if got, _ := get(address, key); got != want {
			t.Errorf("%s with %.10s: %d, want %d", address, key, got, want)
		}
	}
	const attacker = "[2001:db8::1]:4000"
	expect(200, attacker, known)
	// Who has an address of IPv6 has the others of its network, and sends any headers.
	var refused http.Header
	for i := 0; refused == nil && i < 5000; i++ {
		status, header := get(fmt.Sprintf("[2001:db8::%x]:4000", i+1), fmt.Sprint("cpk_", i),
			"X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", i/250, i%250), "X-Real-Ip", fmt.Sprintf("198.51.%d.%d", i/250, i%250))
		switch status {
		case http.StatusTooManyRequests:
			refused = header
		case http.StatusUnauthorized:
		default:
			t.Fatalf("status %d", status)
		}
	}
	if got := refused.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q", got)
	}
	expect(200, attacker, known)
	others := []string{"198.51.100.1:4000", "198.51.100.2:4000", "198.51.100.3:4000"} // one may have the attacker's limiter
	if !slices.ContainsFunc(others, func(address string) bool {
		status, _ := get(address, fresh)
		return status == http.StatusOK
	}) {
		t.Error("other addresses are locked out")
	}
}
