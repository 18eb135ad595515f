package worker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	// longCheck is the interval at which an idle worker looks for tasks while it is notified of
	// them: for tasks that asynq itself puts back into the queue, and for lost notifications.
	longCheck = time.Second
	// asynqCheck is the time for which asynq itself sleeps when there is no task.
	asynqCheck = time.Millisecond
)

// fetcher is the connection to Redis of an asynq server. asynq polls; the connection holds
// its questions for tasks back until there is a notification, or for a check interval. As
// each server asks from one goroutine, a fetcher needs no lock.
type fetcher struct {
	asynq.RedisConnOpt
	worker *Worker
	queues int           // of the server, each asked once for a task
	wake   chan struct{} // of all servers of these queues
	left   int           // questions until the next wait
}

// MakeRedisClient implements asynq.RedisConnOpt.
func (f *fetcher) MakeRedisClient() any {
	client := f.RedisConnOpt.MakeRedisClient().(redis.UniversalClient) // as all options of asynq do
	client.AddHook(f)
	return client
}

// DialHook implements redis.Hook.
func (f *fetcher) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (f *fetcher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (f *fetcher) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !isDequeue(cmd) {
			return next(ctx, cmd)
		}
		if f.left == 0 {
			if !f.wait() {
				cmd.SetErr(redis.Nil)
				return redis.Nil
			}
			f.left = f.queues
		}
		f.left--
		err := next(ctx, cmd)
		switch {
		case err == nil: // there may be more
			f.left = f.queues
		case redis.HasErrorPrefix(err, "NOSCRIPT"): // it is asked again, with the script
			f.left++
		case !errors.Is(err, redis.Nil):
			f.left = 0
		}
		return err
	}
}

// wait waits for a notification or the next check. It returns false when the worker stops.
func (f *fetcher) wait() bool {
	pause := f.worker.config.CheckInterval
	if f.worker.notified.Load() {
		pause = max(pause, longCheck)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-f.wake:
	case <-timer.C:
	case <-f.worker.draining.Done():
		return false
	}
	return true
}

// isDequeue reports whether a command is asynq's script that takes a task from a queue.
func isDequeue(cmd redis.Cmder) bool {
	const pending, paused = 3, 4 // the first keys of the script, behind its hash and their number
	key := func(i int) string {
		s, _ := cmd.Args()[i].(string)
		return s
	}
	return strings.HasPrefix(cmd.Name(), "eval") && len(cmd.Args()) > paused &&
		strings.HasSuffix(key(pending), ":pending") && strings.HasSuffix(key(paused), ":paused")
}

// listen wakes the servers of single and of bulk tasks when tasks are enqueued, until ctx is
// done.
func (w *Worker) listen(ctx context.Context, client redis.UniversalClient, single, bulk chan struct{}) {
	sub := client.Subscribe(ctx, w.installation.Channel())
	defer func() { _ = sub.Close() }()
	events := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			m, ok := event.(*redis.Message)
			switch {
			case !ok: // subscribed, perhaps again: earlier notifications are lost
				w.notified.Store(true)
				wakeAll(single)
				wakeAll(bulk)
			case m.Payload == w.installation.BulkQueue():
				wakeOne(bulk)
			default:
				wakeOne(single)
			}
		}
	}
}

// wakeOne wakes one of the servers that wait, or has the next one not wait. The tokens of a
// channel are enough for all of its servers.
func wakeOne(servers chan struct{}) bool {
	select {
	case servers <- struct{}{}:
		return true
	default:
		return false
	}
}

func wakeAll(servers chan struct{}) {
	for wakeOne(servers) {
	}
}
