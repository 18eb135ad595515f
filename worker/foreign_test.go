package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/worker/jobs"
)

const (
	mail         = "mail:send"
	foreignTasks = 200 // of another program
)

// otherProgram is a program that uses asynq on the same Redis.
type otherProgram struct {
	t         *testing.T
	redis     asynq.RedisConnOpt
	inspector *asynq.Inspector

	mu   sync.Mutex
	done map[string]bool
}

func newOtherProgram(t *testing.T, redis asynq.RedisConnOpt) *otherProgram {
	t.Helper()
	p := &otherProgram{t: t, redis: redis, inspector: asynq.NewInspector(redis), done: map[string]bool{}}
	t.Cleanup(func() { _ = p.inspector.Close() })
	return p
}

// enqueue enqueues n tasks, each to one of the queues.
func (p *otherProgram) enqueue(n int, typ string, payload []byte, queues ...string) {
	p.t.Helper()
	client := asynq.NewClient(p.redis)
	defer func() { _ = client.Close() }()
	for i := range n {
		if _, err := client.Enqueue(asynq.NewTask(typ, payload), asynq.TaskID(fmt.Sprintf("%s-%d", typ, i)), asynq.Queue(queues[i%len(queues)])); err != nil {
			p.t.Fatal(err)
		}
	}
}

// work starts the program's own server.
func (p *otherProgram) work(queues ...string) {
	p.t.Helper()
	weights := map[string]int{}
	for _, q := range queues {
		weights[q] = 1
	}
	s := asynq.NewServer(p.redis, asynq.Config{Queues: weights, Concurrency: 8, TaskCheckInterval: 10 * time.Millisecond, LogLevel: asynq.FatalLevel})
	err := s.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.done[id] = true
		return nil
	}))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(s.Shutdown)
}

func (p *otherProgram) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.done)
}

// startWorker runs the worker of the fixture until the test ends.
func (f *fixture) startWorker(redis asynq.RedisConnOpt, in jobs.Installation) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f.w.Run(ctx, redis, in) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
}

// executeThrough has the queue deliver runs until they have ended.
func (f *fixture) executeThrough(queue *jobs.Enqueuer, session string, n int) {
	f.t.Helper()
	f.append(session, "sua")
	for range n {
		id := f.operator(session, store.Options{})
		f.must(queue.Enqueue(f.t.Context(), store.TriggerOperator, 1, id))
		f.await("the run has ended", func() bool { return f.row(id).EndedAt != nil })
	}
}

// await waits until so reports true.
func (f *fixture) await(what string, so func() bool) {
	f.t.Helper()
	storetest.Await(f.t, what, so)
}

// finish executes a run until it has ended, as its deliveries do, and returns its row.
func (f *fixture) finish(id store.RunID) store.RunRow {
	f.t.Helper()
	f.await("the run has ended", func() bool { return f.run(id).Outcome != "" })
	return f.row(id)
}

func parseRedis(t *testing.T) asynq.RedisConnOpt {
	t.Helper()
	redis := must(jobs.ParseRedis(storetest.Redis(t)))(t)
	return redis
}

func TestTasksOfAnotherProgramStayItsOwn(t *testing.T) {
	t.Parallel()
	redis := parseRedis(t)
	f, other := setup(t), newOtherProgram(t, redis)
	queues := []string{"default", "interactive", "bulk"}
	other.enqueue(foreignTasks, mail, []byte(`{"to":"a"}`), queues...)
	const installation = jobs.Installation("compactor:test")
	queue := jobs.NewEnqueuer(redis, installation, time.Minute)
	t.Cleanup(func() { _ = queue.Close() })
	f.startWorker(redis, installation)
	f.executeThrough(queue, "s", 20) // the worker has had the time to take others' tasks
	other.work(queues...)
	f.await("the other program has had its tasks", func() bool { return other.count() == foreignTasks })
}

// A task that is in our queue, as when two installations were given one name.
func TestTasksOfOthersInOurQueueAreLeftInIt(t *testing.T) {
	t.Parallel()
	const installation = jobs.Installation("compactor:test")
	queueName := installation.QueueFor(store.TriggerEvent)
	for name, task := range map[string]struct{ typ, payload string }{
		"of another type":         {mail, `{"to":"a"}`},
		"of another installation": {jobs.TypeRun, `{"v":1,"in":"compactor:other","runs":[1]}`},
		"of a later version":      {jobs.TypeRun, `{"v":2,"in":"compactor:test","runs":[1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := parseRedis(t)
			f, other := setup(t), newOtherProgram(t, redis)
			other.enqueue(foreignTasks, task.typ, []byte(task.payload), queueName)
			queue := jobs.NewEnqueuer(redis, installation, time.Minute)
			t.Cleanup(func() { _ = queue.Close() })
			f.startWorker(redis, installation)
			f.executeThrough(queue, "s", 5)
			// A task that was returned may be delivered again before the last one was delivered at all, so no state of the
			// queue shows that the worker has seen all of them: only the error of each does.
			info := func(i int) *asynq.TaskInfo {
				return must(other.inspector.GetTaskInfo(queueName, fmt.Sprintf("%s-%d", task.typ, i)))(t)
			}
			for i := range foreignTasks {
				f.await("the worker has returned the task", func() bool { return info(i).LastErr != "" })
				if seen := info(i); seen.Retried != 0 || seen.State == asynq.TaskStateArchived {
					t.Fatalf("task %s is %s and has lost %d of its retries", seen.ID, seen.State, seen.Retried)
				} else if pause := seen.NextProcessAt.Sub(seen.LastFailedAt); seen.State == asynq.TaskStateRetry && pause > time.Minute {
					t.Fatalf("task %s waits for %s", seen.ID, pause)
				}
			}
			other.work(queueName)
			// Their owner need not wait.
			f.await("the owner has had them", func() bool {
				must(other.inspector.RunAllRetryTasks(queueName))(t)
				return other.count() == foreignTasks
			})
		})
	}
}
