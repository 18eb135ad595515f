package worker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/worker/jobs"
)

// With notifications the worker need not poll; without them it does.
func TestAnIdleWorkerTakesATask(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	for name, c := range map[string]struct {
		interval time.Duration
		enqueue  func(t *testing.T, redis asynq.RedisClientOpt, run int64)
	}{
		"that it is notified of": {never, func(t *testing.T, redis asynq.RedisClientOpt, run int64) {
			queue := jobs.NewEnqueuer(redis, "test", time.Minute)
			defer func() { _ = queue.Close() }()
			noError(t, queue.Enqueue(t.Context(), store.TriggerNightly, 1, run))
		}},
		"whose notification is lost": {time.Millisecond, func(t *testing.T, redis asynq.RedisClientOpt, run int64) {
			client := asynq.NewClient(redis)
			defer func() { _ = client.Close() }()
			task := asynq.NewTask(jobs.TypeRun, fmt.Appendf(nil, `{"v":1,"in":"test","runs":[%d]}`, run))
			must(client.Enqueue(task, asynq.Queue(jobs.Installation("test").QueueFor(store.TriggerOperator))))(t)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := miniredis.RunT(t)
			redis := asynq.RedisClientOpt{Addr: server.Addr()}
			f := setup(t)
			f.w.config.CheckInterval = c.interval
			f.startWorker(redis, "test")
			f.await("the worker listens", func() bool { return f.w.notified.Load() })
			f.append("s", "sua")
			id := f.operator("s", store.Options{})
			c.enqueue(t, redis, id)
			f.await("the run has ended", func() bool { return f.row(id).EndedAt != nil })
		})
	}
}

// All queues of a server are asked after a notification, and none before the next one.
func TestAFetcherHoldsBackWhatAsynqAsks(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	f := setup(t)
	f.w.config.CheckInterval = time.Hour
	wake := make(chan struct{}, 1)
	opt := &fetcher{RedisConnOpt: asynq.RedisClientOpt{Addr: server.Addr()}, worker: f.w, queues: 2, wake: wake}
	s := asynq.NewServer(opt, f.w.queueConfig(asynq.Config{Queues: map[string]int{"a": 1, "b": 1}, Concurrency: 4}))
	done := make(chan string, 10)
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: server.Addr()})
	defer func() { _ = client.Close() }()
	put := func(queue string) {
		t.Helper()
		must(client.Enqueue(asynq.NewTask(queue, nil), asynq.Queue(queue)))(t)
	}
	if err := s.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		done <- task.Type()
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"a", "b", "b", "a"} {
		put(queue)
		wake <- struct{}{}
		if got := <-done; got != queue {
			t.Errorf("task of queue %s, want %s", got, queue)
		}
	}
	put("a")
	put("b")
	put("b")
	wake <- struct{}{}
	for range 3 {
		<-done
	}
	f.w.drain()
	s.Shutdown()
}

func TestAFetcherThatIsNotNotifiedTakesNothing(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	f := setup(t)
	f.w.config.CheckInterval = time.Hour
	opt := asynq.RedisClientOpt{Addr: server.Addr()}
	client := asynq.NewClient(opt)
	defer func() { _ = client.Close() }()
	must(client.Enqueue(asynq.NewTask("x", nil), asynq.Queue("a")))(t)
	asked := server.CommandCount()
	s := asynq.NewServer(&fetcher{RedisConnOpt: opt, worker: f.w, queues: 1}, f.w.queueConfig(asynq.Config{Queues: map[string]int{"a": 1}}))
	f.must(s.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })))
	f.await("the server has started", func() bool { return server.CommandCount() > asked+10 })
	f.w.drain()
	s.Shutdown()
	info, err := asynq.NewInspector(opt).GetQueueInfo("a")
	if err != nil || info.Pending != 1 {
		t.Errorf("%+v, %v: the task is not in the queue any more", info, err)
	}
}
