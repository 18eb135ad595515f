// Package bench measures the whole job path on real servers: compactions per second,
// peak memory for one huge session, and the latency from an append to its compaction.
// Each result includes its conditions, and throughput is compared with a baseline
// measured in the same run.
//
// The benchmarks create a schema of their own and drop it; they touch no other data.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
	"github.com/sessionstore/compactor/worker/jobs"
)

// Schema is the schema that the benchmarks create and drop.
const Schema = "compactor_bench"

// Env describes the servers and limits of a benchmark.
type Env struct {
	DatabaseURL, RedisURL string
	// Concurrency is the number of runs executed at once.
	Concurrency int
	// Connections limits the pools of the job path and of the baseline.
	Connections int
	// Progress is called after each unit of work, concurrently.
	Progress func(stage string, done, total int)
	Logger   *slog.Logger
}

// system holds the store in the benchmark schema, the queue and the planner.
type system struct {
	env      Env
	store    *store.Store
	db       *database // nil but in Compact, Storm, Sweep and Fleet
	redis    asynq.RedisConnOpt
	name     jobs.Installation
	enqueuer *jobs.Enqueuer
	planner  *worker.Planner
	// setBased has the scheduler truncate without a worker.
	setBased bool
	// thresholds are those of the policy, if the scheduler is to save these.
	thresholds []store.Threshold
}

// keeper is the store of a scheduler that saves these thresholds: sessions that were created under
// them follow then, as those of an installation whose policy has not just changed.
type keeper struct {
	store.Scheduler
	thresholds []store.Threshold
}

func (k keeper) SavePolicy(ctx context.Context, hash string, spec json.RawMessage, _ []store.Threshold) error {
	return k.Scheduler.SavePolicy(ctx, hash, spec, k.thresholds)
}

// open creates a fresh schema and connects to it; the returned function drops it.
func open(ctx context.Context, env Env, pol policy.Policy) (*system, func(), error) {
	s, err := attach(ctx, env, pol)
	if err != nil {
		return nil, nil, err
	}
	closeAll := func() {
		drop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = s.store.Admin.DropSchema(drop)
		s.close()
	}
	if err = s.store.Admin.DropSchema(ctx); err == nil {
		_, err = migrations.Up(ctx, env.DatabaseURL, Schema)
	}
	if err == nil {
		err = s.connectQueue(ctx)
	}
	if err == nil { // sessions are created before a scheduler leads
		thresholds := scheduler.Thresholds(pol, nil, tokens.Window, tokens.BindsReasoning)
		err = s.store.Scheduler.SavePolicy(ctx, pol.FleetHash(), []byte(`{}`), thresholds)
	}
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return s, closeAll, nil
}

// attach connects to the database; connectQueue needs the schema as well.
func attach(ctx context.Context, env Env, pol policy.Policy) (*system, error) {
	redis, err := jobs.ParseRedis(env.RedisURL)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	st, err := store.Open(ctx, store.Config{URL: env.DatabaseURL, Schema: Schema, MaxConns: env.Connections})
	if err != nil {
		return nil, err
	}
	return &system{
		env: env, store: st, redis: redis,
		planner: &worker.Planner{
			Policy: pol, Registry: builtin.Registry(), Window: tokens.Window, BindsReasoning: tokens.BindsReasoning,
			Counter: func(string) plan.Counter { return tokens.Chars4{} },
		},
	}, nil
}

// redeliverAfter is how long a run is not enqueued again.
const redeliverAfter = time.Minute

func (s *system) connectQueue(ctx context.Context) error {
	name, err := s.store.Installation(ctx)
	if err != nil {
		return err
	}
	s.name = jobs.Installation(name)
	s.enqueuer = jobs.NewEnqueuer(s.redis, s.name, redeliverAfter)
	return nil
}

func (s *system) close() {
	if s.enqueuer != nil {
		_ = s.enqueuer.Close()
	}
	s.store.Close()
}

// work runs a scheduler and a worker, as serve does, until do returns.
func (s *system) work(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	c := scheduler.Config{Policy: s.planner.Policy, Holder: "bench", Logger: s.env.Logger}
	if s.setBased {
		c.Truncation = func(ctx context.Context, k store.SessionKind) (store.Truncation, error) {
			return s.planner.Truncation(ctx, s.store.Worker, k)
		}
	}
	var st scheduler.Store = s.store.Scheduler
	if s.thresholds != nil {
		st = keeper{s.store.Scheduler, s.thresholds}
	}
	sched, err := scheduler.New(st, s.enqueuer, c)
	if err != nil {
		return err
	}
	w := worker.New(s.store.Worker, s.planner, worker.Config{Concurrency: s.env.Concurrency, Logger: s.env.Logger})
	g.Go(func() error { return sched.Run(ctx) })
	g.Go(func() error { return w.Run(ctx, s.redis, s.name) })
	g.Go(func() error {
		defer cancel()
		return do(ctx)
	})
	return g.Wait()
}

// truncating returns a policy that truncates; it decides by metadata only.
func truncating(start, target chat.Tokens) policy.Policy {
	p := policy.Default()
	p.Pipeline = []policy.Step{{Strategy: "truncation"}}
	p.StartTokens, p.TargetTokens = start, target
	p.Debounce, p.MaxDelay = 0, 0
	return p
}

// session returns a history of n messages of size bytes and count tokens each: a system
// prompt if first, then turns of a question, a tool call, its result and an answer.
func session(n, size int, count chat.Tokens, first bool) []store.NewMessage {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog; ", size/45+1)[:size]
	msgs := make([]store.NewMessage, 0, n)
	add := func(m chat.Message) {
		msgs = append(msgs, store.NewMessage{Message: m, Tokens: count, Counter: "bench"})
	}
	if first {
		add(chat.Message{Role: chat.RoleSystem, Content: chat.TextContent(text)})
	}
	for turn := 0; len(msgs) < n; turn++ {
		id := "call_" + strconv.Itoa(turn)
		add(chat.Message{Role: chat.RoleUser, Content: chat.TextContent(text)})
		add(chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(text), ToolCalls: []chat.ToolCall{
			{ID: id, Type: "function", Name: "search", Arguments: `{"q":"fox"}`},
		}})
		add(chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(text)})
		add(chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(text)})
	}
	// A call must not end the history without its result, so up to two messages fewer.
	for len(msgs) > n || msgs[len(msgs)-1].Role == chat.RoleAssistant && len(msgs[len(msgs)-1].ToolCalls) > 0 {
		msgs = msgs[:len(msgs)-1]
	}
	return msgs
}

// poll calls ok every interval until it returns true or an error.
func poll(ctx context.Context, interval time.Duration, ok func() (bool, error)) error {
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		if err := backoff.Wait(ctx, interval); err != nil {
			return err
		}
	}
}

// peakMemory returns the peak resident size in bytes since resetPeak, 0 if unknown.
func peakMemory() int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb * 1024
		}
	}
	return 0
}

// resetPeak restarts the measurement of peak memory.
func resetPeak() {
	runtime.GC()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}
