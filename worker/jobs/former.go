package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hibiken/asynq"
)

// FormerTask is a task that an earlier version has enqueued, when all installations used the
// same queues: those whose names are in FormerQueueFor, and in which other programs may have
// tasks. Neither the queue nor the payload says whose run it is.
type FormerTask struct {
	Run      int64
	Delivery int
	Queue    string
}

// FormerQueueFor returns the queue that earlier versions used for a trigger.
func FormerQueueFor(trigger string) string { return queueFor(trigger) }

// FormerTasks returns the tasks that no worker has taken from the queues of earlier versions.
// It reads past the tasks of others, and may miss some that are moved meanwhile.
func (e *Enqueuer) FormerTasks(ctx context.Context) ([]FormerTask, error) {
	const pageSize = 100 // as others' payloads may be large
	var found []FormerTask
	for _, queue := range []string{queueInteractive, queueDefault, queueBulk} {
		for _, list := range []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
			e.inspector.ListPendingTasks, e.inspector.ListScheduledTasks, e.inspector.ListRetryTasks, e.inspector.ListArchivedTasks,
		} {
			for page := 1; ; page++ {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				tasks, err := list(queue, asynq.Page(page), asynq.PageSize(pageSize))
				if err != nil && !errors.Is(err, asynq.ErrQueueNotFound) {
					return nil, fmt.Errorf("list former tasks: %w", err)
				}
				if len(tasks) == 0 {
					break
				}
				for _, t := range tasks {
					if f, ok := readFormer(t); ok {
						found = append(found, f)
					}
				}
			}
		}
	}
	return found, nil
}

// readFormer reads a task as version 1 of the payload had it.
func readFormer(t *asynq.TaskInfo) (FormerTask, bool) {
	var p payload
	f := FormerTask{Queue: t.Queue}
	if t.Type != TypeRun || json.Unmarshal(t.Payload, &p) != nil || p.Version != 1 {
		return f, false
	}
	_, err := fmt.Sscanf(t.ID, "run:%d:%d", &f.Run, &f.Delivery)
	return f, err == nil && f.Run == p.Run && t.ID == taskID(f.Run, f.Delivery)
}

// RemoveFormerTask removes a task that FormerTasks returned, unless it is gone or a worker has
// taken it meanwhile.
func (e *Enqueuer) RemoveFormerTask(f FormerTask) error {
	id := taskID(f.Run, f.Delivery)
	err := e.inspector.DeleteTask(f.Queue, id)
	if err == nil || errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
		return nil
	}
	if t, terr := e.inspector.GetTaskInfo(f.Queue, id); terr == nil && t.State == asynq.TaskStateActive {
		return nil
	}
	return fmt.Errorf("remove former task %s: %w", id, err)
}
