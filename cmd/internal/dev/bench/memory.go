package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

// MemoryOptions holds the settings of the memory benchmark, with the tags of their flags.
type MemoryOptions struct {
	Messages  int  `default:"20000" help:"Messages of the session."`
	Megabytes int  `default:"100" help:"Its size."`
	Summary   bool `help:"Summarize it without a model instead of truncating it."`
	Model     bool `help:"Summarize it with a scripted model."`
}

// MemoryResult holds the measurements of Memory.
type MemoryResult struct {
	PeakBytes    int64 `json:"peak_bytes"` // peak resident size of the worker process
	Messages     int64 `json:"messages"`
	Bytes        int64 `json:"bytes"`
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
}

// Environment variables of the worker process. URLs may hold secrets.
const (
	EnvDatabase = "COMPACTOR_BENCH_DATABASE"
	EnvRedis    = "COMPACTOR_BENCH_REDIS"
	EnvModel    = "COMPACTOR_BENCH_MODEL"
)

const (
	memoryTarget  = 50_000
	memorySession = "huge"
)

// Memory compacts one huge session in a process that runs WorkerMain and returns the peak
// memory of that process. The process reports it: the figure of the system for a child that has
// ended includes the peak of the parent, which fills the session.
func Memory(ctx context.Context, env Env, o MemoryOptions) (MemoryResult, error) {
	self, err := os.Executable()
	if err != nil {
		return MemoryResult{}, err
	}
	size, args := o.Megabytes<<20, []string{"bench", "worker"}
	if o.Model || o.Summary {
		args = append(args, "--summary")
	}
	s, closeAll, err := open(ctx, env, memoryPolicy(o.Model || o.Summary))
	if err != nil {
		return MemoryResult{}, err
	}
	defer closeAll()
	const batch = 400
	k := store.Key{Session: memorySession}
	for done := 0; done < o.Messages; {
		msgs := session(min(batch, o.Messages-done), size/o.Messages, 1000, done == 0)
		if _, _, err := s.store.Import(ctx, k, "job", msgs); err != nil {
			return MemoryResult{}, err
		}
		done += len(msgs)
		env.Progress("filling", done, o.Messages)
	}
	run, err := s.store.Request(ctx, k, store.TriggerApplication, "bench", store.Options{})
	if err != nil {
		return MemoryResult{}, err
	}
	if err := s.enqueuer.Enqueue(ctx, store.TriggerApplication, 1, run); err != nil {
		return MemoryResult{}, err
	}

	model := ""
	if o.Model {
		server := llmtest.New()
		if model, err = server.Start(); err != nil { //nolint:contextcheck // it is closed below
			return MemoryResult{}, err
		}
		defer func() { _ = server.Close() }()
	}
	child := exec.CommandContext(ctx, self, args...)
	child.Env = append(os.Environ(), EnvDatabase+"="+env.DatabaseURL, EnvRedis+"="+env.RedisURL, EnvModel+"="+model)
	child.Stderr = os.Stderr
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	out, err := child.Output()
	if err != nil {
		return MemoryResult{}, fmt.Errorf("worker process: %w", err)
	}
	var peak int64
	if err := json.Unmarshal(out, &peak); err != nil {
		return MemoryResult{}, fmt.Errorf("worker process: peak memory: %w", err)
	}
	if peak == 0 {
		return MemoryResult{}, errors.New("this system does not report the peak memory of a process")
	}
	row, err := s.store.Run(ctx, run)
	if err != nil {
		return MemoryResult{}, err
	}
	if row.Status != "applied" {
		return MemoryResult{}, fmt.Errorf("run %d ended %s (%s), not applied", run, row.Status, row.Outcome)
	}
	return MemoryResult{
		PeakBytes: peak, Messages: row.MessagesBefore, Bytes: int64(size),
		TokensBefore: row.TokensBefore, TokensAfter: row.TokensAfter,
	}, nil
}

// WorkerMain runs the worker that Memory measures until the session has been compacted, and
// returns its peak memory in bytes, 0 if unknown.
func WorkerMain(ctx context.Context, env Env, summarize bool, model string) (int64, error) {
	s, err := attach(ctx, env, memoryPolicy(summarize))
	if err != nil {
		return 0, err
	}
	defer s.close()
	if err := s.connectQueue(ctx); err != nil {
		return 0, err
	}
	if model != "" {
		c := llm.Default()
		c.Models = []llm.Profile{{Name: "played", BaseURL: model, Window: 128_000}}
		client, err := llm.New(c, llm.Deps{})
		if err != nil {
			return 0, err
		}
		defer client.Close()
		s.planner.Model = client
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		delivery, delivered := 1, time.Now()
		_ = poll(ctx, 20*time.Millisecond, func() (bool, error) {
			runs, err := s.store.Operator.Runs(ctx, store.RunFilter{Key: store.Key{Session: memorySession}, Limit: 1})
			if err != nil || len(runs) != 1 || runs[0].Outcome != "" {
				return err == nil && len(runs) == 1, nil
			}
			if time.Since(delivered) > 2*redeliverAfter { // there is no scheduler, which delivers a run again whose task was lost
				delivery, delivered = delivery+1, time.Now()
				_ = s.enqueuer.Enqueue(ctx, store.TriggerApplication, delivery, runs[0].ID)
			}
			return false, nil
		})
		cancel()
	}()
	err = worker.New(s.store.Worker, s.planner, worker.Config{Concurrency: env.Concurrency, Logger: env.Logger}).Run(ctx, s.redis, s.name)
	return peakMemory(), err
}

func memoryPolicy(summarize bool) policy.Policy {
	p := truncating(2*memoryTarget, memoryTarget)
	if summarize {
		p.Pipeline = []policy.Step{{Strategy: "handoff"}}
	}
	return p
}
