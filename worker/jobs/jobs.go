// Package jobs defines the tasks in Redis: their type, payload and queues, and the Enqueuer
// of runs.
//
// Redis only carries notifications. A payload holds the id of a run, whose state is in
// Postgres, so a task that is lost, late or delivered twice has no effect of its own.
//
// Other installations and other programs may use the same Redis. An Installation is part of
// the names of the queues and of each payload, and no task of others is acknowledged.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// TypeRun is the only task type: to execute a run.
const TypeRun = "compactor:run"

// The queues of an installation, by the last part of their names.
const (
	queueInteractive = "interactive" // runs that an operator waits for
	queueDefault     = "default"     // events and requests of applications
	queueBulk        = "bulk"        // sweeps and bulk recompactions
)

// Installation identifies the schema whose runs a task may deliver, among all that use one
// Redis: the result of store.Installation, or a name that the configuration gives it. All
// processes of an installation use the same one.
type Installation string

// Queues returns the weights of the queues, by which workers share their time.
func (in Installation) Queues() map[string]int {
	return map[string]int{in.queue(queueInteractive): 6, in.queue(queueDefault): 3, in.queue(queueBulk): 1}
}

// QueueFor returns the queue of a trigger (see store.Trigger…).
func (in Installation) QueueFor(trigger string) string { return in.queue(queueFor(trigger)) }

func (in Installation) queue(name string) string { return "compactor:" + string(in) + ":" + name }

func queueFor(trigger string) string {
	switch trigger {
	case "operator":
		return queueInteractive
	case "nightly", "bulk":
		return queueBulk
	}
	return queueDefault
}

// payloadVersion is incremented when workers of an earlier version must not read a payload.
// They leave such tasks to the workers of later versions.
const payloadVersion = 2

// payload is the payload of TypeRun.
type payload struct {
	Version      int          `json:"v"`
	Installation Installation `json:"in"`
	Run          int64        `json:"run"`
}

// ErrForeign means that a task is not a run of this installation in the present version. It
// must not be acknowledged, as it may have another owner.
var ErrForeign = errors.New("not a run of this installation")

// ReadRun returns the id of the run that a task delivers. All its errors are ErrForeign.
func (in Installation) ReadRun(t *asynq.Task) (int64, error) {
	var p payload
	err := json.Unmarshal(t.Payload(), &p)
	switch {
	case t.Type() != TypeRun:
		return 0, fmt.Errorf("%w: type %.100q", ErrForeign, t.Type())
	case err != nil: // without the error, which may quote the payload
		return 0, fmt.Errorf("%w: the payload is not the JSON of a run", ErrForeign)
	case p.Version != payloadVersion:
		return 0, fmt.Errorf("%w: version %d, this worker reads %d", ErrForeign, p.Version, payloadVersion)
	case p.Installation != in:
		return 0, fmt.Errorf("%w but of %.100q", ErrForeign, p.Installation)
	case p.Run <= 0:
		return 0, fmt.Errorf("%w: run %d is no id", ErrForeign, p.Run)
	}
	return p.Run, nil
}

// Enqueuer enqueues the runs of an installation. Safe for concurrent use.
type Enqueuer struct {
	redis        redis.UniversalClient
	client       *asynq.Client
	inspector    *asynq.Inspector
	installation Installation
	timeout      time.Duration
}

// NewEnqueuer connects to Redis. timeout bounds each execution of a run; asynq rounds it
// down to seconds, and it is at least one. The caller must Close the Enqueuer.
func NewEnqueuer(o asynq.RedisConnOpt, in Installation, timeout time.Duration) *Enqueuer {
	client := o.MakeRedisClient().(redis.UniversalClient) // as all options of asynq do
	return &Enqueuer{
		redis: client, client: asynq.NewClientFromRedisClient(client), inspector: asynq.NewInspectorFromRedisClient(client), installation: in,
		timeout: max(timeout.Truncate(time.Second), time.Second),
	}
}

// Enqueue enqueues a run. delivery numbers the deliveries of the run; together they are the
// id of the task. So enqueueing is idempotent per delivery, and an archived task does not
// block the next delivery.
func (e *Enqueuer) Enqueue(ctx context.Context, run int64, delivery int, trigger string) error {
	raw, err := json.Marshal(payload{Version: payloadVersion, Installation: e.installation, Run: run})
	if err != nil {
		return err
	}
	_, err = e.client.EnqueueContext(ctx, asynq.NewTask(TypeRun, raw),
		asynq.TaskID(taskID(run, delivery)),
		asynq.Queue(e.installation.QueueFor(trigger)),
		asynq.Timeout(e.timeout),
		// Retries are scheduled in Postgres; those of asynq are for outages of Postgres.
		asynq.MaxRetry(5),
	)
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return nil // enqueued already; if that task is lost, the next delivery has another id
	}
	if err != nil {
		return fmt.Errorf("enqueue run %d: %w", run, err)
	}
	return nil
}

// Mark writes a mark into Redis and returns the one before, "" if there is none. A mark that
// is not the last one written tells that Redis has forgotten what came after it.
func (e *Enqueuer) Mark(ctx context.Context, mark string) (before string, err error) {
	before, err = e.redis.GetSet(ctx, e.installation.queue("mark"), mark).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("mark the queue: %w", err)
	}
	return before, nil
}

func taskID(run int64, delivery int) string { return fmt.Sprintf("run:%d:%d", run, delivery) }

// Close closes the connections.
func (e *Enqueuer) Close() error { return e.redis.Close() }
