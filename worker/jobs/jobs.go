// Package jobs names the work that travels through Redis: task types, payloads,
// queues and timeouts, and the Enqueuer that puts a run's task there.
//
// A payload holds ids only. Redis only carries notifications: everything a task means is in
// Postgres, so a task that is lost, late or delivered twice is harmless.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// TypeRun is the one task type: execute a run of the ledger.
const TypeRun = "compactor:run"

// Queues, with their weights: how often one is looked at before another.
const (
	QueueInteractive = "interactive" // an operator waits
	QueueDefault     = "default"     // events
	QueueBulk        = "bulk"        // sweeps
)

// Queues returns the weight of every queue.
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

// payloadVersion grows when the payload changes in a way old workers cannot read.
const payloadVersion = 1

// Run is the payload of TypeRun.
type Run struct {
	Version int   `json:"v"`
	Run     int64 `json:"run"`
}

// ParseRun reads a payload. The error says what is wrong with it; such a task
// can never succeed.
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

// NewEnqueuer rings over a Redis connection. timeout bounds a run from start to
// end; it is at least a second, as asynq counts whole ones.
func NewEnqueuer(redis asynq.RedisConnOpt, timeout time.Duration) *Enqueuer {
	return &Enqueuer{client: asynq.NewClient(redis), timeout: max(timeout.Truncate(time.Second), time.Second)}
}

// Enqueue enqueues a run. delivery numbers the deliveries of the run; together
// they are the task's id, so enqueueing is idempotent per delivery, and
// a task that asynq has archived never stands in the way of the next delivery.
func (e *Enqueuer) Enqueue(ctx context.Context, run int64, delivery int, trigger string) error {
	payload, err := json.Marshal(Run{Version: payloadVersion, Run: run})
	if err != nil {
		return err
	}
	_, err = e.client.EnqueueContext(ctx, asynq.NewTask(TypeRun, payload),
		asynq.TaskID(fmt.Sprintf("run:%d:%d", run, delivery)),
		asynq.Queue(QueueFor(trigger)),
		asynq.Timeout(e.timeout),
		// Retries are Postgres' business; asynq's are for when Postgres cannot be asked.
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
