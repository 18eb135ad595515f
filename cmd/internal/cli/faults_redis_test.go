package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store/storetest"
)

// doneFault refuses the first write by which asynq forgets a task that succeeded.
type doneFault struct {
	refused, passed atomic.Int32
}

func (f *doneFault) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *doneFault) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *doneFault) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// EVALSHA hash 5 active lease task processed:date processed …
		args := cmd.Args()
		if len(args) < 8 || !strings.HasPrefix(cmd.Name(), "eval") || !strings.HasSuffix(fmt.Sprint(args[3]), ":active") ||
			!strings.Contains(fmt.Sprint(args[6]), ":processed:") {
			return next(ctx, cmd)
		}
		if f.refused.CompareAndSwap(0, 1) {
			err := errors.New("connection reset by the test")
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if err == nil {
			f.passed.Add(1)
		}
		return err
	}
}

type hooked struct {
	asynq.RedisConnOpt
	hook redis.Hook
}

func (h hooked) MakeRedisClient() any {
	c := h.RedisConnOpt.MakeRedisClient().(redis.UniversalClient)
	c.AddHook(h.hook)
	return c
}

func TestTaskWhoseLastWriteFailedIsDeliveredAgainAndDoesNothing(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	fault := &doneFault{}
	p.wrapRedis = func(o asynq.RedisConnOpt) asynq.RedisConnOpt { return hooked{o, fault} }
	p.written("s")
	p.start(schedules)
	stop := p.start(works)
	p.awaitRest()
	p.await("the last write was refused", func() bool { return fault.refused.Load() == 1 })
	stop()

	c := p.queue
	active, lease := p.keys()+"active", p.keys()+"lease"
	left := c.ZRange(t.Context(), lease, 0, -1).Val()
	if len(left) != 1 || fault.passed.Load() != 0 {
		t.Fatalf("tasks that asynq thinks are under way: %v, want the one", left)
	}
	// asynq looks for such tasks at start, and a minute after the lease of each.
	if err := c.ZAdd(t.Context(), lease, redis.Z{Score: float64(time.Now().Add(-time.Minute).Unix()), Member: left[0]}).Err(); err != nil {
		t.Fatal(err)
	}
	p.start(works)
	p.await("it was delivered again", func() bool { return fault.passed.Load() == 1 })
	if n := c.LLen(t.Context(), active).Val() + c.ZCard(t.Context(), lease).Val(); n != 0 {
		t.Errorf("%d traces of the task are left", n)
	}
	p.wantOneEffect()
	if n := p.runs("s")[0].Attempts; n != 1 {
		t.Errorf("%d attempts, want one: the second delivery has nothing to do", n)
	}
}

func TestLostTaskIsRungForAgain(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(ctx context.Context, c redis.UniversalClient, queue string) error{
		"flushed before a worker came": func(ctx context.Context, c redis.UniversalClient, _ string) error { return c.FlushDB(ctx).Err() },
		"evicted while it waited": func(ctx context.Context, c redis.UniversalClient, queue string) error {
			return c.Del(ctx, queue+"t:"+c.LIndex(ctx, queue+"pending", 0).Val()).Err()
		},
		"taken by a worker that died, its lease lost": func(ctx context.Context, c redis.UniversalClient, queue string) error {
			id, err := c.LMove(ctx, queue+"pending", queue+"active", "RIGHT", "LEFT").Result()
			if err != nil {
				return err
			}
			return c.HSet(ctx, queue+"t:"+id, "state", "active").Err()
		},
		"gone from the list": func(ctx context.Context, c redis.UniversalClient, queue string) error {
			return c.Del(ctx, queue+"pending").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			p.written("s")
			p.start(schedules)
			p.await("the task is in Redis", func() bool { return p.pending() == 1 })
			if err := lose(t.Context(), p.queue, p.keys()); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			p.start(works)
			p.awaitRest()
			t.Logf("ended %s after the loss", time.Since(began).Round(time.Millisecond))
			p.wantOneEffect()
		})
	}
}

// redisServer is a redis-server that the test may kill.
type redisServer struct {
	t    *testing.T
	addr string
	dir  string
	args []string
	cmd  *exec.Cmd
}

// newRedisServer starts a redis-server on a free port, with further arguments.
func newRedisServer(t *testing.T, args ...string) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_DB") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s := &redisServer{t: t, addr: freeAddress(t), dir: t.TempDir(), args: args}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// freeAddress returns an address with a port below those that systems give to listeners without a
// port of their own, so that none takes it while a server that had it is dead.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return l.Addr().String()
	}
}

// start starts the server, which remembers nothing, and waits until it answers.
func (s *redisServer) start() {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command("redis-server", append(slices.Clone(s.args),
		"--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", s.dir)...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.await("it answers", func(c *redis.Client) bool { return c.Ping(s.t.Context()).Err() == nil })
}

// await waits until the server is as done has it.
func (s *redisServer) await(what string, done func(*redis.Client) bool) {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	storetest.Await(s.t, "redis-server "+s.addr+": "+what, func() bool { return done(c) })
}

// do sends a command to the server.
func (s *redisServer) do(args ...any) {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	if err := c.Do(s.t.Context(), args...).Err(); err != nil {
		s.t.Fatalf("redis-server %s: %v: %v", s.addr, args, err)
	}
}

// kill ends the server without a goodbye.
func (s *redisServer) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

func TestStartBeforeTheQueueIsThereWaitsForIt(t *testing.T) {
	t.Parallel()
	server := newRedisServer(t)
	server.kill()
	p := newPlantOn(t, "redis://"+server.addr+"/0")
	p.written("s")
	p.start(schedules, works)
	p.await("the outage is told", func() bool { return p.logs.has("queue unavailable, retrying") })
	p.pass(500 * time.Millisecond)
	server.start()
	p.awaitRest()
	p.wantOneEffect()
	p.wantFewLogLines(10, "redis is unavailable: runs wait in postgres", "queue is back")
}

// gate is a way to a database that opens and shuts.
type gate struct {
	dsn    config.Secret
	target string
	isOpen atomic.Bool
	mu     sync.Mutex
	conns  map[net.Conn]bool
	group  sync.WaitGroup
}

// newGate makes a way to the database at dsn, shut at first.
func newGate(t *testing.T, dsn string) *gate {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{target: u.Host, conns: map[net.Conn]bool{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = l.Addr().String()
	g.dsn = config.Secret(u.String())
	g.group.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if !g.isOpen.Load() {
				_ = in.Close()
				continue
			}
			g.group.Go(func() { g.forward(in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.shut()
		g.group.Wait()
	})
	return g
}

func (g *gate) open() { g.isOpen.Store(true) }

// shut refuses new connections and cuts those that are there.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isOpen.Store(false)
	for c := range g.conns {
		_ = c.Close()
	}
}

func (g *gate) forward(in net.Conn) {
	defer func() { _ = in.Close() }()
	out, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	g.mu.Lock()
	if !g.isOpen.Load() {
		g.mu.Unlock()
		return
	}
	g.conns[in], g.conns[out] = true, true
	g.mu.Unlock()
	done := make(chan struct{}, 2)
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go pipe(out, in)
	go pipe(in, out)
	<-done
	_ = in.Close()
	_ = out.Close()
	<-done
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, in)
	delete(g.conns, out)
}
