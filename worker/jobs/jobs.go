// Package jobs defines the tasks in Redis: their type, payload and queues, and the Enqueuer
// of runs.
//
// Redis only carries notifications. A payload holds the id of a run, whose state is in
// Postgres, so a task that is lost, late or delivered twice has no effect of its own.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// TypeRun is the only task type: to execute a run.
const TypeRun = "compactor:run"

// The queues.
const (
	QueueInteractive = "interactive" // runs that an operator waits for
	QueueDefault     = "default"     // events and requests of applications
	QueueBulk        = "bulk"        // sweeps
)

// Queues returns the weights of the queues, by which workers share their time.
func Queues() map[string]int {
	return map[string]int{QueueInteractive: 6, QueueDefault: 3, QueueBulk: 1}
}

// QueueFor returns the queue of a trigger (see store.Trigger…).
func QueueFor(trigger string) string {
	switch trigger {
	case "operator":
		return QueueInteractive
	case "nightly":
		return QueueBulk
	}
	return QueueDefault
}

// payloadVersion is incremented when a payload can no longer be read by older workers.
const payloadVersion = 1

// Run is the payload of TypeRun.
type Run struct {
	Version int   `json:"v"`
	Run     int64 `json:"run"`
}

// ParseRun reads a payload. A task with an invalid payload can never succeed.
func ParseRun(raw []byte) (Run, error) {
	var p Run
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("task payload: not the JSON of a run: %w", err)
	}
	if p.Version != payloadVersion {
		return p, fmt.Errorf("task payload: version %d, this worker reads %d", p.Version, payloadVersion)
	}
	if p.Run <= 0 {
		return p, fmt.Errorf("task payload: run %d is no id", p.Run)
	}
	return p, nil
}

// Enqueuer enqueues runs. Safe for concurrent use.
type Enqueuer struct {
	client  *asynq.Client
	timeout time.Duration
}

// NewEnqueuer connects to Redis. timeout bounds each execution of a run; asynq rounds it
// down to seconds, and it is at least one. The caller must Close the Enqueuer.
func NewEnqueuer(redis asynq.RedisConnOpt, timeout time.Duration) *Enqueuer {
	return &Enqueuer{client: asynq.NewClient(redis), timeout: max(timeout.Truncate(time.Second), time.Second)}
}

// Enqueue enqueues a run. delivery numbers the deliveries of the run; together they are the
// id of the task. So enqueueing is idempotent per delivery, and an archived task does not
// block the next delivery.
func (e *Enqueuer) Enqueue(ctx context.Context, run int64, delivery int, trigger string) error {
	payload, err := json.Marshal(Run{Version: payloadVersion, Run: run})
	if err != nil {
		return err
	}
	_, err = e.client.EnqueueContext(ctx, asynq.NewTask(TypeRun, payload),
		asynq.TaskID(fmt.Sprintf("run:%d:%d", run, delivery)),
		asynq.Queue(QueueFor(trigger)),
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

// Close closes the connection.
func (e *Enqueuer) Close() error { return e.client.Close() }
