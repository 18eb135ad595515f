package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/tokens"
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

func TestQueueFlushedInTheMiddleOfASweepLosesNothing(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.config.Scheduler.RedeliverAfter = time.Hour // the lost mark tells
	names := p.backlog(60)
	release := p.hold(names[20:50]...)
	p.start(schedules, works)
	p.sweep()
	p.awaitBlocked(p.config.Worker.Concurrency)
	p.leaveInRedis("left")
	if err := p.queue.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	release()
	p.awaitRest()
	p.wantOneEffect()
	p.wantFewLogLines(15)
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

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
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
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !done(c); <-tick.C {
		if time.Now().After(deadline) {
			s.t.Fatalf("redis-server %s: not so within 20 s: %s", s.addr, what)
		}
	}
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

func TestQueueKilledInTheMiddleOfASweepIsWaitedOut(t *testing.T) {
	t.Parallel()
	server := newRedisServer(t)
	p := newPlantOn(t, "redis://"+server.addr+"/0")
	names := p.backlog(60)
	release := p.hold(names[20:50]...)
	p.start(schedules, works)
	p.sweep()
	p.awaitBlocked(p.config.Worker.Concurrency)
	p.leaveInRedis("left")
	server.kill()
	release() // runs in flight end without the queue
	p.written("while it was away")
	p.await("the outage is told", func() bool { return p.logs.has("queue unavailable, retrying") })
	p.pass(time.Second)
	server.start()
	p.awaitRest()
	p.wantOneEffect()
	p.wantFewLogLines(15, "queue is back")
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

func TestTwoOfEverythingDoEverythingOnce(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.backlog(60)
	p.start(schedules, works)
	p.start(schedules, works)
	var fired atomic.Int32
	var group sync.WaitGroup
	slot := time.Now().Truncate(time.Second)
	for range 4 {
		group.Go(func() {
			switch won, err := p.store.Scheduler.FireTick(t.Context(), scheduler.EntryNightly, slot, "test"); {
			case err != nil:
				t.Error(err)
			case won:
				fired.Add(1)
			}
		})
	}
	group.Wait()
	if n := fired.Load(); n != 1 {
		t.Errorf("the slot was fired %d times", n)
	}
	p.awaitRest()
	if n := p.number(`SELECT count(*) FROM compactor.sweeps`); n != 1 {
		t.Errorf("%d sweeps for one slot", n)
	}
	p.wantOneEffect()
}

// diesHard is a store whose leases are never released, as after a kill.
type diesHard struct{ store.Scheduler }

func (diesHard) Resign(context.Context, string, string) error { return nil }

// How soon is a matter of package scheduler's tests, which have a clock of their own.
func TestLeaderThatDiesIsSucceeded(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.backlog(20)
	p.start(works)
	// For both it is a second before the nightly slot.
	offset := time.Until(time.Date(2030, time.March, 1, 2, 59, 59, 0, time.UTC))
	app, err := NewApp(t.Context(), p.config, slog.New(p.logs), AppOptions{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close() })
	lead := func(name string) (kill func()) {
		s, err := scheduler.New(diesHard{app.Store.Scheduler}, app.Enqueuer, scheduler.Config{
			Policy: p.config.Policy, Models: tokens.Models(), Window: tokens.Window, Holder: name, Logger: slog.New(p.logs),
			RelayInterval: p.config.Scheduler.RelayInterval, RedeliverAfter: p.config.Scheduler.RedeliverAfter,
			LeaderTTL: p.config.Scheduler.LeaderTTL, ReconcileInterval: 20 * time.Second,
			Now: func() time.Time { return time.Now().Add(offset) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		kill = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(kill)
		return kill
	}
	holder := func() (name string) {
		// No scheduler leads before the first request of a lease.
		_ = p.db.QueryRow(t.Context(), `SELECT holder FROM compactor.leader`).Scan(&name)
		return name
	}
	kill := lead("first")
	p.await("the first leads", func() bool { return holder() == "first" })
	lead("second")
	p.await("the slot was fired", func() bool { return p.number(`SELECT count(*) FROM compactor.cron_ticks`) == 1 })
	p.awaitRest()
	kill()
	p.written("later")
	p.await("the second leads", func() bool { return holder() == "second" })
	p.awaitRest()
	p.wantOneEffect()
	slots := p.number(`SELECT count(*) FROM compactor.cron_ticks`)
	sweeps := p.number(`SELECT count(*) FROM compactor.sweeps`)
	if slots != 1 || sweeps != 1 {
		t.Errorf("%d slots fired, %d sweeps, want one of each", slots, sweeps)
	}
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
