// Package jobs defines the tasks in Redis: their type, payload and queues, and the Enqueuer
// of runs.
//
// Redis only carries notifications. A payload holds the ids of runs, whose state is in
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
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// TypeRun is the only task type: to execute a run, or several of a sweep.
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

// Queues returns the queues, with the weights by which the servers of single runs share their
// time. BulkQueue has a server of its own.
func (in Installation) Queues() map[string]int {
	return map[string]int{in.queue(queueInteractive): 2, in.queue(queueDefault): 1, in.BulkQueue(): 1}
}

// BulkQueue returns the queue whose tasks may carry several runs.
func (in Installation) BulkQueue() string { return in.queue(queueBulk) }

// QueueFor returns the queue of a trigger (see store.Trigger…).
func (in Installation) QueueFor(trigger string) string { return in.queue(queueFor(trigger)) }

// Channel returns the channel on which workers are notified of tasks, by the names of their
// queues. They look for those of lost notifications themselves.
func (in Installation) Channel() string { return in.queue("wake") }

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

// maxBulkRuns is the number of runs in a task of the bulk queue: those that one transaction
// ends, with the locks of their sessions.
const maxBulkRuns = 50

// PerTask returns how many runs of a trigger may be in one task.
func PerTask(trigger string) int {
	if queueFor(trigger) == queueBulk {
		return maxBulkRuns
	}
	return 1
}

// payloadVersion is incremented when workers of an earlier version must not read a payload.
// They leave such tasks to the workers of later versions.
const payloadVersion = 1

// payload is the payload of TypeRun.
type payload struct {
	Version      int          `json:"v"`
	Installation Installation `json:"in"`
	Runs         []int64      `json:"runs"`
}

// ErrForeign means that a task is not a run of this installation in the present version. It
// must not be acknowledged, as it may have another owner.
var ErrForeign = errors.New("not a run of this installation")

// ReadRuns returns the ids of the runs that a task delivers, at least one. All its errors are
// ErrForeign.
func (in Installation) ReadRuns(t *asynq.Task) ([]int64, error) {
	var p payload
	err := json.Unmarshal(t.Payload(), &p)
	switch {
	case t.Type() != TypeRun:
		return nil, fmt.Errorf("%w: type %.100q", ErrForeign, t.Type())
	case err != nil: // without the error, which may quote the payload
		return nil, fmt.Errorf("%w: the payload is not the JSON of a run", ErrForeign)
	case p.Version != payloadVersion:
		return nil, fmt.Errorf("%w: version %d, this worker reads %d", ErrForeign, p.Version, payloadVersion)
	case p.Installation != in:
		return nil, fmt.Errorf("%w but of %.100q", ErrForeign, p.Installation)
	case len(p.Runs) == 0:
		return nil, fmt.Errorf("%w: it has no runs", ErrForeign)
	}
	for _, run := range p.Runs {
		if run <= 0 {
			return nil, fmt.Errorf("%w: run %d is no id", ErrForeign, run)
		}
	}
	return p.Runs, nil
}

// Enqueuer enqueues the runs of an installation. Safe for concurrent use.
type Enqueuer struct {
	// Tracer makes a span for each task, whose context is in the headers of the task; nil for none.
	// Set it before the first use.
	Tracer trace.TracerProvider

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

// Enqueue enqueues runs of a trigger as one task: PerTask(trigger) at most. delivery numbers
// the deliveries of the first; run and delivery are the id of the task. So enqueueing is
// idempotent per delivery, and an archived task does not block the next delivery.
func (e *Enqueuer) Enqueue(ctx context.Context, trigger string, delivery int, runs ...int64) error {
	if n := len(runs); n == 0 || n > PerTask(trigger) {
		return fmt.Errorf("enqueue %d runs of trigger %s: at least one, at most %d", n, trigger, PerTask(trigger))
	}
	raw, err := json.Marshal(payload{Version: payloadVersion, Installation: e.installation, Runs: runs})
	if err != nil {
		return err
	}
	id := taskID(runs[0], delivery)
	ctx, span, headers := e.trace(ctx, trigger, id, runs)
	defer span.End()
	_, err = e.client.EnqueueContext(ctx, asynq.NewTaskWithHeaders(TypeRun, raw, headers),
		asynq.TaskID(id),
		asynq.Queue(e.installation.QueueFor(trigger)),
		asynq.Timeout(e.timeout*time.Duration(len(runs))),
		// Retries are scheduled in Postgres; those of asynq are for outages of Postgres.
		asynq.MaxRetry(5),
	)
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return nil // enqueued already; if that task is lost, the next delivery has another id
	}
	if err != nil {
		span.SetStatus(codes.Error, "redis")
		return fmt.Errorf("enqueue run %d: %w", runs[0], err)
	}
	e.redis.Publish(ctx, e.installation.Channel(), e.installation.QueueFor(trigger))
	return nil
}

// trace starts the span of a task and returns the headers that carry its context, nil without a Tracer.
func (e *Enqueuer) trace(ctx context.Context, trigger, id string, runs []int64) (context.Context, trace.Span, map[string]string) {
	if e.Tracer == nil {
		return ctx, noop.Span{}, nil
	}
	ctx, span := e.Tracer.Tracer(tracerName).Start(ctx, "enqueue "+trigger, trace.WithSpanKind(trace.SpanKindProducer))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("messaging.system", "asynq"), attribute.String("messaging.operation.type", "send"),
			attribute.String("messaging.destination.name", e.installation.QueueFor(trigger)), attribute.String("messaging.message.id", id),
			attribute.Int64Slice("compactor.runs", runs))
	}
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	return ctx, span, headers
}

// tracerName names the spans of tasks.
const tracerName = "github.com/sessionstore/compactor/worker/jobs"

// TraceOf returns ctx with the context of the span that Enqueue made for a task.
func TraceOf(ctx context.Context, t *asynq.Task) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(t.Headers()))
}

// Mark writes a mark into Redis and returns the one before, "" if there is none. A mark that
// is not the last one written means that Redis has lost the writes after it. Each queue
// has one beside it, on the same node of a cluster; if they differ, the one before is "".
func (e *Enqueuer) Mark(ctx context.Context, mark string) (before string, err error) {
	seen := map[string]bool{}
	pipeline := e.redis.Pipeline()
	for queue := range e.installation.Queues() {
		pipeline.GetSet(ctx, "compactor:mark:{"+queue+"}", mark)
	}
	commands, _ := pipeline.Exec(ctx) // each has its own error
	for _, cmd := range commands {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return "", fmt.Errorf("mark the queue: %w", err)
		}
		before = cmd.(*redis.StringCmd).Val()
		seen[before] = true
	}
	if len(seen) > 1 {
		return "", nil
	}
	return before, nil
}

// Served reports whether a worker serves the queues of the installation. One that was killed
// counts for some seconds more.
func (e *Enqueuer) Served() (bool, error) {
	servers, err := e.inspector.Servers()
	if err != nil {
		return false, fmt.Errorf("list workers: %w", err)
	}
	for _, s := range servers {
		for queue := range s.Queues {
			if e.installation.Queues()[queue] > 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

func taskID(run int64, delivery int) string { return fmt.Sprintf("run:%d:%d", run, delivery) }

// Close closes the connections.
func (e *Enqueuer) Close() error { return e.redis.Close() }
