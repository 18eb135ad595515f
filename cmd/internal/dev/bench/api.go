package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// APIOptions holds the sizes of the benchmark of the HTTP API, with the tags of their flags.
type APIOptions struct {
	Sessions int `default:"500" help:"Sessions of 200 messages that are read and appended to."`
	Size     int `default:"200" help:"Bytes of each message's text."`
	Compact  int `default:"0" placeholder:"N" help:"Leave the last N messages of each session in its view; 0 for all."`
	Seconds  int `default:"10" help:"Duration of each of the measurements."`
	Clients  int `default:"8" help:"Connections of the client."`
	Sweep    int `default:"20000" help:"Due sessions of the sweep that runs meanwhile."`
}

// APIResult holds the measurements of API.
type APIResult struct {
	ViewsPerSecond       float64 `json:"views_per_second"`
	ViewP50              float64 `json:"view_p50_ms"`
	ViewP99              float64 `json:"view_p99_ms"`
	NotModifiedPerSecond float64 `json:"not_modified_per_second"`
	AppendsPerSecond     float64 `json:"appends_per_second"` // of ten messages
	AppendP99            float64 `json:"append_p99_ms"`
	Errors               int64   `json:"errors"`

	// Of one client at a time, through the API and by the store's method, without a sweep.
	ViewMillis      float64 `json:"view_ms"`
	StoreViewMillis float64 `json:"store_view_ms"`

	ViewMessages int   `json:"view_messages"`
	ViewBytes    int   `json:"view_bytes"`
	SweepRuns    int64 `json:"sweep_runs"` // that ended meanwhile
}

// Environment variables of the client process.
const (
	EnvURL = "COMPACTOR_BENCH_URL"
	EnvKey = "COMPACTOR_BENCH_KEY"
)

// apiMessages is the length of the sessions, appendMessages that of an append.
const apiMessages, appendMessages = 200, 10

// API measures the HTTP API from another process, beside a sweep.
func API(ctx context.Context, env Env, o APIOptions) (r APIResult, err error) {
	const start, target = 30_000, 20_000
	s, closeAll, err := open(ctx, env, truncating(start, target))
	if err != nil {
		return r, err
	}
	defer closeAll()
	if s.db, err = openDatabase(ctx, env.DatabaseURL, 4, s.store); err != nil {
		return r, err
	}
	defer s.db.pool.Close()
	if err := s.fillAPI(ctx, o, start); err != nil {
		return r, err
	}
	_, secret, err := s.store.Admin.CreateKey(ctx, store.NewKey{Name: "bench", Scope: store.ScopeAdmin}, "bench")
	if err != nil {
		return r, err
	}
	c := config.Default()
	c.API.Listen, c.API.RequestsPerSecond = "127.0.0.1:0", 1e6
	server, err := api.Listen(ctx, api.Options{Config: c, Store: s.store, Planner: s.planner, Registry: s.planner.Registry, Logger: env.Logger})
	if err != nil {
		return r, err
	}
	err = s.work(ctx, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		serving, stop := context.WithCancel(ctx)
		g.Go(func() error { return server.Run(serving) })
		g.Go(func() error {
			defer stop()
			return s.measureAPI(ctx, o, "http://"+server.Address(), secret, &r)
		})
		return g.Wait()
	})
	return r, err
}

// fillAPI imports the sessions that are read, and those of the sweep.
func (s *system) fillAPI(ctx context.Context, o APIOptions, start chat.Tokens) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	var done atomic.Int64
	fill := func(k store.Key, msgs []store.NewMessage) {
		g.Go(func() error {
			seqs, _, err := s.store.Import(gctx, k, "job", msgs)
			if err == nil && k.Tenant == "" && o.Compact > 0 {
				var ids []string
				for _, q := range seqs[:len(seqs)-o.Compact] {
					ids = append(ids, fmt.Sprintf("m%d", q))
				}
				_, err = s.store.Exclude(gctx, k, ids, "bench")
			}
			s.env.Progress("filling", int(done.Add(1)), o.Sweep+o.Sessions)
			return err
		})
	}
	for i := range o.Sessions {
		msgs := session(apiMessages, o.Size, 50, false)
		for n := range msgs {
			msgs[n].ID = fmt.Sprintf("m%d", n+1)
		}
		fill(store.Key{Session: apiSession(i)}, msgs)
	}
	for i := range o.Sweep {
		fill(store.Key{Tenant: fleetTenant, Session: fmt.Sprintf("s%d", i)}, session(20, 60, start/20+100, true))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.db.vacuum(ctx)
}

func apiSession(i int) string { return fmt.Sprintf("s%d", i) }

// measureAPI runs the client, beside a sweep and without one.
func (s *system) measureAPI(ctx context.Context, o APIOptions, url, secret string, r *APIResult) error {
	if err := s.alone(ctx, o, url, secret, r); err != nil {
		return err
	}
	sweep, err := s.store.Operator.StartSweep(ctx, "", 0, "bench", "bench")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, "bench", "client", "--sessions", strconv.Itoa(o.Sessions), "--seconds", strconv.Itoa(o.Seconds), "--clients", strconv.Itoa(o.Clients))
	child.Env = append(os.Environ(), EnvURL+"="+url, EnvKey+"="+secret)
	child.Stderr = os.Stderr
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	out, err := child.Output()
	if err != nil {
		return fmt.Errorf("client process: %w", err)
	}
	own := *r
	if err := json.Unmarshal(out, r); err != nil {
		return fmt.Errorf("client process: %w", err)
	}
	r.ViewMillis, r.StoreViewMillis, r.ViewMessages, r.ViewBytes = own.ViewMillis, own.StoreViewMillis, own.ViewMessages, own.ViewBytes
	row, err := s.store.Operator.Sweep(ctx, sweep)
	r.SweepRuns = row.Ended
	return err
}

// alone measures a view through the API and by the store, one at a time, in turns.
func (s *system) alone(ctx context.Context, o APIOptions, url, secret string, r *APIResult) error {
	c := newClient(url, secret, 1)
	var byHTTP, byStore time.Duration
	const n = 400
	for i := range n {
		session := apiSession(i % o.Sessions)
		begin := time.Now()
		body, err := c.do(ctx, http.MethodGet, session, "view", nil)
		if err != nil {
			return err
		}
		byHTTP += time.Since(begin)
		begin = time.Now()
		view, _, err := s.store.View(ctx, store.Key{Session: session})
		if err != nil {
			return err
		}
		byStore += time.Since(begin)
		r.ViewMessages, r.ViewBytes = len(view), len(body)
	}
	r.ViewMillis, r.StoreViewMillis = millis(byHTTP)/n, millis(byStore)/n
	return nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// client sends requests of the benchmark.
type client struct {
	http   *http.Client
	url    string
	secret string
	tag    map[string]string // of If-None-Match
}

func newClient(url, secret string, connections int) *client {
	return &client{
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}},
		url:  url, secret: secret,
	}
}

// do sends a request below a session and returns the body of its answer. Only 304 has none.
func (c *client) do(ctx context.Context, method, session, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+"/v1/sessions/"+session+"/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	req.Header.Set("If-None-Match", c.tag[session])
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotModified:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s %s: %s: %.200s", method, path, resp.Status, raw)
	}
	if c.tag == nil {
		return raw, nil
	}
	c.tag[session] = resp.Header.Get("ETag")
	return raw, nil
}

// ClientOptions are those of the client process.
type ClientOptions struct{ Sessions, Seconds, Clients int }

// ClientMain measures the API of another process.
func ClientMain(ctx context.Context, url, secret string, o ClientOptions) (APIResult, error) {
	var r APIResult
	var first atomic.Pointer[error]
	var mu sync.Mutex
	phase := func(request func(c *client, n int) error) (perSecond float64, took []float64) {
		begin := time.Now()
		deadline := begin.Add(time.Duration(o.Seconds) * time.Second)
		var group sync.WaitGroup
		for w := range o.Clients {
			group.Go(func() {
				c := newClient(url, secret, 1)
				c.tag = map[string]string{}
				var own []float64
				for n := w; time.Now().Before(deadline) && ctx.Err() == nil; n += o.Clients {
					at := time.Now()
					if err := request(c, n); err != nil {
						atomic.AddInt64(&r.Errors, 1)
						first.CompareAndSwap(nil, &err)
						continue
					}
					own = append(own, millis(time.Since(at)))
				}
				mu.Lock()
				took = append(took, own...)
				mu.Unlock()
			})
		}
		group.Wait()
		perSecond = float64(len(took)) / time.Since(begin).Seconds()
		slices.Sort(took)
		return perSecond, append(took, 0)[:max(1, len(took))]
	}
	name := func(n int) string { return apiSession(n % o.Sessions) }
	var took []float64
	r.ViewsPerSecond, took = phase(func(c *client, n int) error {
		clear(c.tag)
		_, err := c.do(ctx, http.MethodGet, name(n), "view", nil)
		return err
	})
	r.ViewP50, r.ViewP99 = quantile(took, 0.50), quantile(took, 0.99)
	r.NotModifiedPerSecond, _ = phase(func(c *client, n int) error {
		known := c.tag[name(n)] != ""
		body, err := c.do(ctx, http.MethodGet, name(n), "view", nil)
		if err == nil && known && body != nil {
			err = errors.New("a view that is known was sent")
		}
		return err
	})
	r.AppendsPerSecond, took = phase(func(c *client, n int) error {
		var b strings.Builder
		for i, m := range session(appendMessages, 200, 50, false) {
			raw := m.AppendJSON(nil)
			b.WriteString(map[bool]string{true: "[", false: ","}[i == 0])
			b.Write(raw)
		}
		_, err := c.do(ctx, http.MethodPost, name(n), "messages?format=chat", []byte(b.String()+"]"))
		return err
	})
	r.AppendP99 = quantile(took, 0.99)
	if err := first.Load(); err != nil {
		fmt.Fprintln(os.Stderr, "first of", r.Errors, "errors:", *err)
	}
	return r, ctx.Err()
}
